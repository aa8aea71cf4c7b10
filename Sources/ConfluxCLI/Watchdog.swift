import Dispatch
import Synchronization

/// Fires once when a wait takes too long.
///
/// To begin and to end a wait takes no system call: the timer is set when none is pending, and looks at the wait that
/// there is when its time has come.
final class Watchdog: Sendable {
    private struct State {
        /// When the present wait has taken too long; nil if there is none.
        var deadline: DispatchTime?
        var isPending = false
        var hasFired = false
    }

    let timeout: Duration
    // A dispatch source may be used from any thread. It is set once.
    private nonisolated(unsafe) let timer: any DispatchSourceTimer
    private let state = Mutex(State())

    init(_ timeout: Duration, whenFired: @escaping @Sendable () -> Void) {
        self.timeout = timeout
        timer = DispatchSource.makeTimerSource(queue: .global())
        timer.setEventHandler { [weak self] in
            if self?.look() == true { whenFired() }
        }
        timer.schedule(deadline: .distantFuture)
        timer.resume()
    }

    deinit {
        timer.cancel()
    }

    var hasFired: Bool { state.withLock(\.hasFired) }

    /// Begins a wait.
    func arm() {
        let nanoseconds = Int(clamping: Int64(timeout / .nanoseconds(1)))
        let deadline = DispatchTime.now() + .nanoseconds(nanoseconds)
        let mustSchedule = state.withLock { state in
            state.deadline = deadline
            defer { state.isPending = true }
            return !state.isPending
        }
        if mustSchedule { timer.schedule(deadline: deadline) }
    }

    /// Ends the wait.
    func disarm() {
        state.withLock { $0.deadline = nil }
    }

    func cancel() {
        timer.cancel()
    }

    /// Sets the timer again if the present wait may take longer.
    ///
    /// - Returns: Whether it has taken too long, for the first time.
    private func look() -> Bool {
        let (isLate, next) = state.withLock { state -> (Bool, DispatchTime?) in
            guard let deadline = state.deadline, !state.hasFired else {
                state.isPending = false
                return (false, nil)
            }
            if deadline > .now() { return (false, deadline) }
            state.hasFired = true
            return (true, nil)
        }
        if let next { timer.schedule(deadline: next) }
        return isLate
    }
}
