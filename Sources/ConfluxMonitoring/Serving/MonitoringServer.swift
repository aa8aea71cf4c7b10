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

/// Serves metrics and health over HTTP, by libmicrohttpd, on one thread of its own.
///
/// Everything that a peer can cause is bounded: the number of connections, and the bytes and the
/// time of each. `HTTPConnections` decides which connections end for that.
// Sendable: immutable; libmicrohttpd guards its daemon itself.
package final class MonitoringServer: @unchecked Sendable {
    /// The most connections. *At the bound* a new one ends the oldest one, of the address that has most, that has
    /// not made an admitted request, or else the oldest.
    package static let connectionsMax = 32
    /// The most bytes of a connection: a request's line and headers, and the answer's headers. *At
    /// the bound* the request is refused.
    package static let connectionBytesMax = 16 << 10
    /// How long a connection may take for its request and the answer, whatever it sends meanwhile. *At the bound* it
    /// is closed. A connection is for one request.
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
        let monitored: Monitored
        let token: BearerToken?
        let connections = Mutex(
            HTTPConnections(connectionsMax: connectionsMax, requestMax: requestMax))
        private let began = ContinuousClock.now

        init(_ monitored: Monitored, _ token: BearerToken?) {
            self.monitored = monitored
            self.token = token
        }

        /// How long the server has been there.
        var age: Duration { ContinuousClock.now - began }

        /// Ends connections. A socket that is in the table, or was until now, is open for as long as the lock is
        /// held: libmicrohttpd closes it only after it has reported that, which takes the lock.
        func end(_ choose: (inout HTTPConnections) -> [Int32]) {
            connections.withLock { connections in
                for socket in choose(&connections) { shutdown(socket, Int32(SHUT_RDWR)) }
            }
        }
    }

    /// Begins to serve.
    ///
    /// - Parameters:
    ///   - monitored: The functions to read from.
    ///   - address: The address to listen at.
    ///   - token: The token that every request must have; nil for none, if only this machine can reach the address.
    /// - Throws: ``MonitoringError``.
    package init(
        _ monitored: Monitored, at address: MonitoringAddress, token: BearerToken?
    ) throws(MonitoringError) {
        try Self.check(address, token)
        let own = Context(monitored, token)
        let context = Unmanaged.passRetained(own)
        let watch = Self.watch(context)
        guard let daemon = Self.start(address, watch) else {
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
            throw MonitoringError(
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
    /// - Throws: ``MonitoringError`` if other machines can reach the address and there is no token.
    package static func check(
        _ address: MonitoringAddress, _ token: BearerToken?
    ) throws(MonitoringError) {
        guard address.isLocal || token != nil else {
            throw MonitoringError(
                code: .insecure,
                message: """
                    Other machines can reach \(address.text), and everybody there might read the metrics. \
                    Give a token (--http-token FILE, with a file from openssl rand -hex 32 and \
                    chmod 600), or serve them at 127.0.0.1.
                    """)
        }
    }

    deinit {
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
                    guard let own = MonitoringServer.own(context) else { return }
                    own.end { $0.begin(socket, from: bytes, at: own.age).map { [$0] } ?? [] }
                },
                ended: { context, socket in
                    MonitoringServer.own(context)?.connections.withLock { $0.end(socket) }
                }))
        return watch
    }

    private static func own(_ context: UnsafeMutableRawPointer?) -> Context? {
        context.map { Unmanaged<Context>.fromOpaque($0).takeUnretainedValue() }
    }

    private static func start(
        _ address: MonitoringAddress, _ watch: UnsafeMutablePointer<conflux_http_watch>
    ) -> OpaquePointer? {
        address.storage.withUnsafeBytes { bytes in
            errno = 0
            return conflux_http_start(
                address.isIPv6 ? 1 : 0, bytes.baseAddress?.assumingMemoryBound(to: sockaddr.self),
                // Connections that were told to end are there for a moment longer.
                handle, watch, UInt32(2 * connectionsMax), connectionBytesMax)
        }
    }

    private static func failure(_ number: Int32, _ address: MonitoringAddress) -> MonitoringError {
        let failure = SystemFailure(number)
        let words = number == 0 ? "no thread, or no socket" : failure.words
        let (code, advice): (MonitoringError.Code, String) =
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
        return MonitoringError(
            code: code, message: "Metrics can't be served at \(address.text): \(words). \(advice)")
    }

    /// Called by libmicrohttpd on its thread, when the headers of a request have arrived. A body is not
    /// read.
    private static let handle: MHD_AccessHandlerCallback = {
        context, connection, path, method, _, _, _, _ in
        guard let own = own(context), let connection, let path, let method else {
            return conflux_http_give_up()
        }
        let header = conflux_http_header(connection, "Authorization")
        let answer = MonitoringAnswer(
            text(method), text(path), authorization: header.map(text), token: own.token,
            of: own.monitored)
        if answer.isForAdmitted {
            own.connections.withLock { $0.admit(conflux_http_socket(connection)) }
        }
        return respond(to: connection, answer)
    }

    /// A text of a request; empty, which is neither a path nor a token, if it is not UTF-8.
    private static func text(_ words: UnsafePointer<CChar>) -> String {
        (try? String(utf8CString: words)) ?? ""
    }

    private static func respond(
        to connection: OpaquePointer, _ answer: MonitoringAnswer
    ) -> MHD_Result {
        let body = Array(answer.body.utf8)
        guard let response = conflux_http_response(body, body.count) else {
            return conflux_http_give_up()
        }
        defer { MHD_destroy_response(response) }
        for header in answer.headers {
            _ = MHD_add_response_header(response, header.name, header.value)
        }
        return MHD_queue_response(connection, answer.status, response)
    }
}
