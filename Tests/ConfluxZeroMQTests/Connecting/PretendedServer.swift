import CSockets
import ConfluxVocabulary
import Testing

@testable import ConfluxZeroMQ

/// A server that can send any bytes to a client that connects.
final class PretendedServer {
    private let listener: Int32
    private var connection: Int32 = -1
    let endpoint: Endpoint

    init() throws {
        var port: UInt16 = 0
        var name = [CChar](repeating: 0, count: 128)
        listener = conflux_listen_tcp("127.0.0.1", 0, &port, 8, &name, name.count)
        try #require(listener >= 0)
        endpoint = try Endpoint(host: "127.0.0.1", port: port)
    }

    deinit {
        hangUp()
        closeDescriptor(listener)
    }

    /// Accepts the next connection of a client, and sends some bytes to it.
    func accept(from client: ClientSocket, saying bytes: [UInt8] = []) throws {
        hangUp()
        try wait(for: client) {
            while let event = try client.receive() {
                if case .failed(let failure, _) = event { Issue.record("\(failure)") }
                if case .accepted = event { break }
            }
            var origin = conflux_origin()
            connection = conflux_accept(listener, &origin)
            return connection >= 0 ? () : nil
        }
        say(bytes)
    }

    /// - Returns: How many of the bytes the connection took.
    @discardableResult
    func say(_ bytes: [UInt8]) -> Int {
        conflux_send(connection, bytes, bytes.count, nil, 0)
    }

    /// The bytes that the client has sent since the last call, or since it connected.
    func heard() -> [UInt8] {
        var bytes = [UInt8](repeating: 0, count: 1 << 16)
        let count = conflux_receive(connection, &bytes, bytes.count)
        return Array(bytes.prefix(max(0, count)))
    }

    func hangUp() {
        if connection >= 0 { closeDescriptor(connection) }
        connection = -1
    }
}
