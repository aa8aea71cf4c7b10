import Conflux
import ConfluxHashing
import ConfluxNode
import ConfluxProtocol
import ConfluxVocabulary
import ConfluxWorker

/// Does what is asked.
extension Desk {
    private func served(
        _ name: StoreName, for principal: Principal
    ) throws(CommandFailure) -> any AnyServedStore {
        try Self.find(name, stores[name], among: stores.keys.filter { mayName($0, principal) })
    }

    /// Checks that a store is served.
    ///
    /// - Parameters:
    ///   - name: Its name.
    ///   - store: The store; nil if there is none of that name.
    ///   - names: The stores that whoever asks may know of.
    /// - Returns: The store.
    /// - Throws: Why it is not served.
    static func find(
        _ name: StoreName, _ store: (any AnyServedStore)?,
        among names: @autoclosure () -> [StoreName]
    ) throws(CommandFailure) -> any AnyServedStore {
        guard let store else {
            let list = names().sorted().map(\.description).joined(separator: ", ")
            throw CommandFailure(
                .notFound, code: "unknownStore",
                "This gateway does not serve \(name). It serves: \(list).")
        }
        if let ending = store.records.present.ending { throw ended(ending, name) }
        return store
    }

    private static func ended(_ ending: ServedRecords.Ending?, _ store: StoreName) -> CommandFailure
    {
        guard let ending else {
            return CommandFailure(
                .notFound, code: "storeEnded",
                "\(store) is not hosted any more. Restart the gateway to serve it again.")
        }
        return ending.isOver
            ? CommandFailure(.notFound, code: "storeEnded", ending.reason)
            : CommandFailure(.unreachable, code: "storeUnavailable", ending.reason)
    }

    func perform(
        _ request: Request, _ ticket: UInt64, _ principal: Principal
    ) throws(CommandFailure) {
        let epochs = epochs
        switch request.verb {
        case .get(let name, let atLeast, let mayWait):
            let store = try served(name, for: principal)
            let (node, post) = (node, post)
            let answer: @Sendable () -> Void = {
                Self.settle(store, ticket, post) {
                    Answer.state($0, of: name, log: epochs.log, version: $1)
                }
            }
            guard let atLeast else { return answer() }
            Task {
                do throws(CommandFailure) {
                    try await node.reach(atLeast, mayWait: mayWait, patience: request.timeout)
                    answer()
                } catch {
                    post(Outcome(ticket: ticket, end: .answer(.failure(error))))
                }
            }
        case .since(let name, let sequence, let isActions):
            let store = try served(name, for: principal)
            Self.settle(store, ticket, post) { state, version in
                let place = store.records.place(after: sequence, isActions: isActions)
                let found = store.records.records(from: place, isActions: isActions)
                guard let records = found.records, let newest = found.state else {
                    return Answer.state(state, of: name, log: epochs.log, version: version)
                }
                return Answer.records(
                    records, of: name, log: epochs.log, after: sequence, state: newest,
                    version: version)
            }
        case .dispatch(let name, let action, let key, let version):
            try dispatch(
                action, to: try served(name, for: principal), ifUnchangedSince: version, key,
                ticket, request.timeout, principal)
        case .stores: finish(ticket, listing(principal))
        case .actions(let name):
            let shapes = try served(name, for: principal).catalog?.json ?? Array("null".utf8)
            finish(
                ticket,
                .success([.init("actions", shapes), .init("store", "\"\(name)\"")]))
        }
    }

    /// Answers with what the store has, once the records have everything that it has applied by now.
    private static func settle(
        _ store: any AnyServedStore, _ ticket: UInt64,
        _ post: @escaping @Sendable (Outcome) -> Void,
        _ make: @escaping @Sendable (ServedRecords.State, StoreVersion) -> Answer
    ) {
        store.settle { version in
            let (state, ending) = store.records.present
            let answer =
                state.map { make($0, version) }
                ?? .failure(ended(ending, store.name))
            post(Outcome(ticket: ticket, end: .answer(answer)))
        }
    }

