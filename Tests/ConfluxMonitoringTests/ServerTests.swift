import Foundation
import Synchronization
import Testing

@testable import ConfluxMonitoring

/// What the server serves, and how it handles bad input, over real sockets.
struct ServerTests {
    /// The data that a server serves. Tests change it.
    private final class Things: Sendable {
        let faults = Mutex<[String]>([])
    }

    private static func serve(
        _ things: Things = Things(), at address: String = "127.0.0.1:0", token: String? = nil
    ) throws -> HTTPServer {
        let (address, token) = (try HTTPAddress(address), token.flatMap { BearerToken($0) })
        try HTTPServer.check(address, token)
        return try HTTPServer(
            MonitoringService(
                Monitored(
                    metrics: { [.counter("things_total", "Things.", 7)] },
                    livenessFaults: { [] },
                    readinessFaults: { things.faults.withLock { $0 } }), token: token),
            at: address)
    }

    private static func isServed(_ server: HTTPServer) throws -> Bool {
        try RawHTTP.ask(server.address, "/livez").status == 200
    }

    @Test(arguments: ["127.0.0.1:0", "[::1]:0", "localhost:0"])
    func `metrics are served as text, with their format`(address: String) throws {
        let server = try Self.serve(at: address)
        let answer = try RawHTTP.ask(server.address, "/metrics")
        #expect(answer.status == 200)
        #expect(answer.head.contains("Content-Type: text/plain; version=0.0.4; charset=utf-8"))
        #expect(
            answer.body
                == "# HELP things_total Things.\n# TYPE things_total counter\nthings_total 7\n")
        // Some scrapers add a query, which changes nothing.
        #expect(try RawHTTP.ask(server.address, "/metrics?x=y").status == 200)
    }

    @Test func `a ready process says so, and one that is not says why`() throws {
        let things = Things()
        let server = try Self.serve(things)
        let ready = try RawHTTP.ask(server.address, "/readyz")
        #expect((ready.status, ready.body) == (200, "ok\n"))
        things.faults.withLock { $0 = ["one thing", "another"] }
        let unready = try RawHTTP.ask(server.address, "/readyz")
        #expect((unready.status, unready.body) == (503, "one thing\nanother\n"))
        #expect(try RawHTTP.ask(server.address, "/livez").status == 200)
    }

    @Test func `HEAD has the head alone`() throws {
        let server = try Self.serve()
        let answer = try RawHTTP.ask(server.address, "HEAD", "/metrics")
        #expect((answer.status, answer.body) == (200, ""))
        #expect(answer.head.contains("version=0.0.4"))
    }

    @Test(arguments: [
        "/", "/metrics/", "/METRICS", "/livez/../metrics", "/favicon.ico", "//", "/livez%00",
    ])
    func `a request for an unknown path learns the known paths`(path: String) throws {
        let server = try Self.serve()
        let answer = try RawHTTP.ask(server.address, path)
        #expect(answer.status == 404)
        #expect(answer.body.contains("/metrics, /livez and /readyz"))
    }

    @Test(arguments: ["POST", "PUT", "DELETE", "OPTIONS", "PATCH", "BREW"])
    func `another HTTP method learns which are allowed`(method: String) throws {
        let server = try Self.serve()
        let answer = try RawHTTP.ask(server.address, method, "/metrics")
        #expect(answer.status == 405)
        #expect(answer.head.contains("Allow: GET, HEAD"))
    }

    @Test func `an HTTP server does not wait for a request's body`() throws {
        let server = try Self.serve()
        let answer = try RawHTTP.ask(
            server.address, "POST", "/metrics", ["Content-Length: 1000000000000"])
        #expect(answer.status == 405)
    }

    @Test func `every path needs the token, where there is one`() throws {
        let server = try Self.serve(token: "0123456789abcdef")
        for path in ["/metrics", "/livez", "/readyz", "/nothing"] {
            for header in [
                [], ["Authorization: Bearer 0123456789abcdeX"], ["Authorization: Basic eDp5"],
                ["Authorization:"], ["X-Authorization: Bearer 0123456789abcdef"],
            ] {
                let answer = try RawHTTP.ask(server.address, path, header)
                #expect(answer.status == 401)
                #expect(answer.head.contains("WWW-Authenticate: Bearer"))
                #expect(!answer.body.contains("things"))
            }
        }
        let header = ["Authorization: Bearer 0123456789abcdef"]
        #expect(try RawHTTP.ask(server.address, "/metrics", header).status == 200)
        #expect(try RawHTTP.ask(server.address, "POST", "/metrics", header).status == 405)
        #expect(try RawHTTP.ask(server.address, "/nothing", header).status == 404)
    }

    @Test func `a request that is too long is refused, and others are served`() throws {
        let server = try Self.serve()
        let long = String(repeating: "x", count: 1 << 20)
        for (path, headers) in [
            ("/\(long)", []), ("/metrics", ["X: \(long)"]),
            ("/metrics", (0..<20_000).map { "X-\($0): y" }),
            ("/metrics", ["Authorization: Bearer \(long)"]),
        ] {
            let connection = try RawHTTP(server.address)
            let lines = ["GET \(path) HTTP/1.1", "Host: x"] + headers
            // The server ends the connection before everything is sent.
            connection.send(lines.map { "\($0)\r\n" }.joined() + "\r\n")
            let answer = RawHTTP.Answer(try connection.receiveAll())
            #expect(answer.status == nil || [413, 414, 431].contains(answer.status))
            #expect(try Self.isServed(server))
        }
    }

    @Test(arguments: [
        "\r\n\r\n\r\n", "GET\r\n\r\n", "\u{0}\u{1}\u{2}\r\n\r\n", "GET /metrics\r\n\r\n",
        "GET /metrics HTTP/9.9\r\n\r\n", "GET /metrics HTTP/1.1\r\nContent-Length: -1\r\n\r\n",
        "GET /metrics HTTP/1.1\r\nno header\r\n\r\n", "GET /%00 HTTP/1.1\r\nHost: x\r\n\r\n",
        "GET /metrics HTTP/1.1\r\n\r\n", "\u{16}\u{3}\u{1}\u{2}\u{0}\u{1}\u{0}",
    ])
    func `garbage gets no metrics, and others are served`(text: String) throws {
        let server = try Self.serve()
        let connection = try RawHTTP(server.address)
        connection.send(text)
        connection.endSending()
        let answer = RawHTTP.Answer(try connection.receiveAll())
        #expect(answer.status != 200 || text.hasPrefix("GET /metrics\r\n"), "\(answer.head)")
        #expect(try Self.isServed(server))
    }

    /// Runs a function on another thread. To wait for bytes would block one of the few threads that run all tests.
    private static func offPool<Value: Sendable>(
        _ body: @escaping @Sendable () throws -> Value
    ) async throws -> Value {
        try await withCheckedThrowingContinuation { continuation in
            DispatchQueue.global().async { continuation.resume(with: Result(catching: body)) }
        }
    }

    @Test(arguments: [nil, "0123456789abcdef"])
    func `a probe is answered while others hold every connection and send a byte now and then`(
        token: String?
    ) async throws {
        let server = try Self.serve(token: token)
        let address = server.address
        try await Self.offPool {
            var held: [RawHTTP] = []
            for _ in 0..<8 {
                // Twice as many as there are places, again and again.
                for _ in 0..<2 * HTTPServer.connectionsMax {
                    let connection = try RawHTTP(address)
                    connection.send("G")
                    held.append(connection)
                }
                let header = token.map { ["Authorization: Bearer \($0)"] } ?? []
                #expect(try RawHTTP.ask(address, "/livez", header).status == 200)
            }
            // The newest are still there; the oldest made room.
            let open = held.filter { $0.isOpen }
            #expect(open.count < HTTPServer.connectionsMax)
            #expect(try held[0].receiveAll() == "")
        }
    }

    @Test func `a probe is answered while others hold every connection with a request`()
        async throws
    {
        let server = try Self.serve()
        let address = server.address
        try await Self.offPool {
            let held = try (0..<2 * HTTPServer.connectionsMax).map { _ in
                let connection = try RawHTTP(address)
                connection.send("GET /livez HTTP/1.1\r\nHost: x\r\n\r\n")
                return connection
            }
            #expect(try RawHTTP.ask(address, "/livez").status == 200)
            #expect(try held[0].receiveAll().contains(" 200 "))
        }
    }

    @Test func `a connection without the token ends with its answer`() throws {
        let server = try Self.serve(token: "0123456789abcdef")
        let connection = try RawHTTP(server.address)
        connection.send("GET /livez HTTP/1.1\r\nHost: x\r\n\r\n")
        let answer = RawHTTP.Answer(try connection.receiveAll())
        #expect(answer.status == 401)
        #expect(answer.head.contains("Connection: close"))
    }

    @Test(arguments: ["GET /metrics HTTP/1.1\r\nHost:", "", "GET /metrics HTTP/1.1\r\nX: "])
    func `a request that never ends is closed after a while, whatever is sent meanwhile`(
        beginning: String
    ) async throws {
        let server = try Self.serve()
        let address = server.address
        let answer = try await Self.offPool {
            let connection = try RawHTTP(address)
            connection.send(beginning)
            // A byte, whenever nothing has come for a while.
            while connection.isOpen { connection.send("x") }
            return RawHTTP.Answer(try connection.receiveAll())
        }
        #expect(answer.status != 200)
        #expect(try Self.isServed(server))
    }

    @Test func `an address that others can reach needs a token`() throws {
        for address in ["0.0.0.0:0", "[::]:0"] {
            let error = #expect(throws: HTTPError.self) { try Self.serve(at: address) }
            #expect(error?.code == .insecure)
            #expect(error?.message.contains("--http-token FILE") == true)
        }
        let server = try Self.serve(at: "0.0.0.0:0", token: "0123456789abcdef")
        #expect(try RawHTTP.ask(server.address, "/livez").status == 401)
    }

    @Test func `a taken port and an address of another machine are reported`() throws {
        let server = try Self.serve()
        let taken = #expect(throws: HTTPError.self) { try Self.serve(at: server.address) }
        #expect(taken?.code == .addressInUse)
        #expect(taken?.message.contains(server.address) == true)
        let foreign = #expect(throws: HTTPError.self) {
            try Self.serve(at: "192.0.2.1:0", token: "0123456789abcdef")
        }
        #expect(foreign?.code == .invalidAddress)
    }

    @Test func `no server listens after its end, even if clients were connected`() throws {
        var server: HTTPServer? = try Self.serve()
        let address = try #require(server?.address)
        let idle = try RawHTTP(address)
        server = nil
        #expect(try idle.receiveAll() == "")
        #expect(throws: RawHTTP.Refused.self) { try RawHTTP(address) }
    }
}
