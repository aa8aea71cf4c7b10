import ConfluxSystem

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
    /// The system could not connect, for the reason that it gives.
    case unreachable(String)
    /// The connection ended, or the handshake took too long, before the other side had sent a
    /// greeting.
    case silent
    /// This machine could not connect, for the reason that it gives, with what to do about it: whole sentences. It is
    /// neither the network's nor the other side's fault.
    case hindered(String)
    /// The other side does not speak ZMTP.
    case stranger
    /// One side encrypts its connections, and the other does not.
    case otherMechanism
    /// The other side is a ZMTP socket of a type that does not fit this one, such as a sequencer's
    /// feed.
    case otherSocket
    /// The other side refuses this connection, with this status: ``otherServer`` or ``full``. Any other status means
    /// that it does not admit the key.
    case denied(status: Int)
    /// The other side violated ZMTP, or a bound, in this way.
    case broken(String)
    /// The connection ended after the other side's greeting, or the backlog of a local server is
    /// full.
    case ended

    /// The status of ``denied(status:)`` if the client expected another server's key.
    public static let otherServer = Int(ZMTP.otherServerStatus) ?? 0

    /// The status of ``denied(status:)`` if the serving socket has no room for another connection.
    public static let full = Int(ZMTP.fullStatus) ?? 0

    /// Whether another attempt is unlikely to succeed before somebody changes something.
    public var isRefusal: Bool {
        switch self {
        case .stranger, .otherMechanism, .otherSocket, .denied, .broken: true
        case .unresolvable, .refused, .unreachable, .hindered, .silent, .ended: false
        }
    }

    /// Whether the failure concerns the keys of the two sides.
    public var isOfKeys: Bool {
        switch self {
        case .otherMechanism, .denied: true
        default: false
        }
    }
}

extension ConnectionFailure {
    /// The failure for an `errno` of the system, at an endpoint.
    init(systemNumber number: Int32, at endpoint: Endpoint?) {
        switch number {
        // There is no socket at the path, or nobody listens on it any more.
        case ECONNREFUSED, ENOENT: self = .refused
        // The listener's backlog at a path is full.
        case EAGAIN: self = .ended
        default:
            let failure = SystemFailure(number)
            // A firewall says that, too.
            let isOfNetwork = failure.trouble == .notPermitted && endpoint?.port != nil
            self =
                isOfNetwork || failure.trouble == nil
                ? .unreachable(failure.words) : .hindered(failure.reason(advice: ""))
        }
    }
}
