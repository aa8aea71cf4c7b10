import Dispatch
import Synchronization

/// Fires once when a wait takes too long.
///
/// Beginning and ending a wait takes no system call: the timer is set only if it is not set already. When its time has
/// come, it looks at the wait that there is then.
final class Watchdog: Sendable {
    private struct Wait {
        /// When it has taken too long; nil if nothing is awaited.
        var deadline: DispatchTime?
        /// Whether the timer is set.
        var isPending = false
        var hasFired = false
    }

    let timeout: Duration
    // A dispatch source may be used from any thread. It is set once.
    private nonisolated(unsafe) let timer: any DispatchSourceTimer
    private let wait = Mutex(Wait())

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

    var hasFired: Bool { wait.withLock(\.hasFired) }

    /// Begins a wait.
    func arm() {
        let nanoseconds = Int(clamping: Int64(timeout / .nanoseconds(1)))
        let deadline = DispatchTime.now() + .nanoseconds(nanoseconds)
        let mustSchedule = wait.withLock { wait in
            wait.deadline = deadline
            defer { wait.isPending = true }
            return !wait.isPending
        }
        if mustSchedule { timer.schedule(deadline: deadline) }
    }

    /// Ends the wait.
    func disarm() {
        wait.withLock { $0.deadline = nil }
    }

    func cancel() {
        timer.cancel()
    }

    /// Sets the timer again if the present wait may take longer.
    ///
    /// - Returns: Whether it has taken too long, for the first time.
    private func look() -> Bool {
        let (isLate, next) = wait.withLock { wait -> (Bool, DispatchTime?) in
            guard let deadline = wait.deadline, !wait.hasFired else {
                wait.isPending = false
                return (false, nil)
            }
            if deadline > .now() { return (false, deadline) }
            wait.hasFired = true
            return (true, nil)
        }
        if let next { timer.schedule(deadline: next) }
        return isLate
    }
}
