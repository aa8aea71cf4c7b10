/// Manages one state: takes actions, commits them through mutations, publishes what may be read.
///
/// ```swift
/// let store = Store<CounterState>(state: .init(), mutations: .init(), executor: .immediate)
///
/// store.actions.increment()                  // changes this store
/// Store<CounterState>.actions.increment()    // changes every store of CounterState
/// print(store.computed.count)
/// ```
///
/// Actions may be dispatched from any thread. Each store commits them one at a time, in the order
/// in which they came, wherever its executor puts it. It holds no lock meanwhile. On `.immediate`
/// the dispatching thread has committed its action when the dispatch returns, even while others
/// dispatch. An action dispatched from inside a commit or an observer is committed after that. For
/// exceptions, see `dispatch(action:)` of ``Actions``.
///
/// A released store commits nothing more, not even what is on its way; what was read through
/// ``computed`` stays readable.
///
/// Stores may be subclassed, as for a shared one:
///
/// ```swift
/// final class CounterStore: Store<CounterState>, @unchecked Sendable {
///     static let shared = CounterStore()
///
///     private init() {
///         super.init(state: .init(), mutations: .init(), executor: .queue(.global()))
///     }
/// }
/// ```
// Sendable: what the store has is immutable, and the core keeps the state to one thread at a time.
@dynamicMemberLookup
open class Store<State: Conflux.State>: @unchecked Sendable {
    /// Dispatches to every store of the state in the current scope.
    ///
    /// The scope is the current one where you read this property, even if you use the actions
    /// elsewhere.
    public static var actions: Actions<State> {
        Actions(scope: Scope.current)
    }

    /// Dispatches to this store only.
    public let actions: Actions<State>

    /// The readable parts of the state.
    public let computed: Computed<State>

    /// Where this store's actions are committed; shared with its actions, which may outlive it.
    package let core: StoreCore<State>

    /// Makes a store in the current scope.
    ///
    /// - Parameters:
    ///   - state: The state, used by no other store.
    ///   - mutations: Commits the actions.
    ///   - executor: Where they are committed.
    public init(state: State, mutations: State.Mutations, executor: Executor) {
        core = StoreCore(
            state: state, mutations: mutations, executor: executor, scope: Scope.current)
        actions = Actions(core: core)
        computed = Computed(state: state)
        core.open()
    }

    deinit {
        core.close()
    }
}

/// Dispatches actions: to one store, to all stores of a state, or, by way of a node, to stores of other
/// processes.
///
/// Extend it with a function for each action of the state:
///
/// ```swift
/// extension Actions where State == CounterState {
///     func increment() { dispatch(action: .increment) }
/// }
/// ```
///
/// It may outlive its store, which then commits nothing.
public struct Actions<State: Conflux.State>: Sendable {
    enum Destination {
        /// The target is a `StoreCore`.
        case store
        /// The target is a `GlobalChannel`.
        case all
        /// The target is a `RouteOnly`. This process need not have a store of the state.
        case elsewhere
    }

    let destination: Destination
    // Apart from the enum, since a switch over an enum with the object would retain it for each dispatch.
    private let target: any AnyObject & Sendable
    /// *Use*: keeps the scope of a channel, which does not keep it.
    private let scope: Scope?

    init(core: StoreCore<State>) {
        (destination, target, scope) = (.store, core, nil)
    }

    init(scope: Scope) {
        let channel: GlobalChannel<State> = scope.channel()
        (destination, target, self.scope) = (.all, channel, scope)
    }

    /// Makes actions that take a route, whatever stores there are here.
    ///
    /// - Parameters:
    ///   - route: The route.
    ///   - scope: The scope whose middleware and locks the actions pass.
    package init(by route: any ActionRoute<State>, in scope: Scope) {
        let way = RouteOnly<State>(route: route, scope: scope)
        (destination, target, self.scope) = (.elsewhere, way, nil)
    }

    /// Passes the target on without retaining it: this value does.
    @inline(__always)
    func with<Target: AnyObject, Result>(
        _ type: Target.Type, _ body: (Target) -> Result
    ) -> Result {
        Unmanaged.passUnretained(unsafeDowncast(target, to: type))._withUnsafeGuaranteedRef(body)
    }

    /// Dispatches an action. May be called on any thread, also inside a commit or an observer.
    ///
    /// On a store on `.immediate` the action is committed on this thread before the call returns,
    /// even when other threads commit. In these cases it may be committed later, and by another thread:
    /// - The call comes from inside a commit or an observer, and the store is busy. Two threads in
    ///   such a place could wait for each other.
    /// - The store waits for others (``Scope/order(_:after:)``, ``Transaction``), a lock pauses the
    ///   flow, or middleware stops the action.
    /// - The store has committed nothing for a second. It may be waiting for this very thread.
    ///
    /// - Parameter action: What happens.
    public func dispatch(action: State.Action) {
        switch destination {
        case .store: with(StoreCore<State>.self) { $0.dispatch(action) }
        case .all: with(GlobalChannel<State>.self) { $0.dispatch(action) }
        case .elsewhere: with(RouteOnly<State>.self) { _ = $0.dispatch(action) }
        }
    }

    /// Dispatches an action as `dispatch(action:)` does, and reports how it ends.
    ///
    /// - Parameter action: What happens.
    /// - Returns: A handle to wait for the action's receipt with.
    @_disfavoredOverload
    @discardableResult
    public func dispatch(_ action: State.Action) -> DispatchHandle {
        switch destination {
        case .store: with(StoreCore<State>.self) { $0.dispatchTracked(action) }
        case .all: with(GlobalChannel<State>.self) { $0.dispatchTracked(action) }
        case .elsewhere: with(RouteOnly<State>.self) { $0.dispatch(action) }
        }
    }
}

/// Publishes the readable parts of a state.
///
/// Extend it beside the state, where the state's `fileprivate` properties are visible:
///
/// ```swift
/// extension Computed where State == CounterState {
///     var count: Int { state.count.value }
/// }
/// ```
///
/// The parts of a value, such as those of a model, are there by their names.
///
/// It keeps the state alive, even after its store was released.
@dynamicMemberLookup
public struct Computed<State: Conflux.State> {
    /// The state.
    public let state: State
}
