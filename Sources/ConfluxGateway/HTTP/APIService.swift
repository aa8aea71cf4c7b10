import Conflux
import ConfluxMonitoring
import ConfluxNode
import ConfluxVocabulary
import ConfluxWorker
import Dispatch

/// Serves the stores over HTTP, with the verbs of ``Desk``.
struct APIService: HTTPService {
    /// The token that every request must have; nil for none.
    let token: BearerToken?
    /// Whether the other addresses are closed to those who have no key.
    let hasKeys: Bool
    let payloadBytesMax: Int
    let epochs: EpochTable
    let streams: StreamHub
    /// Makes the past of stores; nil before they are open.
    let past: @Sendable () -> PastDesk?
    /// The stores; nil before they are open.
    let stores: @Sendable () -> [any AnyServedStore]?
    /// Gives a request to the desk. False if that takes no requests.
    let ask: @Sendable (Desk.Inquiry) -> Bool
    let feed: EntryFeed
    /// The node, and what is told of it; nil before the stores are open.
    let overview: @Sendable () -> (node: Node, overview: Overview)?

    func decide(_ head: HTTPHead) -> HTTPDecision {
        if ConsolePage.has(head.path) { return .answer(ConsolePage.answer(head)) }
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
                return take { _, exchange in
                    guard case .get(let store, nil, _) = request.verb,
                        answerKept(of: store, at: nil, request.timeout, exchange)
                    else { return answer(request, exchange) }
                }
            case .status:
                return take { _, exchange in
                    guard let overview = overview()?.overview else {
                        return exchange.answer(Problem(Self.starting).answer)
                    }
                    overview.read { exchange.answer(Self.json($0)) }
                }
            case .entries(let target):
                return take { _, exchange in
                    let stream = feed.stream(for: exchange, of: target)
                    exchange.answer(
                        HTTPAnswer(status: 200, type: "text/event-stream", body: .stream(stream)))
                }
            case .decision(let timeout):
                guard token != nil else { throw Self.withoutToken }
                return take(upTo: Decision.bytesMax) { body, exchange in
                    decide(body, timeout, exchange)
                }
            case .dispatch(let store, let key, let version, let timeout):
                return take(upTo: payloadBytesMax + GatewayBounds.requestBytesMax) {
                    body, exchange in
                    // A large one takes longer than the server's thread, which others need, may be away.
                    DispatchQueue.global().async {
                        dispatch(body, to: store, ifUnchangedSince: version, key, timeout, exchange)
                    }
                }
            case .past(let request):
                return take { _, exchange in
                    if case .state(let at, nil) = request.verb,
                        answerKept(of: request.store, at: at, request.timeout, exchange)
                    {
                        return
                    }
                    do throws(CommandFailure) {
                        guard let stores = stores(), let past = past() else { throw Self.starting }
                        let store = try Desk.find(
                            request.store, stores.first { $0.name == request.store },
                            among: stores.map(\.name))
                        past.answer(request, of: store, exchange)
                    } catch {
                        exchange.answer(Problem(error).answer)
                    }
                }
            case .events(let name, let position, let isActions):
                return take { _, exchange in
                    do throws(CommandFailure) {
                        guard let stores = stores() else { throw Self.starting }
                        let store = try Desk.find(
                            name, stores.first { $0.name == name }, among: stores.map(\.name))
                        let stream = EventStream(
                            of: store, after: position, isActions: isActions, epochs)
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

    private func take(
        upTo bytesMax: Int = 0, _ work: @escaping @Sendable ([UInt8], HTTPExchange) -> Void
    ) -> HTTPDecision {
        .take(
            bodyBytesMax: bytesMax,
            tooLong: {
                Problem(
                    413, "tooLarge",
                    bytesMax == 0
                        ? "This request has no body."
                        : "An action has at most \(payloadBytesMax) bytes."
                ).answer
            }, work)
    }

    /// Answers with what the log keeps of a store that the gateway does not serve.
    ///
    /// - Returns: Whether it does not serve the store.
    private func answerKept(
        of store: StoreName, at mark: SequenceNumber?, _ timeout: Duration, _ exchange: HTTPExchange
    ) -> Bool {
        guard let stores = stores(), let past = past(),
            !stores.contains(where: { $0.name == store })
        else { return false }
        past.answerKept(of: store, at: mark, timeout, exchange)
        return true
    }

    private func dispatch(
        _ body: [UInt8], to store: StoreName, ifUnchangedSince version: StoreVersion?,
        _ key: String?, _ timeout: Duration, _ exchange: HTTPExchange
    ) {
        do throws(CodingFailure) {
            let action = try JSONValue(json: body).canonicalBytes()
            answer(
                Request(
                    .dispatch(store, action, key: key, ifUnchangedSince: version), timeout: timeout),
                exchange)
        } catch {
            exchange.answer(Problem.invalid("The action is not JSON: \(error.message).").answer)
        }
    }

    private func decide(_ body: [UInt8], _ timeout: Duration, _ exchange: HTTPExchange) {
        guard let node = overview()?.node else {
            return exchange.answer(Problem(Self.starting).answer)
        }
        do throws(Problem) {
            let decision = try Decision(json: body)
            Task {
                do throws(CommandFailure) {
                    let members = try await decision.make(by: node, patience: timeout)
                    exchange.answer(Self.json(Array(members.json.description.utf8)))
                } catch {
                    exchange.answer(Problem(error).answer)
                }
            }
        } catch {
            exchange.answer(error.answer)
        }
    }

    private static func json(_ bytes: [UInt8]) -> HTTPAnswer {
        HTTPAnswer(status: 200, type: "application/json", body: .bytes(bytes))
    }

    private static var withoutToken: Problem {
        Problem(
            403, "notPermitted",
            "Decisions need a token. Start the gateway with --http-token, and give the token.")
    }

    private func answer(_ request: Request, _ exchange: HTTPExchange) {
        let isTaken = ask(
            Desk.Inquiry(request: request) { answer in
                switch answer {
                case .success:
                    exchange.answer(
                        HTTPAnswer(
                            status: 200, type: "application/json",
                            headers: answer.tag.map { [("ETag", $0)] } ?? [],
                            body: .bytes(answer.bytes())))
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
        let origin = head.headers["origin"].map { String($0.trimmingPrefix(/[a-z]+:\/\//)) }
        guard head.headers["sec-fetch-site"].map({ ["same-origin", "none"].contains($0) }) ?? true,
            origin.map({ Self.isOwn(host: $0) }) ?? true
        else {
            throw Problem(
                403, "notPermitted",
                "Without a token, pages of other sites may not use the API. Start the gateway with --http-token."
            )
        }
        guard Self.isOwn(host: head.headers["host"] ?? "") else {
            throw Problem(
                421, "misdirected",
                "Without a token, the API is at the address of this machine. Ask 127.0.0.1, [::1] or localhost."
            )
        }
    }

    private static func isOwn(host: String) -> Bool {
        host.wholeMatch(
            of: /(?:localhost|\[::1\]|127\.[0-9]{1,3}\.[0-9]{1,3}\.[0-9]{1,3})(?::[0-9]{1,5})?/
                .ignoresCase()) != nil
    }
}
