import ConfluxZeroMQ

/// Reports why the sequencer's side refuses this node, once for each reason.
struct RefusedConnections {
    private var message: String?

    /// Takes a failure of the connection.
    ///
    /// - Returns: Why it was refused; nil if that was reported last, or if it was not refused.
    mutating func take(_ failure: ConnectionFailure, of address: Endpoint) -> String? {
        Self.reason(failure, address).flatMap { tell($0) }
    }

    /// Takes the sequencer's reason for not serving this node.
    ///
    /// - Returns: What to report; nil if it was reported last.
    mutating func tell(_ reason: String) -> String? {
        defer { message = reason }
        return reason == message ? nil : reason
    }

    /// Notes that the connection stands, or that the sequencer serves this node.
    mutating func served() {
        message = nil
    }

    static func reason(_ failure: ConnectionFailure, _ address: Endpoint) -> String? {
        switch failure {
        case .denied(ConnectionFailure.otherServer):
            """
            The server at \(address) has another key than --server-key. Check the address, and that \
            the public key is the sequencer's present one.
            """
        case .denied(ConnectionFailure.full):
            """
            The sequencer at \(address) has reached its limit of connections, for this node's key \
            or for all keys, or has barred the key for a while, because it kept exceeding its \
            limits. End other processes with this key, or raise its connections-max in the \
            sequencer's file of authorised keys; the sequencer's log says when it bars a key.
            """
        case .denied:
            """
            The sequencer at \(address) does not admit this node's key. Add the public key to the \
            sequencer's file of authorised keys, and send the sequencer SIGHUP.
            """
        case .otherMechanism:
            """
            Either the server at \(address) encrypts its connections or this node does, but not both. \
            Give both keys (--curve-secret and --server-key), or neither.
            """
        case .stranger, .otherSocket, .broken:
            "The server at \(address) is not a sequencer. Check the address."
        case .unresolvable, .refused, .unreachable, .hindered, .silent, .ended: nil
        }
    }
}
