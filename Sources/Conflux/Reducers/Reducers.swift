import Synchronization

/// The reducers of one model, one for each type of action.
///
/// ```swift
/// struct SetAmount: Codable, Sendable { let value: Int }
///
/// struct Wallet: ReducedModel {
///     static let name = "wallet"
///     static let reducers = Reducers<Wallet>()
///         .with(SetAmount.self) { wallet, action, _ in wallet.amount = action.value }
///     var amount = 0
/// }
///
/// let wallet = ModelStore<Wallet>()
/// wallet.dispatch(SetAmount(value: 5))
/// ```
///
/// Reducers may be registered and unregistered at any time, until the model is replicated: from then on
/// they are *frozen*, since every replica must have the same. Safe on any thread.
public final class Reducers<Model: ReducedModel>: Sendable {
    /// How an action of some type changes the model.
    struct Entry: Sendable {
        let name: String
        let type: any (Codable & Sendable).Type
        let reduce: @Sendable (inout Model, any Sendable, ActionContext) -> Void
        /// Casts an action to the type; nil if it has another type.
        let typed: @Sendable (Any) -> (any Codable & Sendable)?
    }

    private struct Table {
        var byType: [ObjectIdentifier: Entry] = [:]
        var byName: [String: Entry] = [:]
        var isFrozen = false
    }

    private let table = Mutex(Table())

    /// Makes a table without reducers.
    public init() {}

    /// Registers the reducer of a type of actions, in place of the one before.
    ///
    /// - Parameters:
    ///   - type: The type of the actions.
    ///   - name: What such an action is called in encodings; the type's name unless given. It must be
    ///     the same in every process.
    ///   - reducer: Changes the model by an action. It must use its arguments alone.
    /// - Throws: ``StoreError`` when the reducers are frozen, or the name is another type's.
    public func register<Action: Codable & Sendable>(
        _ type: Action.Type, named name: String? = nil,
        _ reducer: @escaping @Sendable (inout Model, Action, ActionContext) -> Void
    ) throws(StoreError) {
        let entry = Entry(
            name: name ?? String(describing: type), type: type,
            reduce: { model, action, context in
                // Always so: the table finds the entry by this very type.
                if let action = action as? Action { reducer(&model, action, context) }
            }, typed: { $0 as? Action })
        // The former entry is released outside the lock: that may run user code.
        let (failure, former) = table.withLock { table -> (StoreError?, Entry?) in
            if table.isFrozen { return (StoreError.frozen(Model.self, entry.name), nil) }
            if let other = table.byName[entry.name], other.type != type {
                return (StoreError.nameTaken(Model.self, entry.name), nil)
            }
            let former = table.byType[ObjectIdentifier(type)]
            if let former { table.byName[former.name] = nil }
            table.byType[ObjectIdentifier(type)] = entry
            table.byName[entry.name] = entry
            return (nil, former)
        }
        withExtendedLifetime(former) {}
        if let failure { throw failure }
    }

    /// Registers the reducer of a type of actions, where the table is made.
    ///
    /// Ends the program with a message where ``register(_:named:_:)`` throws.
    ///
    /// - Parameters:
    ///   - type: The type of the actions.
    ///   - name: What such an action is called in encodings; the type's name unless given.
    ///   - reducer: Changes the model by an action. It must use its arguments alone.
    /// - Returns: The table itself.
    public func with<Action: Codable & Sendable>(
        _ type: Action.Type, named name: String? = nil,
        _ reducer: @escaping @Sendable (inout Model, Action, ActionContext) -> Void
    ) -> Self {
        do {
            try register(type, named: name, reducer)
        } catch {
            fatalError(error.description)
        }
        return self
    }

    /// Removes the reducer of a type of actions: they are refused from now on.
    ///
    /// - Parameter type: The type of the actions.
    /// - Throws: ``StoreError`` when the reducers are frozen.
    public func unregister<Action>(_ type: Action.Type) throws(StoreError) {
        let (failure, former) = table.withLock { table -> (StoreError?, Entry?) in
            if table.isFrozen {
                return (StoreError.frozen(Model.self, String(describing: type)), nil)
            }
            let former = table.byType.removeValue(forKey: ObjectIdentifier(type))
            if let former { table.byName[former.name] = nil }
            return (nil, former)
        }
        withExtendedLifetime(former) {}
        if let failure { throw failure }
    }

    /// Accepts no changes any more.
    func freeze() {
        table.withLock { $0.isFrozen = true }
    }

    func entry(of type: Any.Type) -> Entry? {
        table.withLock { $0.byType[ObjectIdentifier(type)] }
    }

    func entry(named name: String) -> Entry? {
        table.withLock { $0.byName[name] }
    }

    /// What the actions are called, sorted.
    var names: [String] {
        table.withLock { $0.byName.keys.sorted() }
    }
}

extension StoreError {
    static func frozen<Model>(_ model: Model.Type, _ name: String) -> StoreError {
        StoreError(
            .frozen,
            """
            The reducers of \(model) are frozen, since a node replicates it: every replica must have \
            the same. Register and unregister "\(name)" before the node opens a store.
            """)
    }

    static func nameTaken<Model>(_ model: Model.Type, _ name: String) -> StoreError {
        StoreError(
            .nameTaken,
            """
            Another type of actions of \(model) is called "\(name)". Give one of them another name.
            """)
    }

    static func noReducer<Model>(_ model: Model.Type, _ action: Any.Type) -> StoreError {
        StoreError(
            .noReducer,
            """
            \(model) has no reducer for actions of type \(action): the action changed nothing. \
            Register one first.
            """)
    }
}
