import Conflux
import ConfluxProtocol
import ConfluxVocabulary

/// What a transaction reads, and what it is about to change. You get one from ``Node/transaction(attempts:patience:_:)``.
///
/// All stores are read at one place in the log's order. An action is tried at once on a copy, so ``read(_:)`` shows what it
/// does, and nobody else sees it. Use it on the thread that gives it to your function, until that function returns.
///
/// Once a function here has thrown, nothing is sent, even if you catch the error.
public final class NodeTransaction {
    private unowned let applier: Applier
    private let outbox: Outbox
    private var parts: [ObjectIdentifier: AnyPart] = [:]
    private var actions: [(part: AnyPart, target: BatchTarget, payload: [UInt8])] = []
    private var timers: [TimerRequest] = []
    private var leases: [BatchTarget] = []
    /// Why nothing is sent.
    private var failure: (any Error)?
    private var isOver = false

    /// A store has not applied everything yet that the others have.
    private struct Torn: Error {}

    private init(_ applier: Applier, _ outbox: Outbox) {
        (self.applier, self.outbox) = (applier, outbox)
    }

    /// The present value of a store, with the actions that this transaction has dispatched to it.
    ///
    /// - Parameter store: A store that the node hosts.
    /// - Returns: The model, or what else the store holds.
    /// - Throws: `NodeError.Code.notHosted`; `storeStopped`, a `DispatchError`; an error of its own if the store has not
    ///   applied everything yet that the others have. Let that one pass: the function runs again then.
    public func read<S: ValueHolder & ReplicatedState>(_ store: Store<S>) throws -> S.Value {
        try failing { try part(of: store).draft.value }
    }

    /// Dispatches an action as part of the transaction.
    ///
    /// It is tried at once, in a context with the present time, this node's origin and the store's next number. In the log
    /// the time and the number will be others.
    ///
    /// - Parameters:
    ///   - action: What happens.
    ///   - store: A store that the node hosts.
    /// - Throws: A `DispatchError`: `refused` if the model refuses it, `invalidAction` if it can't be encoded; otherwise as
    ///   ``read(_:)``.
    public func dispatch<S: ValueHolder & ReplicatedState>(
        _ action: S.Action, to store: Store<S>
    ) throws {
        try failing {
            let part = try part(of: store)
            do {
                try part.draft.apply(action, by: applier.incarnations.last)
            } catch {
                throw DispatchError.refusedInTransaction(error)
            }
            let (target, payload) = try part.route.entry(of: action)
            actions.append((part, target, payload))
        }
    }

    /// Dispatches an action later, as part of the transaction: see `Store.dispatch(_:after:every:key:)`. It is not tried,
    /// since nobody knows the state that it will find.
    ///
    /// - Parameters:
    ///   - action: What happens then.
    ///   - store: A store that the node hosts.
    ///   - delay: When, from the time at which the transaction is in the log.
    ///   - key: What to cancel or replace it by: a timer of the store with the same key ends.
    /// - Throws: As ``dispatch(_:to:)``, except `refused`.
    public func dispatch<S: ValueHolder & ReplicatedState>(
        _ action: S.Action, to store: Store<S>, after delay: Duration, key: String? = nil
    ) throws {
        try failing {
            let part = try part(of: store)
            var entry = try part.route.entry(of: action)
            entry.0.life = part.row.life
            let timing = Timing(due: .after(delay), interval: nil, key: key)
            timers.append(.set(try TimerOrder(timing, [entry])))
        }
    }

    /// Makes the transaction depend on a lease: if it is lost before the transaction's turn, nothing is taken.
    ///
    /// - Parameter lease: The lease.
    public func require(_ lease: Lease) { require(lease.claim) }

    /// The same with the claim of a lease.
    package func require(_ claim: StoreVersion) { leases.append(.lease(claim)) }

    /// Runs a step, unless an earlier one has failed, and notes whether it fails.
    private func failing<Value>(_ step: () throws -> Value) throws -> Value {
        precondition(
            !isOver, "a transaction is used until its function returns, and not after that")
        if let failure { throw failure }
        do {
            return try step()
        } catch {
            failure = error
            throw error
        }
    }

