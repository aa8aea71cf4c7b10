import Conflux
import ConfluxNode
import ConfluxVocabulary

/// Transactions: a function reads several stores at once, and its actions are taken as a whole or not at all.
extension SimulatedCluster {
    /// The program runs a transaction over some of its stores. It only reads some of them.
    func transact(_ node: SimulatedNode) throws(Violation) {
        var stores: [any SimulatedStore] = []
        for _ in 0..<random.int(in: 1...3) {
            let store = random.pick(driven(on: node))
            if !stores.contains(where: { $0 === store }) { stores.append(store) }
        }
        let isReading = random.chance(0.3)
        var seen: [DispatchCondition] = []
        // The stores of the actions.
        var targets: [StoreName] = []
        var index = node.dispatchCount
        // It runs before `attempt` returns, on this thread.
        let attempt = NodeTransaction.attempt(on: node.applier, node.outbox) { transaction in
            for store in stores {
                let place = SimulatedState.Place(process: node.process, index: index)
                let mayAct = !isReading && random.chance(0.6)
                guard let encoded = try store.join(transaction, mayAct ? place : nil, &random)
                else {
                    continue
                }
                if mayAct {
                    targets.append(store.name)
                    index += 1
                }
                seen.append(condition(of: store, seen: encoded, node))
            }
        }
        switch attempt {
        case .torn: marks.hit(.transactionTorn)
        case .failed: marks.hit(.transactionFailed)
        case .done(_, let handles):
            try checkCut(seen, node)
            guard !handles.isEmpty else { return marks.hit(.transactionRead) }
            note(handles, TransactionRecord(seen), for: targets, node)
        }
    }

    /// What a transaction has read of a store.
    func condition(
        of store: any SimulatedStore, seen encoded: [UInt8], _ node: SimulatedNode
    ) -> DispatchCondition {
        var condition = DispatchCondition(store: store.name, version: store.version)
        condition.life = node.applier.place(of: store.name)?.life ?? .zero
        if !node.spoilt.contains(store.name) {
            condition.seen = (Digest(of: encoded), store.schemaVersion)
        }
        return condition
    }

    /// Checks that the stores of a transaction were as it has read them, at one number.
    func checkCut(_ seen: [DispatchCondition], _ node: SimulatedNode) throws(Violation) {
        guard !truth.branches.contains(where: { $0.hasCut(seen) }) else { return }
        throw Violation(
            "P11",
            "\(node.text) read "
                + seen.map { "\($0.store) at \($0.version.sequence)" }
                .joined(separator: ", ") + ", and they were never so at one number")
    }

    /// Notes the actions of a transaction.
    ///
    /// - Returns: A record of each.
    @discardableResult
    func note(
        _ handles: [DispatchHandle], _ transaction: TransactionRecord, for targets: [StoreName],
        _ node: SimulatedNode
    ) -> [DispatchRecord] {
        zip(handles, targets).map { handle, target in
            let record = note(handle, node)
            record.condition = transaction.seen.first { $0.store == target }
            record.transaction = transaction
            transaction.records.append(record)
            return record
        }
    }
}

extension TypedSimulatedStore {
    func join(
        _ transaction: NodeTransaction, _ place: SimulatedState.Place?,
        _ random: inout SimulationRandom
    ) throws -> [UInt8]? {
        guard let type = S.self as? any (ValueHolder & ReplicatedState).Type else { return nil }
        return try join(as: type, transaction, place.map { draw($0, &random) })
    }

    private func join<Value: ValueHolder & ReplicatedState>(
        as type: Value.Type, _ transaction: NodeTransaction, _ action: S.Action?
    ) throws -> [UInt8]? {
        guard let store = typed(as: Store<Value>.self) else { return nil }
        let value = try transaction.read(store)
        if let action = action as? Value.Action { try transaction.dispatch(action, to: store) }
        return (value as? Value.Snapshot).map {
            encoding(of: $0, Value.self, as: store.schemaVersion)
        }
    }
}
