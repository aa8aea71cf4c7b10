import CSockets

#if canImport(Darwin)
    import Darwin
#else
    import Glibc
#endif
import Synchronization

/// Wakes one thread, its owner, from any other.
///
/// Waking makes a system call only if the owner is really asleep; otherwise it is one atomic exchange. The owner
/// sleeps in `Poller.wait` or in `waitForCall(timeout:)`. After it wakes, it must check everything that other threads
/// may have announced. It sees what they wrote before they called `wake()`.
public final class Waker: Sendable {
    // `awake`: the owner runs, and nobody has called. `called`: somebody has called. `asleep`: the
    // owner sleeps.
    private static let awake: UInt8 = 0
    private static let called: UInt8 = 1
    private static let asleep: UInt8 = 2

    private let state = Atomic<UInt8>(Waker.awake)
    /// Readable when the owner is woken, for a poll of its own.
    package let readEnd: Int32
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

    /// Ends the owner's current sleep, or prevents its next one. Any thread may call it, as often
    /// as it likes.
    public func wake() {
        let before = state.exchange(Self.called, ordering: .acquiringAndReleasing)
        if before == Self.asleep { conflux_waker_signal(writeEnd) }
    }

    /// Sleeps until somebody calls `wake()`. For an owner that has no sockets.
    ///
    /// - Parameter timeout: How long at most; nil for any time. It is rounded up to milliseconds.
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

    /// Marks the owner as about to sleep.
    ///
    /// - Returns: False if the owner must not sleep, since somebody has called meanwhile.
    package func beginSleep() -> Bool {
        state.compareExchange(
            expected: Self.awake, desired: Self.asleep, ordering: .acquiringAndReleasing
        ).exchanged
    }

    /// Marks the owner as awake.
    ///
    /// - Parameter isSignalled: Whether the descriptor was readable. A caller writes to the
    ///   descriptor only after it has changed the state. If it writes late, its signal ends a later
    ///   sleep early, and is drained there.
    /// - Returns: Whether somebody has called.
    package func endSleep(isSignalled: Bool) -> Bool {
        if isSignalled { conflux_waker_drain(readEnd) }
        return state.exchange(Self.awake, ordering: .acquiringAndReleasing) == Self.called
    }

    /// The time that is left, in milliseconds; -1 without a limit.
    static func milliseconds(until deadline: ContinuousClock.Instant?) -> Int32 {
        guard let deadline else { return -1 }
        return (deadline - ContinuousClock.now).wholeMilliseconds
    }
}
