/// What a program tells middleware about a dispatch: its name, and its place in the source.
public struct DispatchLabel: Sendable {
    /// What is done, in a word; may be empty.
    public let name: String
    /// What is done, in a sentence; may be empty.
    public let description: String
    /// The file of the call.
    public let file: StaticString
    /// The function of the call.
    public let function: StaticString
    /// The line of the call.
    public let line: UInt

    /// Makes a label with the place of the call, unless you give another place.
    ///
    /// - Parameters:
    ///   - name: What is done, in a word; may be empty.
    ///   - description: What is done, in a sentence; may be empty.
    ///   - file: The file of the call.
    ///   - function: The function of the call.
    ///   - line: The line of the call.
    public init(
        _ name: String = "", _ description: String = "", file: StaticString = #file,
        function: StaticString = #function, line: UInt = #line
    ) {
        self.name = name
        self.description = description
        self.file = file
        self.function = function
        self.line = line
    }
}

/// Identifies a store without referring to it.
public struct StoreIdentity: Hashable, Sendable, CustomStringConvertible {
    private let lane: ObjectIdentifier
    /// The identifier under which it is registered in its scope (``Scope/register(_:as:)``), if it is.
    public let name: String?
    private let state: any State.Type

    init<S: State>(_ core: StoreCore<S>) {
        lane = ObjectIdentifier(core)
        name = core.scope.names.name(of: core)
        state = S.self
    }

    /// Whether both mean the same store.
    public static func == (first: StoreIdentity, second: StoreIdentity) -> Bool {
        first.lane == second.lane
    }

    /// Feeds what `==` compares.
    public func hash(into hasher: inout Hasher) {
        hasher.combine(lane)
    }

    /// The state's type, and the identifier if there is one.
    public var description: String {
        let state = state.title
        return name.map { "\(state) \($0)" } ?? state
    }
}

/// An action that is being dispatched, as middleware sees it.
public struct DispatchedAction<State: Conflux.State> {
    /// The number of the dispatch in its scope. All calls of middleware about one dispatch have the
    /// same number.
    ///
    /// Dispatches that middleware may see are counted from 1. The number is the same at dispatch, at each
    /// commit that does not come from a log, and at the end.
    public let id: UInt64
    /// What is to happen.
    public internal(set) var action: State.Action
    let core: StoreCore<State>?
    /// The dispatcher's label, if there is one.
    public let label: DispatchLabel?

    /// The store that it is for, with the identifier that it has now; nil for every store of the state.
    public var store: StoreIdentity? { core.map { StoreIdentity($0) } }

    /// The present value of that store, if it holds a model or is a storage. It is nil for a state that is a
    /// class of your own: only the store's commits touch that.
    public var value: (any Sendable)? { core?.value }
}

extension DispatchedAction: Sendable where State.Action: Sendable {}

/// An action that a store commits, as middleware and ``Store/committedActions`` show it. It can't be changed: replicas
/// would differ.
public struct CommittedAction<State: Conflux.State> {
    /// The number of the dispatch. It is nil for an action from a log, even if it was dispatched here, and for
    /// one that was dispatched before there was middleware.
    public let id: UInt64?
    /// What happens.
    public let action: State.Action
    /// The action's place, time, origin and random numbers.
    public let context: ActionContext
    let core: StoreCore<State>
    /// The dispatcher's label, if it dispatched in this process.
    public let label: DispatchLabel?
    /// The value that the action left, if the store may have another value by now.
    package internal(set) var result: (any Sendable)?

    /// The store, with the identifier that it has now.
    public var store: StoreIdentity { StoreIdentity(core) }

    /// Whether it was dispatched in this process: to the store itself, or through the node that hosts the store, in the
    /// session that the node has now.
    ///
    /// No reducer may know this, since replicas would differ. So it is not in the ``context``.
    public var isOwn: Bool { context.origin.map(core.isOrigin) ?? true }

    /// The store's value, if it holds a model or is a storage: before the commit in
    /// ``Middleware/willCommit(_:)``, and after it elsewhere. It is nil if the state is a class of your own.
    public var value: (any Sendable)? { result ?? core.value }
}

extension CommittedAction: Sendable where State.Action: Sendable {}

/// What accompanies an action from its dispatch to its commits.
struct DispatchTicket: Sendable {
    let id: UInt64?
    let label: DispatchLabel?
    /// The lock under which it was dispatched. Actions that follow from its commit are dispatched
    /// under it, too.
    let lock: FlowLock?
}
