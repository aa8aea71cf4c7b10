import Conflux
import ConfluxNode
import ConfluxVocabulary

/// What a program's transaction reads, and what it is about to change: a `NodeTransaction` that finds stores by their
/// models. You get one from ``SimulatedProcess/transaction(_:)``.
public struct SimulatedTransaction: ~Copyable {
    private let cluster: SimulatedCluster
    private let node: SimulatedNode
    private let own: NodeTransaction
    /// What it has read of each store.
    fileprivate var seen: [DispatchCondition] = []
    /// The stores of its actions, in order.
    fileprivate var targets: [StoreName] = []
    fileprivate var lease: StoreVersion?

    fileprivate init(_ own: NodeTransaction, _ cluster: SimulatedCluster, _ node: SimulatedNode) {
        (self.own, self.cluster, self.node) = (own, cluster, node)
    }

    /// The present value of a store, with the actions that this transaction has dispatched to it.
    ///
    /// - Parameters:
    ///   - model: The model.
    ///   - instance: The store: `shared`, `1`, `2` …
    /// - Returns: The value.
    /// - Throws: As `NodeTransaction.read(_:)`. Let it pass: the transaction can run again later.
    public mutating func read<M: Model>(
        _ model: M.Type, named instance: String = "shared"
    ) throws -> M { try find(model, instance).value }

    /// Dispatches an action as part of the transaction.
    ///
    /// - Parameters:
    ///   - action: What happens.
    ///   - model: The model.
    ///   - instance: The store: `shared`, `1`, `2` …
    /// - Throws: As `NodeTransaction.dispatch(_:to:)`.
    public mutating func dispatch<M: Model>(
        _ action: M.Action, to model: M.Type, named instance: String = "shared"
    ) throws {
        let store = try find(model, instance).store
        try own.dispatch(action, to: store)
        targets.append(.of(model, instance))
    }

    /// Makes the transaction depend on a lease: if it is lost before the transaction's turn, nothing is taken.
    ///
    /// - Parameter lease: The lease.
    public mutating func require(_ lease: SimulatedLease) {
        own.require(lease.claim)
        self.lease = lease.claim
    }

    private mutating func find<M: Model>(
        _ model: M.Type, _ instance: String
    ) throws -> (store: Store<ModelState<M>>, value: M) {
        let name = StoreName.of(model, instance)
        guard let store = node.store(name), let typed = store.typed(of: model) else {
            let message = "This process does not host \(name) at present. Try again later."
            throw NodeError(code: .notHosted, message: message)
        }
        let value = try own.read(typed)
        // Later, the value has the transaction's own actions.
        if !seen.contains(where: { $0.store == name }) {
            let bytes = encoding(of: value, ModelState<M>.self, as: Int(store.schemaVersion))
            seen.append(cluster.condition(of: store, seen: bytes, node))
        }
        return (typed, value)
    }
}

extension SimulatedProcess {
    /// Reads stores, decides, and changes stores: all of it at one place in the log, or nothing. It is one attempt of a
    /// `Node.transaction`.
    ///
    /// ```swift
    /// let booking = try? process.transaction { tx in
    ///     guard try tx.read(Hall.self).isFree(seat) else { return }
    ///     try tx.dispatch(.book(seat), to: Hall.self)
    ///     try tx.dispatch(.charge(20), to: Account.self)
    /// }.dispatch
    /// ```
    ///
    /// - Parameter body: Reads and dispatches by what it is given. It is called once, before this function returns.
    /// - Returns: What the function returned, and what to ask for the outcome by; nil if there is no action. The receipt is
    ///   that of the last action. If a store has changed before the transaction's turn, the outcome is the error `conflict`.
    /// - Throws: What the function throws. A `DispatchError`: `conflict` while the stores of this process are at different
    ///   places, `refused` when a model refuses an action. A `NodeError`: `notHosted`. Nothing is sent then.
    @discardableResult
    public mutating func transaction<Value: Sendable>(
        _ body: (inout SimulatedTransaction) throws -> Value
    ) throws -> (value: Value, dispatch: SimulatedDispatch?) {
        var seen: [DispatchCondition] = []
        var targets: [StoreName] = []
        var lease: StoreVersion?
        let attempt = NodeTransaction.attempt(on: node.applier, node.outbox) { own in
            var transaction = SimulatedTransaction(own, cluster, node)
            let value = try body(&transaction)
            (seen, targets, lease) = (transaction.seen, transaction.targets, transaction.lease)
            return value
        }
        switch attempt {
        case .torn:
            let message = "The stores are at different places of the log's order. Try again later."
            throw DispatchError(code: .conflict, message: message)
        case .failed(let error): throw error
        case .done(let value, let handles):
            do throws(Violation) {
                try cluster.checkCut(seen, node)
            } catch {
                cluster.fail(error)
            }
            guard !handles.isEmpty else { return (value, nil) }
            let records = cluster.note(handles, TransactionRecord(seen), for: targets, node)
            for record in records { record.lease = lease }
            return (value, keep(records))
        }
    }
}
