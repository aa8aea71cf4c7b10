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

        init(ticket: UInt64, members: AnswerBody.Members) {
            self.ticket = ticket
            end = .answer(members)
        }

        init(ticket: UInt64, end: End) {
            self.ticket = ticket
            self.end = end
        }
    }

    enum End: Sendable {
        case answer(AnswerBody.Members)
        case receipt(Receipt)
        case failure(DispatchError)
    }

    private struct Open {
        let envelope: [[UInt8]]
        let id: JSONValue?
        let owner: Owner
        var deadline: Duration
        /// The dispatch, until its withdrawal was requested.
        var handle: DispatchHandle?
        var isWithdrawn = false
        let isKeyed: Bool
    }

    /// Whose share a request counts for: the key's, or, without keys, the connection's.
    private enum Owner: Hashable, Sendable {
        case key(Name?)
        case connection([UInt8])
    }

    private let socket: LibrarySocket
    private let stores: [StoreName: any AnyServedStore]
    private let node: Node
    private let epochs: EpochTable
    private let settings: NodeSettings
    private let post: @Sendable (Outcome) -> Void
    private var open: [UInt64: Open] = [:]
    private var shares = Shares<Owner>()
    private var keyedCount = 0
    private var lastTicket: UInt64 = 0
    private var heads = HeadWriter()
    private var nextReview = Duration.zero
    private static let reviewInterval = Duration.milliseconds(50)

    /// - Parameters:
    ///   - socket: Where requests come.
    ///   - stores: The stores.
    ///   - node: Hosts them.
    ///   - epochs: Knows the log.
    ///   - settings: The node's settings.
    ///   - post: Takes outcomes on any thread, and lets the gateway's thread give them to ``take(_:)``.
    init(
        _ socket: LibrarySocket, _ stores: [any AnyServedStore], _ node: Node, _ epochs: EpochTable,
        _ settings: NodeSettings, post: @escaping @Sendable (Outcome) -> Void
    ) {
        self.socket = socket
        self.stores = Dictionary(uniqueKeysWithValues: stores.map { ($0.name, $0) })
        self.node = node
        self.epochs = epochs
        self.settings = settings
        self.post = post
    }

    var pointer: UnsafeMutableRawPointer { socket.pointer }

    /// When the next request may have to end; nil if none is open.
    var deadline: Duration? { open.isEmpty ? nil : nextReview }

    /// Takes requests.
    ///
    /// - Returns: Whether there may be more.
    func work(_ keys: GatewayKeys?, at now: Duration) -> Bool {
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
            answer(envelope, id, AnswerBody.error(code, text))
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
        let object: JSONObject
        do throws(CodingFailure) {
            guard let members = try JSONValue(json: body).object else {
                return refuse(
                    "invalidRequest", "A request is one JSON object, for example {\"stores\":true}."
                )
            }
            object = members
        } catch {
            return refuse("invalidRequest", "The request is not JSON: \(error.message).")
        }
        let id = object["id"]
        let request: Request
        do throws(RequestFault) {
            request = try Request(object)
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
        let owner =
            keys == nil
            ? Owner.connection(message.parts[0]) : Owner.key(principal.name)
        guard shares.hasRoom(for: owner, of: GatewayBounds.requestsMax) else {
            return refuse(
                "tooManyRequests",
                "Too many of your requests have no answer yet. Wait for some before you send more.",
                id)
        }
        begin(
            request,
            Open(
                envelope: envelope, id: id, owner: owner, deadline: now + request.timeout,
                isKeyed: request.isKeyed), principal, at: now)
    }

    private func denial(of request: Request, _ principal: Principal) -> String? {
        switch request.verb {
        case .get(let store, _), .since(let store, _, _):
            principal.rights.allowReading(.store(store))
                ? nil : principal.denial(of: .observe, store)
        case .dispatch(let store, _, _):
            principal.rights.allow(.dispatch, .store(store))
                ? nil : principal.denial(of: .dispatch, store)
        case .stores, .actions: nil
        }
    }

    private func begin(_ request: Request, _ open: Open, _ principal: Principal, at now: Duration) {
        lastTicket += 1
        let ticket = lastTicket
        if self.open.isEmpty { nextReview = now + Self.reviewInterval }
        self.open[ticket] = open
        shares.add(of: open.owner)
        if open.isKeyed { keyedCount += 1 }
        do throws(CommandFailure) {
            try perform(request, ticket, principal)
        } catch {
            finish(ticket, AnswerBody.error(error))
        }
    }

    private func served(_ name: StoreName) throws(CommandFailure) -> any AnyServedStore {
        guard let store = stores[name] else {
            let names = stores.keys.sorted().map(\.description).joined(separator: ", ")
            throw CommandFailure(
                .notFound, code: "unknownStore",
                "This gateway does not serve \(name). It serves: \(names).")
        }
        if let ending = store.records.present.ending {
            throw CommandFailure(.notFound, code: "storeEnded", ending)
        }
        return store
    }

    private func perform(
        _ request: Request, _ ticket: UInt64, _ principal: Principal
    ) throws(CommandFailure) {
        let log = epochs.log
        switch request.verb {
        case .get(let name, let atLeast):
            let store = try served(name)
            let (node, post) = (node, post)
            let answer: @Sendable () -> Void = {
                Self.settle(store, ticket, post) { AnswerBody.state($0, of: name, log: log) }
            }
            guard let atLeast else { return answer() }
            Task {
                do throws(NodeError) {
                    try await node.wait(forEntry: atLeast, patience: request.timeout)
                    answer()
                } catch {
                    post(Outcome(ticket: ticket, members: AnswerBody.error(CommandFailure(error))))
                }
            }
        case .since(let name, let sequence, let isActions):
            let store = try served(name)
            Self.settle(store, ticket, post) { state in
                let found = store.records.records(after: sequence, isActions: isActions)
                guard let records = found.records, let newest = found.state else {
                    return AnswerBody.state(state, of: name, log: log)
                }
                return AnswerBody.records(
                    records, of: name, log: log, after: sequence, state: newest)
            }
        case .dispatch(let name, let action, let key):
            try dispatch(action, to: try served(name), key, ticket, request.timeout, principal)
        case .stores: finish(ticket, listing(principal))
        case .actions(let name):
            let shapes = try served(name).shapes ?? Array("null".utf8)
            finish(ticket, [("actions", shapes), ("store", Array("\"\(name)\"".utf8))])
        }
    }

    /// Answers with what the store has, once the records have everything that it has applied by now.
    private static func settle(
        _ store: any AnyServedStore, _ ticket: UInt64,
        _ post: @escaping @Sendable (Outcome) -> Void,
        _ make: @escaping @Sendable (ServedRecords.State) -> AnswerBody.Members
    ) {
        store.settle {
            let (state, ending) = store.records.present
            let members =
                state.map(make)
                ?? AnswerBody.error("storeEnded", ending ?? "\(store.name) is not hosted any more.")
            post(Outcome(ticket: ticket, members: members))
        }
    }

    private func dispatch(
        _ action: JSONValue, to store: any AnyServedStore, _ key: String?, _ ticket: UInt64,
        _ timeout: Duration, _ principal: Principal
    ) throws(CommandFailure) {
        let post = post
        let (target, payload): (BatchTarget, [UInt8])
        do throws(CodingFailure) {
            (target, payload) = try store.submission(of: try action.canonicalBytes())
        } catch {
            throw CommandFailure(
                .invalidInput, code: "invalidAction",
                "This is no action of \(store.name): \(error.message). "
                    + #"{"actions":"\#(store.name)"} shows what is."#)
        }
        guard let key else {
            let handle = node.core.submit(target, payload)
            open[ticket]?.handle = handle
            return handle.whenEnded { outcome in
                switch outcome {
                case .committed(let receipt): post(Outcome(ticket: ticket, end: .receipt(receipt)))
                case .failed(let error): post(Outcome(ticket: ticket, end: .failure(error)))
                }
            }
        }
        guard keyedCount <= GatewayBounds.keyedMax else {
            throw CommandFailure(
                .rejected, code: "tooManyRequests",
                "\(GatewayBounds.keyedMax) dispatches with keys are under way. Send it again later."
            )
        }
        let owner = principal.name?.text ?? ""
        // Of the digest, since all three may be longer together than a session key.
        let digest = Digest(of: "\(owner)\0\(store.name)\0\(key)".utf8)
        guard let session = SessionKey("gateway \(digest)") else {
            preconditionFailure("the text of a digest is short")
        }
        let keyed = KeyedDispatch(
            address: node.core.address, settings: settings, key: session, target: target,
            payload: payload, timeout: timeout)
        Task {
            do throws(CommandFailure) {
                post(Outcome(ticket: ticket, end: .receipt(try await keyed.run())))
            } catch {
                post(Outcome(ticket: ticket, members: AnswerBody.error(error)))
            }
        }
    }

    private func listing(_ principal: Principal) -> AnswerBody.Members {
        let list = stores.values.sorted { $0.name < $1.name }.filter {
            principal.rights.allowReading(.store($0.name))
                || principal.rights.allow(.dispatch, .store($0.name))
        }.map { store -> JSONValue in
            let (state, ending) = store.records.present
            var object: JSONObject = ["store": .string(store.name.description)]
            object["sequence"] = state.map { .number($0.place.sequence) }
            object["ended"] = ending.map { .string($0) }
            return .object(object)
        }
        return [("stores", Array(JSONValue.array(list).description.utf8))]
    }

    // MARK: Answers

    /// Takes what came of a request.
    func take(_ outcome: Outcome) {
        switch outcome.end {
        case .answer(let members): finish(outcome.ticket, members)
        case .receipt(let receipt): finish(outcome.ticket, [("receipt", heads.receipt(receipt))])
        case .failure(let error): finish(outcome.ticket, AnswerBody.error(CommandFailure(error)))
        }
    }

    private func finish(_ ticket: UInt64, _ members: AnswerBody.Members) {
        guard let open = open.removeValue(forKey: ticket) else { return }
        shares.remove(of: open.owner)
        if open.isKeyed { keyedCount -= 1 }
        answer(open.envelope, open.id, members)
    }

    private func answer(_ envelope: [[UInt8]], _ id: JSONValue?, _ members: AnswerBody.Members) {
        let own = id.map { [("id", Array($0.description.utf8))] } ?? []
        socket.send(envelope + [AnswerBody.bytes(own + members)])
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
                finish(ticket, AnswerBody.error(CommandFailure.unknown))
            } else {
                finish(
                    ticket,
                    AnswerBody.error(
                        "timedOut", "The time of the request is over. Give it a longer \"timeout\"."
                    ))
            }
        }
    }
}

extension Request {
    /// Whether it is a dispatch with a key of its own.
    var isKeyed: Bool {
        if case .dispatch(_, _, .some) = verb { true } else { false }
    }
}

extension Node {
    /// Waits until this node has applied everything up to an entry of its log.
    fileprivate func wait(
        forEntry sequence: SequenceNumber, patience: Duration
    ) async throws(NodeError) {
        let status = await status
        guard let log = status.log else { return try await barrier(patience: patience) }
        try await wait(
            for: Receipt(
                log: log, epoch: status.epoch, sequence: sequence, timestamp: Timestamp(0)),
            patience: patience)
    }
}
