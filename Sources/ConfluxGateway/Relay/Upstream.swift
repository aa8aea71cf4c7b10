import CZeroMQ
import ConfluxVocabulary
import ConfluxZeroMQ

/// A relay's connection to the feed that it passes on. It is made once: libzmq does not make it again, so nothing of
/// another connection ever comes through the same socket.
final class Upstream {
    /// Brings the messages.
    let socket: LibrarySocket
    /// Reports what happens to the connection.
    let monitor: LibrarySocket

    /// The reports that show that the connection has ended, or can't be made.
    private static let ends =
        ZMQ_EVENT_CLOSED | ZMQ_EVENT_DISCONNECTED | ZMQ_EVENT_CONNECT_RETRIED
        | ZMQ_EVENT_HANDSHAKE_FAILED_NO_DETAIL | ZMQ_EVENT_HANDSHAKE_FAILED_PROTOCOL
        | ZMQ_EVENT_HANDSHAKE_FAILED_AUTH

    /// Begins to connect.
    ///
    /// - Parameters:
    ///   - address: The address of the feed.
    ///   - own: The relay's key, which is the sequencer's; nil without keys.
    ///   - context: The context.
    ///   - number: A number that no other upstream had.
    /// - Throws: Why the library refuses.
    init(
        _ address: Endpoint, own: CurveKeyPair?, in context: LibraryContext, number: Int
    ) throws(LibraryFailure) {
        socket = try LibrarySocket(ZMQ_SUB, in: context)
        try socket.set(ZMQ_RECONNECT_IVL, Int32(-1))
        try socket.set(ZMQ_RCVHWM, RelayBounds.receivedMax)
        try socket.set(ZMQ_MAXMSGSIZE, RelayBounds.messageBytesMax)
        try socket.keepAlive()
        if let own {
            // The feed must have the same secret key: that of the sequencer.
            let key = Array(own.publicKey.description.utf8) + [0]
            try socket.set(ZMQ_CURVE_SERVERKEY, key)
            try socket.set(ZMQ_CURVE_PUBLICKEY, key)
            try socket.set(secretOf: own)
        }
        // To everything, whoever is there: beats show that the feed works.
        try socket.set(ZMQ_SUBSCRIBE, [])
        monitor = try socket.monitor(Self.ends, name: "relay-\(number)")
        try socket.connect(address.description)
    }

    func close() {
        // First: libzmq's own thread would wait without end for a monitor that nobody reads, and all sockets with it.
        socket.endMonitor()
        socket.close()
        monitor.close()
    }

    /// Whether the connection has ended, or can't be made.
    ///
    /// - Parameter hasBrought: Whether something has come through it.
    /// - Returns: Why, without a full stop; nil while neither is so.
    func takeEnd(_ hasBrought: Bool) -> String? {
        guard let report = monitor.receive(partsMax: 2, bytesMax: 4_096)?.parts.first,
            report.count == 6
        else { return nil }
        let event = Int32(report[0]) | Int32(report[1]) << 8
        let status = Int(report[2]) | Int(report[3]) << 8
        return switch event {
        case ZMQ_EVENT_DISCONNECTED where hasBrought: "the connection ended"
        case ZMQ_EVENT_DISCONNECTED:
            "it ends the connection; give the address of a feed, which the sequencer's ready line shows"
        case ZMQ_EVENT_CLOSED, ZMQ_EVENT_CONNECT_RETRIED:
            "nothing listens there, or it can't be reached"
        case ZMQ_EVENT_HANDSHAKE_FAILED_AUTH where status == ConnectionFailure.full:
            "it has no place for another connection"
        case ZMQ_EVENT_HANDSHAKE_FAILED_AUTH:
            "it does not admit the relay's key; give the sequencer's own (--curve-secret)"
        default:
            "it does not speak the same way; see whether it encrypts its connections, and give the sequencer's own key "
                + "then (--curve-secret)"
        }
    }
}
