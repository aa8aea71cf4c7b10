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

    private let address: MonitoringAddress
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
        do throws(MonitoringError) {
            address = try MonitoringAddress(text)
            token =
                if let path = arguments[Self.httpToken] { try BearerToken(file: path) } else { nil }
            try MonitoringServer.check(address, token)
        } catch {
            throw CommandFailure(error)
        }
    }

    /// Begins to serve.
    ///
    /// - Returns: The server, which serves while it is kept.
    package func serve(_ monitored: Monitored) throws(CommandFailure) -> MonitoringServer {
        do throws(MonitoringError) {
            return try MonitoringServer(monitored, at: address, token: token)
        } catch {
            throw CommandFailure(error)
        }
    }
}

extension CommandFailure {
    fileprivate init(_ error: MonitoringError) {
        let exitCode: ExitCode =
            switch error.code {
            case .invalidAddress, .insecure: .usage
            case .invalidToken: .noInput
            case .addressInUse: .cannotCreate
            case .failed: .failed
            }
        self.init(exitCode, code: error.code.rawValue, error.message)
    }
}
