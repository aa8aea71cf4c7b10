import ConfluxVocabulary

/// The peers at a ``Door``: which of them is served next, and which must go. Times are monotonic.
///
/// Strangers have nothing by which they could be told apart but the address that they come from. So addresses have
/// their turns, and the address with the most strangers loses one first. From one address the newest comes first:
/// under a flood the oldest will be lost anyway, and a stranger that is served at once is gone soon. A stranger that
/// goes on after WELCOME comes before all others: what it sends costs nothing unless it has opened the WELCOME.
struct StrangerTable {
    /// Where strangers come from.
    struct Origin: Hashable, Sendable {
        let family: UInt64
        let network: UInt64
    }

    private struct Stranger {
        let origin: Origin
        let openedAt: Duration
        var isWaiting = false
    }

    /// The strangers from one origin.
    private struct Party {
        /// All of them, oldest first.
        var all: [UInt32] = []
        /// Those that wait to be served, in the order in which they began to.
        var waiting: [UInt32] = []
    }

    private var strangers: [UInt32: Stranger] = [:]
    /// *Invariant*: an item for each origin of a stranger, and no other.
    private var parties: [Origin: Party] = [:]
    /// The origins from which somebody waits. The first one has the next turn.
    private var turns = ArrivalQueue<Origin>()
    /// Those that wait to be served before all others, in the order in which they began to.
    private var first = ArrivalQueue<UInt32>()

    /// How many there are.
    var count: Int { strangers.count }

    /// Whether somebody waits to be served.
    var hasWaiting: Bool { first.first != nil || turns.first != nil }

    /// Adds a stranger.
    mutating func add(_ number: UInt32, from origin: Origin, at now: Duration) {
        strangers[number] = Stranger(origin: origin, openedAt: now)
        parties[origin, default: Party()].all.append(number)
    }

    /// Removes a stranger, if it is in the table.
    mutating func remove(_ number: UInt32) {
        guard let stranger = strangers.removeValue(forKey: number) else { return }
        let origin = stranger.origin
        first.remove(number)
        if let place = parties[origin]?.all.firstIndex(of: number) {
            parties[origin]?.all.remove(at: place)
        }
        if stranger.isWaiting, let place = parties[origin]?.waiting.firstIndex(of: number) {
            parties[origin]?.waiting.remove(at: place)
        }
        if parties[origin]?.waiting.isEmpty == true { turns.remove(origin) }
        if parties[origin]?.all.isEmpty == true { parties[origin] = nil }
    }

    /// Notes that a stranger waits to be served.
    ///
    /// - Parameters:
    ///   - number: The stranger.
    ///   - isFirst: Whether it comes before all for which this is false.
    mutating func wait(_ number: UInt32, isFirst: Bool) {
        guard let stranger = strangers[number], !stranger.isWaiting, !first.contains(number) else {
            return
        }
        guard !isFirst else {
            first.append(number)
            return
        }
        strangers[number]?.isWaiting = true
        parties[stranger.origin]?.waiting.append(number)
        if !turns.contains(stranger.origin) { turns.append(stranger.origin) }
    }

    /// The stranger that is served next. It waits no longer.
    mutating func next() -> UInt32? {
        if let number = first.first {
            first.remove(number)
            return number
        }
        guard let origin = turns.first, let number = parties[origin]?.waiting.popLast() else {
            return nil
        }
        strangers[number]?.isWaiting = false
        turns.remove(origin)
        if parties[origin]?.waiting.isEmpty == false { turns.append(origin) }
        return number
    }

    /// The stranger that must go if there are too many: the oldest one from the origin of the most.
    var surplus: UInt32? { parties.values.max { $0.all.count < $1.all.count }?.all.first }

    /// The strangers that came more than some time ago.
    func overdue(at now: Duration, after limit: Duration) -> [UInt32] {
        strangers.compactMap { now - $1.openedAt > limit ? $0 : nil }
    }
}
