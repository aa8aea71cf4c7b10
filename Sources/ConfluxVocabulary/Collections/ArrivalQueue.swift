/// Elements in the order in which they arrived. Removing any of them has the same small cost.
///
/// *Invariant*: `first`, the links from it, and `last` are one chain through all elements.
package struct ArrivalQueue<Element: Hashable & Sendable>: Sendable {
    private struct Links: Sendable {
        var previous: Element?
        var next: Element?
    }

    private var links: [Element: Links] = [:]
    private var last: Element?
    /// The element that arrived before all others.
    package private(set) var first: Element?

    /// Makes a queue without elements.
    package init() {}

    /// How many elements there are.
    package var count: Int { links.count }

    /// Whether an element is in the queue.
    package func contains(_ element: Element) -> Bool { links[element] != nil }

    /// Adds an element at the end. It MUST NOT be in the queue.
    package mutating func append(_ element: Element) {
        let former = links.updateValue(Links(previous: last), forKey: element)
        precondition(former == nil, "\(element) is in the queue already")
        if let last { links[last]?.next = element } else { first = element }
        last = element
    }

    /// Removes an element, if it is in the queue.
    package mutating func remove(_ element: Element) {
        guard let ends = links.removeValue(forKey: element) else { return }
        if let previous = ends.previous {
            links[previous]?.next = ends.next
        } else {
            first = ends.next
        }
        if let next = ends.next {
            links[next]?.previous = ends.previous
        } else {
            last = ends.previous
        }
    }
}
