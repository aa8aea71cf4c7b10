import Conflux
import ConfluxMonitoring
import ConfluxVocabulary
import ConfluxWorker

/// Serves the stores over HTTP, with the verbs of ``Desk``.
struct APIService: HTTPService {
    /// The token that every request must have; nil for none.
    let token: BearerToken?
    /// Whether the other addresses are closed to those who have no key.
    let hasKeys: Bool
    let payloadBytesMax: Int
    let epochs: EpochTable
    let streams: StreamHub
    /// The stores; nil before they are open.
    let stores: @Sendable () -> [any AnyServedStore]?
    /// The store of a name, or why it can't be read.
    let store: @Sendable (StoreName) throws(CommandFailure) -> any AnyServedStore
    /// Gives a request to the desk. False if that takes no requests.
    let ask: @Sendable (Desk.Inquiry) -> Bool

    func decide(_ head: HTTPHead) -> HTTPDecision {
        do throws(Problem) {
            try admit(head)
            switch try APIRoute(head) {
            case .document:
                guard let stores = stores() else { throw Problem(Self.starting) }
                return .answer(
                    HTTPAnswer(
                        status: 200, type: "application/json",
                        body: .bytes(OpenAPI.document(of: stores))))
            case .ask(let request):
                return .take(bodyBytesMax: 0) { _, exchange in answer(request, exchange) }
            case .dispatch(let store, let key, let timeout):
                return .take(bodyBytesMax: payloadBytesMax + GatewayBounds.requestBytesMax) {
                    body, exchange in
                    do throws(CodingFailure) {
                        let action = try JSONValue(json: body)
                        answer(
                            Request(.dispatch(store, action, key: key), timeout: timeout), exchange)
                    } catch {
                        exchange.answer(
                            Problem.invalid("The action is not JSON: \(error.message).").answer)
                    }
                }
            case .events(let name, let position, let isActions):
                return .take(bodyBytesMax: 0) { _, exchange in
                    do throws(CommandFailure) {
                        let stream = EventStream(
                            of: try store(name), after: position, isActions: isActions, epochs)
                        streams.add(exchange, of: name)
                        exchange.answer(
                            HTTPAnswer(
                                status: 200, type: "text/event-stream", body: .stream(stream)))
                    } catch {
                        exchange.answer(Problem(error).answer)
                    }
                }
            }
        } catch {
            return .answer(error.answer)
        }
    }

    private func answer(_ request: Request, _ exchange: HTTPExchange) {
        let isTaken = ask(
            Desk.Inquiry(request: request) { answer in
                switch answer {
                case .success:
                    exchange.answer(
                        HTTPAnswer(
                            status: 200, type: "application/json", body: .bytes(answer.bytes())))
                case .failure(let failure): exchange.answer(Problem(failure).answer)
                }
            })
        if !isTaken { exchange.answer(Problem(Self.starting).answer) }
    }

    /// Why there is no answer before the stores are open.
    static let starting = CommandFailure(
        .unreachable, code: "starting", "The gateway does not serve yet, or ends. Try again later.")

    /// Whether somebody may ask.
    private func admit(_ head: HTTPHead) throws(Problem) {
        if let token {
            guard token.admits(head.headers["authorization"]) else {
                throw Problem(
                    401, "notPermitted", "Give the token: the header Authorization: Bearer TOKEN.",
                    headers: [("WWW-Authenticate", "Bearer")])
            }
            return
        }
        guard !hasKeys else {
            throw Problem(
                403, "notPermitted",
                "This gateway has keys. It serves no API over HTTP without --http-token.")
        }
        // A page of another site may be at a name that leads to this machine, and its scripts would then be of this site.
        guard Self.isOwn(host: head.headers["host"] ?? "") else {
            throw Problem(
                421, "misdirected",
                "Without a token, the API is at the address of this machine. Ask 127.0.0.1, [::1] or localhost."
            )
        }
    }

    private static func isOwn(host: String) -> Bool {
        let name =
            host.hasPrefix("[")
            ? String(host.prefix { $0 != "]" }) + "]" : String(host.prefix { $0 != ":" })
        return ["localhost", "[::1]"].contains(name.lowercased())
            || name.hasPrefix("127.") && name.utf8.allSatisfy { "0123456789.".utf8.contains($0) }
    }
}
