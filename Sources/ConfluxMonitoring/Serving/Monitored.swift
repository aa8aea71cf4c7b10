/// The functions that the server calls to read published numbers. It calls them on its thread, one after the
/// other. They must not block.
package struct Monitored: Sendable {
    /// The metrics.
    package var metrics: @Sendable () -> [MetricFamily]
    /// Why the process makes no progress; empty if it does.
    package var livenessFaults: @Sendable () -> [String]
    /// Why it does not do its work; empty if it does.
    package var readinessFaults: @Sendable () -> [String]

    /// Makes the functions to serve.
    package init(
        metrics: @escaping @Sendable () -> [MetricFamily],
        livenessFaults: @escaping @Sendable () -> [String],
        readinessFaults: @escaping @Sendable () -> [String]
    ) {
        self.metrics = metrics
        self.livenessFaults = livenessFaults
        self.readinessFaults = readinessFaults
    }
}

/// The answer to a request.
struct MonitoringAnswer {
    var status: UInt32
    var body: String
    var headers: [(name: String, value: String)] = []
    /// Whether the request had the token, if one is needed.
    var isForAdmitted: Bool { status != 401 }

    private static let plainText = "text/plain; charset=utf-8"
    /// The text format that ``MetricFamily/text(_:)`` writes.
    private static let metricsText = "text/plain; version=0.0.4; charset=utf-8"

    /// - Parameters:
    ///   - method: The request's method.
    ///   - path: Its path, without a query.
    ///   - authorization: Its header of that name.
    ///   - token: The token that it must have; nil for none.
    ///   - monitored: The functions to read from.
    init(
        _ method: String, _ path: String, authorization: String?, token: BearerToken?,
        of monitored: Monitored
    ) {
        if let token, !token.admits(authorization) {
            self.init(
                status: 401, text: "Give the token: the header Authorization: Bearer TOKEN.\n")
            headers.append(("WWW-Authenticate", "Bearer"))
            return
        }
        guard ["/metrics", "/livez", "/readyz"].contains(path) else {
            self.init(status: 404, text: "There are /metrics, /livez and /readyz.\n")
            return
        }
        guard method == "GET" || method == "HEAD" else {
            self.init(status: 405, text: "Only GET and HEAD are allowed.\n")
            headers.append(("Allow", "GET, HEAD"))
            return
        }
        switch path {
        case "/metrics":
            self.init(
                status: 200, text: MetricFamily.text(monitored.metrics()), type: Self.metricsText)
        case "/livez": self.init(faults: monitored.livenessFaults())
        default: self.init(faults: monitored.readinessFaults())
        }
    }

    private init(faults: [String]) {
        self.init(
            status: faults.isEmpty ? 200 : 503,
            text: faults.isEmpty ? "ok\n" : faults.map { $0 + "\n" }.joined())
    }

    private init(status: UInt32, text: String, type: String = plainText) {
        self.status = status
        body = text
        headers = [("Content-Type", type), ("Cache-Control", "no-store")]
    }
}
