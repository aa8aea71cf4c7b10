import Dispatch
import Synchronization

/// How many dispatches of a scope are under way on a queue; who adds to too many waits with them.
final class Backlog: Sendable {
    private struct Count {
        var underWay = 0
        /// How often the bound was doubled since there was room.
        var doublings = 0
        /// *Use*: threads that wait for room.
        var crowded: [DispatchSemaphore] = []
    }

    private let count = Mutex(Count())

    /// Counts one more.
    func begin() {
        count.withLock { $0.underWay += 1 }
    }

    /// Counts one less.
    func end() {
        let places = count.withLock { count -> [DispatchSemaphore] in
            count.underWay -= 1
            guard count.underWay <= LaneLimits.waitingMax else { return [] }
            count.doublings = 0
            defer { count.crowded = [] }
            return count.crowded
        }
        for place in places { place.signal() }
    }

    /// Waits while there are too many, if this thread may, and not for ever: they may need this very
    /// thread. As with a lane, the bound is doubled then.
    func waitForRoom() {
        guard ThreadMark.current.pointee.mayWait else { return }
        let place = count.withLock { count -> DispatchSemaphore? in
            guard count.underWay > LaneLimits.waitingMax << count.doublings else { return nil }
            let place = DispatchSemaphore(value: 0)
            count.crowded.append(place)
            return place
        }
        guard let place else { return }
        guard place.wait(timeout: .now() + LaneLimits.stillnessMax) == .timedOut else { return }
        count.withLock { count in
            count.doublings = min(count.doublings + 1, LaneLimits.doublingsMax)
        }
    }
}
