import ConfluxVocabulary

/// A state that holds a model: the one adapter by which models are states.
///
/// Only ``ModelState`` conforms. It is a protocol so that ``Store`` can be extended for it.
public protocol ModelHolder: ReplicatedState, ValueHolder
where Action == Model.Action, Value == Model {
    /// What is held.
    associatedtype Model: Conflux.Model

    /// Makes the state of a model.
    ///
    /// - Parameter model: What the model is at first.
    init(_ model: Model)
}

/// The store of a model: `ModelStore<Stock>`.
public typealias ModelStore<Model: Conflux.Model> = Store<ModelState<Model>>

/// The state that a store of a model manages. It has nothing besides what it inherits, which is under a
/// lock.
public final class ModelState<Model: Conflux.Model>: ValueState<Model>, ModelHolder,
    @unchecked Sendable
{
    /// The model's actions.
    public typealias Action = Model.Action
    /// Checks and applies them.
    public typealias Mutations = ModelMutations<Model>

    /// Makes the state of a model as it is before the first action.
    public convenience init() {
        self.init(Model())
    }

    /// Makes the state of a model.
    ///
    /// - Parameter model: What the model is at first.
    public init(_ model: Model) {
        super.init(value: model)
    }

    /// The model's name.
    public static var name: String { Model.name }
    /// The model's version.
    public static var schemaVersion: Int { Model.schemaVersion }
    /// The model's coding.
    public static var coding: PayloadCoding { Model.coding }
    /// Checks and applies the model's actions.
    public static var mutations: ModelMutations<Model> { ModelMutations() }
    /// The model's migration.
    public static func migrate(_ old: SnapshotReader, from version: Int) throws -> Model {
        try Model.migrate(old, from: version)
    }

    /// Tells the model.
    public static func _willReplicate() { Model._willReplicate() }

    /// The whole model. Set by a store that restores a snapshot, and by nobody else: a model
    /// changes by actions. Setting it elsewhere ends the program with a message.
    public var snapshot: Model {
        get { _read { $0 } }
        set {
            guard ThreadMark.current.pointee.isRestoring else {
                fatalError("A model changes by actions alone. Dispatch one to its store.")
            }
            replace(newValue)
        }
    }

    /// Checks and applies an action.
    public func _reduce(
        _ model: inout Model, _ action: Model.Action, _ context: ActionContext
    ) throws -> [StorageChange]? {
        let mark = ThreadMark.outsideModels
        mark.pointee.isInModel = true
        defer { mark.pointee.isInModel = false }
        try model._commit(action, context)
        return []
    }

    /// Checks and applies an action.
    ///
    /// - Returns: Why the model refuses the action, if it does; then nothing has changed.
    fileprivate func refusal(of action: Model.Action, _ context: ActionContext) -> (any Error)? {
        change(if: { $0 == nil }) { model in
            do {
                try model._commit(action, context)
                return nil
            } catch {
                return error
            }
        }
    }
}

/// Checks and applies a model's actions.
public struct ModelMutations<Model: Conflux.Model>: Mutations {
    /// Checks and applies an action outside of any store's lane, at sequence number zero and the
    /// present time. What the model refuses changes nothing.
    ///
    /// - Parameters:
    ///   - action: What happens.
    ///   - state: The model's state.
    public func commit(action: Model.Action, state: ModelState<Model>) {
        let context = ActionContext(timestamp: WallClock.now)
        if state.refusal(of: action, context) == nil { state.tell() }
    }

    /// Checks and applies an action under one lock, then tells the observers.
    public func _perform(
        action: Model.Action, state: ModelState<Model>, context: () -> ActionContext
    ) throws {
        if let refusal = state.refusal(of: action, context()) { throw refusal }
        state.tell()
    }
}