    /// What it has of a store.
    private class AnyPart {
        let row: BatchTarget

        init(_ row: BatchTarget) { self.row = row }
    }

    private final class Part<S: ValueHolder & ReplicatedState>: AnyPart {
        var draft: StoreDraft<S>
        let route: OutboxRoute<S>

        init(_ draft: StoreDraft<S>, _ route: OutboxRoute<S>, _ row: BatchTarget) {
            (self.draft, self.route) = (draft, route)
            super.init(row)
        }
    }

    private func part<S: ValueHolder & ReplicatedState>(of store: Store<S>) throws -> Part<S> {
        if let part = parts[ObjectIdentifier(store)] as? Part<S> { return part }
        guard let route = store.core.orderedRoute as? OutboxRoute<S>, route.leads(to: outbox),
            case .store(let name) = route.target, let replica = applier.replica(name)
        else { throw NodeError.notHosted }
        if let stop = replica.progress.stop {
            throw DispatchError.stoppedInTransaction(name, stop.message)
        }
        guard applier.isAbreast(replica) else { throw Torn() }
        let draft = StoreDraft(of: store)
        let row = BatchTarget(
            target: route.target, life: replica.life, schemaVersion: 1, coding: .json,
            unchangedSince: draft.version)
        let part = Part(draft, route, row)
        parts[ObjectIdentifier(store)] = part
        return part
    }
}

extension NodeTransaction {
    /// What came of a function.
    package enum Attempt<Value: Sendable>: Sendable {
        /// It returned. If there are actions, they were sent.
        case done(Value, [DispatchHandle])
        /// It threw, or can't be sent.
        case failed(any Error)
        /// It saw stores at different places, so what it did means nothing. It must run again once they have caught up.
        case torn
    }

    /// Runs the function of a transaction, and sends what it dispatches.
    ///
    /// - Parameters:
    ///   - applier: The stores. Called between two of its jobs, so that nothing is applied meanwhile.
    ///   - outbox: The outbox of their node.
    ///   - givenUp: Called once, after the function: why the caller has given up, if it has. Then nothing is sent.
    ///   - body: The function.
    /// - Returns: What came of it.
    package static func attempt<Value: Sendable>(
        on applier: Applier, _ outbox: Outbox, givenUp: () -> NodeError? = { nil },
        _ body: (NodeTransaction) throws -> Value
    ) -> Attempt<Value> {
        let transaction = NodeTransaction(applier, outbox)
        let result = Result { try body(transaction) }
        transaction.isOver = true
        if let reason = givenUp() { return .failed(reason) }
        if transaction.failure is Torn { return .torn }
        if let failure = transaction.failure { return .failed(failure) }
        switch result {
        case .success(let value): return .done(value, transaction.send())
        case .failure(let error): return .failed(error)
        }
    }

    private func send() -> [DispatchHandle] {
        guard !actions.isEmpty || !timers.isEmpty else { return [] }
        let conditional = actions.map { part, target, payload in
            var target = target
            (target.life, target.unchangedSince) = (part.row.life, part.row.unchangedSince)
            return (target: target, payload: payload)
        }
        let changed = Set(actions.map { ObjectIdentifier($0.part) })
        let others = parts.values.filter { !changed.contains(ObjectIdentifier($0)) }.map(\.row)
        let set = timers.map { (target: BatchTarget.timers, payload: $0.payload) }
        return outbox.submit(
            conditional + set,
            on: others.sorted { $0.target.description < $1.target.description } + leases,
            mayWait: false)
    }
}

extension Applier {
    /// Whether a store has exactly the entries that the node was given: it does not lag, and did not begin ahead of the
    /// feed.
    fileprivate func isAbreast(_ replica: Replica) -> Bool {
        replica.hasCaughtUp && !replica.progress.hasOpenRuns
            && replica.progress.delivered <= delivered
    }
}
