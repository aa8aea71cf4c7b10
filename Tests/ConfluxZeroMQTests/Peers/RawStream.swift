import CSockets
import Testing

@testable import ConfluxZeroMQ

/// A TCP connection that sends any bytes.
final class RawStream {
    private let descriptor: Int32

    init(to endpoint: Endpoint) throws {
        var address = conflux_address()
        var failure: Int32 = 0
        try #require(
            conflux_resolve(endpoint.host, try #require(endpoint.port), 1, &address, 1, &failure)
                == 1)
        descriptor = conflux_connect(
            &address, conflux_keeping(idle: 0, interval: 0, unacknowledged_milliseconds: 0))
        try #require(descriptor >= 0)
        try #require(conflux_await_writable(descriptor, Self.patience) == 1)
    }

    deinit { close(descriptor) }

    private static let patience = Int32(deadline.components.seconds) * 1_000

    /// Sends all of these bytes. They must fit into the system's buffer.
    func send(_ bytes: [UInt8]) throws {
        try #require(conflux_send(descriptor, bytes, bytes.count, nil, 0) == bytes.count)
    }

    /// Sends the greeting, and READY with a socket type.
    func shakeHands(as type: String) throws {
        try send(
            ZMTP.greeting(.null)
                + ZMTP.command(
                    "READY",
                    [11] + Array("Socket-Type".utf8) + [0, 0, 0, UInt8(type.utf8.count)]
                        + type.utf8))
    }

    /// Whether there are bytes, or the other side has ended the connection.
    var hasInput: Bool {
        var item = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
        return poll(&item, 1, 0) == 1
    }

    /// Waits for the next bytes.
    ///
    /// - Returns: The bytes; empty at the end.
    func receive(atMost most: Int = 65_536) throws -> [UInt8] {
        var item = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
        try #require(poll(&item, 1, Self.patience) == 1)
        var bytes = [UInt8](repeating: 0, count: most)
        let count = conflux_receive(descriptor, &bytes, bytes.count)
        return Array(bytes.prefix(max(0, count)))
    }

    /// Waits for so many bytes.
    func receive(count: Int) throws -> [UInt8] {
        var bytes: [UInt8] = []
        while bytes.count < count {
            let piece = try receive(atMost: count - bytes.count)
            try #require(!piece.isEmpty, "the connection ended after \(bytes.count) bytes")
            bytes += piece
        }
        return bytes
    }

    /// Waits for at least so many bytes, or for the end; for the end if the number is 0.
    func receiveAtLeast(_ count: Int) throws -> [UInt8] {
        var bytes: [UInt8] = []
        while count == 0 || bytes.count < count {
            let piece = try receive()
            guard !piece.isEmpty else { break }
            bytes += piece
        }
        return bytes
    }

    /// Everything until the other side ends the connection.
    func receiveAll() throws -> [UInt8] { try receiveAtLeast(0) }
}
