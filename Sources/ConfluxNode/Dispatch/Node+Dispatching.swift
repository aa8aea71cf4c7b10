import Conflux
import ConfluxVocabulary

/// Dispatching to stores that this node need not host.
extension Node {
    /// Dispatches to one store, wherever it is hosted.
    ///
    /// The node does not open the store, follows no feed for it and keeps no replica: it only sends.
    /// A receipt means that the action is in the log, durable and ordered. This node does not know
    /// whether replicas refuse the action, so the receipt throws no refusal:
    /// `DispatchHandle.effect(within:)` asks a node that hosts the store, and does. If the node also hosts the
    /// store, receipts have their usual meaning.
    ///
    /// ```swift
    /// let berlin = try node.actions(of: Stock.self, named: "berlin")
    /// try await berlin.dispatch(.take(amount: 5)).effect(within: .seconds(2))
    /// ```
    ///
    /// The store must exist: if nobody ever opened it, the receipt throws a rejection.
    ///
    /// - Parameters:
    ///   - state: The state, which decides how actions are encoded.
    ///   - instance: Which store of the state.
    /// - Returns: The store's actions, which may be used as long as the node lives.
    /// - Throws: ``NodeError`` with the code `invalidName`.
    public func actions<S: ReplicatedState>(
        of state: S.Type, named instance: String = "shared"
    ) throws(NodeError) -> Actions<S> {
        let name = try Self.storeName(S.name, instance, of: "\(S.self)")
        return sending(to: .store(name))
    }

    /// Dispatches to one store of a model, wherever it is hosted.
    ///
    /// - Parameters:
    ///   - model: The model.
    ///   - instance: Which store of the model.
    /// - Returns: The store's actions.
    /// - Throws: As for the store of a state.
    public func actions<M: Model>(
        of model: M.Type, named instance: String = "shared"
    ) throws(NodeError) -> Actions<ModelState<M>> {
        try actions(of: ModelState<M>.self, named: instance)
    }

    /// Dispatches to every store of a state, in every process, without bridging it here.
    ///
    /// A receipt means that the action is in the log. `DispatchHandle.effect(within:)` asks a node that hosts
    /// such a store whether it has applied the action.
    ///
    /// - Parameter state: The state.
    /// - Returns: The state's actions.
    /// - Throws: ``NodeError`` with the code `invalidName`.
    public func globalActions<S: BridgedState>(
        of state: S.Type
    ) throws(NodeError) -> Actions<S> {
        sending(to: .state(try Self.name(S.name, of: "\(S.self)")))
    }

    /// Dispatches to every store of a model, in every process, without bridging it here.
    ///
    /// - Parameter model: The model.
    /// - Returns: The model's actions.
    /// - Throws: As for a state.
    public func globalActions<M: Model>(
        of model: M.Type
    ) throws(NodeError) -> Actions<ModelState<M>> {
        try globalActions(of: ModelState<M>.self)
    }

    private func sending<S: BridgedState>(to target: Target) -> Actions<S> {
        Actions(by: OutboxRoute<S>(outbox: core.outbox, target: target), in: scope)
    }

    /// Waits until there is room for more actions (``NodeSettings/outboxBytesMax``).
    ///
    /// A dispatch on a thread of your own waits for room itself. A dispatch in a task must not wait,
    /// since a few threads run all tasks. So a task that dispatches many actions awaits this in between:
    ///
    /// ```swift
    /// for order in orders {
    ///     try await node.waitForRoom()
    ///     stock.dispatch(.take(amount: order.amount))
    /// }
    /// ```
    ///
    /// - Parameter limit: How long to wait; nil to wait as long as it takes.
    /// - Throws: ``NodeError``: `timedOut` after `limit`, `cancelled` if the task was cancelled. If the node is
    ///   closed, it returns at once: dispatches fail then.
    public func waitForRoom(within limit: Duration? = nil) async throws(NodeError) {
        try await core.outbox.waitForRoom(within: limit)
    }
}
