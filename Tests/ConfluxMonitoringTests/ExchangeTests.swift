import Foundation
import Synchronization
import Testing

@testable import ConfluxMonitoring

/// Requests with bodies, answers that come later, and answers that go on, over real sockets.
struct ExchangeTests {
    /// What the test serves: `POST /echo` answers with the body, `GET /later` waits for ``answer``, and `GET /stream` has
    /// what is put into it.
    private final class Service: HTTPService {
        let largeBytes = 32 << 20
        let waiting = Mutex<[HTTPExchange]>([])
        let stream = Stream()
        let arrived = DispatchSemaphore(value: 0)

        static func tooLong() -> HTTPAnswer {
            HTTPAnswer(status: 413, type: nil, body: .bytes([]))
        }

        func decide(_ head: HTTPHead) -> HTTPDecision {
            switch head.path {
            case "/echo":
                return .take(bodyBytesMax: 100_000, tooLong: Self.tooLong) { body, exchange in
                    exchange.answer(HTTPAnswer(status: 200, type: nil, body: .bytes(body)))
                }
            case "/later":
                return .take(bodyBytesMax: 0, tooLong: Self.tooLong) { [self] _, exchange in
                    waiting.withLock { $0.append(exchange) }
                    arrived.signal()
                }
            case "/large":
                return .take(bodyBytesMax: 0, tooLong: Self.tooLong) { [self] _, exchange in
                    exchange.whenOver { [arrived] in arrived.signal() }
                    exchange.answer(
                        HTTPAnswer(
                            status: 200, type: nil,
                            body: .bytes([UInt8](repeating: 0, count: largeBytes))))
                }
            case "/stream":
                return .take(bodyBytesMax: 0, tooLong: Self.tooLong) { [self] _, exchange in
                    waiting.withLock { $0.append(exchange) }
                    exchange.answer(HTTPAnswer(status: 200, type: nil, body: .stream(stream)))
                    arrived.signal()
                }
            default:
                let words = head.query.map { "\($0.name)=\($0.value)" } + [head.headers["x"] ?? ""]
                return .answer(
                    HTTPAnswer(
                        status: 404, type: "text/plain",
                        body: .bytes(Array(words.joined(separator: " ").utf8))))
            }
        }
    }

    private final class Stream: HTTPStream {
        let parts = Mutex<[HTTPPart]>([])

        func next() -> HTTPPart { parts.withLock { $0.isEmpty ? .none : $0.removeFirst() } }
    }

    private static func serve(
        connectionsMax: Int = HTTPServer.connectionsMax
    ) throws -> (HTTPServer, Service) {
        let service = Service()
        return (
            try HTTPServer(
                service, at: HTTPAddress("127.0.0.1:0"), connectionsMax: connectionsMax), service
        )
    }

    private static func request(
        _ method: String, _ path: String, body: String = "", _ headers: [String] = []
    ) -> String {
        let lines =
            ["\(method) \(path) HTTP/1.1", "Host: x"] + headers
            + (body.isEmpty ? [] : ["Content-Length: \(body.utf8.count)"])
        return lines.map { "\($0)\r\n" }.joined() + "\r\n" + body
    }

    @Test func `a body arrives whole, however it is sent, and a longer one is refused`() throws {
        let (server, _) = try Self.serve()
        let text = String(repeating: "0123456789", count: 9_000)
        let whole = try RawHTTP(server.address)
        whole.send(Self.request("POST", "/echo", body: text, ["Connection: close"]))
        #expect(RawHTTP.Answer(try whole.receiveAll()).body == text)
        let parts = try RawHTTP(server.address)
        parts.send(
            Self.request(
                "POST", "/echo", ["Connection: close", "Transfer-Encoding: chunked"])
                + "3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n")
        #expect(RawHTTP.Answer(try parts.receiveAll()).body == "abcde")
        let long = try RawHTTP(server.address)
        long.send(
            Self.request(
                "POST", "/echo", body: String(repeating: text, count: 2), ["Connection: close"]))
        #expect(RawHTTP.Answer(try long.receiveAll()).status == 413)
    }

