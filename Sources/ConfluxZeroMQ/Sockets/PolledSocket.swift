#if canImport(Darwin)
    import Darwin
#else
    import Glibc
#endif

/// A socket that a poller can wait for: a client socket or a serving socket.
public class PolledSocket {
    /// How many messages were discarded because they don't consist of one frame, as they must.
    /// Their sender speaks another protocol.
    public internal(set) var malformedCount: UInt64 = 0

    init() {}

    /// Whether `close()` was called.
    public var isClosed: Bool { true }

    /// The descriptor to wait for; -1 if there is none. It may change from one wait to the next.
    var descriptor: Int32 { -1 }

    /// Which events of the descriptor to wait for, as in `poll`.
    var signals: Int16 { Int16(POLLIN) }

    /// Whether there is something to do that the descriptor does not report.
    var isReady: Bool { false }

    /// When there will be something to do at the latest; monotonic. nil for no such time.
    var deadline: Duration? { nil }

    /// Wakes the thread that waits for this socket when something becomes ready that no descriptor
    /// reports.
    var waker: Waker?
}
