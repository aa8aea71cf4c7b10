import Synchronization

/// The outcome of posting an element.
public enum PostOutcome: Sendable, Hashable {
    /// It is in the mailbox.
    case accepted
    /// The mailbox is full. The element was not taken; try again after a drain.
    case full
    /// The mailbox is closed. The element was not taken and never will be.
    case closed
}

/// A bounded queue from many threads to one, its owner, which takes all waiting elements at once.
///
/// Elements of one thread arrive in the order in which it posted them. Posting takes a lock for
/// some nanoseconds, and wakes the owner only if the mailbox was empty and the owner sleeps.
/// Several mailboxes of one owner may share its waker; when it is woken, it must drain them all.
///
/// Its methods are inlinable, so that they are compiled for the elements of each mailbox. Without that, they look up
/// the elements' types each time they are called.
public final class Mailbox<Element: Sendable>: Sendable {
    @usableFromInline struct State {
        @usableFromInline var waiting: [Element] = []
        @usableFromInline var isClosed = false
        /// Whether the owner was woken for the waiting elements, or is about to be.
        @usableFromInline var isAnnounced = false

        @usableFromInline init() {}
    }

    @usableFromInline let state = Mutex(State())
    @usableFromInline let waker: Waker

    /// The most elements that may wait.
    public let capacity: Int

    /// Makes an empty mailbox.
    ///
    /// - Parameters:
    ///   - capacity: The most elements that may wait, 1 or more.
    ///   - waker: The waker of the thread that drains it.
    public init(capacity: Int, waker: Waker) {
        precondition(capacity > 0, "a mailbox holds 1 or more elements, not \(capacity)")
        self.capacity = capacity
        self.waker = waker
    }

    /// Puts an element at the end. Any thread may call it; it never waits for the owner.
    ///
    /// - Parameters:
    ///   - element: The element.
    ///   - isQuiet: Whether not to wake the owner. It takes the element when it wakes next, for a later element or
    ///     for ``announce()``.
    /// - Returns: Whether it was taken, and if not, why.
    @discardableResult
    @inlinable public func post(_ element: Element, quietly isQuiet: Bool = false) -> PostOutcome {
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

    /// Wakes the owner, unless it was already woken for the waiting elements.
    @inlinable public func announce() {
        let mustWake = state.withLock { state in
            defer { state.isAnnounced = true }
            return !state.isAnnounced
        }
        if mustWake { waker.wake() }
    }

    /// Wakes the owner.
    public func wake() { waker.wake() }

    /// Whether elements wait for which the owner was woken, or is about to be.
    @inlinable public var isAnnounced: Bool {
        state.withLock { $0.isAnnounced && !$0.waiting.isEmpty }
    }

    /// Waits until an element is announced or the time is over, and takes nothing. For an owner that has no sockets,
    /// and no other mailbox with the same waker.
    ///
    /// - Parameter timeout: How long at most; nil for any time.
    public func awaitCall(timeout: Duration?) { _ = waker.waitForCall(timeout: timeout) }

    /// Takes all waiting elements. Only the owner may call it.
    ///
    /// - Parameter batch: Emptied first, then given the elements, oldest first. Pass the same array
    ///   each time: it is exchanged with the mailbox's own, so that neither allocates.
    /// - Returns: Whether more may come: false once the mailbox is closed.
    @discardableResult
    @inlinable public func drain(into batch: inout [Element]) -> Bool {
        batch.removeAll(keepingCapacity: true)
        return state.withLock { state in
            swap(&state.waiting, &batch)
            state.isAnnounced = false
            return !state.isClosed
        }
    }

    /// Takes all waiting elements, and sleeps first until there are some. For an owner that has no
    /// sockets, and no other mailbox with the same waker.
    ///
    /// - Parameters:
    ///   - batch: As for `drain(into:)`; empty if the time was over or the mailbox is closed.
    ///   - timeout: How long to sleep at most; nil for any time.
    /// - Returns: Whether more may come: false once the mailbox is closed.
    @discardableResult
    @inlinable public func wait(into batch: inout [Element], timeout: Duration? = nil) -> Bool {
        let deadline = timeout.map { ContinuousClock.now + $0 }
        while true {
            let isOpen = drain(into: &batch)
            if !batch.isEmpty || !isOpen { return isOpen }
            let left = deadline.map { $0 - ContinuousClock.now }
            if let left, left <= .zero { return true }
            _ = waker.waitForCall(timeout: left)
        }
    }

    /// Takes no more elements from now on, and wakes the owner. Waiting elements can still be
    /// drained. You may call it repeatedly.
    @inlinable public func close() {
        state.withLock { $0.isClosed = true }
        waker.wake()
    }

    /// How many elements are waiting now.
    @inlinable public var count: Int { state.withLock { $0.waiting.count } }
}
