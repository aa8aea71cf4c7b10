import Dispatch
import Synchronization

/// Opens once, and lets a thread wait for that.
///
/// A wait takes elapsed time, whatever becomes of the wall clock. (On Linux a `DispatchSemaphore` waits until a time
/// of the wall clock: if that is set back by an hour, the wait takes an hour more.)
///
/// Safe on any thread.
package final class Latch: Sendable {
    private let group = DispatchGroup()
    private let isOpened = Atomic(false)

    /// Makes a latch that is closed.
    package init() { group.enter() }

    // A group that somebody is still in must not end.
    deinit { open() }

    /// Ends all waits, present and later ones. Repeated calls do nothing.
    package func open() {
        if !isOpened.exchange(true, ordering: .acquiringAndReleasing) { group.leave() }
    }

    /// Waits until the latch is open, or the time is over.
    ///
    /// - Parameter limit: How long to wait at most.
    /// - Returns: Whether the latch is open.
    @discardableResult
    package func wait(for limit: Duration) -> Bool {
        group.wait(timeout: .now() + limit / .seconds(1)) == .success
    }
}
