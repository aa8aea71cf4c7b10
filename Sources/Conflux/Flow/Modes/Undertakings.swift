import ConfluxThreads
import Synchronization

/// The dispatches of a scope in modes that are under way. A thread that adds one waits while there
/// are too many.
final class Backlog: Sendable {
    private struct Content {
        var underWay = 0
        var room = Room(countMax: LaneLimits.waitingMax)
        /// *Use*: called once, when nothing is under way. *Invariant*: empty while nothing is.
        var waiters: [@Sendable () -> Void] = []
    }

    private let content = Mutex(Content())

    /// Counts one more dispatch.
    func begin() { content.withLock { $0.underWay += 1 } }

    /// Counts one dispatch less.
    func end() {
        let (places, waiters) = content.withLock { content in
            content.underWay -= 1
            let waiters = content.underWay == 0 ? content.waiters : []
            if content.underWay == 0 { content.waiters = [] }
            return (content.room.free(at: content.underWay), waiters)
        }
        for place in places { place.open() }
        for waiter in waiters { waiter() }
    }

    /// Calls a function once when nothing is under way; at once, if nothing is.
    func whenEmpty(_ body: @escaping @Sendable () -> Void) {
        let isEmpty = content.withLock { content in
            if content.underWay > 0 { content.waiters.append(body) }
            return content.underWay == 0
        }
        if isEmpty { body() }
    }

    /// Waits while there are too many, if this thread may wait.
    func waitForRoom() {
        guard ThreadMark.current.pointee.mayWait else { return }
        let place = content.withLock { $0.room.place(behind: $0.underWay) }
        guard let place, !place.wait(for: Room.stillnessMax) else { return }
        content.withLock { $0.room.widen(at: $0.underWay) }
    }
}

/// The last of several undertakings each of which waits for the one before.
final class FlowSeries: Sendable {
    private let last = Mutex<DispatchHandle?>(nil)

    /// Puts an undertaking behind the last one, which is returned.
    func add(_ undertaking: DispatchHandle) -> DispatchHandle? {
        last.withLock { exchange(&$0, with: undertaking) }
    }
}

extension Scope {
    /// Begins something once others have ended: under the lock of the code that asks for it.
    ///
    /// - Parameters:
    ///   - others: What it waits for.
    ///   - isSerial: Whether it also waits for the last serial undertaking of the scope, or of the
    ///     lock, and the next one for it.
    ///   - begin: Called once: at once, or on the thread that ends the last of what it waits for,
    ///     holding no lock. It gets a function to report the end with.
    /// - Returns: The handle to wait for its end with.
    func undertake(
        after others: [DispatchHandle], isSerial: Bool,
        _ begin: @escaping @Sendable (_ end: @escaping @Sendable (Outcome) -> Void) -> Void
    ) -> DispatchHandle {
        let block = OutcomeBlock()
        let handle = DispatchHandle(block: block, index: block.reserve())
        // A lock's holder does not wait for the serial work of others, which the lock pauses.
        let series = FlowLock.held(in: self)?.series ?? series
        let before = isSerial ? others + [series.add(handle)].compactMap { $0 } : others
        let held = FlowLock.held
        let rest = Countdown(before.count + 1) {
            FlowLock.holding(held) { begin { block.settle(from: 0, with: $0) } }
        }
        for other in before {
            // It may be a dispatch of any kind, whose end is reported by a thread that others need.
            other.whenEnded { _ in ThreadMark.current.neededByOthers { rest.count() } }
        }
        rest.count()
        return handle
    }
}
