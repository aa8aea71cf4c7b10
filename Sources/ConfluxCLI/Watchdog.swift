import ConfluxNode
import Dispatch
import Synchronization

/// Fires once when a wait takes too long, or a little later.
///
/// Beginning and ending a wait takes no system call: a timer looks at the present wait now and then.
final class Watchdog: Sendable {
    /// How often the timer looks within the longest time of a wait.
    private static let looks = 50

    let timeout: Duration
    // A dispatch source may be used from any thread. It is set once.
    private nonisolated(unsafe) let timer: any DispatchSourceTimer
    /// When the present wait has taken too long, in nanoseconds of the uptime clock.
    private let deadline = Atomic<UInt64>(.max)
    private let fired = Atomic(false)

    init(_ timeout: Duration, whenFired: @escaping @Sendable () -> Void) {
        self.timeout = timeout
        timer = DispatchSource.makeTimerSource(queue: .global())
        let interval = max(timeout / Self.looks, .milliseconds(1)).dispatchInterval
        timer.schedule(deadline: .now() + interval, repeating: interval)
        timer.setEventHandler { [weak self] in
            if self?.look() == true { whenFired() }
        }
        timer.activate()
    }

    deinit { timer.cancel() }

    var hasFired: Bool { fired.load(ordering: .acquiring) }

    /// Begins a wait.
    func arm() {
        let nanoseconds = UInt64(clamping: Int64(timeout / .nanoseconds(1)))
        deadline.store(
            DispatchTime.now().uptimeNanoseconds + nanoseconds, ordering: .releasing)
    }

    /// Ends the wait.
    func disarm() { deadline.store(.max, ordering: .releasing) }

    func cancel() { timer.cancel() }

    /// - Returns: Whether the present wait has taken too long, for the first time.
    private func look() -> Bool {
        guard DispatchTime.now().uptimeNanoseconds >= deadline.load(ordering: .acquiring) else {
            return false
        }
        return !fired.exchange(true, ordering: .acquiringAndReleasing)
    }
}
