import Dispatch
import Synchronization

/// Fires once when a wait takes too long.
final class Watchdog: Sendable {
    let timeout: Duration
    // A dispatch source may be used from any thread. It is set once.
    private nonisolated(unsafe) let timer: any DispatchSourceTimer
    private let fired = Atomic(false)

    init(_ timeout: Duration, whenFired: @escaping @Sendable () -> Void) {
        self.timeout = timeout
        timer = DispatchSource.makeTimerSource(queue: .global())
        timer.setEventHandler { [weak self] in
            guard let self, !fired.exchange(true, ordering: .acquiringAndReleasing) else { return }
            whenFired()
        }
        timer.schedule(deadline: .distantFuture)
        timer.resume()
    }

    deinit {
        timer.cancel()
    }

    var hasFired: Bool { fired.load(ordering: .acquiring) }

    func arm() {
        let nanoseconds = Int(clamping: Int64(timeout / .nanoseconds(1)))
        timer.schedule(deadline: .now() + .nanoseconds(nanoseconds))
    }

    func disarm() {
        timer.schedule(deadline: .distantFuture)
    }

    func cancel() {
        timer.cancel()
    }
}
