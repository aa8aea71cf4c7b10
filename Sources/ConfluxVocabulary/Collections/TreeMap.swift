/// A map sorted by its keys, whose copies share what they have in common.
///
/// A copy costs the same, however large the map is. A change after a copy copies a few small nodes.
/// A `Dictionary` copies its whole table at the first change after a copy, which takes a quarter of
/// a second for a million elements. At each digest point, a node encodes a copy of a store's state
/// while it applies further actions. So use this map for the large parts of a replicated state,
/// from some 100,000 elements up.
///
///     struct Ledger: Model {
///         static let name = "ledger"
///         var rows: TreeMap<String, Row> = [:]
///         …
///     }
///
/// It is encoded like a dictionary. So a state may change from one to the other, and snapshots of
/// either can be read.
///
/// The time to find, set or remove an element grows with the logarithm of the count. A map has
/// value semantics: use it from several threads as you would use a dictionary.
public struct TreeMap<Key: Comparable, Value> {
    @usableFromInline var root: TreeNode<Key, Value>
    /// How many elements there are.
    public private(set) var count: Int

    /// Makes an empty map.
    public init() {
        root = TreeNode()
        count = 0
    }

    /// Makes a map from elements.
    ///
    /// - Parameters:
    ///   - elements: Keys and values in any order. Ascending keys are faster.
    ///   - combine: Makes the value for a repeated key, from the former and the new value.
    /// - Throws: The error of `combine`.
    /// - Complexity: O(n) if the keys ascend, otherwise O(n log n).
    @inlinable
    public init(
        _ elements: some Sequence<(Key, Value)>,
        uniquingKeysWith combine: (Value, Value) throws -> Value
    ) rethrows {
        var (keys, values) = (ContiguousArray<Key>(), ContiguousArray<Value>())
        self.init()
        var isAscending = true
        for (key, value) in elements {
            if isAscending, keys.last.map({ $0 < key }) ?? true {
                keys.append(key)
                values.append(value)
                continue
            }
            if isAscending {
                isAscending = false
                self = Self(ascending: keys, values)
            }
            let former = self[key]
            updateValue(try former.map { try combine($0, value) } ?? value, forKey: key)
        }
        if isAscending { self = Self(ascending: keys, values) }
    }

    /// Makes a map from elements whose keys ascend.
    @inlinable
    init(ascending keys: ContiguousArray<Key>, _ values: ContiguousArray<Value>) {
        // Nodes are filled evenly, to three quarters, so that each has room for more.
        func parts(of count: Int) -> [Range<Int>] {
            let parts = Swift.max(1, (count + 47) / 48)
            return (0..<parts).map { count * $0 / parts..<count * ($0 + 1) / parts }
        }
        var firsts = ContiguousArray<Key>()
        var nodes = ContiguousArray<TreeNode<Key, Value>>()
        for part in parts(of: keys.count) {
            nodes.append(
                TreeNode(
                    keys: ContiguousArray(keys[part]), values: ContiguousArray(values[part])))
            if nodes.count > 1 { firsts.append(keys[part.lowerBound]) }
        }
        // `firsts[i]` is the least key below `nodes[i + 1]`.
        while nodes.count > 1 {
            var (above, aboveFirsts) = (
                ContiguousArray<TreeNode<Key, Value>>(), ContiguousArray<Key>()
            )
            for part in parts(of: nodes.count) {
                above.append(
                    TreeNode(
                        keys: ContiguousArray(firsts[part.lowerBound..<part.upperBound - 1]),
                        children: ContiguousArray(nodes[part])))
                if part.lowerBound > 0 { aboveFirsts.append(firsts[part.lowerBound - 1]) }
            }
            (nodes, firsts) = (above, aboveFirsts)
        }
        self.init(root: nodes[0], count: keys.count)
    }

    @usableFromInline
    init(root: TreeNode<Key, Value>, count: Int) {
        self.root = root
        self.count = count
    }

    /// Whether there are no elements.
    public var isEmpty: Bool { count == 0 }

    // MARK: Single elements

    /// The value of a key; nil if there is none. Set it to nil to remove the key.
    @inlinable
    public subscript(key: Key) -> Value? {
        get {
            let leaf = leaf(of: key)
            let place = leaf.place(of: key)
            return place < leaf.keys.count && leaf.keys[place] == key ? leaf.values[place] : nil
        }
        set {
            if let newValue {
                updateValue(newValue, forKey: key)
            } else {
                removeValue(forKey: key)
            }
        }
    }

    /// The value of a key, or a default, which is stored if you change the value. The change
    /// happens in place.
    @inlinable
    public subscript(
        key: Key, default defaultValue: @autoclosure () -> Value
    ) -> Value {
        get { self[key] ?? defaultValue() }
        _modify {
            if self[key] == nil { updateValue(defaultValue(), forKey: key) }
            var node = ownRoot()
            while !node.isLeaf { node = node.own(node.child(for: key)) }
            yield &node.values[node.place(of: key)]
        }
    }

    /// Sets a value.
    ///
    /// - Returns: The former value of the key, if there was one.
    @inlinable
    @discardableResult
    public mutating func updateValue(_ value: Value, forKey key: Key) -> Value? {
        let former = ownRoot().update(value, for: key)
        if root.count > TreeNode<Key, Value>.countMax {
            let (separator, right) = root.halve()
            root = TreeNode(keys: [separator], children: [root, right])
        }
        if former == nil { setCount(count + 1) }
        return former
    }

    /// Removes a key and its value.
    ///
    /// - Returns: The value that it had, if there was one.
    @inlinable
    @discardableResult
    public mutating func removeValue(forKey key: Key) -> Value? {
        // A key that is absent must not make the map copy nodes.
        guard self[key] != nil else { return nil }
        let former = ownRoot().remove(key)
        if root.children.count == 1 { root = root.children[0] }
        setCount(count - 1)
        return former
    }

    /// Removes all elements.
    public mutating func removeAll() { self = Self() }

    @inlinable
    func leaf(of key: Key) -> TreeNode<Key, Value> {
        var node = root
        while !node.isLeaf { node = node.children[node.child(for: key)] }
        return node
    }

    /// Ensures that no other map holds the root, and returns it.
    @inlinable
    mutating func ownRoot() -> TreeNode<Key, Value> {
        if !isKnownUniquelyReferenced(&root) { root = root.copy() }
        return root
    }

    @usableFromInline
    mutating func setCount(_ count: Int) { self.count = count }
}

/// Sendable because nodes that several maps hold are never changed: a thread changes only the nodes
/// that its own map alone holds.
extension TreeMap: @unchecked Sendable where Key: Sendable, Value: Sendable {}
