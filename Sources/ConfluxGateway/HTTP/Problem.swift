import Conflux
import ConfluxMonitoring
import ConfluxWorker

/// Why a request gets no answer, as problem details ([RFC 9457](https://www.rfc-editor.org/rfc/rfc9457)).
struct Problem: Error {
    let status: UInt32
    let failure: CommandFailure
    var headers: [(name: String, value: String)] = []

    /// Makes the problem of a request that did not get to the desk.
    init(
        _ status: UInt32, _ code: String, _ message: String,
        headers: [(name: String, value: String)] = []
    ) {
        self.status = status
        self.headers = headers
        failure = CommandFailure(.invalidInput, code: code, message)
    }

    /// Makes the problem of a request that has failed.
    init(_ failure: CommandFailure) {
        self.failure = failure
        status = Self.status(of: failure)
        if status == 429 || status == 503 { headers = [("Retry-After", "1")] }
    }

    private static func status(of failure: CommandFailure) -> UInt32 {
        switch failure.code {
        case "storeEnded": return 410
        case "belowFloor": return 404
        case "notAnAction" where failure.exitCode == .invalidInput: return 404
        case "conflict": return 412
        case "payloadTooLarge": return 413
        case "tooManyRequests", "tableFull": return 429
        case "withdrawn": return 504
        default: break
        }
        return switch failure.exitCode {
        case .notPermitted: 403
        case .notFound: 404
        case .rejected, .refused: 409
        case .invalidInput: 422
        case .unreachable, .logFailed, .nodeRefused: 503
        // This process asked another one, and got no answer in time.
        case .timedOut, .unknownOutcome: 504
        default: 500
        }
    }

    var answer: HTTPAnswer {
        let fields: JSONFields = [
            "detail": failure.message, "message": nil, "status": status,
            "title": Self.titles[status] ?? "Internal Server Error",
            // The status says what kind it is, and `code` which one.
            "type": "about:blank",
        ]
        let object = JSONObject(Answer.members(of: failure).merging(fields) { $1 })
        var headers = headers
        if let version = failure.version { headers.append(("ETag", "\"\(version)\"")) }
        return HTTPAnswer(
            status: status, type: "application/problem+json", headers: headers,
            body: .bytes(Array(object.json.description.utf8)))
    }

    private static let titles: [UInt32: String] = [
        400: "Bad Request", 401: "Unauthorized", 403: "Forbidden", 404: "Not Found",
        405: "Method Not Allowed", 409: "Conflict", 410: "Gone",
        412: "Precondition Failed", 413: "Content Too Large",
        415: "Unsupported Media Type", 421: "Misdirected Request", 422: "Unprocessable Content",
        429: "Too Many Requests", 500: "Internal Server Error",
        503: "Service Unavailable", 504: "Gateway Timeout",
    ]
}
