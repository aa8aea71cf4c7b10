import ConfluxVocabulary

/// Stores that wait for their turn, each once, in the order in which they were added.
struct StoreQueue: Sendable {
    private struct Place: Sendable {
        let name: StoreName
        let ticket: UInt64
    }

    /// *Invariant*: the place at `head` is valid, or there is none. Later places may be void: their
    /// store has left the queue, or has another place further back.
    private var line: [Place] = []
    private var head = 0
    /// The valid place of each store.
    private var tickets: [StoreName: UInt64] = [:]
    private var nextTicket: UInt64 = 0

    var count: Int { tickets.count }
    var isEmpty: Bool { tickets.isEmpty }

    func contains(_ name: StoreName) -> Bool { tickets[name] != nil }

    /// The next store.
    var first: StoreName? { head < line.count ? line[head].name : nil }

    /// Adds a store at the end, unless it waits already.
    mutating func append(_ name: StoreName) {
        guard tickets[name] == nil else { return }
        tickets[name] = nextTicket
        line.append(Place(name: name, ticket: nextTicket))
        nextTicket += 1
    }

    mutating func remove(_ name: StoreName) {
        guard tickets.removeValue(forKey: name) != nil else { return }
        while head < line.count, !isTaken(line[head]) { head += 1 }
        // This bounds the number of void places.
        if line.count > 2 * tickets.count + 64 {
            line = line[head...].filter(isTaken)
            head = 0
        }
    }

    /// All stores, in order.
    var names: [StoreName] { prefix { _ in true } }

    /// The longest prefix of stores that satisfy a condition.
    func prefix(while isIncluded: (StoreName) -> Bool) -> [StoreName] {
        var names: [StoreName] = []
        for place in line[head...] where isTaken(place) {
            guard isIncluded(place.name) else { break }
            names.append(place.name)
        }
        return names
    }

    private func isTaken(_ place: Place) -> Bool { tickets[place.name] == place.ticket }
}
