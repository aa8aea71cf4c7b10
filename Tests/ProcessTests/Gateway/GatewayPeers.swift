import CZeroMQ
import Conflux
import Dispatch
import Foundation
import Spawning
import Synchronization
import Testing

/// A gateway that was ready.
struct RunningGateway: Sendable {
    let child: Child
    /// Where it publishes, by the pattern of the stores.
    let places: [String: String]
    let ask: String
    let http: HTTPPeer

    /// Where it publishes all stores.
    var publish: String { places["*/*"] ?? "" }
}

extension Site {
    /// Starts a gateway, and waits until it is ready. It has free ports, or those of an earlier gateway.
    func gateway(
        of sequencer: RunningSequencer, stores: [String] = ["document/prefs", "counter"],
        at place: RunningGateway? = nil, publishing: [String]? = nil, options: [String] = []
    ) async throws -> RunningGateway {
        let publishing = publishing ?? [place?.publish ?? "tcp://127.0.0.1:0"]
        let child = try start(
            [
                "gateway", "--json", "--connect", sequencer.address,
                "--ask", place?.ask ?? "tcp://127.0.0.1:0",
                "--http", place?.http.address ?? "127.0.0.1:0",
            ] + publishing.flatMap { ["--publish", $0] } + options
                + stores.flatMap { ["--store", $0] })
        let ready = try await event("ready", of: child)
        var places: [String: String] = [:]
        if let address = ready[key: "publish"]?.string {
            places = ["*/*": address]
        } else {
            for place in try #require(ready[key: "publish"]?.array) {
                places[try #require(place[key: "stores"]?.string)] = place[key: "address"]?.string
            }
        }
        #expect(places.count == publishing.count)
        return RunningGateway(
            child: child, places: places,
            ask: try #require(ready[key: "ask"]?.string),
            http: HTTPPeer(address: try #require(ready[key: "http"]?.string)))
    }
}

/// The keys of a client: its own, and the gateway's public one, in Z85.
struct ClientKeys {
    let secret: String
    let own: String
    let server: String
}

extension Site {
    private func key(_ name: String, _ half: String) throws -> String {
        let file = try String(contentsOfFile: path("\(name).\(half)"), encoding: .utf8)
        return String(try #require(file.split(separator: "\n").last))
    }

    /// The keys of a client of the gateway.
    func keys(_ name: String) throws -> ClientKeys {
        ClientKeys(
            secret: try key(name, "secret"), own: try key(name, "public"),
            server: try key("gateway", "public"))
    }

    /// Writes the file of the keys that the gateway admits.
    func authorize(_ rights: [String: String]) throws {
        let lines = try rights.map { "\($0) \(try key($0, "public")) \($1)\n" }
        _ = try write(lines.joined(), to: "authorized")
    }

    /// Starts a gateway that admits only keys. There is a key of each name that has rights, and of a stranger.
    func gateway(
        of sequencer: RunningSequencer, admitting rights: [String: String],
        publishing: [String]? = nil
    ) async throws -> RunningGateway {
        for name in ["gateway", "stranger"] + rights.keys {
            #expect(try await run("keygen", path(name)).end == .exited(0))
        }
        try authorize(rights)
        return try await gateway(
            of: sequencer, publishing: publishing,
            options: [
                "--curve-secret", path("gateway.secret"), "--authorized", path("authorized"),
            ])
    }

    /// Has the gateway read the keys again that it admits.
    func reload(_ rights: [String: String], at gateway: RunningGateway) async throws {
        try authorize(rights)
        gateway.child.signal(SIGHUP)
        _ = try await event("authorized", of: gateway.child)
    }
}

/// A socket of libzmq on a queue of its own, on which it may block for some seconds.
// Sendable: only the queue uses the socket.
final class LibraryPeer: @unchecked Sendable {
    private let context: UnsafeMutableRawPointer
    private let socket: UnsafeMutableRawPointer
    private let queue = DispatchQueue(label: "conflux.tests.peer")

    init(_ type: Int32, _ address: String, keys: ClientKeys? = nil, topics: [String] = []) throws {
        guard let context = zmq_ctx_new(), let socket = zmq_socket(context, type) else {
            throw Failure("no ZeroMQ socket")
        }
        (self.context, self.socket) = (context, socket)
        for (option, value) in [
            (ZMQ_LINGER, 0), (ZMQ_RCVTIMEO, 20_000), (ZMQ_SNDTIMEO, 20_000),
            (ZMQ_RECONNECT_IVL, 20),
        ] {
            var value = Int32(value)
            zmq_setsockopt(socket, option, &value, MemoryLayout<Int32>.size)
        }
        if let keys {
            zmq_setsockopt(socket, ZMQ_CURVE_SERVERKEY, keys.server, keys.server.utf8.count)
            zmq_setsockopt(socket, ZMQ_CURVE_PUBLICKEY, keys.own, keys.own.utf8.count)
            zmq_setsockopt(socket, ZMQ_CURVE_SECRETKEY, keys.secret, keys.secret.utf8.count)
        }
        for topic in topics { zmq_setsockopt(socket, ZMQ_SUBSCRIBE, topic, topic.utf8.count) }
        guard zmq_connect(socket, address) == 0 else {
            throw Failure("can't connect to \(address)")
        }
    }

    deinit {
        zmq_close(socket)
        zmq_ctx_term(context)
    }

    func send(_ parts: [[UInt8]]) {
        queue.async { [self] in
            for (index, part) in parts.enumerated() {
                zmq_send(socket, part, part.count, index + 1 < parts.count ? ZMQ_SNDMORE : 0)
            }
        }
    }

    /// Waits for a message.
    ///
    /// - Parameter limit: How long.
    /// - Returns: Its parts.
    /// - Throws: ``Failure`` if none arrives in time.
    func receive(within limit: Duration = .seconds(20)) async throws -> [[UInt8]] {
        let parts: [[UInt8]]? = await withCheckedContinuation { continuation in
            queue.async { [self] in
                var milliseconds = Int32(limit / .milliseconds(1))
                zmq_setsockopt(socket, ZMQ_RCVTIMEO, &milliseconds, MemoryLayout<Int32>.size)
                continuation.resume(returning: read())
            }
        }
        guard let parts else { throw Failure("no message within \(limit)") }
        return parts
    }

    private func read() -> [[UInt8]]? {
        var parts: [[UInt8]] = []
        while true {
            var message = zmq_msg_t()
            zmq_msg_init(&message)
            defer { zmq_msg_close(&message) }
            guard zmq_msg_recv(&message, socket, 0) >= 0 else { return nil }
            parts.append(
                Array(
                    UnsafeRawBufferPointer(
                        start: zmq_msg_data(&message), count: zmq_msg_size(&message))))
            if zmq_msg_more(&message) == 0 { return parts }
        }
    }

    // MARK: What gateways say

    /// A message of a topic.
    struct News {
        let topic: String
        let head: JSONValue
        let body: String

        var kind: String { head[key: "kind"]?.string ?? "" }
        var sequence: UInt64 { head[key: "sequence"]?.number ?? 0 }
        var previous: UInt64 { head[key: "previous"]?.number ?? 0 }
    }

    func news(within limit: Duration = .seconds(20)) async throws -> News {
        let parts = try await receive(within: limit)
        try #require(parts.count == 3)
        return News(
            topic: String(decoding: parts[0], as: UTF8.self), head: try JSONValue(json: parts[1]),
            body: String(decoding: parts[2], as: UTF8.self))
    }

    /// Sends a request as a REQ socket does, and waits for its answer. The socket is a DEALER, so that a lost answer
    /// blocks nothing.
    func ask(_ request: String, within limit: Duration = .seconds(20)) async throws -> JSONValue {
        send([[], Array(request.utf8)])
        let parts = try await receive(within: limit)
        try #require(parts.count == 2 && parts[0].isEmpty)
        return try JSONValue(json: parts[1])
    }

    /// The code of the error that answers a request; nil if something else does.
    func failure(_ request: String) async throws -> String? {
        try await ask(request)[key: "error"]?[key: "code"]?.string
    }
}

/// A proxy of libzmq between others' sockets, as its users run it: `zmq_proxy`.
// Sendable: one thread uses the sockets; the context may be ended on any.
final class StockProxy: @unchecked Sendable {
    private let context: UnsafeMutableRawPointer
    private let ended = DispatchSemaphore(value: 0)
    let address: String

    /// - Parameters:
    ///   - front: The type of the socket for clients.
    ///   - back: The type of the socket for the gateway.
    ///   - target: The gateway's address.
    /// - Throws: ``Failure`` if a socket can't be made.
    init(_ front: Int32, _ back: Int32, to target: String) throws {
        guard let context = zmq_ctx_new(), let frontend = zmq_socket(context, front),
            let backend = zmq_socket(context, back)
        else { throw Failure("no ZeroMQ socket") }
        self.context = context
        var text = [CChar](repeating: 0, count: 256)
        var count = text.count
        guard zmq_connect(backend, target) == 0, zmq_bind(frontend, "tcp://127.0.0.1:*") == 0,
            zmq_getsockopt(frontend, ZMQ_LAST_ENDPOINT, &text, &count) == 0
        else { throw Failure("can't bind") }
        address = String(decoding: text.prefix(count - 1).map(UInt8.init), as: UTF8.self)
        nonisolated(unsafe) let (front, back) = (frontend, backend)
        let thread = Thread { [ended] in
            zmq_proxy(front, back, nil)
            zmq_close(front)
            zmq_close(back)
            ended.signal()
        }
        thread.start()
    }

    deinit {
        zmq_ctx_shutdown(context)
        ended.wait()
        zmq_ctx_term(context)
    }
}
