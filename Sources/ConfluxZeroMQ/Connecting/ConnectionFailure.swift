#if canImport(Darwin)
    import Darwin
#else
    import Glibc
#endif

/// Why an attempt to connect failed, or a connection ended.
public enum ConnectionFailure: Sendable, Hashable {
    /// The host has no address, for the reason that the system gives.
    case unresolvable(String)
    /// Nothing listens there.
    case refused
    /// Nobody answers, for the reason that the system gives.
    case unreachable(String)
    /// Whoever listens there said nothing and ended the connection.
    case silent
    /// Whoever listens there does not speak ZMTP.
    case stranger
    /// One side encrypts its connections and the other does not.
    case otherMechanism
    /// A ZMTP socket that takes nothing from this one listens there, such as a sequencer's feed.
    case otherSocket
    /// The other side refuses this connection, with this status: see ``otherServer`` and ``full``; with any
    /// other one it does not admit the key.
    case denied(status: Int)
    /// The other side broke ZMTP, or a bound, in this way.
    case broken(String)
    /// The connection stood, or was about to, and has ended.
    case ended

    /// The status of ``denied(status:)`` where a serving socket was taken for another one.
    public static let otherServer = Int(ZMTP.otherServerStatus) ?? 0

    /// The status of ``denied(status:)`` where a serving socket has no room for a connection.
    public static let full = Int(ZMTP.fullStatus) ?? 0

    /// Whether a further attempt is of little use, before somebody changes something.
    public var isRefusal: Bool {
        switch self {
        case .stranger, .otherMechanism, .otherSocket, .denied, .broken: true
        case .unresolvable, .refused, .unreachable, .silent, .ended: false
        }
    }

    /// Whether the two sides' keys do not fit.
    public var isOfKeys: Bool {
        switch self {
        case .otherMechanism, .denied: true
        default: false
        }
    }
}

extension ConnectionFailure {
    /// Why the system could not connect.
    init(systemNumber number: Int32) {
        switch number {
        // A path at which there is no socket, and one that nobody listens at any more.
        case ECONNREFUSED, ENOENT: self = .refused
        // Whoever listens at a path has as many connections as it has yet to accept.
        case EAGAIN: self = .ended
        default: self = .unreachable(ZeroMQError.systemWords(number))
        }
    }
}
