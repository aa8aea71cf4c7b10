extension TreeMap: Sequence {
    /// A key and its value.
    public typealias Element = (key: Key, value: Value)

    /// Visits a map's elements in the order of their keys.
    public struct Iterator: IteratorProtocol {
        /// The nodes from the root to the current leaf, and in each the index of what comes next.
        @usableFromInline var way: [(node: TreeNode<Key, Value>, next: Int)]

        @inlinable
        init(_ root: TreeNode<Key, Value>) {
            way = [(root, 0)]
        }

        /// Begins behind a key, whether the map has it or not.
        init(_ root: TreeNode<Key, Value>, behind key: Key) {
            way = []
            var node = root
            while !node.isLeaf {
                let child = node.child(for: key)
                way.append((node, child + 1))
                node = node.children[child]
            }
            let place = node.place(of: key)
            let isThere = place < node.keys.count && node.keys[place] == key
            way.append((node, isThere ? place + 1 : place))
        }

        /// The next element; nil after the last one.
        @inlinable
        public mutating func next() -> Element? {
            while let (node, next) = way.last {
                guard next < node.count else {
                    way.removeLast()
                    continue
                }
                way[way.count - 1].next += 1
                if node.isLeaf { return (node.keys[next], node.values[next]) }
                way.append((node.children[next], 0))
            }
            return nil
        }
    }

    /// Visits the elements in the order of their keys. Later changes of the map are not seen.
    @inlinable
    public func makeIterator() -> Iterator { Iterator(root) }

    /// The elements whose keys are greater than one, in the order of their keys. Finding the first takes logarithmic time.
    package func elements(behind key: Key) -> IteratorSequence<Iterator> {
        IteratorSequence(Iterator(root, behind: key))
    }

    /// The exact count: a map knows it.
    @inlinable
    public var underestimatedCount: Int { count }

    /// The keys, ascending.
    public var keys: some Sequence<Key> { lazy.map(\.key) }
    /// The values, in the order of their keys.
    public var values: some Sequence<Value> { lazy.map(\.value) }

    /// The element with the least key; nil in an empty map.
    public var first: Element? {
        var node = root
        while let child = node.children.first { node = child }
        return node.keys.first.map { ($0, node.values[0]) }
    }

    /// The element with the greatest key; nil in an empty map.
    public var last: Element? {
        var node = root
        while let child = node.children.last { node = child }
        return node.keys.last.map { ($0, node.values[node.values.count - 1]) }
    }
}

extension TreeMap: ExpressibleByDictionaryLiteral {
    /// Makes a map from a literal. Keys MUST be distinct.
    public init(dictionaryLiteral elements: (Key, Value)...) {
        self.init(elements) { _, _ in preconditionFailure("a key comes twice in a literal") }
    }
}

extension TreeMap: Equatable where Value: Equatable {
    /// Whether two maps have equal elements. Maps that share everything are compared at once.
    public static func == (one: TreeMap, other: TreeMap) -> Bool {
        one.root === other.root
            || (one.count == other.count
                && zip(one, other).allSatisfy { $0.key == $1.key && $0.value == $1.value })
    }
}

extension TreeMap: Hashable where Key: Hashable, Value: Hashable {
    /// Feeds all elements to a hasher.
    public func hash(into hasher: inout Hasher) {
        hasher.combine(count)
        for (key, value) in self {
            hasher.combine(key)
            hasher.combine(value)
        }
    }
}

extension TreeMap: CustomStringConvertible {
    /// The elements, shown like those of a dictionary, in the order of their keys.
    public var description: String {
        isEmpty
            ? "[:]"
            : "["
                + map { "\(String(reflecting: $0.key)): \(String(reflecting: $0.value))" }
                .joined(separator: ", ") + "]"
    }
}
