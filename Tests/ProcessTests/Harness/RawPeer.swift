import CZeroMQ
import Foundation
import Spawning

/// A ZeroMQ socket that can send anything. One thread uses it, and may block in it.
final class RawPeer {
    /// The first bytes of a frame: magic, version, kind, flags, epoch.
    static func header(version: UInt8, kind: UInt8) -> [UInt8] {
        Array("CFLX".utf8) + [version, kind] + [UInt8](repeating: 0, count: 18)
    }

    private let context: UnsafeMutableRawPointer
    private let socket: UnsafeMutableRawPointer

    /// Makes a socket.
    ///
    /// - Parameters:
    ///   - type: `ZMQ_DEALER`, `ZMQ_ROUTER`, `ZMQ_XSUB` …
    ///   - receivesAtMost: How many messages it queues until they are read; 0 means without limit.
    /// - Throws: ``Failure`` if the socket can't be made.
    init(_ type: Int32, receivesAtMost: Int32 = 1_000) throws {
        guard let context = zmq_ctx_new(), let socket = zmq_socket(context, type) else {
            throw Failure("no ZeroMQ socket: \(systemError())")
        }
        (self.context, self.socket) = (context, socket)
        var limit = receivesAtMost
        zmq_setsockopt(socket, ZMQ_RCVHWM, &limit, MemoryLayout<Int32>.size)
        // Unsent messages are discarded at the end, and no call blocks forever.
        for option in [ZMQ_LINGER, ZMQ_RCVTIMEO, ZMQ_SNDTIMEO] {
            var milliseconds: Int32 = option == ZMQ_LINGER ? 0 : 5_000
            zmq_setsockopt(socket, option, &milliseconds, MemoryLayout<Int32>.size)
        }
    }

    deinit {
        zmq_close(socket)
        zmq_ctx_term(context)
    }

    /// Subscribes to everything that a publisher sends.
    func subscribe() {
        zmq_setsockopt(socket, ZMQ_SUBSCRIBE, nil, 0)
    }

    func connect(_ address: String) throws {
        guard zmq_connect(socket, address) == 0 else {
            throw Failure("can't connect to \(address): \(systemError())")
        }
    }

    /// Binds to a free port.
    ///
    /// - Returns: The address.
    func bind() throws -> String {
        var text = [CChar](repeating: 0, count: 256)
        var count = text.count
        guard zmq_bind(socket, "tcp://127.0.0.1:*") == 0,
            zmq_getsockopt(socket, ZMQ_LAST_ENDPOINT, &text, &count) == 0
        else { throw Failure("can't bind: \(systemError())") }
        return String(decoding: text.prefix(count - 1).map(UInt8.init), as: UTF8.self)
    }

    /// Sends a message of several parts.
    ///
    /// - Returns: Whether the message was sent within five seconds.
    @discardableResult
    func send(_ parts: [UInt8]...) -> Bool {
        for (index, part) in parts.enumerated() {
            let flags = index + 1 < parts.count ? ZMQ_SNDMORE : 0
            guard zmq_send(socket, part, part.count, flags) >= 0 else { return false }
        }
        return true
    }

    /// Waits for a message.
    ///
    /// - Returns: The message's parts, or nil if none arrived within five seconds.
    func receive() -> [[UInt8]]? {
        var parts: [[UInt8]] = []
        while true {
            var message = zmq_msg_t()
            zmq_msg_init(&message)
            defer { zmq_msg_close(&message) }
            guard zmq_msg_recv(&message, socket, 0) >= 0 else { return nil }
            let bytes = UnsafeRawBufferPointer(
                start: zmq_msg_data(&message), count: zmq_msg_size(&message))
            parts.append(Array(bytes))
            if zmq_msg_more(&message) == 0 { return parts }
        }
    }
}

/// A TCP port that is kept occupied, so that no other process gets it.
struct HeldPort: ~Copyable {
    let address: String
    private let descriptor: Int32

    /// Occupies a free port, which either accepts connections and never answers, or refuses
    /// connections.
    init(isListening: Bool) throws {
        let descriptor = tcpSocket()
        var place = loopback(0)
        var size = socklen_t(MemoryLayout<sockaddr_in>.size)
        let isBound = withUnsafeMutablePointer(to: &place) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { address in
                Foundation.bind(descriptor, address, size) == 0
                    && (!isListening || listen(descriptor, 16) == 0)
                    && getsockname(descriptor, address, &size) == 0
            }
        }
        guard isBound else {
            close(descriptor)
            throw Failure("no port: \(systemError())")
        }
        self.descriptor = descriptor
        address = "tcp://127.0.0.1:\(UInt16(bigEndian: place.sin_port))"
    }

    deinit { close(descriptor) }

    /// Waits for a connection.
    ///
    /// - Returns: Its descriptor. No read of it takes longer than a minute.
    /// - Throws: ``Failure`` if there is none within a minute.
    func accept() throws -> Int32 {
        var limit = timeval(tv_sec: 60, tv_usec: 0)
        let size = socklen_t(MemoryLayout<timeval>.size)
        setsockopt(descriptor, SOL_SOCKET, SO_RCVTIMEO, &limit, size)
        let connection = Foundation.accept(descriptor, nil, nil)
        guard connection >= 0 else { throw Failure("no connection: \(systemError())") }
        setsockopt(connection, SOL_SOCKET, SO_RCVTIMEO, &limit, size)
        return connection
    }
}

func tcpSocket() -> Int32 {
    #if canImport(Darwin)
        socket(AF_INET, SOCK_STREAM, 0)
    #else
        socket(AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
    #endif
}

func loopback(_ port: UInt16) -> sockaddr_in {
    var place = sockaddr_in()
    place.sin_family = sa_family_t(AF_INET)
    place.sin_port = port.bigEndian
    place.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
    return place
}

/// Runs code that blocks in system calls on a new thread.
func onThread<Value: Sendable>(
    _ work: @escaping @Sendable () throws -> Value
) async throws -> Value {
    let outcome = OneTime<Result<Value, any Error>>()
    let thread = Thread { outcome.give(Result { try work() }) }
    thread.name = "raw"
    thread.start()
    return try await outcome.value().get()
}
