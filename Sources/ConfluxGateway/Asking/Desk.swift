import CZeroMQ
import Conflux
import ConfluxHashing
import ConfluxNode
import ConfluxProtocol
import ConfluxVocabulary
import ConfluxWorker
import ConfluxZeroMQ

/// Answers requests. Confined to the gateway's thread; what takes time is done elsewhere and comes back by ``post``.
///
/// *Invariants*: each request that has a way back is answered once, at the latest when its time is over. An answer that
/// says "receipt" means that the action is in the log and applied here.
final class Desk {
    /// What came of a request, from another thread.
    struct Outcome: Sendable {
        let ticket: UInt64
        let end: End
        /// Whose session for a dispatch with a key has ended, if one has.
        var keyed: Owner?
    }

    enum End: Sendable {
        case answer(Answer)
        case receipt(Receipt)
        case failure(DispatchError)
    }

    /// How an answer gets to whoever has asked.
    enum Way: Sendable {
        /// By the socket.
        case envelope([[UInt8]], id: JSONValue?)
        /// By a function, in this process.
        case call(@Sendable (Answer) -> Void)
    }

    /// A request from within this process.
    struct Inquiry: Sendable {
        let request: Request
        let reply: @Sendable (Answer) -> Void
    }

    struct Open {
        let way: Way
        let owner: Owner
        /// Who asks, and with which rights; nil without keys.
        let principal: Principal?
        let userID: String?
        var deadline: Duration
        /// The dispatch, until its withdrawal was requested.
        var handle: DispatchHandle?
        var isWithdrawn = false
        let isKeyed: Bool
    }

    /// Whose share a request counts for: the key's, or, without keys, the connection's. All of HTTP have one.
    enum Owner: Hashable, Sendable {
        case http
        case key(Name?)
        case connection([UInt8])
    }

    private let socket: LibrarySocket?
    let stores: [StoreName: any AnyServedStore]
    let node: Node
    let epochs: EpochTable
    let settings: NodeSettings
    let post: @Sendable (Outcome) -> Void
    var open: [UInt64: Open] = [:]
    private var shares = Shares<Owner>()
    /// The sessions for dispatches with keys.
    var keyed = Shares<Owner>()
    private var lastTicket: UInt64 = 0
    private var heads = HeadWriter()
    private var nextReview = Duration.zero
    private static let reviewInterval = Duration.milliseconds(50)

    /// - Parameters:
    ///   - socket: Where requests come; nil if they come only from within this process.
    ///   - stores: The stores.
    ///   - node: Hosts them.
    ///   - epochs: Knows the log.
    ///   - settings: The node's settings.
    ///   - post: Takes outcomes on any thread, and lets the gateway's thread give them to ``take(_:)``.
    init(
        _ socket: LibrarySocket?, _ stores: [any AnyServedStore], _ node: Node,
        _ epochs: EpochTable,
        _ settings: NodeSettings, post: @escaping @Sendable (Outcome) -> Void
    ) {
        self.socket = socket
        self.stores = Dictionary(uniqueKeysWithValues: stores.map { ($0.name, $0) })
        self.node = node
        self.epochs = epochs
        self.settings = settings
        self.post = post
    }

    var pointer: UnsafeMutableRawPointer? { socket?.pointer }

    /// When the next request may have to end; nil if none is open.
    var deadline: Duration? { open.isEmpty ? nil : nextReview }

    /// Takes requests.
    ///
    /// - Returns: Whether there may be more.
    func work(_ keys: GatewayKeys?, at now: Duration) -> Bool {
        guard let socket else { return false }
        let bytesMax = settings.payloadBytesMax + GatewayBounds.requestBytesMax
        var mayBeMore = true
        node.core.gather {
            for _ in 0..<Self.perTurnMax where mayBeMore {
                guard
                    let message = socket.receive(
                        partsMax: GatewayBounds.partsMax, bytesMax: bytesMax)
                else {
                    mayBeMore = false
                    break
                }
                take(message, keys, at: now)
            }
        }
        return mayBeMore
    }

