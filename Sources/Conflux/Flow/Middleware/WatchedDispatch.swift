import Synchronization

/// Dispatches in a scope that has middleware, a lock, or stores that wait for others.
///
/// An action passes the middleware when it is dispatched, then the gate, and then reaches its
/// stores:
///
///     dispatch ──▶ middleware ──▶ gate ──▶ lanes, or the route
///                      └ stopped    └ waits for a lock
extension Scope {
    /// Takes a dispatch past the middleware and the gate.
    ///
    /// - Parameters:
    ///   - action: What happens.
    ///   - core: The store, if there is only one here, for middleware.
    ///   - label: The dispatcher's label.
    ///   - go: As in ``go(on:_:)``; not called if middleware stops the action.
    /// - Returns: A handle.
    func dispatchWatched<S: State>(
        _ action: S.Action, to core: StoreCore<S>?, label: DispatchLabel?,
        _ go: @escaping @Sendable (S.Action, Tally, _ placed: () -> Void) -> DispatchHandle?
    ) -> DispatchHandle {
        _ = ThreadMark.outsideModels
        guard let passing = middleware.pass(action, to: core, label: label) else {
            return DispatchHandle(.failed(.intercepted))
        }
        return self.go(on: passing, go)
    }

    /// Takes a dispatch that has passed the middleware past the gate.
    ///
    /// - Parameters:
    ///   - passing: The dispatch.
    ///   - go: Continues with the action as the middleware left it, and reports to the tally how it
    ///     ends. Called once, when the gate is open. It calls `placed` when the action has its
    ///     place. It returns the handle of an action that took a route, and nil for any other.
    /// - Returns: A handle.
    func go<S: State>(
        on passing: MiddlewareTable.Passing<S>,
        _ go: @escaping @Sendable (S.Action, Tally, _ placed: () -> Void) -> DispatchHandle?
    ) -> DispatchHandle {
        // Actions may be committed on another thread: that is the contract of `State.Action`.
        nonisolated(unsafe) let passed = passing
        let tally = Tally(ticket: passing.ticket) { [middleware] outcome in
            middleware.end(passed, outcome)
        }
        // The handle of an action that has already taken a route. Through it, the action can be
        // withdrawn.
        let sent = AtomicReference<DispatchHandle?>(nil)
        pass { [self] placed in
            // A global dispatch reads the gate and keeps its places under this lock. Waits for
            // that, so that this action comes behind it.
            if gate.isClosed { channel(of: S.self).withLanes { _ in } }
            sent.value = go(passed.dispatch.action, tally, placed)
        }
        return sent.value ?? tally.handle
    }

    /// Sends an action by a route, and reports how it ends to a tally that expects one report.
    ///
    /// - Returns: The route's handle.
    func submit<Route: ActionRoute>(
        _ action: Route.S.Action, by route: Route, _ tally: Tally
    ) -> DispatchHandle {
        let handle = route.submit(action, mayWait: !ThreadMark.current.pointee.isNeeded)
        handle.whenEnded { outcome in
            // This thread may be the one that delivers the next outcome, so it must not wait.
            ThreadMark.current.neededByOthers { tally.report(outcome, order: 0) }
        }
        return handle
    }
}

extension StoreCore {
    /// Dispatches to this store, or to its route.
    ///
    /// - Parameters:
    ///   - action: What happens.
    ///   - label: The dispatcher's label.
    ///   - watch: Learns whether the action changes anything.
    /// - Returns: A handle.
    @discardableResult
    func dispatchWatched(
        _ action: S.Action, label: DispatchLabel? = nil, watch: ChangeWatch? = nil
    ) -> DispatchHandle {
        let mark = ThreadMark.outsideModels
        if watch == nil, scope.order.isEmpty, !scope.gate.isClosed,
            let outcome = dispatchUnseen(action, label, mark)
        {
            return DispatchHandle(outcome)
        }
        guard let passing = scope.middleware.pass(action, to: self, label: label) else {
            watch?.begin()
            return DispatchHandle(.failed(.intercepted))
        }
        if watch == nil, scope.order.isEmpty, case .free = enter(mark) {
            let outcome = runEnteredTracked(passing.dispatch.action, passing.ticket, mark)
            scope.middleware.end(passing, outcome)
            return DispatchHandle(outcome)
        }
        return scope.go(on: passing) { [self] action, tally, placed in
            tally.expect(1)
            let looks = watch?.looks()
            if let looks { inspect(looks.before) }
            let route = admit(action, tally, ThreadMark.current) {
                // Done before the lane is served, so that it comes before what observers dispatch.
                if let looks { inspect(looks.after) }
                watch?.begin()
                placed()
            }
            return route.map { scope.submit(action, by: $0, tally) }
        }
    }
}

extension StoreCore {
    /// Dispatches to this store at once, if it is free and no middleware would do anything about
    /// it.
    private func dispatchUnseen(
        _ action: S.Action, _ label: DispatchLabel?, _ mark: UnsafeMutablePointer<ThreadMark>
    ) -> Outcome? {
        let middleware = scope.middleware
        let observers = middleware.observers(of: self)
        guard observers.ignoreDispatches(of: S.Action.self), case .free = enter(mark) else {
            return nil
        }
        // Every dispatch is counted, even if nobody observes it.
        let id = middleware.nextID()
        if observers.commits.isEmpty { return runEnteredTracked(action, nil, mark) }
        let ticket = DispatchTicket(id: id, label: label, lock: FlowLock.held)
        return runEnteredTracked(action, ticket, mark)
    }
}

extension GlobalChannel {
    /// Dispatches to every store, or to the route.
    @discardableResult
    func dispatchWatched(_ action: S.Action, label: DispatchLabel? = nil) -> DispatchHandle {
        scope.dispatchWatched(action, to: nil as StoreCore<S>?, label: label) {
            [self] action, tally, placed in
            guard let route = admit(action, tally, ThreadMark.current, placed) else { return nil }
            tally.expect(1)
            return scope.submit(action, by: route, tally)
        }
    }
}

/// Dispatches by one route. This process need not have a store of the state.
final class RouteOnly<S: State>: Sendable {
    let route: any ActionRoute<S>
    let scope: Scope
    /// The store, if it is one here, for middleware.
    let core: StoreCore<S>?

    init(route: any ActionRoute<S>, scope: Scope, core: StoreCore<S>? = nil) {
        (self.route, self.scope, self.core) = (route, scope, core)
    }

    /// Sends an action by the route, after it has passed the scope's middleware and locks.
    func dispatch(_ action: S.Action) -> DispatchHandle {
        let mark = ThreadMark.outsideModels
        guard scope.isWatched else {
            return route.submit(action, mayWait: !mark.pointee.isNeeded)
        }
        return scope.dispatchWatched(action, to: core, label: nil) {
            [self] action, tally, placed in
            placed()
            tally.expect(1)
            return scope.submit(action, by: route, tally)
        }
    }
}