    private func dispatch(
        _ action: [UInt8], to store: any AnyServedStore,
        ifUnchangedSince version: StoreVersion?, _ key: String?, _ ticket: UInt64,
        _ timeout: Duration, _ principal: Principal
    ) throws(CommandFailure) {
        let post = post
        var (target, payload): (BatchTarget, [UInt8])
        do throws(CodingFailure) {
            (target, payload) = try store.submission(of: action)
        } catch {
            throw CommandFailure(
                .invalidInput, code: "invalidAction",
                "This is no action of \(store.name): \(error.message). Ask for the store's actions to see what is one."
            )
        }
        target.unchangedSince = version
        guard let key else {
            let handle = node.core.submit(target, payload)
            open[ticket]?.handle = handle
            return handle.whenEnded { outcome in
                switch outcome {
                case .committed(let receipt):
                    post(Outcome(ticket: ticket, end: .receipt(receipt)))
                // The gateway no longer hosts the store.
                case .ordered(let receipt, _):
                    post(Outcome(ticket: ticket, end: .failure(.effectUnknown(receipt))))
                case .failed(let error): post(Outcome(ticket: ticket, end: .failure(error)))
                }
            }
        }
        guard let asker = open[ticket]?.owner, keyed.hasRoom(for: asker, of: GatewayBounds.keyedMax)
        else {
            throw CommandFailure(
                .rejected, code: "tooManyRequests",
                "Too many of your dispatches with keys are under way. Send it again later.")
        }
        keyed.add(of: asker)
        let owner = principal.name?.text ?? ""
        // Of the digest, since all three may be longer together than a session key.
        let digest = Digest(of: "\(owner)\0\(store.name)\0\(key)".utf8)
        guard let session = SessionKey("gateway \(digest)") else {
            preconditionFailure("the text of a digest is short")
        }
        let dispatch = KeyedDispatch(
            node: node, settings: settings, key: session, target: target,
            payload: payload, timeout: timeout)
        Task {
            do throws(CommandFailure) {
                let receipt = try await dispatch.run()
                post(Outcome(ticket: ticket, end: .receipt(receipt), keyed: asker))
            } catch {
                post(
                    Outcome(
                        ticket: ticket, end: .answer(.failure(error)), keyed: asker))
            }
        }
    }

    private func listing(_ principal: Principal) -> Answer {
        let list = stores.values.sorted { $0.name < $1.name }.filter {
            mayName($0.name, principal)
        }.map { store -> JSONValue in
            let (state, ending) = store.records.present
            let fields: JSONFields = [
                "ended": ending?.reason, "sequence": state?.position, "store": store.name,
            ]
            return JSONObject(fields).json
        }
        return .success([.init("stores", JSONValue.array(list).description)])
    }
}

extension Node {
    /// Waits until this node has applied an entry.
    ///
    /// - Parameters:
    ///   - sequence: The entry's number.
    ///   - mayWait: Whether to wait for an entry that the log does not have yet.
    ///   - patience: How long to wait.
    /// - Throws: Why it has not.
    fileprivate func reach(
        _ sequence: SequenceNumber, mayWait: Bool, patience: Duration
    ) async throws(CommandFailure) {
        let status = await status
        if status.applied >= sequence { return }
        do throws(NodeError) {
            if mayWait, let log = status.log {
                return try await wait(
                    for: Receipt(
                        log: log, epoch: status.epoch, sequence: sequence, timestamp: Timestamp(0)),
                    patience: patience)
            }
            try await barrier(patience: patience)
        } catch {
            throw CommandFailure(error)
        }
        let last = await self.status.last
        guard last < sequence else { return }
        throw CommandFailure(
            .rejected, code: "notReached",
            "The log has no entry \(sequence) yet: it ends at \(last). Take the number from a receipt, or follow the store."
        )
    }
}
