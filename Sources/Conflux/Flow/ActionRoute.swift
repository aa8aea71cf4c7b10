import ConfluxVocabulary

/// A path that takes dispatched actions to a log, instead of to the stores of this process.
package protocol ActionRoute<S>: AnyObject, Sendable {
    /// The state whose actions it takes.
    associatedtype S: State

    /// Sends an action. Must not wait for its commit.
    ///
    /// Called in the order of the dispatching thread, holding no lock. A call may come just after
    /// the route was removed, from a dispatch that began before.
    ///
    /// - Parameters:
    ///   - action: What was dispatched.
    ///   - mayWait: Whether this thread may wait for room. If not, others' dispatches depend on
    ///     this thread. The route then accepts more than it has room for, within a bound, and fails
    ///     actions beyond that.
    /// - Returns: The handle to wait for the outcome with.
    func submit(_ action: S.Action, mayWait: Bool) -> DispatchHandle

    /// Makes an action ready to be sent next to those of other states.
    ///
    /// - Parameter action: What was dispatched.
    /// - Returns: The action; nil if it can only be sent alone.
    func prepare(_ action: S.Action) -> (any PreparedAction)?

    /// The route of actions that are taken only if the store has not changed since a version.
    func conditional(on version: StoreVersion) -> any ActionRoute<S>

    /// Whether the actions with an origin came by this route, or by another one of the same node.
    func isOrigin(_ origin: Origin) -> Bool

    /// Who takes its actions to the log, as ``PreparedAction/sender``; nil if nobody does.
    var sender: ObjectIdentifier? { get }
}

extension ActionRoute {
    package func isOrigin(_ origin: Origin) -> Bool { false }
    package var sender: ObjectIdentifier? { nil }
}

extension ActionRoute {
    /// Its actions can only be sent alone.
    package func prepare(_ action: S.Action) -> (any PreparedAction)? { nil }
}

/// An action that is ready to be sent, of whatever state.
package protocol PreparedAction: Sendable {
    /// What sends it. Actions with the same sender can be sent next to each other.
    var sender: ObjectIdentifier { get }

    /// Sends several actions of its sender next to each other: all of them are taken, or none.
    ///
    /// - Parameters:
    ///   - all: The actions, this one among them.
    ///   - mayWait: As for ``ActionRoute/submit(_:mayWait:)``.
    /// - Returns: A handle for each.
    func send(_ all: [any PreparedAction], mayWait: Bool) -> [DispatchHandle]
}

/// A route, of whatever state.
// Sendable: it has nothing; the subclasses have constants.
class AnyKeptRoute: @unchecked Sendable {}

/// A route, as it is stored. To look up at run time what `any ActionRoute<S>` is, or even `KeptRoute<S>?`, takes
/// longer than everything else that a dispatch does with it. So this is done once, and the stored property names no
/// type.
// Sendable: the subclass has constants that are Sendable.
class KeptRoute<S: State>: AnyKeptRoute, @unchecked Sendable {
    /// The route itself.
    var route: any ActionRoute<S> { preconditionFailure("a kept route has a route") }

    /// Sends an action on the route.
    func submit(_ action: S.Action, mayWait: Bool) -> DispatchHandle {
        preconditionFailure("a kept route submits")
    }

    /// Stores a route.
    static func keeping<Route: ActionRoute>(_ route: Route) -> KeptRoute where Route.S == S {
        RouteKeeper(route)
    }

    /// The route that was stored for the same state. (`Optional.map` would look up the type.)
    @inline(__always)
    static func of(_ kept: AnyKeptRoute?) -> KeptRoute? {
        guard let kept else { return nil }
        return unsafeDowncast(kept, to: KeptRoute.self)
    }
}

/// A route of a known type.
// Sendable: its only property is constant and Sendable.
private final class RouteKeeper<Route: ActionRoute>: KeptRoute<Route.S>, @unchecked Sendable {
    private let kept: Route

    init(_ route: Route) { kept = route }

    override var route: any ActionRoute<Route.S> { kept }

    override func submit(_ action: Route.S.Action, mayWait: Bool) -> DispatchHandle {
        kept.submit(action, mayWait: mayWait)
    }
}

/// An action that the log has ordered, with its place and time.
package struct OrderedAction<S: State> {
    /// What happens.
    package let action: S.Action
    /// Its place, time, origin and random numbers.
    package let context: ActionContext

    /// Pairs an action with its context.
    package init(action: S.Action, context: ActionContext) {
        self.action = action
        self.context = context
    }
}

extension OrderedAction: Sendable where S.Action: Sendable {}

/// What became of a run of ordered actions in one store.
package struct RunReport: Sendable {
    /// An action that the state's check refused.
    package struct Refusal: Sendable {
        /// The action's index in the run.
        package let index: Int
        /// What the check threw.
        package let error: any Error
    }

    /// The refused actions, in order.
    package internal(set) var refusals: [Refusal] = []
    /// How many actions of the run were dealt with, from its beginning: committed, refused, or
    /// passed over because the store had them already. It is less than the run's count if the store
    /// was released.
    package internal(set) var completed = 0
    /// Whether the store was released before the end of the run.
    package internal(set) var isClosed = false

    /// The report of a store that was released before the run.
    static let closed = {
        var report = RunReport()
        report.isClosed = true
        return report
    }()
}
