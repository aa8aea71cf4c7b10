extension Store {
    /// Makes a store of a model in this process, without a node: `Store(Stock())` or `ModelStore(Stock())`.
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
    public convenience init<Model: Conflux.Model>(
        _ model: Model, executor: Executor = .immediate
    ) where State == ModelState<Model> {
        self.init(state: State(model), mutations: State.mutations, executor: executor)
    }
}

extension Store where State: ModelHolder {
    /// Makes a store of a model as it is before the first action, without a node.
    ///
    /// - Parameter executor: Where actions are applied; at once, on the dispatching thread, unless
    ///   given.
    public convenience init(executor: Executor = .immediate) {
        self.init(state: State(), mutations: State.mutations, executor: executor)
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
}
