import ConfluxVocabulary
import Synchronization

/// A state that holds a model: the one adapter by which models are states.
///
/// Only ``ModelState`` conforms. It is a protocol so that ``Store`` can be extended for it.
public protocol ModelHolder: ReplicatedState where Action == Model.Action {
    /// What is held.
    associatedtype Model: Conflux.Model

    /// Makes the state of a model.
    ///
    /// - Parameter model: What the model is at first.
    init(_ model: Model)

    /// The state itself.
    var _modelState: ModelState<Model> { get }
}

/// The store of a model: `ModelStore<Stock>`.
public typealias ModelStore<Model: Conflux.Model> = Store<ModelState<Model>>

/// The state that a store of a model manages.
///
/// The model changes by actions alone. It is guarded by a lock that is held for a `check`, an
/// `apply` or a read, so that reading is cheap and legal on any thread. Observers are told outside
/// of it, by the thread that serves the store's lane.
public final class ModelState<Model: Conflux.Model>: ModelHolder, Sendable {
    /// The model's actions.
    public typealias Action = Model.Action
    /// Checks and applies them.
    public typealias Mutations = ModelMutations<Model>

    @usableFromInline let model: Mutex<Model>

    private let observers = Mutex<[any ModelObserver<Model>]>([])
    /// Spares a commit without observers the lock.
    private let hasObservers = Atomic(false)

    /// Makes the state of a model as it is before the first action.
    public convenience init() {
        self.init(Model())
    }

    /// Makes the state of a model.
    ///
    /// - Parameter model: What the model is at first.
    public init(_ model: Model) {
        self.model = Mutex(model)
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

    /// The state itself.
    @inlinable public var _modelState: ModelState<Model> { self }

    /// Reads under the lock. The body must not touch a store.
    @inlinable
    public func _read<Value>(_ body: (Model) -> Value) -> Value {
        let mark = ThreadMark.current
        if mark.pointee.isInModel { ThreadMark.trapInModel() }
        mark.pointee.isInModel = true
        defer { mark.pointee.isInModel = false }
        return model.withLock { model in
            // A part of the model, which is Sendable, also where its type doesn't say so.
            nonisolated(unsafe) let value = body(model)
            return value
        }
    }

    /// Checks and applies an action.
    ///
    /// - Returns: Why the model refuses the action, if it does; then nothing has changed.
    fileprivate func refusal(of action: Model.Action, _ context: ActionContext) -> (any Error)? {
        change { model in
            do {
                try model.check(action, context)
            } catch {
                return error
            }
            model.apply(action, context)
            return nil
        }
    }

    private func replace(_ value: Model) {
        // Let go outside the lock: freeing the old value may be slow.
        var value = value
        change { swap(&$0, &value) }
        tell()
    }

    private func change<Result: Sendable>(_ body: (inout Model) -> Result) -> Result {
        let mark = ThreadMark.outsideModels
        mark.pointee.isInModel = true
        defer { mark.pointee.isInModel = false }
        return model.withLock { body(&$0) }
    }

    fileprivate func tell() {
        guard hasObservers.load(ordering: .acquiring) else { return }
        for observer in observers.withLock({ $0 }) { observer.look(at: self) }
    }

    // MARK: Observers

    /// Tells an observer of every change from now on.
    func add(_ observer: any ModelObserver<Model>) {
        observers.withLock { observers in
            observers.append(observer)
            hasObservers.store(true, ordering: .releasing)
        }
    }

    func remove(_ observer: any ModelObserver<Model>) {
        // Let go outside the lock: what it holds is user code's to free.
        _ = observers.withLock { observers in
            let place = observers.firstIndex { $0 === observer }
            let removed = place.map { observers.remove(at: $0) }
            hasObservers.store(!observers.isEmpty, ordering: .releasing)
            return removed
        }
    }
}

/// Told of a model's changes.
protocol ModelObserver<Model>: AnyObject, Sendable {
    associatedtype Model: Conflux.Model

    /// The model may have changed. Called in the store's lane, holding no lock.
    func look(at state: ModelState<Model>)
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
