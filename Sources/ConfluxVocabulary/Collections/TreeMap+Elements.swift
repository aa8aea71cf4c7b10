extension TreeMap: Sequence {
    /// A key and its value.
    public typealias Element = (key: Key, value: Value)

    /// Goes through a map in the order of its keys.
    public struct Iterator: IteratorProtocol {
        /// The nodes from the root to the leaf at hand, and in each the place of what comes next.
        @usableFromInline var way: [(node: TreeNode<Key, Value>, next: Int)]

        @inlinable
        init(_ root: TreeNode<Key, Value>) {
            way = [(root, 0)]
        }

        /// The next element; nil behind the last one.
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

    /// Goes through the elements in the order of their keys. What changes meanwhile is not seen.
    @inlinable
    public func makeIterator() -> Iterator { Iterator(root) }

    /// The exact count: a sequence may be asked for it.
    @inlinable
    public var underestimatedCount: Int { count }

    /// The keys, which ascend.
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
    /// Makes a map of a literal. Keys MUST NOT come twice.
    public init(dictionaryLiteral elements: (Key, Value)...) {
        self.init(elements) { _, _ in preconditionFailure("a key comes twice in a literal") }
    }
}

extension TreeMap: Equatable where Value: Equatable {
    /// Whether two maps have equal elements. Maps that share all they have are compared at once.
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
    /// The elements as a dictionary shows them, in the order of their keys.
    public var description: String {
        isEmpty
            ? "[:]"
            : "["
                + map { "\(String(reflecting: $0.key)): \(String(reflecting: $0.value))" }
                .joined(separator: ", ") + "]"
    }
}
