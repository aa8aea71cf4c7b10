import Synchronization

/// Calls a function when it has been counted down to zero.
final class Countdown: Sendable {
    private let left: Atomic<Int>
    private let body: @Sendable () -> Void

    /// - Parameters:
    ///   - count: How often ``count()`` is called, at least once.
    ///   - body: Called once, by the last of them.
    init(_ count: Int, _ body: @escaping @Sendable () -> Void) {
        left = Atomic(count)
        self.body = body
    }

    func count() {
        if left.subtract(1, ordering: .acquiringAndReleasing).newValue == 0 { body() }
    }
}
