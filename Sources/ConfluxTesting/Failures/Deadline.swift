import Conflux
import Dispatch
import Synchronization

/// Runs a function when a time has passed, unless it is cancelled before.
final class Deadline: Sendable {
    private let body: Mutex<(@Sendable () -> Void)?>

    init(in time: Duration, _ body: @escaping @Sendable () -> Void) {
        self.body = Mutex(body)
        DispatchQueue.global().asyncAfter(deadline: .now() + time.dispatchInterval) {
            self.take()?()
        }
    }

    /// Runs the function no more.
    func cancel() {
        _ = take()
    }

    private func take() -> (@Sendable () -> Void)? {
        body.withLock { body in
            defer { body = nil }
            return body
        }
    }
}
