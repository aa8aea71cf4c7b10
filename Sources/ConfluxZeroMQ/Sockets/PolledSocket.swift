#if canImport(Darwin)
    import Darwin
#else
    import Glibc
#endif

/// What a poller can wait for: a socket that connects, or one that serves.
public class PolledSocket {
    /// How many messages were thrown away because they had not the form that is spoken here: one
    /// frame. The sender speaks another protocol.
    public internal(set) var malformedCount: UInt64 = 0

    init() {}

    /// Whether `close()` was called.
    public var isClosed: Bool { true }

    /// What says that there is something to do; -1 while nothing does. It may change from one wait to the next.
    var descriptor: Int32 { -1 }

    /// What of the descriptor to wait for, by the numbers of `poll`.
    var signals: Int16 { Int16(POLLIN) }

    /// Whether there is something to do though the descriptor does not say so.
    var isReady: Bool { false }

    /// When there will be, at the latest; monotonic.
    var deadline: Duration? { nil }

    /// Wakes the thread that waits for this socket, where something is ready without a descriptor.
    var waker: Waker?
}
