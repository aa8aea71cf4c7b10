import ConfluxZeroMQ

/// Why the sequencer's side refuses this node. Each reason is told once in a row.
struct RefusedConnections {
    private var message: String?

    /// Takes the failure of a connection.
    ///
    /// - Returns: The reason for the refusal, to be told; nil if there is none, or it was the last
    ///   one told.
    mutating func take(_ failure: ConnectionFailure, of address: Endpoint) -> String? {
        Self.reason(failure, address).flatMap { tell($0) }
    }

    /// Takes the reason that the sequencer gives for not serving this node.
    ///
    /// - Returns: The reason, to be told; nil if it was the last one told.
    mutating func tell(_ reason: String) -> String? {
        defer { message = reason }
        return reason == message ? nil : reason
    }

    /// The connection is up, or the sequencer serves this node.
    mutating func served() {
        message = nil
    }

    private static func reason(_ failure: ConnectionFailure, _ address: Endpoint) -> String? {
        switch failure {
        case .denied(ConnectionFailure.otherServer):
            """
            The server at \(address) has another key than --server-key. Check the address, and that \
            the public key is the sequencer's present one.
            """
        case .denied(ConnectionFailure.full):
            """
            The sequencer at \(address) has as many connections of this node's key, or of all keys, as \
            it may, or has barred the key for a while since it sent too much beyond what it may. End \
            other processes with this key, or raise its connections-max in the sequencer's file of \
            authorised keys; the sequencer's log says when it bars a key.
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
        case .unresolvable, .refused, .unreachable, .silent, .ended: nil
        }
    }
}
