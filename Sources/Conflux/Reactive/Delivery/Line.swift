/// First in, first out. Each element is put in and taken out in constant time on average.
package struct Line<Element> {
    private var incoming: [Element] = []
    /// The next element to come out is last.
    private var outgoing: [Element] = []

    /// Makes an empty line.
    package init() {}

    var count: Int { incoming.count + outgoing.count }
    package var isEmpty: Bool { incoming.isEmpty && outgoing.isEmpty }

    /// The next element to come out.
    package var first: Element? { outgoing.last ?? incoming.first }

    package mutating func append(_ element: Element) {
        incoming.append(element)
    }

    package mutating func removeFirst() -> Element? {
        if outgoing.isEmpty {
            swap(&incoming, &outgoing)
            outgoing.reverse()
        }
        return outgoing.popLast()
    }
}
