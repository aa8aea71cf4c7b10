import CZeroMQ
import ConfluxVocabulary
import Testing

@testable import ConfluxZeroMQ

/// A socket of libzmq: it is like other programs' sockets, and can send what our own types can't.
final class RawSocket {
    private let context = zmq_ctx_new()
    private let socket: UnsafeMutableRawPointer?
    /// Reports what happens to the socket's connections.
    private var events: UnsafeMutableRawPointer?

    private init(_ type: Int32) {
        socket = zmq_socket(context, type)
        set(ZMQ_LINGER, 0)
        set(ZMQ_RCVTIMEO, Int32(deadline.components.seconds) * 1_000)
        set(ZMQ_SNDTIMEO, Int32(deadline.components.seconds) * 1_000)
    }

    /// Makes a socket that connects.
    convenience init(
        _ type: Int32, routingID: String? = nil, userName: String? = nil,
        keys: (client: CurveKeyPair, server: CurvePublicKey)? = nil,
        isMonitored: Bool = false, connectingTo endpoint: Endpoint
    ) throws {
        self.init(type)
        if let routingID {
            zmq_setsockopt(socket, ZMQ_ROUTING_ID, routingID, routingID.utf8.count)
        }
        if let userName {
            zmq_setsockopt(socket, ZMQ_PLAIN_USERNAME, userName, userName.utf8.count)
        }
        if let keys {
            zmq_setsockopt(socket, ZMQ_CURVE_SERVERKEY, keys.server.bytes, 32)
            zmq_setsockopt(socket, ZMQ_CURVE_PUBLICKEY, keys.client.publicKey.bytes, 32)
            zmq_setsockopt(socket, ZMQ_CURVE_SECRETKEY, keys.client.secret.pointer, 32)
        }
        if type == ZMQ_SUB { zmq_setsockopt(socket, ZMQ_SUBSCRIBE, nil, 0) }
        if isMonitored {
            zmq_socket_monitor(socket, "inproc://events", ZMQ_EVENT_ALL)
            events = zmq_socket(context, ZMQ_PAIR)
            try #require(zmq_connect(events, "inproc://events") == 0)
        }
        try #require(zmq_connect(socket, endpoint.description) == 0)
    }

    /// Makes a socket that serves.
    convenience init(
        serving type: Int32, key: CurveKeyPair? = nil, set options: [(Int32, Int32)] = [],
        at wished: String = "tcp://127.0.0.1:*"
    ) throws {
        self.init(type)
        if let key {
            set(ZMQ_CURVE_SERVER, 1)
            zmq_setsockopt(socket, ZMQ_CURVE_SECRETKEY, key.secret.pointer, 32)
        }
        for (option, value) in options { set(option, value) }
        try #require(zmq_bind(socket, wished) == 0)
    }

    private func set(_ option: Int32, _ value: Int32) {
        var value = value
        zmq_setsockopt(socket, option, &value, MemoryLayout<Int32>.size)
    }

    var endpoint: Endpoint {
        get throws {
            var text = [CChar](repeating: 0, count: 256)
            var count = text.count
            try #require(zmq_getsockopt(socket, ZMQ_LAST_ENDPOINT, &text, &count) == 0)
            let bytes = text.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }
            return try Endpoint(String(decoding: bytes, as: UTF8.self))
        }
    }

    /// What has happened to the socket's connections, if it is one of these events.
    func nextEvent(among wished: [Int32]) throws -> Int32? {
        while let event = Self.receive(from: events)?.first {
            let number = Int32(event[0]) | Int32(event[1]) << 8
            if wished.contains(number) { return number }
        }
        return nil
    }

    /// Whether there is a connection to send on.
    var canSend: Bool {
        var state: Int32 = 0
        var size = MemoryLayout<Int32>.size
        zmq_getsockopt(socket, ZMQ_EVENTS, &state, &size)
        return state & ZMQ_POLLOUT != 0
    }

    func send(_ frames: [String]) throws { try send(frames.map { Array($0.utf8) }) }

    func send(_ frames: [[UInt8]]) throws {
        for (index, frame) in frames.enumerated() {
            let flags = index + 1 < frames.count ? ZMQ_SNDMORE : 0
            try #require(zmq_send(socket, frame, frame.count, flags) >= 0)
        }
    }

    /// The frames of the next message, if one waits.
    func receive() -> [[UInt8]]? { Self.receive(from: socket) }

    static func receive(from socket: UnsafeMutableRawPointer?) -> [[UInt8]]? {
        var frames: [[UInt8]] = []
        var message = zmq_msg_t()
        zmq_msg_init(&message)
        defer { zmq_msg_close(&message) }
        repeat {
            guard zmq_msg_recv(&message, socket, frames.isEmpty ? ZMQ_DONTWAIT : 0) >= 0 else {
                return nil
            }
            frames.append(
                Array(
                    UnsafeRawBufferPointer(
                        start: zmq_msg_data(&message), count: zmq_msg_size(&message))))
        } while zmq_msg_more(&message) != 0
        return frames
    }

    /// The frames of the next message, after a wait.
    func awaitMessage() throws -> [[UInt8]] {
        let end = ContinuousClock.now + deadline
        while ContinuousClock.now < end {
            if let frames = receive() { return frames }
            Self.awaitInput(of: socket)
        }
        throw Overdue()
    }

    static func awaitInput(of socket: UnsafeMutableRawPointer?) {
        var item = zmq_pollitem_t(socket: socket, fd: 0, events: Int16(ZMQ_POLLIN), revents: 0)
        zmq_poll(&item, 1, 100)
    }

    deinit {
        if let events { zmq_close(events) }
        zmq_close(socket)
        zmq_ctx_term(context)
    }
}
