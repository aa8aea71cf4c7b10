import Conflux
import ConfluxProtocol
import ConfluxVocabulary

/// What a transaction reads, and what it is about to change. You get one from ``Node/transaction(attempts:patience:_:)``.
///
/// All stores are read at one place in the log's order. An action is tried at once on a copy, so ``read(_:)`` shows what it
/// does, and nobody else sees it. Use it on the thread that gives it to your function, until that function returns.
public final class NodeTransaction {
    private unowned let applier: Applier
    private let outbox: Outbox
    private var parts: [ObjectIdentifier: AnyPart] = [:]
    private var actions: [(part: AnyPart, target: BatchTarget, payload: [UInt8])] = []
    /// Why nothing is sent.
    private var failure: (any Error)?
    /// Whether a store has not applied everything yet that the others have.
    private var isTorn = false
    private var isOver = false

    private init(_ applier: Applier, _ outbox: Outbox) {
        (self.applier, self.outbox) = (applier, outbox)
    }

    /// The present value of a store, with the actions that this transaction has dispatched to it.
    ///
    /// - Parameter store: A store that the node hosts. With any other, the transaction fails.
    /// - Returns: The model, or what else the store holds.
    public func read<S: ValueHolder & ReplicatedState>(_ store: Store<S>) -> S.Value {
        part(of: store).draft.value
    }

    /// Dispatches an action as part of the transaction.
    ///
    /// If the model refuses it, the transaction fails with the code `refused` and sends nothing.
    ///
    /// - Parameters:
    ///   - action: What happens.
    ///   - store: A store that the node hosts. With any other, the transaction fails.
    public func dispatch<S: ValueHolder & ReplicatedState>(
        _ action: S.Action, to store: Store<S>
    ) {
        let part = part(of: store)
        guard failure == nil, let route = part.route else { return }
        do {
            try part.draft.apply(action)
        } catch {
            failure = DispatchError.refusedInTransaction(error)
            return
        }
        do throws(DispatchError) {
            let (target, payload) = try route.entry(of: action)
            actions.append((part, target, payload))
        } catch {
            failure = error
        }
    }

    /// What it has of a store.
    private class AnyPart {
        let row: BatchTarget

        init(_ row: BatchTarget) { self.row = row }
    }

    private final class Part<S: ValueHolder & ReplicatedState>: AnyPart {
        var draft: StoreDraft<S>
        let route: OutboxRoute<S>?

        init(_ draft: StoreDraft<S>, _ route: OutboxRoute<S>?, _ row: BatchTarget) {
            (self.draft, self.route) = (draft, route)
            super.init(row)
        }
    }

    private func part<S: ValueHolder & ReplicatedState>(of store: Store<S>) -> Part<S> {
        precondition(
            !isOver, "a transaction is used until its function returns, and not after that")
        if let part = parts[ObjectIdentifier(store)] as? Part<S> { return part }
        let route = store.core.orderedRoute as? OutboxRoute<S>
        var row = BatchTarget(target: .state(.shared), schemaVersion: 1, coding: .json)
        if let route, route.leads(to: outbox), case .store(let name) = route.target,
            let replica = applier.replica(name)
        {
            if let stop = replica.progress.stop {
                failure = failure ?? DispatchError.stoppedInTransaction(name, stop.message)
            }
            isTorn = isTorn || !applier.isAbreast(replica)
            (row.target, row.life) = (route.target, replica.life)
        } else {
            failure = failure ?? NodeError.notHosted
        }
        let draft = StoreDraft(of: store)
        row.unchangedSince = draft.version
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
    ///   - body: The function.
    /// - Returns: What came of it.
    package static func attempt<Value: Sendable>(
        on applier: Applier, _ outbox: Outbox, _ body: (NodeTransaction) throws -> Value
    ) -> Attempt<Value> {
        let transaction = NodeTransaction(applier, outbox)
        let result = Result { try body(transaction) }
        transaction.isOver = true
        if transaction.isTorn { return .torn }
        if let failure = transaction.failure { return .failed(failure) }
        switch result {
        case .success(let value): return .done(value, transaction.send())
        case .failure(let error): return .failed(error)
        }
    }

    private func send() -> [DispatchHandle] {
        guard !actions.isEmpty else { return [] }
        let conditional = actions.map { part, target, payload in
            var target = target
            (target.life, target.unchangedSince) = (part.row.life, part.row.unchangedSince)
            return (target: target, payload: payload)
        }
        let changed = Set(actions.map { ObjectIdentifier($0.part) })
        let others = parts.values.filter { !changed.contains(ObjectIdentifier($0)) }.map(\.row)
        return outbox.submit(
            conditional, on: others.sorted { $0.target.description < $1.target.description },
            mayWait: false)
    }
}
