extension RandomAccessCollection {
    /// Finds the first element for which a condition holds.
    ///
    /// - Parameter isBehind: The condition. If it holds for an element, it holds for every later one.
    /// - Returns: Its index; `endIndex` if there is none.
    /// - Complexity: O(log *n*) calls.
    @inlinable
    package func partitioningIndex(where isBehind: (Element) -> Bool) -> Index {
        var first = startIndex
        var count = count
        while count > 0 {
            let half = count / 2
            let middle = index(first, offsetBy: half)
            if isBehind(self[middle]) {
                count = half
            } else {
                first = index(after: middle)
                count -= half + 1
            }
        }
        return first
    }
}