    /// How many requests are taken before what happened meanwhile is published.
    private static let perTurnMax = 512

    // MARK: Requests

    /// Divides a message into its way back and the request. The way back is what is before the first empty part, and that
    /// part, as REQ and the proxies make it; or everything before the last part.
    private static func divide(_ message: LibrarySocket.Message) -> (
        envelope: [[UInt8]], rest: ArraySlice<[UInt8]>
    ) {
        let parts = message.parts
        if let empty = parts.dropFirst().firstIndex(where: \.isEmpty) {
            return (Array(parts[...empty]), parts[(empty + 1)...])
        }
        return (Array(parts.dropLast()), parts.suffix(1))
    }

    private func take(_ message: LibrarySocket.Message, _ keys: GatewayKeys?, at now: Duration) {
        var (envelope, rest) = Self.divide(message)
        if envelope.isEmpty { (envelope, rest) = (Array(rest), []) }
        func refuse(_ code: String, _ text: String, _ id: JSONValue? = nil) {
            answer(
                .envelope(envelope, id: id),
                .failure(CommandFailure(.invalidInput, code: code, text)))
        }
        guard !message.isCut else {
            return refuse(
                "tooLarge",
                "A request has at most \(GatewayBounds.partsMax) parts and "
                    + "\(settings.payloadBytesMax + GatewayBounds.requestBytesMax) bytes.")
        }
        guard let body = rest.first, rest.count == 1 else {
            return refuse(
                "invalidRequest",
                "A request has one part, behind the parts that name its way back and an empty one. This one has "
                    + "\(rest.count).")
        }
        let (object, action): (JSONObject, [UInt8]?)
        do throws(CodingFailure) {
            guard let members = try JSONValue.members(of: body, besides: Request.actionKey) else {
                return refuse(
                    "invalidRequest", "A request is one JSON object, for example {\"stores\":true}."
                )
            }
            (object, action) = members
        } catch {
            return refuse("invalidRequest", "The request is not JSON: \(error.message).")
        }
        let id = object["id"]
        let request: Request
        do throws(RequestFault) {
            request = try Request(object, dispatching: action)
        } catch {
            return refuse("invalidRequest", "The request can't be read: \(error.message).", id)
        }
        guard let principal = keys.map({ $0.principal(of: message.userID) }) ?? Principal.anybody
        else {
            return refuse("notPermitted", "This key is no longer authorised.", id)
        }
        if let denial = denial(of: request, principal) {
            return refuse("notPermitted", "\(denial).", id)
        }
        let routeBytes = envelope.reduce(id?.description.utf8.count ?? 0) { $0 + $1.count }
        guard routeBytes <= GatewayBounds.routeBytesMax else {
            return refuse(
                "tooLarge",
                "The \"id\" of a request and the parts that name its way back have at most "
                    + "\(GatewayBounds.routeBytesMax) bytes.")
        }
        let owner =
            keys == nil
            ? Owner.connection(message.parts[0]) : Owner.key(principal.name)
        begin(
            request,
            Open(
                way: .envelope(envelope, id: id), owner: owner,
                principal: keys == nil ? nil : principal, userID: message.userID,
                deadline: now + request.timeout, isKeyed: request.isKeyed), principal, at: now)
    }

    /// Takes a request from within this process. It may do everything.
    func take(_ inquiry: Inquiry, at now: Duration) {
        begin(
            inquiry.request,
            Open(
                way: .call(inquiry.reply), owner: .http, principal: nil, userID: nil,
                deadline: now + inquiry.request.timeout, isKeyed: inquiry.request.isKeyed),
            .anybody, at: now)
    }

    /// Whether a key may know of a store.
    func mayName(_ store: StoreName, _ principal: Principal) -> Bool {
        principal.rights.allowReading(.store(store))
            || principal.rights.allow(.dispatch, .store(store))
    }

