extension Store where State: ModelHolder {
    /// Makes a store of a model in this process, without a node.
    ///
    /// ```swift
    /// let stock = ModelStore<Stock>()
    /// try await stock.dispatch(.add(amount: 5)).receipt()
    /// print(stock.left)
    /// ```
    ///
    /// - Parameters:
    ///   - model: What the model is at first.
    ///   - executor: Where actions are applied; at once, on the dispatching thread, unless given.
    public convenience init(_ model: State.Model, executor: Executor = .immediate) {
        self.init(state: State(model), mutations: State.mutations, executor: executor)
    }

    /// Makes a store of a model as it is before the first action, without a node.
    ///
    /// - Parameter executor: Where actions are applied; at once, on the dispatching thread, unless
    ///   given.
    public convenience init(executor: Executor = .immediate) {
        self.init(state: State(), mutations: State.mutations, executor: executor)
    }

    /// The whole model, as it is now. Safe on any thread.
    ///
    /// Reading a part by its name, as in `stock.left`, copies that part alone.
    @inlinable
    public var value: State.Model {
        computed.state._modelState._read { $0 }
    }

    /// A part of the model, as it is now. Safe on any thread.
    ///
    /// A part that bears the name of one of the store's own members is found in ``value``.
    ///
    /// - Parameter keyPath: Which part.
    @inlinable
    public subscript<Value>(dynamicMember keyPath: KeyPath<State.Model, Value>) -> Value {
        computed.state._modelState._read { $0[keyPath: keyPath] }
    }

    /// Dispatches an action to this store only.
    ///
    /// ```swift
    /// try await stock.dispatch(.take(amount: 5)).receipt()
    /// ```
    ///
    /// - Parameter action: What happens.
    /// - Returns: A handle, by which the action's receipt can be waited for. It may be dropped.
    @discardableResult
    public func dispatch(_ action: State.Model.Action) -> DispatchHandle {
        core.dispatchTracked(action)
    }

    /// The changes of a part of the model: each with its old and its new value, which differ.
    ///
    /// ```swift
    /// for await change in stock.changes(of: \\.left) { print(change.old, change.new) }
    /// ```
    ///
    /// Changes count from this call on. While a reader is slow, what happens meanwhile becomes one
    /// change, from the first old to the last new value. The sequence ends when the store is
    /// released or the reading task is cancelled. Each loop over it sees all changes.
    ///
    /// - Parameter keyPath: Which part. It is read after each action, under the store's lock, and
    ///   its last value is kept.
    /// - Returns: A sequence that doesn't keep the store alive.
    public func changes<Value: Equatable & Sendable>(
        of keyPath: any KeyPath<State.Model, Value> & Sendable
    ) -> ModelChanges<State.Model, Value> {
        ModelChanges(lane: core, state: computed.state._modelState, isSame: ==) {
            $0[keyPath: keyPath]
        }
    }

    /// The changes of the whole model: one for each action that was applied, or for several in a
    /// row while a reader is slow.
    ///
    /// As ``changes(of:)`` otherwise. The last model is kept for the next change's old value, so
    /// that the next action copies the large parts that it writes.
    public var changes: ModelChanges<State.Model, State.Model> {
        ModelChanges(
            lane: core, state: computed.state._modelState, isSame: { _, _ in false },
            part: { $0 })
    }
}
