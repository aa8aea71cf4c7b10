import ConfluxArguments
import ConfluxMonitoring

/// The options with which a sequencer or a worker serves metrics and health.
package struct MonitoringOptions: Sendable {
    /// The address to serve at.
    package static let http = Option<String?>(
        "--http", valueName: "HOST:PORT", parse: .text,
        summary: """
            Serve metrics and health over HTTP (/metrics, /livez, /readyz) at an IP address or \
            localhost. With port 0 the system chooses one; the ready line shows it.
            """)
    /// The file of the token that requests must have.
    package static let httpToken = Option<String?>(
        "--http-token", valueName: "FILE", parse: .text,
        summary: """
            A file with a token. Each HTTP request must have it as Authorization: Bearer TOKEN. \
            You need it if other machines can reach the address of --http.
            """)

    private let address: HTTPAddress
    private let token: BearerToken?

    /// Reads the options, before anything is started.
    ///
    /// - Returns: nil if nothing should be served.
    /// - Throws: What is wrong with it.
    package init?(_ arguments: Invocation) throws(CommandFailure) {
        guard let text = arguments[Self.http] else {
            guard arguments[Self.httpToken] == nil else {
                throw CommandFailure(
                    .usage, code: "usage",
                    "--http-token is for --http: say where to serve, or leave out the token.")
            }
            return nil
        }
        (address, token) = try failing { () throws(HTTPError) in
            let address = try HTTPAddress(text)
            let token = try arguments[Self.httpToken].map { path throws(HTTPError) in
                try BearerToken(file: path)
            }
            try HTTPServer.check(address, token)
            return (address, token)
        }
    }

    /// Begins to serve.
    ///
    /// - Parameters:
    ///   - monitored: The functions to read metrics and health from.
    ///   - api: What is served at all other paths; nil for nothing.
    /// - Returns: The server, which serves while it is kept.
    /// - Throws: Why it can't serve.
    package func serve(
        _ monitored: Monitored, api: WorkerAPI? = nil
    ) throws(CommandFailure) -> HTTPServer {
        let monitoring = MonitoringService(
            monitored, token: token)
        return try failing { () throws(HTTPError) in
            guard let api else { return try HTTPServer(monitoring, at: address) }
            return try HTTPServer(
                Both(monitoring: monitoring, api: api.service(token)), at: address,
                connectionsMax: api.connectionsMax)
        }
    }
}

/// Metrics and health, and an API beside them.
private struct Both: HTTPService {
    let monitoring: MonitoringService
    let api: any HTTPService

    func decide(_ head: HTTPHead) -> HTTPDecision {
        ["/metrics", "/livez", "/readyz"].contains(head.path)
            ? monitoring.decide(head) : api.decide(head)
    }
}

extension HTTPError: CommandError {
    package var failure: CommandFailure {
        let exitCode: ExitCode =
            switch code {
            case .invalidAddress, .insecure: .usage
            case .invalidToken: .noInput
            case .addressInUse: .cannotCreate
            case .failed: .failed
            }
        return CommandFailure(exitCode, code: code.rawValue, message)
    }
}
