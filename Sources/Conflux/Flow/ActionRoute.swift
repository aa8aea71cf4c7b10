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
}

/// A route, whatever its state.
// Sendable: it has no properties; the subclass has only constants.
class AnyKeptRoute: @unchecked Sendable {}

/// A route, as it is kept. To ask at run time what `any ActionRoute<S>` is, or even
/// `KeptRoute<S>?`, takes longer than all else that a dispatch does with the route. So that is done
/// once, and the code that keeps a route names no type.
// Sendable: all of it is constant and Sendable.
final class KeptRoute<S: State>: AnyKeptRoute, @unchecked Sendable {
    let route: any ActionRoute<S>
    let submit: @Sendable (_ action: S.Action, _ mayWait: Bool) -> DispatchHandle

    init(_ route: any ActionRoute<S>) {
        self.route = route
        submit = Self.way(of: route)
    }

    /// The route that was kept for the same state. (`Optional.map` would ask for the type.)
    @inline(__always)
    static func of(_ kept: AnyKeptRoute?) -> KeptRoute? {
        guard let kept else { return nil }
        return unsafeDowncast(kept, to: KeptRoute.self)
    }

    private static func way<Route: ActionRoute>(
        of route: Route
    ) -> @Sendable (_ action: S.Action, _ mayWait: Bool) -> DispatchHandle where Route.S == S {
        { route.submit($0, mayWait: $1) }
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
}
