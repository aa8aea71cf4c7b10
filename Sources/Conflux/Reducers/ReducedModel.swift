/// A model whose actions have a type each, with a reducer for each type.
///
/// See ``Reducers``. An action without a reducer is refused. You may implement `check`; leave `apply` to the
/// reducers.
public protocol ReducedModel: Model where Action == TypedAction<Self> {
    /// How actions change the model: one table for all of its stores.
    static var reducers: Reducers<Self> { get }
}

extension ReducedModel {
    /// Changes the model by the reducer of the action's type.
    public mutating func apply(_ action: TypedAction<Self>, _ context: ActionContext) {
        Self.reducers.entry(of: type(of: action.value))?.reduce(&self, action.value, context)
    }

    /// Refuses an action without a reducer. Otherwise it checks the action, and applies it by its
    /// reducer, even if that is unregistered meanwhile.
    public mutating func _commit(_ action: TypedAction<Self>, _ context: ActionContext) throws {
        try commitTyped(action, context)
    }

    mutating func commitTyped(_ action: TypedAction<Self>, _ context: ActionContext) throws {
        guard let entry = Self.reducers.entry(of: type(of: action.value)) else {
            throw StoreError.noReducer(Self.self, type(of: action.value))
        }
        try check(action, context)
        entry.reduce(&self, action.value, context)
    }

    /// Keeps the reducers as they are from now on.
    public static func _willReplicate() {
        reducers.freeze()
    }
}

/// An action of any type for which a model has a reducer.
///
/// It is encoded as an object with one member: the name under which the reducer is registered, and the
/// action: `{"SetAmount":{"value":5}}`.
public struct TypedAction<Model: ReducedModel>: Codable, Sendable, CustomStringConvertible {
    /// The action itself.
    public let value: any Codable & Sendable

    /// Wraps an action.
    ///
    /// - Parameter value: An action of a type for which the model has a reducer.
    public init(_ value: some Codable & Sendable) {
        self.value = value
    }

    private init(any value: any Codable & Sendable) {
        self.value = value
    }

    private struct ActionName: CodingKey {
        let stringValue: String
        var intValue: Int? { nil }

        init(stringValue: String) { self.stringValue = stringValue }
        init?(intValue: Int) { nil }
    }

    /// Decodes an action by the name under which it was encoded.
    ///
    /// - Parameter decoder: What to decode it from.
    /// - Throws: `DecodingError` when no reducer has that name, or the action is not as it should be.
    public init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: ActionName.self)
        let names = container.allKeys.map(\.stringValue)
        guard let name = names.first, names.count == 1,
            let entry = Model.reducers.entry(named: name)
        else {
            let found = names.isEmpty ? "none" : names.sorted().joined(separator: ", ")
            throw DecodingError.dataCorrupted(
                DecodingError.Context(
                    codingPath: decoder.codingPath,
                    debugDescription: """
                        expected one of: \(Model.reducers.names.joined(separator: ", ")); found \
                        \(found)
                        """))
        }
        func decode<Value: Codable & Sendable>(_ type: Value.Type) throws -> TypedAction {
            TypedAction(any: try container.decode(type, forKey: ActionName(stringValue: name)))
        }
        self = try decode(entry.type)
    }

    /// Encodes the action under its name.
    ///
    /// - Parameter encoder: What to encode it to.
    /// - Throws: ``StoreError`` when no reducer is registered for it; what encoding it throws.
    public func encode(to encoder: any Encoder) throws {
        guard let entry = Model.reducers.entry(of: type(of: value)) else {
            throw StoreError.noReducer(Model.self, type(of: value))
        }
        var container = encoder.container(keyedBy: ActionName.self)
        try container.encode(value, forKey: ActionName(stringValue: entry.name))
    }

    /// The action as it prints itself.
    public var description: String { String(describing: value) }
}

extension TypedAction: ActionEnvelope {
    var content: Any { value }

    func with(_ content: Any) -> TypedAction? {
        Model.reducers.entry(of: Swift.type(of: content))?.typed(content).map {
            TypedAction(any: $0)
        }
    }
}

extension Store
where State: ValueHolder, State.Value: ReducedModel, State.Action == TypedAction<State.Value> {
    /// Dispatches an action of a type that has a reducer, to this store only. May be called on any
    /// thread. The reducer runs when and where ``Actions/dispatch(action:)-(State.Action)`` says:
    /// on `.immediate` on this thread, before this returns, with the exceptions named there.
    /// Actions of one thread keep their order.
    ///
    /// - Parameter action: What happens. If its type has no reducer by then, it is refused.
    /// - Returns: A handle to wait for the action's receipt with. You may drop it.
    @discardableResult
    public func dispatch(_ action: some Codable & Sendable) -> DispatchHandle {
        dispatch(TypedAction(action))
    }
}

extension Actions
where State: ValueHolder, State.Value: ReducedModel, State.Action == TypedAction<State.Value> {
    /// Dispatches an action of a type that has a reducer. Threads and order are as for an action of
    /// the model's own type.
    ///
    /// - Parameter action: What happens. If its type has no reducer by then, it is refused.
    public func dispatch(action: some Codable & Sendable) {
        dispatch(action: TypedAction(action))
    }
}

extension Scope {
    /// Dispatches an action of a type that has a reducer, in a mode, like an action of the model's own type.
    @_disfavoredOverload
    @discardableResult
    public func dispatch<Model: ReducedModel>(
        _ action: some Codable & Sendable, to store: ModelStore<Model>, mode: DispatchMode = .async,
        after others: DispatchHandle..., name: String = "", file: StaticString = #file,
        function: StaticString = #function, line: UInt = #line,
        then next: (@Sendable (Result<Receipt, DispatchError>) -> Void)? = nil
    ) -> DispatchHandle {
        let label = DispatchLabel(name, file: file, function: function, line: line)
        return dispatch(
            TypedAction(action), to: store, mode, after: others, label, then: next)
    }

    /// Pauses the flow, and dispatches an action of a type that has a reducer as the holder, like
    /// an action of the model's own type.
    @_disfavoredOverload
    @discardableResult
    public func lock<Model: ReducedModel & Equatable>(
        dispatching action: some Codable & Sendable, to store: ModelStore<Model>
    ) throws(StoreError) -> FlowLock {
        try lock(dispatching: TypedAction<Model>(action), to: store)
    }
}

extension Transaction {
    /// Adds an action of a type that has a reducer.
    @_disfavoredOverload
    @discardableResult
    public func dispatch<Model: ReducedModel>(
        _ action: some Codable & Sendable, to store: ModelStore<Model>
    ) -> Self {
        dispatch(TypedAction<Model>(action), to: store)
    }
}
