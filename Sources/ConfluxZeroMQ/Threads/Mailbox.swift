import Synchronization

/// What became of an element that was posted.
public enum PostOutcome: Sendable, Hashable {
    /// It is in the mailbox.
    case accepted
    /// As many wait as the mailbox holds. It was not taken; try again when some were drained.
    case full
    /// The mailbox was closed. It was not taken and never will be.
    case closed
}

/// A bounded queue from many threads to one, which takes everything that waits at once.
///
/// Elements of one poster arrive in its order. Posting takes a lock for some nanoseconds, and
/// wakes the owner only if the mailbox was empty and the owner sleeps. Several mailboxes of one
/// owner may share its waker; woken, it must drain them all.
public final class Mailbox<Element: Sendable>: Sendable {
    private struct State {
        var waiting: [Element] = []
        var isClosed = false
        /// Whether the owner was woken for what waits, or need not be.
        var isAnnounced = false
    }

    private let state = Mutex(State())
    private let waker: Waker

    /// How many elements wait at most.
    public let capacity: Int

    /// Makes an empty mailbox.
    ///
    /// - Parameters:
    ///   - capacity: How many elements wait at most, 1 or more.
    ///   - waker: The waker of the thread that drains it.
    public init(capacity: Int, waker: Waker) {
        precondition(capacity > 0, "a mailbox holds 1 or more elements, not \(capacity)")
        self.capacity = capacity
        self.waker = waker
    }

    /// Puts an element at the end. Any thread may call it; it never waits for the owner.
    ///
    /// - Parameters:
    ///   - element: What to put there.
    ///   - isQuiet: Whether the owner sleeps on. It takes the element when it wakes next, for a later one or
    ///     for ``announce()``.
    /// - Returns: Whether it was taken, and if not, why.
    @discardableResult
    public func post(_ element: Element, quietly isQuiet: Bool = false) -> PostOutcome {
        let (outcome, mustWake) = state.withLock { state -> (PostOutcome, Bool) in
            if state.isClosed { return (.closed, false) }
            if state.waiting.count >= capacity { return (.full, false) }
            state.waiting.append(element)
            if isQuiet || state.isAnnounced { return (.accepted, false) }
            state.isAnnounced = true
            return (.accepted, true)
        }
        if mustWake { waker.wake() }
        return outcome
    }

    /// Wakes the owner, if it was not woken for what waits.
    public func announce() {
        let mustWake = state.withLock { state in
            defer { state.isAnnounced = true }
            return !state.isAnnounced
        }
        if mustWake { waker.wake() }
    }

    /// Wakes the owner.
    public func wake() { waker.wake() }

    /// Whether something waits that the owner was woken for, or is to be.
    public var isAnnounced: Bool { state.withLock { $0.isAnnounced && !$0.waiting.isEmpty } }

    /// Waits until an element is announced, or the time is over; takes nothing. For an owner that has no
    /// sockets, and no other mailbox with the same waker.
    ///
    /// - Parameter timeout: How long at most; nil for as long as it takes.
    public func awaitCall(timeout: Duration?) { _ = waker.waitForCall(timeout: timeout) }

    /// Takes everything that waits. For the owner alone.
    ///
    /// - Parameter batch: Emptied first, then given what waited, oldest first. Pass the same array
    ///   each time: it is exchanged with the mailbox's own, so that neither allocates.
    /// - Returns: Whether more may come: false once the mailbox is closed.
    @discardableResult
    public func drain(into batch: inout [Element]) -> Bool {
        batch.removeAll(keepingCapacity: true)
        return state.withLock { state in
            swap(&state.waiting, &batch)
            state.isAnnounced = false
            return !state.isClosed
        }
    }

    /// Takes everything that waits, and sleeps first while nothing does. For an owner that has no
    /// sockets, and no other mailbox with the same waker.
    ///
    /// - Parameters:
    ///   - batch: As for `drain(into:)`; empty if the time was over or the mailbox is closed.
    ///   - timeout: How long to sleep at most; nil for as long as it takes.
    /// - Returns: Whether more may come: false once the mailbox is closed.
    @discardableResult
    public func wait(into batch: inout [Element], timeout: Duration? = nil) -> Bool {
        let deadline = timeout.map { ContinuousClock.now + $0 }
        while true {
            let isOpen = drain(into: &batch)
            if !batch.isEmpty || !isOpen { return isOpen }
            let left = deadline.map { $0 - ContinuousClock.now }
            if let left, left <= .zero { return true }
            _ = waker.waitForCall(timeout: left)
        }
    }

    /// Takes no more elements from now on, and wakes the owner. What waits can still be drained.
    /// May be repeated.
    public func close() {
        state.withLock { $0.isClosed = true }
        waker.wake()
    }

    /// How many elements wait at this instant.
    public var count: Int { state.withLock { $0.waiting.count } }
}
