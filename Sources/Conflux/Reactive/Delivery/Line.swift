/// First in, first out; each is put in and taken out in constant time.
struct Line<Element> {
    private var incoming: [Element] = []
    /// What comes out next is last.
    private var outgoing: [Element] = []

    var count: Int { incoming.count + outgoing.count }
    var isEmpty: Bool { incoming.isEmpty && outgoing.isEmpty }

    /// What comes out next.
    var first: Element? { outgoing.last ?? incoming.first }

    mutating func append(_ element: Element) {
        incoming.append(element)
    }

    mutating func removeFirst() -> Element? {
        if outgoing.isEmpty {
            swap(&incoming, &outgoing)
            outgoing.reverse()
        }
        return outgoing.popLast()
    }

    /// Puts what another line has before all that is here.
    mutating func prepend(_ other: Line) {
        outgoing += other.incoming.reversed()
        outgoing += other.outgoing
    }
}
