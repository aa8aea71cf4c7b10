import CZeroMQ
import Synchronization

/// What happened to a connection of a socket.
public struct SocketEvent: Sendable, Hashable {
    /// What it was.
    public enum Kind: Sendable, Hashable {
        /// The socket accepts connections.
        case listening
        /// A bound socket accepted a connection; the handshake follows.
        case accepted
        /// A connection could not be accepted, for this `errno`.
        case acceptFailed(Int32)
        /// A connection was made; the handshake follows.
        case connected
        /// There is nobody yet; the next attempt follows in this time.
        case retrying(after: Duration)
        /// Both sides have said what they are: messages flow.
        case handshakeSucceeded
        /// The other side speaks something else, or went away meanwhile; for this `errno`.
        case handshakeFailed(Int32)
        /// The other side broke ZMTP, by libzmq's number for how.
        case protocolViolated(Int32)
        /// The other side did not let us in, with this ZAP status, or the other way round.
        case authenticationFailed(status: Int32)
        /// An established connection ended.
        case disconnected
        /// A connection, or an attempt at one, was closed by this side.
        case closed
        /// The monitor ended; nothing follows.
        case monitorStopped
        /// Something else, by libzmq's number.
        case other(UInt16)
    }

    /// The number of `protocolViolated` where one side encrypts and the other does not.
    public static let mechanismMismatch = Int32(ZMQ_PROTOCOL_ERROR_ZMTP_MECHANISM_MISMATCH)

    /// The status of `authenticationFailed` where a serving socket was taken for another one.
    public static let otherServer = Int32(ZMTP.otherServerStatus) ?? 0

    /// The status of `authenticationFailed` where a serving socket has no room for a connection.
    public static let full = Int32(ZMTP.fullStatus) ?? 0

    /// What it was.
    public let kind: Kind
    /// The address concerned, as libzmq writes it.
    public let address: String
}

/// Reports what happens to the connections of one socket, in order.
///
/// Made by `ZeroMQSocket.openMonitor()` and owned by the same thread. Wait for it with a poller and
/// take what there is whenever it is readable: some ten thousand events wait, then libzmq stops
/// carrying messages until they are taken.
public final class SocketMonitor: ZeroMQSocket {
    private static let count = Atomic<UInt64>(0)

    private weak var watched: ZeroMQSocket?

    init(watching socket: ZeroMQSocket) throws(ZeroMQError) {
        let number = Self.count.wrappingAdd(1, ordering: .relaxed).newValue
        let address = "inproc://conflux-monitor-\(number)"
        var settings = SocketSettings()
        settings.linger = .zero
        settings.receiveQueueMessages = 20_000
        watched = socket
        try super.init(socket.context, type: ZMQ_PAIR, settings: settings)
        guard zmq_socket_monitor(try socket.open(), address, ZMQ_EVENT_ALL) == 0 else {
            throw ZeroMQError.system(zmq_errno(), "Monitoring a socket")
        }
        try connect(try Endpoint(address))
    }

    /// Stops the reports. The watched socket goes on. Doing it again does nothing.
    public override func close() {
        if !isClosed, let socket = watched?.raw {
            // libzmq says goodbye through the queue, and would wait for ever were it full.
            while case .some(.some) = try? receive() {}
            zmq_socket_monitor(socket, nil, 0)
        }
        watched = nil
        super.close()
    }

    /// Takes the next event, if one waits.
    ///
    /// - Returns: nil when nothing waits.
    /// - Throws: `closed` or `terminated`.
    public func receive() throws(ZeroMQError) -> SocketEvent? {
        guard try receiveFrame() else { return nil }
        guard frame.count >= 6, hasMoreFrames else {
            _ = try skipMessage()
            return SocketEvent(kind: .other(0), address: "")
        }
        let number = frame.loadUnaligned(as: UInt16.self)
        let value = frame.loadUnaligned(fromByteOffset: 2, as: Int32.self)
        guard try receiveFrame() else {
            return SocketEvent(kind: Self.kind(number, value), address: "")
        }
        let address = String(decoding: frame, as: UTF8.self)
        _ = try skipMessage()
        return SocketEvent(kind: Self.kind(number, value), address: address)
    }

    private static func kind(_ number: UInt16, _ value: Int32) -> SocketEvent.Kind {
        switch Int32(number) {
        case ZMQ_EVENT_LISTENING: .listening
        case ZMQ_EVENT_ACCEPTED: .accepted
        case ZMQ_EVENT_ACCEPT_FAILED: .acceptFailed(value)
        case ZMQ_EVENT_CONNECTED: .connected
        case ZMQ_EVENT_CONNECT_RETRIED: .retrying(after: .milliseconds(value))
        case ZMQ_EVENT_HANDSHAKE_SUCCEEDED: .handshakeSucceeded
        case ZMQ_EVENT_HANDSHAKE_FAILED_NO_DETAIL: .handshakeFailed(value)
        case ZMQ_EVENT_HANDSHAKE_FAILED_PROTOCOL: .protocolViolated(value)
        case ZMQ_EVENT_HANDSHAKE_FAILED_AUTH: .authenticationFailed(status: value)
        case ZMQ_EVENT_DISCONNECTED: .disconnected
        case ZMQ_EVENT_CLOSED: .closed
        case ZMQ_EVENT_MONITOR_STOPPED: .monitorStopped
        default: .other(number)
        }
    }
}
