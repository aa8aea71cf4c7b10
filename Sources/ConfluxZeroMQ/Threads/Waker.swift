import CSockets

#if canImport(Darwin)
    import Darwin
#else
    import Glibc
#endif
import Synchronization

/// Wakes one thread, its owner, from any other.
///
/// A system call is made only when the owner is really asleep: otherwise waking is one atomic
/// exchange. The owner sleeps in `Poller.wait` or in `waitForCall(timeout:)`. After it wakes it must
/// look at everything that wakers announce: what was put there before `wake()` is visible to it.
public final class Waker: Sendable {
    // The owner runs and nobody has called → somebody has called; or the owner is asleep.
    private static let awake: UInt8 = 0
    private static let called: UInt8 = 1
    private static let asleep: UInt8 = 2

    private let state = Atomic<UInt8>(Waker.awake)
    let readEnd: Int32
    private let writeEnd: Int32

    /// Makes a waker whose owner is awake.
    ///
    /// - Throws: `tooManyOpen` if there are no descriptors left.
    public init() throws(ZeroMQError) {
        var readEnd: Int32 = -1
        var writeEnd: Int32 = -1
        guard conflux_waker_open(&readEnd, &writeEnd) == 0 else {
            throw ZeroMQError.system(errno, "Making a waker")
        }
        self.readEnd = readEnd
        self.writeEnd = writeEnd
    }

    deinit {
        conflux_waker_close(readEnd, writeEnd)
    }

    /// Makes the owner's current sleep end, or else its next one not begin. Any thread may call
    /// it, as often as it likes.
    public func wake() {
        let before = state.exchange(Self.called, ordering: .acquiringAndReleasing)
        if before == Self.asleep { conflux_waker_signal(writeEnd) }
    }

    /// Sleeps until somebody calls `wake()`. For an owner that has no sockets.
    ///
    /// - Parameter timeout: How long at most; nil for as long as it takes. It is rounded up to
    ///   milliseconds.
    /// - Returns: Whether it was woken; false when the time is over.
    public func waitForCall(timeout: Duration? = nil) -> Bool {
        let deadline = timeout.map { ContinuousClock.now + $0 }
        while true {
            let mayWait = beginSleep()
            var item = pollfd(fd: readEnd, events: Int16(POLLIN), revents: 0)
            if mayWait { poll(&item, 1, Self.milliseconds(until: deadline)) }
            if endSleep(isSignalled: item.revents != 0) { return true }
            if let deadline, ContinuousClock.now >= deadline { return false }
        }
    }

    /// Declares that the owner is about to sleep.
    ///
    /// - Returns: false if it must not, since it was called meanwhile.
    func beginSleep() -> Bool {
        state.compareExchange(
            expected: Self.awake, desired: Self.asleep, ordering: .acquiringAndReleasing
        ).exchanged
    }

    /// Declares that the owner is awake.
    ///
    /// - Parameter isSignalled: Whether the descriptor was readable. A caller that has changed the
    ///   state may write only later; that signal then ends a later sleep early, and is taken there.
    /// - Returns: Whether it was called.
    func endSleep(isSignalled: Bool) -> Bool {
        if isSignalled { conflux_waker_drain(readEnd) }
        return state.exchange(Self.awake, ordering: .acquiringAndReleasing) == Self.called
    }

    /// The time that is left, in milliseconds; -1 for ever.
    static func milliseconds(until deadline: ContinuousClock.Instant?) -> Int32 {
        guard let deadline else { return -1 }
        return (deadline - ContinuousClock.now).wholeMilliseconds
    }
}
