import Conflux
import ConfluxMonitoring
import ConfluxVocabulary
import Foundation

/// What a request of the API asks for.
enum APIRoute {
    /// The description of the API.
    case document
    case ask(Request)
    /// A dispatch of the action in the body.
    case dispatch(
        StoreName, key: String?, ifUnchangedSince: StoreVersion?, timeout: Duration)
    case events(StoreName, EventPosition?, isActions: Bool)
    /// What a store was, and how it came to be that.
    case past(PastRequest)
    /// What the sequencer and the gateway say of themselves.
    case status
    /// The entries of the log as they are ordered; all, or those that concern something.
    case entries(Target?)
    /// A decision of an operator, in the body.
    case decision(timeout: Duration)

    /// Reads a request.
    ///
    /// - Parameter head: The request, without its body.
    /// - Throws: What is wrong with it.
    init(_ head: HTTPHead) throws(Problem) {
        let parts = head.path.split(separator: "/", omittingEmptySubsequences: false).dropFirst()
            .map { String($0).removingPercentEncoding }
        var query = try Query(head.query)
        let route: APIRoute
        switch parts {
        case ["api", "v1", "openapi.json"]:
            try Self.allow(["GET", "HEAD"], head)
            route = .document
        case ["api", "v1", "status"]:
            try Self.allow(["GET", "HEAD"], head)
            route = .status
        case ["api", "v1", "entries"]:
            try Self.allow(["GET", "HEAD"], head)
            let text = try query.take("target")
            let target = text.flatMap { Target($0) }
            guard text == nil || target != nil else {
                throw Problem.invalid("'target' is STATE/INSTANCE, or STATE/*.")
            }
            route = .entries(target)
        case ["api", "v1", "decisions"]:
            try Self.allow(["POST"], head)
            try Self.checkDispatch(head)
            route = .decision(timeout: try query.timeout())
        case ["api", "v1", "stores"]:
            try Self.allow(["GET", "HEAD"], head)
            route = .ask(Request(.stores, timeout: try query.timeout()))
        case _ where (5...6).contains(parts.count) && parts[..<3] == ["api", "v1", "stores"]:
            guard let state = parts[3].flatMap({ Name($0) }),
                let instance = parts[4].flatMap({ Name($0) })
            else {
                throw Problem(
                    404, "unknownStore",
                    "The name of a store has two parts of 1 to \(Name.lengthMax) characters: a to z, 0 to 9, '.', '_' and '-'."
                )
            }
            route = try Self.route(
                to: StoreName(state: state, instance: instance),
                parts.count > 5 ? parts[5] ?? "?" : nil, head, &query)
        default: throw Self.unknown
        }
        try query.finish()
        self = route
    }

    private static func route(
        to store: StoreName, _ part: String?, _ head: HTTPHead, _ query: inout Query
    ) throws(Problem) -> APIRoute {
        switch part {
        case nil:
            try allow(["GET", "HEAD"], head)
            if let past = try PastRequest.state(of: store, &query) { return .past(past) }
            let atLeast = try query.number("atLeast").map { SequenceNumber($0) }
            return .ask(
                Request(
                    .get(store, atLeast: atLeast, mayWait: false), timeout: try query.timeout()))
        case "difference":
            try allow(["GET", "HEAD"], head)
            return .past(try PastRequest.difference(of: store, &query))
        case "entries":
            try allow(["GET", "HEAD"], head)
            return .past(try PastRequest.entries(of: store, &query))
        case "events":
            try allow(["GET", "HEAD"], head)
            let form = try query.take("as") ?? "changes"
            guard ["changes", "actions"].contains(form) else {
                throw Problem.invalid("'as' is 'changes' or 'actions'.")
            }
            var position = try query.number("since").map { EventPosition($0) }
            // Whoever has an id that was never given has nothing that is known here.
            if let id = head.headers["last-event-id"], !id.isEmpty { position = EventPosition(id) }
            return .events(store, position, isActions: form == "actions")
        case "actions":
            try allow(["GET", "HEAD", "POST"], head)
            let timeout = try query.timeout()
            guard head.method == "POST" else {
                return .ask(Request(.actions(store), timeout: timeout))
            }
            try checkDispatch(head)
            return .dispatch(
                store, key: try idempotencyKey(head), ifUnchangedSince: try condition(head),
                timeout: timeout)
        default: throw unknown
        }
    }