    @Test func `one connection has several requests`() throws {
        let (server, _) = try Self.serve()
        let connection = try RawHTTP(server.address)
        connection.send(
            Self.request("POST", "/echo", body: "one") + Self.request("POST", "/echo", body: "two")
                + Self.request("GET", "/none?a=%20b&c", ["X: y", "X: z", "Connection: close"]))
        let all = try connection.receiveAll()
        #expect(all.contains("\r\n\r\none"))
        #expect(all.contains("\r\n\r\ntwo"))
        #expect(all.hasSuffix("\r\n\r\na=%20b c= y, z"))
    }

    @Test func `an answer may come later, from any thread, and only the first counts`() throws {
        let (server, service) = try Self.serve()
        let connection = try RawHTTP(server.address)
        connection.send(Self.request("GET", "/later", ["Connection: close"]))
        service.arrived.wait()
        let exchange = try #require(service.waiting.withLock { $0.first })
        DispatchQueue.global().async {
            for text in ["first", "second"] {
                exchange.answer(
                    HTTPAnswer(status: 200, type: nil, body: .bytes(Array(text.utf8))))
            }
        }
        #expect(RawHTTP.Answer(try connection.receiveAll()).body == "first")
        // Nothing happens to a request that is over.
        exchange.wake()
        #expect(try RawHTTP.ask(server.address, "/none").status == 404)
    }

    @Test func `a stream has all parts in order, and ends`() throws {
        let (server, service) = try Self.serve()
        let connection = try RawHTTP(server.address)
        connection.send(Self.request("GET", "/stream", ["Connection: close"]))
        service.arrived.wait()
        let exchange = try #require(service.waiting.withLock { $0.first })
        let long = String(repeating: "x", count: 100_000)
        for number in 0..<1_000 {
            service.stream.parts.withLock { $0.append(.bytes([Array("<\(number)>".utf8), []])) }
            exchange.wake()
        }
        service.stream.parts.withLock { $0 += [.bytes([Array(long.utf8)]), .end] }
        exchange.wake()
        let body = try connection.receiveAll()
        // The sizes of the chunks stand between the parts.
        var rest = body[...]
        for number in 0..<1_000 {
            let place = try #require(rest.firstRange(of: "<\(number)>"), "\(number)")
            rest = rest[place.upperBound...]
        }
        #expect(rest.filter { $0 == "x" }.count == long.count)
    }

    @Test func `a server ends although requests wait and streams go on`() throws {
        var serving: (HTTPServer, Service)? = try Self.serve()
        let address = try #require(serving?.0.address)
        let open = try ["/later", "/stream", "/later"].map { path in
            let connection = try RawHTTP(address)
            connection.send(Self.request("GET", path))
            serving?.1.arrived.wait()
            return connection
        }
        serving = nil
        let answers = try open.map { RawHTTP.Answer(try $0.receiveAll()) }
        // A request that was taken has no answer: nobody knows what became of it.
        #expect(answers.map(\.status) == [nil, 200, nil])
        #expect(throws: RawHTTP.Refused.self) { try RawHTTP(address) }
    }

    @Test func `a stream makes room for a new connection at the bound, and others are served`()
        throws
    {
        let (server, service) = try Self.serve(connectionsMax: 4)
        let streams = try (0..<8).map { _ in
            let connection = try RawHTTP(server.address)
            connection.send(Self.request("GET", "/stream"))
            service.arrived.wait()
            return connection
        }
        #expect(streams.filter(\.isOpen).count <= 4)
        #expect(try RawHTTP.ask(server.address, "/none").status == 404)
    }

    @Test func `a large answer arrives whole, and whoever takes nothing of it is cut off`() throws {
        let (server, service) = try Self.serve()
        let reading = try RawHTTP(server.address)
        reading.send(Self.request("GET", "/large", ["Connection: close"]))
        let answer = RawHTTP.Answer(try reading.receiveAll())
        #expect(answer.head.contains("Content-Length: \(service.largeBytes)"))
        #expect(answer.body.utf8.count == service.largeBytes)
        service.arrived.wait()
        let idle = try RawHTTP(server.address)
        idle.send(Self.request("GET", "/large"))
        // It is over although the peer neither reads nor ends its connection.
        service.arrived.wait()
        #expect(RawHTTP.Answer(try idle.receiveAll()).body.utf8.count < service.largeBytes)
    }
}
