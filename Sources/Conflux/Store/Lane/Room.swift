import ConfluxThreads

/// Bounds how much may wait in one place, and keeps the threads that wait for room there.
///
/// A thread waits after it has put something there, and not for ever: making room may need that
/// very thread, for example if it sends from the queue that its store's executor uses. So if
/// nothing moves for ``stillnessMax``, it continues, and the bound is doubled until there is room again.
///
/// Its owner's mutex guards it; nobody waits while holding that.
@usableFromInline
struct Room {
    /// How long a thread waits while nothing moves.
    static let stillnessMax: Duration = .seconds(1)
    /// How often the bound is doubled at most: up to 16 times as much. Beyond that, what waits
    /// grows by one a second and thread.
    private static let doublingsMax = 4

    let countMax: Int
    private var doublings = 0
    /// *Use*: threads that wait.
    private var places: [Latch] = []

    init(countMax: Int) {
        self.countMax = countMax
    }

    /// Asks for room, after something was put there.
    ///
    /// - Parameter count: How much waits.
    /// - Returns: A place to wait in; nil if there is room.
    mutating func place(behind count: Int) -> Latch? {
        guard count > countMax << doublings else { return nil }
        let place = Latch()
        places.append(place)
        return place
    }

    /// Checks whether there is room again.
    ///
    /// - Parameter count: How much waits.
    /// - Returns: The threads that have waited, to be woken outside of the mutex.
    mutating func free(at count: Int) -> [Latch] {
        guard count <= countMax else { return [] }
        doublings = 0
        return exchange(&places, with: [])
    }

    /// Doubles the bound after a wait that timed out, unless there is room by now.
    mutating func widen(at count: Int) {
        guard count > countMax << doublings else { return }
        doublings = min(doublings + 1, Self.doublingsMax)
    }
}
