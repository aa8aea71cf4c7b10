/// Answers requests for metrics and health.
package struct MonitoringService: HTTPService {
    private let monitored: Monitored
    private let token: BearerToken?

    /// - Parameters:
    ///   - monitored: The functions to read from.
    ///   - token: The token that every request must have; nil for none.
    package init(_ monitored: Monitored, token: BearerToken?) {
        self.monitored = monitored
        self.token = token
    }

    package func decide(_ head: HTTPHead) -> HTTPDecision { .answer(answer(head)) }

    private func answer(_ head: HTTPHead) -> HTTPAnswer {
        if let token, !token.admits(head.headers["authorization"]) {
            return Self.text(
                401, "Give the token: the header Authorization: Bearer TOKEN.\n",
                [("WWW-Authenticate", "Bearer")])
        }
        guard ["/metrics", "/livez", "/readyz"].contains(head.path) else {
            return Self.text(404, "There are /metrics, /livez and /readyz.\n")
        }
        guard head.method == "GET" || head.method == "HEAD" else {
            return Self.text(405, "Only GET and HEAD are allowed.\n", [("Allow", "GET, HEAD")])
        }
        switch head.path {
        case "/metrics":
            return HTTPAnswer(
                // The text format that `MetricFamily.text` writes.
                status: 200, type: "text/plain; version=0.0.4; charset=utf-8",
                body: .bytes(Array(MetricFamily.text(monitored.metrics()).utf8)))
        case "/livez": return Self.health(monitored.livenessFaults())
        default: return Self.health(monitored.readinessFaults())
        }
    }

    private static func health(_ faults: [String]) -> HTTPAnswer {
        text(
            faults.isEmpty ? 200 : 503,
            faults.isEmpty ? "ok\n" : faults.map { $0 + "\n" }.joined())
    }

    private static func text(
        _ status: UInt32, _ text: String, _ headers: [(name: String, value: String)] = []
    ) -> HTTPAnswer {
        HTTPAnswer(
            status: status, type: "text/plain; charset=utf-8", headers: headers,
            body: .bytes(Array(text.utf8)))
    }
}
