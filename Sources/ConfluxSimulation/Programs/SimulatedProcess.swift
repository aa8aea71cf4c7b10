import Conflux
import ConfluxNode
import ConfluxProtocol
import ConfluxVocabulary

/// A process of a simulation, as its program sees it: what a `Node` and its stores offer, without waiting.
///
/// What a program dispatches takes the way of production. Ask for the outcome by ``outcome(of:)`` when the program is
/// called again.
///
/// A process opens all stores of the simulation's states. While it has not opened one yet, or has lost it, reading that
/// store returns nil.
public struct SimulatedProcess: ~Copyable {
    let cluster: SimulatedCluster
    let node: SimulatedNode
    let own: ProgramRun

    /// The number of the process: each start has a new one.
    public var number: Int { node.process }
    /// The place of the process: 0, 1, 2 … A process that starts after a crash has the place of the former one.
    public var place: Int { node.slot }
    /// The simulated time since the beginning.
    public var time: Duration { cluster.now }

    /// Random numbers. The seed decides them.
    public var random: SimulationRandom {
        get { own.random }
        set { own.random = newValue }
    }

    /// Reports a fault that the program sees. It ends the simulation, as a violation of the promise `program`, which names
    /// the process and the time.
    ///
    /// - Parameter message: What is wrong.
    public func fail(_ message: String) {
        cluster.fail("program", "\(node.text) at \(cluster.now.text) s: \(message)")
    }

    // MARK: Stores

    /// Reads a store of a model, together with its version.
    ///
    /// - Parameters:
    ///   - model: The model.
    ///   - instance: The store: `shared`, `1`, `2` …
    /// - Returns: The value and the version, for conditions; nil if this process does not host the store at present.
    public func read<M: Model>(
        _ model: M.Type, named instance: String = "shared"
    ) -> (value: M, version: StoreVersion)? {
        guard let store = node.store(.of(model, instance)),
            let typed = store.typed(of: model), store.version.sequence > .zero
        else { return nil }
        return (typed.value, store.version)
    }

    /// Dispatches an action to a store, which this process need not host.
    ///
    /// - Parameters:
    ///   - action: What happens.
    ///   - model: The model.
    ///   - instance: The store: `shared`, `1`, `2` …
    ///   - version: If there is one, the action is taken only if the store has not changed since.
    /// - Returns: What to ask for the outcome by.
    @discardableResult
    public mutating func dispatch<M: Model>(
        _ action: M.Action, to model: M.Type, named instance: String = "shared",
        ifUnchangedSince version: StoreVersion? = nil
    ) -> SimulatedDispatch {
        let name = StoreName.of(model, instance)
        let store = node.store(name)
        let handle =
            if let typed = store?.typed(of: model) {
                node.scope.run {
                    version.map { typed.dispatch(action, ifUnchangedSince: $0) }
                        ?? typed.core.dispatchTracked(action)
                }
            } else {
                route(to: model, name).submit(action, ifUnchangedSince: version)
            }
        let record = cluster.note(handle, node)
        record.condition = version.map { condition(on: name, $0) }
        return keep([record])
    }

    /// Dispatches an action that is taken only while this process holds a lease.
    ///
    /// - Parameters:
    ///   - action: What happens.
    ///   - model: The model.
    ///   - instance: The store: `shared`, `1`, `2` …
    ///   - lease: The lease.
    /// - Returns: What to ask for the outcome by. If the lease was lost before the action's turn, the outcome is the error
    ///   `leaseLost`.
    @discardableResult
    public mutating func dispatch<M: Model>(
        _ action: M.Action, to model: M.Type, named instance: String = "shared",
        under lease: SimulatedLease
    ) -> SimulatedDispatch {
        let record: DispatchRecord
        do throws(DispatchError) {
            let entry = try route(to: model, .of(model, instance)).entry(of: action)
            record = cluster.note(
                node.outbox.submit([entry], on: [.lease(lease.claim)], mayWait: false)[0], node)
            record.lease = lease.claim
        } catch {
            record = cluster.note(DispatchHandle(.failed(error)), node)
        }
        return keep([record])
    }

    /// The outcome of a dispatch, as the receipt of its handle would be.
    ///
    /// - Parameter dispatch: A dispatch, or a transaction, of this process.
    /// - Returns: The receipt, or the error; nil if it is not known yet.
    public func outcome(of dispatch: SimulatedDispatch) -> Result<Receipt, DispatchError>? {
        guard dispatch.process == node.process else { return nil }
        var last: Receipt?
        for record in own.records[dispatch.index] {
            switch record.outcome {
            case .committed(let receipt), .ordered(let receipt, _): last = receipt
            case .failed(let error): return .failure(error)
            case nil: return nil
            }
        }
        return last.map { .success($0) }
    }

    // MARK: Ways to the log

    private func route<M: Model>(
        to model: M.Type, _ name: StoreName
    ) -> OutboxRoute<ModelState<M>> {
        OutboxRoute(outbox: node.outbox, target: .store(name))
    }

    /// What an action with a condition is based on. The state of a former version is not known any more.
    private func condition(on name: StoreName, _ version: StoreVersion) -> DispatchCondition {
        var condition = DispatchCondition(store: name, version: version)
        if let store = node.store(name), store.version == version, !store.isLate,
            !node.spoilt.contains(name)
        {
            condition.seen = (Digest(of: store.encoded), store.schemaVersion)
        }
        return condition
    }

    func keep(_ records: [DispatchRecord]) -> SimulatedDispatch {
        own.records.append(records)
        return SimulatedDispatch(process: node.process, index: own.records.count - 1)
    }
}

/// A dispatch of a program. ``SimulatedProcess/outcome(of:)`` tells what came of it.
public struct SimulatedDispatch: Hashable, Sendable {
    let process: Int
    let index: Int
}

extension StoreName {
    /// The name of a store of a model.
    static func of<M: Model>(_ model: M.Type, _ instance: String) -> StoreName {
        let text = "\(ModelState<M>.name)/\(instance)"
        guard let name = StoreName(text) else { preconditionFailure("\(text) is no store's name") }
        return name
    }
}

extension SimulatedStore {
    /// The store, if its state is that model.
    func typed<M: Model>(of model: M.Type) -> Store<ModelState<M>>? {
        (self as? TypedSimulatedStore<ModelState<M>>)?.typed(as: Store<ModelState<M>>.self)
    }
}

extension OutboxRoute {
    /// Sends an action from a process that does not host the store.
    fileprivate func submit(
        _ action: S.Action, ifUnchangedSince version: StoreVersion?
    ) -> DispatchHandle {
        version.map { conditional(on: $0).submit(action, mayWait: false) }
            ?? submit(action, mayWait: false)
    }
}
