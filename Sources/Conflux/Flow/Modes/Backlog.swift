import Dispatch
import Synchronization

/// How many dispatches of a scope in modes are under way; who adds to too many waits with them.
final class Backlog: Sendable {
    fileprivate struct Count {
        var underWay = 0
        /// Of which generation they are; only those with any.
        var byGeneration: [UInt64: Int] = [:]
        /// Raised whenever somebody begins to wait for all before.
        var generation: UInt64 = 0
        /// *Use*: who waits for generations up to one.
        var waiters: [(last: UInt64, body: @Sendable () -> Void)] = []
        var room = Room(countMax: LaneLimits.waitingMax)
    }

    private let count = Mutex(Count())

    /// Counts one more.
    ///
    /// - Parameter parent: The generation of what brings it about, which is under way; the present one if nil.
    /// - Returns: Its generation.
    func begin(as parent: UInt64?) -> UInt64 {
        count.withLock { count in
            let generation = parent ?? count.generation
            count.underWay += 1
            count.byGeneration[generation, default: 0] += 1
            return generation
        }
    }

    /// Counts one less.
    func end(_ generation: UInt64) {
        let (places, waiters) = count.withLock { count in
            count.underWay -= 1
            count.byGeneration[generation, default: 1] -= 1
            if count.byGeneration[generation] == 0 { count.byGeneration[generation] = nil }
            return (count.room.free(at: count.underWay), count.takeWaiters())
        }
        for place in places { place.signal() }
        for waiter in waiters { waiter() }
    }

    /// Has a function called once when all that is under way now has ended, and what is chained to it.
    func whenEnded(_ body: @escaping @Sendable () -> Void) {
        let waiters = count.withLock { count in
            count.waiters.append((count.generation, body))
            count.generation += 1
            return count.takeWaiters()
        }
        for waiter in waiters { waiter() }
    }

    /// Waits while there are too many, if this thread may.
    func waitForRoom() {
        guard ThreadMark.current.pointee.mayWait,
            let place = count.withLock({ $0.room.place(behind: $0.underWay) }),
            place.wait(timeout: .now() + Room.stillnessMax) == .timedOut
        else { return }
        count.withLock { $0.room.widen(at: $0.underWay) }
    }
}

extension Backlog.Count {
    /// Whose generations have ended.
    fileprivate mutating func takeWaiters() -> [@Sendable () -> Void] {
        guard !waiters.isEmpty else { return [] }
        let oldest = byGeneration.keys.min() ?? .max
        let count = waiters.prefix { $0.last < oldest }.count
        defer { waiters.removeFirst(count) }
        return waiters[..<count].map(\.body)
    }
}
