import ConfluxThreads

/// Bounds how much may wait in one place, and keeps the threads that wait for room there.
///
/// A thread waits after it has put something there, and not for ever: making room may need that
/// very thread, for example if it sends from the queue that its store's executor uses. So it
/// continues after ``stillnessMax``, and what waits grows by one a second and thread.
///
/// Its owner's mutex guards it; nobody waits while holding that.
@usableFromInline
struct Room {
    /// How long a thread waits while nothing moves.
    static let stillnessMax: Duration = .seconds(1)

    let countMax: Int
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
        guard count > countMax else { return nil }
        let place = Latch()
        places.append(place)
        return place
    }

    /// Checks whether there is room again.
    ///
    /// - Parameter count: How much waits.
    /// - Returns: The threads that have waited, to be woken outside of the mutex.
    mutating func free(at count: Int) -> [Latch] {
        guard count <= countMax, !places.isEmpty else { return [] }
        defer { places = [] }
        return places
    }
}
