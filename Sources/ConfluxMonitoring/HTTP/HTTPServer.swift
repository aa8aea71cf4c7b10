import CMicroHTTPD
import ConfluxSystem
import ConfluxVocabulary
import Dispatch
import Synchronization

#if canImport(Darwin)
    import Darwin
#else
    import Glibc
#endif

/// Serves HTTP, by libmicrohttpd, on one thread of its own.
///
/// Everything that a peer can cause is bounded: the number of connections, and the bytes and the
/// time of each. `HTTPConnections` decides which connections end for that.
// Sendable: immutable; libmicrohttpd guards its daemon itself.
package final class HTTPServer: @unchecked Sendable {
    /// The most connections, unless it is said otherwise. *At the bound* a new one ends the oldest one, of the address that has most, that has
    /// not made an admitted request, or else the oldest.
    package static let connectionsMax = 32
    /// The most bytes of a connection, without a body: a request's line and headers, and the answer's headers. *At
    /// the bound* the request is refused.
    package static let connectionBytesMax = 16 << 10
    /// How long a connection may take for its request, to take the next part of an answer, or to send the next request,
    /// whatever it sends meanwhile. *At the bound* it is closed.
    package static let requestMax = Duration.seconds(10)
    /// How often connections that take too long are looked for.
    private static let reviewInterval = DispatchTimeInterval.seconds(1)

    /// The address that it listens at, with the bound port: `127.0.0.1:7480`.
    package let address: String
    private let daemon: OpaquePointer
    private let context: Unmanaged<Context>
    private let watch: UnsafeMutablePointer<conflux_http_watch>
    private let review: any DispatchSourceTimer

    /// The context of the callbacks.
    private final class Context: Sendable {
        let service: any HTTPService
        let connections: Mutex<HTTPConnections>
        /// The requests that are not over, by the socket of their connection; nil once the server ends.
        private let exchanges = Mutex<[Int32: HTTPExchange]?>([:])
        private let began = ContinuousClock.now

        init(_ service: any HTTPService, connectionsMax: Int) {
            self.service = service
            connections = Mutex(
                HTTPConnections(connectionsMax: connectionsMax, requestMax: requestMax))
        }

        /// How long the server has been there.
        var age: Duration { ContinuousClock.now - began }

        /// Ends connections. A socket that is in the table, or was until now, is open for as long as the lock is
        /// held: libmicrohttpd closes it only after it has reported that, which takes the lock.
        func end(_ choose: (inout HTTPConnections) -> [Int32]) {
            let open = connections.withLock { connections in
                choose(&connections).map { socket in
                    shutdown(socket, Int32(SHUT_RDWR))
                    return exchanges.withLock { $0?[socket] }
                }
            }
            // libmicrohttpd does not look at a suspended connection.
            for exchange in open { exchange?.stop() }
        }

        func begin(_ exchange: HTTPExchange, at socket: Int32) {
            let isServing = exchanges.withLock { exchanges in
                exchanges?[socket] = exchange
                return exchanges != nil
            }
            if !isServing { exchange.stop() }
        }

        func complete(_ exchange: HTTPExchange, at socket: Int32) {
            exchange.complete()
            exchanges.withLock { _ = $0?.removeValue(forKey: socket) }
            connections.withLock { $0.settle(socket, at: age) }
        }

        /// Ends all requests: libmicrohttpd must not be stopped while a connection is suspended.
        func stop() {
            let open = exchanges.withLock { exchanges in
                defer { exchanges = nil }
                return exchanges ?? [:]
            }
            for exchange in open.values { exchange.stop() }
        }
    }

    /// Begins to serve.
    ///
    /// - Parameters:
    ///   - service: What it serves.
    ///   - address: The address to listen at.
    ///   - connectionsMax: The most connections.
    /// - Throws: ``HTTPError``.
    package init(
        _ service: any HTTPService, at address: HTTPAddress,
        connectionsMax: Int = HTTPServer.connectionsMax
    ) throws(HTTPError) {
        let own = Context(service, connectionsMax: connectionsMax)
        let context = Unmanaged.passRetained(own)
        let watch = Self.watch(context)
        guard let daemon = Self.start(address, watch, connectionsMax) else {
            let number = errno
            watch.deallocate()
            context.release()
            throw Self.failure(number, address)
        }
        let port = conflux_http_port(daemon)
        guard port != 0 else {
            MHD_stop_daemon(daemon)
            watch.deallocate()
            context.release()
            throw HTTPError(
                code: .failed,
                message:
                    "The system does not say which port \(address.text) got. Name one with --http.")
        }
        self.context = context
        self.watch = watch
        self.daemon = daemon
        review = DispatchSource.makeTimerSource(queue: DispatchQueue(label: "conflux-http"))
        review.schedule(deadline: .now() + Self.reviewInterval, repeating: Self.reviewInterval)
        review.setEventHandler { own.end { $0.endOverdue(at: own.age) } }
        review.activate()
        self.address = address.text(port: port)
    }

    /// Checks whether requests may be served at an address.
    ///
    /// - Throws: ``HTTPError`` if other machines can reach the address and there is no token.
    package static func check(
        _ address: HTTPAddress, _ token: BearerToken?
    ) throws(HTTPError) {
        guard address.isLocal || token != nil else {
            throw HTTPError(
                code: .insecure,
                message: """
                    Other machines can reach \(address.text), and everybody there might use it. \
                    Give a token (--http-token FILE, with a file from openssl rand -hex 32 and \
                    chmod 600), or serve at 127.0.0.1.
                    """)
        }
    }

    deinit {
        context.takeUnretainedValue().stop()
        // This waits for the thread. Afterwards, no request is being answered.
        MHD_stop_daemon(daemon)
        review.cancel()
        watch.deallocate()
        context.release()
    }

    /// What libmicrohttpd calls on its thread as connections begin and end.
    private static func watch(
        _ context: Unmanaged<Context>
    ) -> UnsafeMutablePointer<conflux_http_watch> {
        let watch = UnsafeMutablePointer<conflux_http_watch>.allocate(capacity: 1)
        watch.initialize(
            to: conflux_http_watch(
                context: context.toOpaque(),
                begun: { context, socket, address, size in
                    let bytes = UnsafeRawBufferPointer(start: address, count: size)
                    guard let own = HTTPServer.own(context) else { return }
                    own.end { $0.begin(socket, from: bytes, at: own.age).map { [$0] } ?? [] }
                },
                ended: { context, socket in
                    HTTPServer.own(context)?.connections.withLock { $0.end(socket) }
                },
                completed: { kept in
                    guard let kept else { return }
                    let request = Unmanaged<Request>.fromOpaque(kept).takeRetainedValue()
                    request.context.complete(request.exchange, at: request.socket)
                }))
        return watch
    }

    private static func own(_ context: UnsafeMutableRawPointer?) -> Context? {
        context.map { Unmanaged<Context>.fromOpaque($0).takeUnretainedValue() }
    }

    private static func start(
        _ address: HTTPAddress, _ watch: UnsafeMutablePointer<conflux_http_watch>,
        _ connectionsMax: Int
    ) -> OpaquePointer? {
        address.storage.withUnsafeBytes { bytes in
            errno = 0
            return conflux_http_start(
                address.isIPv6 ? 1 : 0, bytes.baseAddress?.assumingMemoryBound(to: sockaddr.self),
                // Connections that were told to end are there for a moment longer.
                handle, watch, UInt32(2 * connectionsMax), connectionBytesMax)
        }
    }

    private static func failure(_ number: Int32, _ address: HTTPAddress) -> HTTPError {
        let failure = SystemFailure(number)
        let words = number == 0 ? "no thread, or no socket" : failure.words
        let (code, advice): (HTTPError.Code, String) =
            switch number {
            case EADDRINUSE:
                (.addressInUse, "End what listens there, or choose another port with --http.")
            case EADDRNOTAVAIL: (.invalidAddress, "Choose an address of this machine with --http.")
            case EACCES, EPERM: (.failed, "Choose a port above 1023 with --http.")
            default:
                (
                    .failed,
                    failure.trouble?.advice
                        ?? "Choose another address with --http, or leave it out."
                )
            }
        return HTTPError(
            code: code, message: "HTTP can't be served at \(address.text): \(words). \(advice)")
    }

    /// What libmicrohttpd keeps of a request until it is over.
    private final class Request {
        let exchange: HTTPExchange
        let socket: Int32
        let context: Context

        init(_ exchange: HTTPExchange, _ socket: Int32, _ context: Context) {
            (self.exchange, self.socket, self.context) = (exchange, socket, context)
        }
    }

    /// Called by libmicrohttpd on its thread: when the headers of a request have arrived, for each part of its body,
    /// at the end of that, and when its connection is resumed.
    private static let handle: MHD_AccessHandlerCallback = {
        context, connection, path, method, _, bytes, byteCount, kept in
        guard let own = own(context), let connection, let path, let method, let kept else {
            return conflux_http_give_up()
        }
        guard let pointer = kept.pointee else {
            switch own.service.decide(head(of: connection, method, path)) {
            case .answer(let answer): return respond(to: connection, answer, own)
            case .take(let bodyBytesMax, let tooLong, let work):
                let exchange = HTTPExchange(
                    connection, bodyBytesMax: bodyBytesMax, tooLong: tooLong, work)
                let socket = conflux_http_socket(connection)
                kept.pointee = Unmanaged.passRetained(Request(exchange, socket, own)).toOpaque()
                own.begin(exchange, at: socket)
                return conflux_http_continue()
            }
        }
        let exchange = Unmanaged<Request>.fromOpaque(pointer).takeUnretainedValue().exchange
        if let byteCount, byteCount.pointee > 0 {
            bytes?.withMemoryRebound(to: UInt8.self, capacity: byteCount.pointee) {
                exchange.take(UnsafeBufferPointer(start: $0, count: byteCount.pointee))
            }
            byteCount.pointee = 0
            return conflux_http_continue()
        }
        own.connections.withLock { $0.owe(conflux_http_socket(connection)) }
        switch exchange.proceed() {
        case .answer(let answer): return respond(to: connection, answer, own, exchange)
        case .wait: return conflux_http_continue()
        case .abandon: return conflux_http_give_up()
        }
    }

    private final class Pairs {
        var list: [(name: String, value: String)] = []
    }

    private static func head(
        of connection: OpaquePointer, _ method: UnsafePointer<CChar>, _ path: UnsafePointer<CChar>
    ) -> HTTPHead {
        func pairs(_ isHeader: Int32) -> [(name: String, value: String)] {
            let pairs = Pairs()
            conflux_http_each(
                connection, isHeader,
                { pairs, _, name, value in
                    guard let pairs, let name else { return conflux_http_give_up() }
                    Unmanaged<Pairs>.fromOpaque(pairs).takeUnretainedValue().list.append(
                        (HTTPServer.text(name), value.map { HTTPServer.text($0) } ?? ""))
                    return conflux_http_continue()
                }, Unmanaged.passUnretained(pairs).toOpaque())
            return pairs.list
        }
        let headers = pairs(1).map { ($0.name.lowercased(), $0.value) }
        return HTTPHead(
            method: text(method), path: text(path), query: pairs(0),
            headers: Dictionary(headers) { "\($0), \($1)" })
    }

    /// A text of a request; empty, which is neither a path nor a token, if it is not UTF-8.
    private static func text(_ words: UnsafePointer<CChar>) -> String {
        (try? String(utf8CString: words)) ?? ""
    }

    private static func respond(
        to connection: OpaquePointer, _ answer: HTTPAnswer, _ own: Context,
        _ exchange: HTTPExchange? = nil
    ) -> MHD_Result {
        let response: OpaquePointer?
        switch (answer.body, exchange) {
        case (.bytes(let bytes), nil): response = conflux_http_response(bytes, bytes.count)
        case (.bytes(let bytes), let exchange?):
            exchange.begin(bytes)
            let reading = Reading(exchange, nil, own, conflux_http_socket(connection))
            response = reading.response(byteCount: UInt64(bytes.count))
        case (.stream(let stream), let exchange?):
            let reading = Reading(exchange, stream, own, conflux_http_socket(connection))
            response = reading.response(byteCount: nil)
        case (.stream, nil): preconditionFailure("a stream answers what was taken")
        }
        guard let response else { return conflux_http_give_up() }
        defer { MHD_destroy_response(response) }
        for header in answer.headers {
            _ = MHD_add_response_header(response, header.name, header.value)
        }
        let socket = conflux_http_socket(connection)
        own.connections.withLock { if answer.isForAdmitted { $0.admit(socket) } }
        return MHD_queue_response(connection, answer.status, response)
    }

    /// What libmicrohttpd keeps of a body. Whoever reads it must take each part in time; a stream may wait for parts.
    private final class Reading {
        private static let blockBytes = 16 << 10

        private let exchange: HTTPExchange
        /// nil for a body that is there.
        private let stream: (any HTTPStream)?
        private let context: Context
        private let socket: Int32

        init(
            _ exchange: HTTPExchange, _ stream: (any HTTPStream)?, _ context: Context,
            _ socket: Int32
        ) {
            (self.exchange, self.stream) = (exchange, stream)
            (self.context, self.socket) = (context, socket)
        }

        private func read(_ buffer: UnsafeMutableRawBufferPointer) -> Int {
            guard let count = exchange.read(stream, into: buffer) else {
                return conflux_http_stream_end()
            }
            let now = context.age
            context.connections.withLock {
                if count > 0 { $0.settle(socket, at: now) } else { $0.owe(socket) }
            }
            return count
        }

        func response(byteCount: UInt64?) -> OpaquePointer? {
            let own = Unmanaged.passRetained(self)
            let response = conflux_http_stream(
                byteCount ?? conflux_http_size_unknown(), Self.blockBytes,
                { own, _, buffer, size in
                    guard let own else { return conflux_http_stream_end() }
                    return Unmanaged<Reading>.fromOpaque(own).takeUnretainedValue().read(
                        UnsafeMutableRawBufferPointer(start: buffer, count: size))
                }, own.toOpaque(),
                { own in own.map { Unmanaged<Reading>.fromOpaque($0).release() } })
            if response == nil { own.release() }
            return response
        }
    }
}
