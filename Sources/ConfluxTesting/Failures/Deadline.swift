import Conflux
import Dispatch
import Synchronization

/// Runs a function after some time, unless it is cancelled before.
final class Deadline: Sendable {
    private let body: Mutex<(@Sendable () -> Void)?>

    init(in time: Duration, _ body: @escaping @Sendable () -> Void) {
        self.body = Mutex(body)
        DispatchQueue.global().asyncAfter(deadline: .now() + time.dispatchInterval) {
            self.take()?()
        }
    }

    /// Prevents the function from running, unless it runs already.
    func cancel() {
        _ = take()
    }

    private func take() -> (@Sendable () -> Void)? {
        body.withLock { exchange(&$0, with: nil) }
    }
}
