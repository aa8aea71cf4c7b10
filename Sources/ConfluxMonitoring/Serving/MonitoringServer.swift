import CMicroHTTPD
import ConfluxVocabulary

#if canImport(Darwin)
    import Darwin
#else
    import Glibc
#endif

/// Serves metrics and health over HTTP, by libmicrohttpd, on one thread of its own.
///
/// Everything that a peer can cause is bounded: the number of connections, and the bytes and the
/// time of each.
// Sendable: immutable; libmicrohttpd guards its daemon itself.
package final class MonitoringServer: @unchecked Sendable {
    /// The most connections. *At the bound* up to as many more wait until one has ended.
    package static let connectionsMax = 32
    /// The most bytes of a connection: a request's line and headers, and the answer's headers. *At
    /// the bound* the request is refused.
    package static let connectionBytesMax = 16 << 10
    /// How long a connection may be silent. *At the bound* it is closed.
    package static let silenceMax = Duration.seconds(10)

    /// The address that it listens at, with the bound port: `127.0.0.1:7480`.
    package let address: String
    private let daemon: OpaquePointer
    private let context: Unmanaged<Context>

    /// The context of the callback that answers requests.
    private final class Context: Sendable {
        let monitored: Monitored
        let token: BearerToken?

        init(_ monitored: Monitored, _ token: BearerToken?) {
            self.monitored = monitored
            self.token = token
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
        let context = Unmanaged.passRetained(Context(monitored, token))
        guard let daemon = Self.start(address, context) else {
            let number = errno
            context.release()
            throw Self.failure(number, address)
        }
        let port = conflux_http_port(daemon)
        guard port != 0 else {
            MHD_stop_daemon(daemon)
            context.release()
            throw MonitoringError(
                code: .failed,
                message:
                    "The system does not say which port \(address.text) got. Name one with --http.")
        }
        self.context = context
        self.daemon = daemon
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
        context.release()
    }

    private static func start(
        _ address: MonitoringAddress, _ context: Unmanaged<Context>
    ) -> OpaquePointer? {
        address.storage.withUnsafeBytes { bytes in
            errno = 0
            return conflux_http_start(
                address.isIPv6 ? 1 : 0, bytes.baseAddress?.assumingMemoryBound(to: sockaddr.self),
                handle, context.toOpaque(), UInt32(connectionsMax), connectionBytesMax,
                UInt32(silenceMax.components.seconds))
        }
    }

    private static func failure(_ number: Int32, _ address: MonitoringAddress) -> MonitoringError {
        let reason =
            number == 0 ? "no thread, or no socket" : String(shownCString: strerror(number))
        let (code, advice): (MonitoringError.Code, String) =
            switch number {
            case EADDRINUSE:
                (.addressInUse, "End what listens there, or choose another port with --http.")
            case EADDRNOTAVAIL: (.invalidAddress, "Choose an address of this machine with --http.")
            default: (.failed, "Choose another address with --http, or leave it out.")
            }
        return MonitoringError(
            code: code, message: "Metrics can't be served at \(address.text): \(reason). \(advice)")
    }

    /// Called by libmicrohttpd on its thread, when the headers of a request have arrived. A body is not
    /// read.
    private static let handle: MHD_AccessHandlerCallback = {
        context, connection, path, method, _, _, _, _ in
        guard let context, let connection, let path, let method else {
            return conflux_http_give_up()
        }
        let own = Unmanaged<Context>.fromOpaque(context).takeUnretainedValue()
        let header = conflux_http_header(connection, "Authorization")
        return respond(
            to: connection,
            MonitoringAnswer(
                text(method), text(path), authorization: header.map(text), token: own.token,
                of: own.monitored))
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
