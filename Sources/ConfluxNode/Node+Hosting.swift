import Conflux
import ConfluxVocabulary

extension Node {
    /// Sends a state's global actions to all processes that bridge it.
    ///
    /// From now on `Store<S>.actions.x()` in this process goes to the sequencer and comes back, in
    /// the order of the log, to every store of `S` here, and in every other process that bridges
    /// the state. Call sites do not change. A store gets the entries after its creation, and none
    /// that this node knew of before, such as by a receipt.
    ///
    /// Until there is a store of the state here, the node only sends: it gets its receipts, but no
    /// actions of others. It asks every few seconds where the log ends. So the first store may get
    /// actions that others dispatched in the last seconds before its creation.
    ///
    /// - Parameters:
    ///   - state: The state.
    ///   - patience: How long to wait for the sequencer.
    ///   - limit: How long to wait at most; nil to wait as long as `patience` lets it.
    /// - Throws: ``NodeError`` when the name breaks the rule of names, when the sequencer refuses,
    ///   or when the node is closed; `unreachable` and `timedOut` as for a store. A wait that was
    ///   cancelled, or took too long, leaves the state as it was.
    public func bridge<S: BridgedState>(
        _ state: S.Type, patience: Duration = .seconds(10), within limit: Duration? = nil
    ) async throws(NodeError) {
        let name = try Self.name(S.name, of: "\(S.self)")
        try await core.bridge(state, name, OpeningTime(patience, limit))
    }

    /// Ends a bridge: global dispatches reach the stores of this process again, and no others.
    ///
    /// - Parameter state: The state.
    public func unbridge<S: BridgedState>(_ state: S.Type) {
        guard let name = Name(S.name) else { return }
        core.unbridge(state, name)
    }

    /// The replica of a named store in this process, current when this returns.
    ///
    /// The first process to open a store creates it, with the state's `init()` as its first state;
    /// later ones adopt the existing state. Opening a name twice in one node returns the same
    /// store, as long as it is referenced. Implies ``bridge(_:patience:within:)``.
    ///
    /// - Parameters:
    ///   - state: The state.
    ///   - instance: Which store of the state.
    ///   - executor: Where its actions are committed; on the node's own thread unless given.
    ///   - patience: How long to wait for the sequencer, from the call or from the last part of the state that came. The
    ///     time in which this process decodes and applies does not count.
    ///   - limit: How long to wait at most, whatever comes in between; nil to wait as long as `patience` lets it.
    /// - Returns: The store. It is hosted until it is released or ``close(_:)`` is called.
    /// - Throws: ``NodeError`` when a name breaks the rule of names, when the sequencer refuses,
    ///   when the snapshot can't be read, or when the node is closed. After `patience`: `unreachable`, with
    ///   the address that fails and the reason, for example if the node reaches the sequencer and not its feed;
    ///   `timedOut` if the sequencer is there, and does not open the store.
    public func store<S: ReplicatedState>(
        _ state: S.Type, named instance: String = "shared", executor: Executor = .immediate,
        patience: Duration = .seconds(10), within limit: Duration? = nil
    ) async throws(NodeError) -> Store<S> {
        let name = try Self.storeName(S.name, instance, of: "\(S.self)")
        return try await core.store(
            state, name, executor: executor, OpeningTime(patience, limit))
    }

    /// The replica of a model's store in this process, current when this returns.
    ///
    /// - Parameters:
    ///   - model: The model.
    ///   - instance: Which store of the model.
    ///   - executor: Where its actions are applied; on the node's own thread unless given.
    ///   - patience: How long to wait for the sequencer, as for the store of a state.
    ///   - limit: How long to wait at most, as for the store of a state.
    /// - Returns: The store.
    /// - Throws: As for the store of a state.
    public func store<M: Model>(
        _ model: M.Type, named instance: String = "shared", executor: Executor = .immediate,
        patience: Duration = .seconds(10), within limit: Duration? = nil
    ) async throws(NodeError) -> ModelStore<M> {
        try await store(
            ModelState<M>.self, named: instance, executor: executor, patience: patience,
            within: limit)
    }

    /// Makes a store of this process the replica of a named store, and brings it up to date.
    ///
    /// Dispatches to the store are ordered from the call on. If the store is the first of its name,
    /// its present state becomes the first state in every process. Otherwise it adopts the existing
    /// state.
    ///
    /// - Parameters:
    ///   - store: The store.
    ///   - instance: Which store of its state it is.
    ///   - patience: How long to wait for the sequencer, as for the store of a state.
    ///   - limit: How long to wait at most, as for the store of a state.
    /// - Throws: ``NodeError`` as for opening a store, and `alreadyHosted` when another
    ///   store of this node has that name.
    public func replicate<S: ReplicatedState>(
        _ store: Store<S>, as instance: String = "shared", patience: Duration = .seconds(10),
        within limit: Duration? = nil
    ) async throws(NodeError) {
        let name = try Self.storeName(S.name, instance, of: "\(S.self)")
        try await core.replicate(store, name, OpeningTime(patience, limit))
    }

    /// Ends the hosting of a store here. This replica keeps its last state and no longer changes.
    /// In other processes the store continues.
    ///
    /// - Parameter store: A store that this node hosts; nothing happens for another one.
    public func close<S: ReplicatedState>(_ store: Store<S>) {
        core.close(store)
    }

    /// Ends a store's life in every process. Each process that hosts the store reports
    /// ``NodeEvent/storeDropped(_:)``, and stops hosting it. Opening its name afterwards begins
    /// another store, which no action for the former store reaches.
    ///
    /// Actions that this node dispatched before are ordered before the drop, or rejected.
    ///
    /// - Parameters:
    ///   - store: A store that this node hosts.
    ///   - patience: How long to wait until the life has ended, and this node knows it.
    /// - Throws: ``NodeError``: `notHosted`, `timedOut`, `cancelled`, `closed`; `unanswered` when
    ///   the node has as many waits under way as it may. After `timedOut` the store may still be
    ///   dropped.
    public func drop<S: ReplicatedState>(
        _ store: Store<S>, patience: Duration = .seconds(10)
    ) async throws(NodeError) {
        try await core.drop(store, patience: patience)
    }

    static func name(_ text: String, of owner: String) throws(NodeError) -> Name {
        guard let name = Name(text) else {
            throw NodeError(
                code: .invalidName,
                message: """
                    "\(text)", the name of \(owner), is not valid: a name has 1 to \
                    \(Name.lengthMax) characters of a-z 0-9 . _ -
                    """)
        }
        return name
    }

    static func storeName(
        _ state: String, _ instance: String, of owner: String
    ) throws(NodeError) -> StoreName {
        StoreName(
            state: try name(state, of: owner), instance: try name(instance, of: "the store"))
    }
}
