import Dispatch
import Synchronization

/// Opens once, and lets threads wait for that.
///
/// A wait measures elapsed time, whatever happens to the wall clock. (On Linux, a
/// `DispatchSemaphore` waits for a time of the wall clock: if that is set back by an hour, the wait
/// takes an hour more.)
///
/// Safe on any thread.
package final class Latch: Sendable {
    private let group = DispatchGroup()
    private let isOpened = Atomic(false)

    /// Makes a closed latch.
    package init() { group.enter() }

    // A dispatch group must not be released before it is left.
    deinit { open() }

    /// Ends all present and later waits. Repeated calls do nothing.
    package func open() {
        if !isOpened.exchange(true, ordering: .acquiringAndReleasing) { group.leave() }
    }

    /// Waits until the latch is open, or the time is up.
    ///
    /// - Parameter limit: The longest time to wait.
    /// - Returns: Whether the latch is open.
    @discardableResult
    package func wait(for limit: Duration) -> Bool {
        group.wait(timeout: .now() + limit / .seconds(1)) == .success
    }
}