    private static var unknown: Problem {
        Problem(
            404, "unknownPath", "There is nothing at this path. /api/v1/openapi.json has all paths."
        )
    }

    private static func allow(_ methods: [String], _ head: HTTPHead) throws(Problem) {
        guard !methods.contains(head.method) else { return }
        let list = methods.joined(separator: ", ")
        throw Problem(
            405, "methodNotAllowed", "The methods of this path are \(list).",
            headers: [("Allow", list)])
    }

    /// Refuses a dispatch that a page of another site may have sent: a browser sends this media type for such a page only
    /// after a preflight request, which is refused.
    private static func checkDispatch(_ head: HTTPHead) throws(Problem) {
        let type = head.headers["content-type"] ?? ""
        guard
            type.prefix(while: { $0 != ";" }).trimmingCharacters(in: .whitespaces).lowercased()
                == "application/json"
        else {
            throw Problem(
                415, "unsupportedMediaType", "Send the action as Content-Type: application/json.")
        }
    }

    /// The condition of a dispatch: an entity tag, which is a version. `*` is any version.
    private static func condition(_ head: HTTPHead) throws(Problem) -> StoreVersion? {
        guard let text = head.headers["if-match"]?.trimmingCharacters(in: .whitespaces),
            text != "*"
        else { return nil }
        let isQuoted = text.count > 1 && text.hasPrefix("\"") && text.hasSuffix("\"")
        guard let version = StoreVersion(isQuoted ? String(text.dropFirst().dropLast()) : text)
        else {
            throw Problem.invalid(
                "'If-Match' is the ETag of a store's state, the number of an entry, or *.")
        }
        return version
    }

    private static func idempotencyKey(_ head: HTTPHead) throws(Problem) -> String? {
        guard let key = head.headers["idempotency-key"] else { return nil }
        guard (1...Request.keyBytesMax).contains(key.utf8.count),
            key.utf8.allSatisfy({ (0x21...0x7e).contains($0) })
        else {
            throw Problem.invalid(
                "'Idempotency-Key' has 1 to \(Request.keyBytesMax) characters: printable ASCII without spaces."
            )
        }
        return key
    }
}

extension Problem {
    static func invalid(_ message: String) -> Problem { Problem(400, "invalidRequest", message) }
}

/// Takes the parameters of a request one by one.
struct Query {
    private static let timeoutMin = Duration.milliseconds(100)

    private var values: [String: String] = [:]

    init(_ pairs: [(name: String, value: String)]) throws(Problem) {
        for (name, value) in pairs {
            guard let name = name.removingPercentEncoding, let value = value.removingPercentEncoding
            else {
                throw Problem.invalid(
                    "The parameters are not UTF-8. Encode them as UTF-8, and escape them with %.")
            }
            guard values.updateValue(value, forKey: name) == nil else {
                throw Problem.invalid("The parameter '\(name)' is there twice.")
            }
        }
    }

    mutating func take(_ name: String) throws(Problem) -> String? {
        values.removeValue(forKey: name)
    }

    mutating func number(_ name: String) throws(Problem) -> UInt64? {
        guard let text = try take(name) else { return nil }
        guard let number = Int64(text), text.utf8.allSatisfy({ (0x30...0x39).contains($0) })
        else { throw Problem.invalid("'\(name)' is a whole number from 0 to \(Int64.max).") }
        return UInt64(number)
    }

    mutating func timeout() throws(Problem) -> Duration {
        guard let number = try number("timeout") else { return GatewayBounds.timeout }
        let timeout = Duration.milliseconds(Int64(number))
        guard (Self.timeoutMin...GatewayBounds.timeoutMax).contains(timeout) else {
            let range = [Self.timeoutMin, GatewayBounds.timeoutMax].map {
                Int($0 / .milliseconds(1))
            }
            throw Problem.invalid(
                "'timeout' is a number of milliseconds from \(range[0]) to \(range[1]).")
        }
        return timeout
    }

    /// Refuses what nobody has taken: nobody could know what it was meant to be.
    func finish() throws(Problem) {
        guard let name = values.keys.min() else { return }
        throw Problem.invalid("This path has no parameter '\(name)'.")
    }
}
