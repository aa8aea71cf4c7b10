/// Elements of which the least one is always at hand: a binary heap.
package struct Heap<Element: Comparable> {
    /// No element is less than its parent, which is at half its index.
    private var elements: [Element] = []

    package init() {}

    package var count: Int { elements.count }

    /// The least element.
    package var first: Element? { elements.first }

    /// - Complexity: O(log *n*).
    package mutating func insert(_ element: Element) {
        elements.append(element)
        var index = elements.count - 1
        while index > 0, elements[index] < elements[(index - 1) / 2] {
            elements.swapAt(index, (index - 1) / 2)
            index = (index - 1) / 2
        }
    }

    /// Removes the least element.
    ///
    /// - Complexity: O(log *n*).
    package mutating func popFirst() -> Element? {
        guard !elements.isEmpty else { return nil }
        elements.swapAt(0, elements.count - 1)
        let first = elements.removeLast()
        var index = 0
        while true {
            let children = (2 * index + 1..<2 * index + 3).clamped(to: 0..<elements.count)
            guard let least = children.min(by: { elements[$0] < elements[$1] }),
                elements[least] < elements[index]
            else { return first }
            elements.swapAt(index, least)
            index = least
        }
    }

    package mutating func removeAll(where isRemoved: (Element) -> Bool) {
        elements.removeAll(where: isRemoved)
        // What is sorted is a heap, too.
        elements.sort()
    }
}
