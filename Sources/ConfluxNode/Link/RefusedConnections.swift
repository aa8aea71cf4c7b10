import ConfluxZeroMQ

/// Why the sequencer's side refused connections of this node, and when to try again: libzmq gives up a
/// connection whose handshake was refused.
struct RefusedConnections {
    /// The pause behind the first refusal in a row; it doubles with each.
    static let pauseMin = Duration.seconds(1)
    /// What it grows to at most.
    static let pauseMax = Duration.seconds(16)

    private let address: Endpoint
    private var message: String?
    private var pause = Duration.zero
    /// When to connect again; nil while that is libzmq's.
    private(set) var retryAt: Duration?

    init(to address: Endpoint) { self.address = address }

    /// Something happened to the connection.
    ///
    /// - Returns: What to tell: why it was refused, unless the one before was for the same reason.
    mutating func take(_ kind: SocketEvent.Kind, at now: Duration) -> String? {
        let reason: String
        switch kind {
        case .handshakeSucceeded:
            self = RefusedConnections(to: address)
            return nil
        case .authenticationFailed(let status): reason = Self.reason(status, address)
        case .protocolViolated(let number): reason = Self.reason(protocolError: number, address)
        default: return nil
        }
        pause = pause == .zero ? Self.pauseMin : min(pause * 2, Self.pauseMax)
        retryAt = now + pause
        defer { message = reason }
        return reason == message ? nil : reason
    }

    /// The connection stands, and the sequencer says why it does not serve this node.
    ///
    /// - Returns: What to tell, unless it was told last.
    mutating func tell(_ reason: String) -> String? {
        defer { message = reason }
        return reason == message ? nil : reason
    }

    /// The sequencer serves this node.
    mutating func served() {
        message = nil
    }

    /// Whether to connect again now.
    mutating func takeDue(at now: Duration) -> Bool {
        guard let due = retryAt, due <= now else { return false }
        retryAt = nil
        return true
    }

    private static func reason(_ status: Int32, _ address: Endpoint) -> String {
        switch status {
        case SocketEvent.otherServer:
            """
            The server at \(address) has another key than --server-key. Check the address, and that \
            the public key is the sequencer's present one.
            """
        case SocketEvent.full:
            """
            The sequencer at \(address) has as many connections of this node's key, or of all keys, as \
            it may, or has barred the key for a while since it sent too much beyond what it may. End \
            other processes with this key, or raise its connections-max in the sequencer's file of \
            authorised keys; the sequencer's log says when it bars a key.
            """
        default:
            """
            The sequencer at \(address) does not admit this node's key. Add the public key to the \
            sequencer's file of authorised keys, and send the sequencer SIGHUP.
            """
        }
    }

    private static func reason(protocolError number: Int32, _ address: Endpoint) -> String {
        number == SocketEvent.mechanismMismatch
            ? """
            Either the server at \(address) encrypts its connections or this node does, but not both. \
            Give both keys (--curve-secret and --server-key), or neither.
            """
            : "The server at \(address) is not a sequencer (libzmq's error \(number)). Check the address."
    }
}
