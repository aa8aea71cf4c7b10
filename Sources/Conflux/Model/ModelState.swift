import ConfluxVocabulary

/// The state of a model's store.
public typealias ModelState<Model: Conflux.Model> = ValueState<Model, Model.Action>

/// The store of a model: `ModelStore<Stock>`.
public typealias ModelStore<Model: Conflux.Model> = Store<ModelState<Model>>

extension ValueState: BridgedState, ReplicatedState where Value: Model, Action == Value.Action {
    /// Makes the state of a model as it is before the first action.
    public convenience init() {
        self.init(Value())
    }

    /// Makes the state of a model.
    ///
    /// - Parameter model: What the model is at first.
    public convenience init(_ model: Value) {
        self.init(
            model,
            .inPlace { model, action, context in
                try model._commit(action, context)
                return []
            })
    }

    /// The model's name.
    public static var name: String { Value.name }
    /// The model's version.
    public static var schemaVersion: Int { Value.schemaVersion }
    /// The oldest version as which the model's store can be hosted.
    public static var oldestSchemaVersion: Int { Value.oldestSchemaVersion }
    /// The version that one of the model's actions needs.
    public static func schemaVersion(of action: Action) -> Int { Value.schemaVersion(of: action) }
    /// The model's coding.
    public static var coding: PayloadCoding { Value.coding }
    /// Checks and applies the model's actions.
    public static var mutations: Mutations { Mutations() }
    /// The model's migration.
    public static func migrate(_ old: SnapshotReader, from version: Int) throws -> Value {
        try Value.migrate(old, from: version)
    }

    /// The model in the form of an older version.
    public static func revert(
        _ snapshot: Value, to version: Int
    ) throws -> any Encodable & Sendable {
        try Value.revert(snapshot, to: version)
    }

    /// Tells the model that a node is about to replicate it.
    public static func _willReplicate() { Value._willReplicate() }

    /// The whole model. Set by a store that restores a snapshot, and by nobody else: a model
    /// changes by actions. Setting it elsewhere ends the program with a message.
    public var snapshot: Value {
        get { content }
        set {
            guard ThreadMark.current.pointee.isRestoring else {
                fatalError("A model changes by actions alone. Dispatch one to its store.")
            }
            replace(newValue)
        }
    }
}

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

    /// Makes a store of a model as it is before the first action, without a node.
    ///
    /// - Parameter executor: Where actions are applied; at once, on the dispatching thread, unless
    ///   given.
    public convenience init<Model: Conflux.Model>(
        executor: Executor = .immediate
    ) where State == ModelState<Model> {
        self.init(Model(), executor: executor)
    }
}

extension Store where State: ValueHolder, State.Value: Model, State.Action == State.Value.Action {
    /// Dispatches an action to this store only.
    ///
    /// ```swift
    /// try await stock.dispatch(.take(amount: 5)).receipt()
    /// ```
    ///
    /// - Parameter action: What happens.
    /// - Returns: A handle to wait for the action's receipt with. You may drop it.
    @discardableResult
    public func dispatch(_ action: State.Action) -> DispatchHandle {
        core.dispatchTracked(action)
    }
}
