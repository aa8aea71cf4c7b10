/// A node of a ``TreeMap``: a leaf with keys and values, or an inner node with children.
///
/// Several maps may hold one node. So whoever changes a node MUST hold the only reference to it.
/// ``own(_:)`` and `TreeMap.ownRoot()` ensure this on the way down: they copy nodes that others
/// hold, too.
///
/// *Invariants*: The keys ascend. A leaf has as many values as keys, and no children. An inner node
/// has one key less than children; `keys[i]` is above every key below `children[i]`, and not above
/// any key below `children[i + 1]`. All leaves are equally deep. No node except the root is empty.
@usableFromInline
final class TreeNode<Key: Comparable, Value> {
    @usableFromInline var keys: ContiguousArray<Key>
    @usableFromInline var values: ContiguousArray<Value>
    @usableFromInline var children: ContiguousArray<TreeNode>

    @inlinable
    init(
        keys: ContiguousArray<Key> = [], values: ContiguousArray<Value> = [],
        children: ContiguousArray<TreeNode> = []
    ) {
        self.keys = keys
        self.values = values
        self.children = children
    }

    /// How many values or children a node has at most before it is split in two.
    @inlinable static var countMax: Int { 64 }
    /// How many values or children a node has at least before it is joined with a neighbour.
    @inlinable static var countMin: Int { 16 }

    @inlinable var isLeaf: Bool { children.isEmpty }
    /// How many values or children it has.
    @inlinable var count: Int { isLeaf ? keys.count : children.count }

    @inlinable
    func copy() -> TreeNode { TreeNode(keys: keys, values: values, children: children) }

    // MARK: Finding

    /// The place of the first key that is not below `key`.
    @inlinable
    func place(of key: Key) -> Int {
        var (low, high) = (0, keys.count)
        while low < high {
            let middle = (low + high) / 2
            if keys[middle] < key { low = middle + 1 } else { high = middle }
        }
        return low
    }

    /// The index of the child that has a key, if any child has it.
    @inlinable
    func child(for key: Key) -> Int {
        let place = place(of: key)
        return place < keys.count && keys[place] == key ? place + 1 : place
    }

    // MARK: Changing

    /// Ensures that no other map holds a child, and returns it.
    @inlinable
    func own(_ child: Int) -> TreeNode {
        if !isKnownUniquelyReferenced(&children[child]) {
            children[child] = children[child].copy()
        }
        return children[child]
    }

    /// Sets a value.
    ///
    /// - Returns: The former value.
    @inlinable
    func update(_ value: Value, for key: Key) -> Value? {
        guard !isLeaf else {
            let place = place(of: key)
            guard place < keys.count, keys[place] == key else {
                keys.insert(key, at: place)
                values.insert(value, at: place)
                return nil
            }
            let former = values[place]
            values[place] = value
            return former
        }
        let child = child(for: key)
        let former = own(child).update(value, for: key)
        split(child)
        return former
    }

    /// Removes a key and its value.
    @inlinable
    func remove(_ key: Key) -> Value? {
        guard !isLeaf else {
            let place = place(of: key)
            guard place < keys.count, keys[place] == key else { return nil }
            keys.remove(at: place)
            return values.remove(at: place)
        }
        let child = child(for: key)
        let former = own(child).remove(key)
        if children[child].count < Self.countMin { join(child) }
        return former
    }

    /// Splits a child that has more than the maximum.
    @inlinable
    func split(_ child: Int) {
        guard children[child].count > Self.countMax else { return }
        let (separator, right) = children[child].halve()
        keys.insert(separator, at: child)
        children.insert(right, at: child + 1)
    }

    /// Moves the upper half into a new node.
    ///
    /// - Returns: The least key of the upper half, and the new node.
    @inlinable
    func halve() -> (separator: Key, right: TreeNode) {
        let half = count / 2
        guard !isLeaf else {
            let right = TreeNode(
                keys: ContiguousArray(keys[half...]), values: ContiguousArray(values[half...]))
            keys.removeSubrange(half...)
            values.removeSubrange(half...)
            return (right.keys[0], right)
        }
        let separator = keys[half - 1]
        let right = TreeNode(
            keys: ContiguousArray(keys[half...]), children: ContiguousArray(children[half...]))
        keys.removeSubrange((half - 1)...)
        children.removeSubrange(half...)
        return (separator, right)
    }

    /// Joins a child with its neighbour. If the result is too large, halves it.
    @inlinable
    func join(_ child: Int) {
        guard children.count > 1 else { return }
        let left = child > 0 ? child - 1 : child
        let (into, from) = (own(left), children[left + 1])
        if !into.isLeaf { into.keys.append(keys[left]) }
        into.keys += from.keys
        into.values += from.values
        into.children += from.children
        keys.remove(at: left)
        children.remove(at: left + 1)
        split(left)
    }
}
