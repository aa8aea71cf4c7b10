extension TreeMap {
    /// What distinguishes a map from an older one.
    public struct Difference {
        /// The elements whose keys the older map lacks.
        public fileprivate(set) var added = TreeMap()
        /// The elements of the older map whose keys the map lacks.
        public fileprivate(set) var removed = TreeMap()
        /// The elements whose keys both have, with other values. These are the map's values.
        public fileprivate(set) var changed = TreeMap()

        /// Whether both maps have equal elements.
        public var isEmpty: Bool { added.isEmpty && removed.isEmpty && changed.isEmpty }
    }
}

extension TreeMap.Difference: Sendable where Key: Sendable, Value: Sendable {}
extension TreeMap.Difference: Equatable where Value: Equatable {}

extension TreeMap where Value: Equatable {
    /// The differences from an older map.
    ///
    /// ```swift
    /// for await change in ledger.changes(of: \.rows) {
    ///     let difference = change.new.difference(from: change.old)
    ///     for (id, row) in difference.added { print("+", id, row) }
    ///     for (id, row) in difference.changed { print("*", id, row) }
    ///     for id in difference.removed.keys { print("-", id) }
    /// }
    /// ```
    ///
    /// - Parameter old: The older map.
    /// - Returns: The elements that were added, removed and changed.
    /// - Complexity: If one map came from the other by a few changes, what they share is skipped: O(k log n) for k
    ///   changes. Otherwise O(n log n).
    public func difference(from old: TreeMap) -> Difference {
        let (former, present) = Self.unsharedLeaves(of: old, self)
        var difference = Difference()
        var (past, now) = (
            former.lazy.flatMap { zip($0.keys, $0.values) }.makeIterator(),
            present.lazy.flatMap { zip($0.keys, $0.values) }.makeIterator()
        )
        var (before, after) = (past.next(), now.next())
        while true {
            switch (before, after) {
            case (nil, nil): return difference
            case (let (key, value)?, let (newKey, newValue)?) where key == newKey:
                if value != newValue { difference.changed[key] = newValue }
                (before, after) = (past.next(), now.next())
            case (let (key, value)?, let other) where other.map { key < $0.0 } ?? true:
                difference.removed[key] = value
                before = past.next()
            case (_, let (key, value)?):
                difference.added[key] = value
                after = now.next()
            case (_, nil): preconditionFailure("what has no counterpart was removed")
            }
        }
    }

    /// The leaves of each map that are not in the other one.
    ///
    /// All leaves of a map are equally deep. So a node that both have is equally far above the leaves in both, and is met
    /// where the two are compared level by level.
    private static func unsharedLeaves(
        of one: TreeMap, _ other: TreeMap
    ) -> ([TreeNode<Key, Value>], [TreeNode<Key, Value>]) {
        var (ones, others) = ([one.root], [other.root])
        var (height, otherHeight) = (one.root.height, other.root.height)
        while true {
            if height == otherHeight {
                let (known, otherKnown) = (
                    Set(ones.map(ObjectIdentifier.init)), Set(others.map(ObjectIdentifier.init))
                )
                ones.removeAll { otherKnown.contains(ObjectIdentifier($0)) }
                others.removeAll { known.contains(ObjectIdentifier($0)) }
                if height == 0 { return (ones, others) }
            }
            let highest = Swift.max(height, otherHeight)
            if height == highest {
                ones = ones.flatMap(\.children)
                height -= 1
            }
            if otherHeight == highest {
                others = others.flatMap(\.children)
                otherHeight -= 1
            }
        }
    }
}

extension TreeNode {
    /// How many levels are below the node.
    fileprivate var height: Int { children.first.map { $0.height + 1 } ?? 0 }
}