    private func denial(of request: Request, _ principal: Principal) -> String? {
        switch request.verb {
        case .get(let store, _, _), .since(let store, _, _):
            principal.rights.allowReading(.store(store))
                ? nil : principal.denial(of: .observe, store)
        case .dispatch(let store, _, _, _):
            principal.rights.allow(.dispatch, .store(store))
                ? nil : principal.denial(of: .dispatch, store)
        case .actions(let store):
            mayName(store, principal) ? nil : principal.denial(of: .observe, store)
        case .stores: nil
        }
    }

    private func begin(_ request: Request, _ open: Open, _ principal: Principal, at now: Duration) {
        guard shares.hasRoom(for: open.owner, of: GatewayBounds.requestsMax) else {
            return answer(
                open.way,
                .failure(
                    CommandFailure(
                        .rejected, code: "tooManyRequests",
                        "Too many of your requests have no answer yet. Wait for some before you send more."
                    )))
        }
        lastTicket += 1
        let ticket = lastTicket
        if self.open.isEmpty { nextReview = now + Self.reviewInterval }
        self.open[ticket] = open
        shares.add(of: open.owner)
        do throws(CommandFailure) {
            try perform(request, ticket, principal)
        } catch {
            finish(ticket, .failure(error))
        }
    }

    // MARK: Answers

    /// Takes what came of a request.
    func take(_ outcome: Outcome) {
        if let owner = outcome.keyed { keyed.remove(of: owner) }
        switch outcome.end {
        case .answer(let answer): finish(outcome.ticket, answer)
        case .receipt(let receipt):
            finish(outcome.ticket, .success([.init("receipt", heads.receipt(receipt))]))
        case .failure(let error): finish(outcome.ticket, .failure(CommandFailure(error)))
        }
    }

    func finish(_ ticket: UInt64, _ answer: Answer) {
        guard let open = forget(ticket) else { return }
        self.answer(open.way, answer)
    }

    @discardableResult
    private func forget(_ ticket: UInt64) -> Open? {
        guard let open = open.removeValue(forKey: ticket) else { return nil }
        shares.remove(of: open.owner)
        return open
    }

    private func answer(_ way: Way, _ answer: Answer) {
        switch way {
        case .envelope(let envelope, let id): socket?.send(envelope + [answer.bytes(id: id)])
        case .call(let reply): reply(answer)
        }
    }

    /// The keys have changed. Whoever has other rights now asks again, and whoever has none gets nothing more.
    func revoke(_ keys: GatewayKeys) {
        for (ticket, request) in open {
            guard let former = request.principal else { continue }
            let present = keys.principal(of: request.userID)
            if present == nil {
                forget(ticket)
            } else if present != former {
                let text = "The rights of this key have changed. Send the request again."
                finish(
                    ticket, .failure(CommandFailure(.notPermitted, code: "rightsChanged", text)))
            }
        }
    }

    /// Ends the requests whose time is over. A dispatch is withdrawn first, so that its answer can say what became of it.
    func review(at now: Duration) {
        guard now >= nextReview else { return }
        nextReview = now + Self.reviewInterval
        for (ticket, request) in open where request.deadline <= now {
            if let handle = request.handle, !request.isWithdrawn {
                open[ticket]?.isWithdrawn = true
                open[ticket]?.deadline = now + GatewayBounds.withdrawalTime
                handle.requestWithdrawal()
            } else if request.handle != nil || request.isKeyed {
                finish(ticket, .failure(.unknown))
            } else {
                finish(
                    ticket,
                    .failure(
                        CommandFailure(
                            .timedOut,
                            "The time of the request is over. Give it a longer \"timeout\".")))
            }
        }
    }
}

extension Request {
    /// Whether it is a dispatch with a key of its own.
    var isKeyed: Bool {
        if case .dispatch(_, _, .some, _) = verb { true } else { false }
    }
}
