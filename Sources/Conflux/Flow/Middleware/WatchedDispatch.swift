import Synchronization

/// Dispatches where somebody reads along or pauses the flow.
///
/// An action meets the middleware where it is dispatched, then the gate, then its stores:
///
///     dispatch ──▶ middleware ──▶ gate ──▶ lanes, or the route
///                      └ stopped    └ waits for a lock
extension Scope {
    /// Takes a dispatch past the middleware and the gate.
    ///
    /// - Parameters:
    ///   - action: What happens.
    ///   - core: The store that it is for; nil for all of the state.
    ///   - label: What the dispatcher says of it.
    ///   - stopped: Called if middleware stops it.
    ///   - go: Has what the middleware made of the action go on, and told the tally how it ends. Called once,
    ///     when the gate is open, and not if middleware stops it. It calls what it gets when the action has its
    ///     place, and returns the handle of one that took a route.
    /// - Returns: A handle.
    func dispatchWatched<S: State>(
        _ action: S.Action, to core: StoreCore<S>?, label: DispatchLabel?,
        stopped: (() -> Void)? = nil,
        _ go: @escaping @Sendable (S.Action, Tally, _ placed: () -> Void) -> DispatchHandle?
    ) -> DispatchHandle {
        _ = ThreadMark.outsideModels
        guard let passing = middleware.pass(action, to: core, label: label) else {
            stopped?()
            return DispatchHandle(.failed(.intercepted))
        }
        // That actions may be committed on another thread is the contract of `State.Action`.
        nonisolated(unsafe) let passed = passing
        let tally = Tally(ticket: passing.ticket) { [middleware] outcome in
            middleware.end(passed, outcome)
        }
        let sent = SentHandle()
        pass { [self] placed in
            // Behind the places that a global dispatch is keeping, which looked at the gate under this lock.
            if gate.isClosed { channel(of: S.self).withLanes { _ in } }
            sent.handle = go(passed.dispatch.action, tally, placed)
        }
        return sent.handle ?? tally.handle
    }

    /// Has an action take a route, and tells a tally that expects one report how it ends.
    ///
    /// - Returns: The handle, if it has been sent.
    func sendOff<Route: ActionRoute>(
        _ action: Route.S.Action, by route: Route, _ tally: Tally
    ) -> DispatchHandle? {
        let sent = SentHandle()
        // That actions may be committed on another thread is the contract of `State.Action`.
        nonisolated(unsafe) let action = action
        gate.sendOff(mayFail: route.needsThisThread) {
            let handle = route.submit(action)
            handle.whenEnded { outcome in
                // This thread may be the one that the next outcome comes by.
                ThreadMark.current.neededByOthers { tally.report(outcome, order: 0) }
            }
            sent.handle = handle
        }
        return sent.handle
    }
}

extension StoreCore {
    /// Dispatches to this store, or to its route.
    ///
    /// - Parameters:
    ///   - action: What happens.
    ///   - label: What the dispatcher says of it.
    ///   - watch: Told whether it changes anything.
    /// - Returns: A handle.
    @discardableResult
    func dispatchWatched(
        _ action: S.Action, label: DispatchLabel? = nil, watch: ChangeWatch? = nil
    ) -> DispatchHandle {
        scope.dispatchWatched(action, to: self, label: label, stopped: watch?.begin) {
            [self] action, tally, placed in
            tally.expect(1)
            let looks = watch?.looks()
            if let looks { inspect(looks.before) }
            let route = admit(action, tally, ThreadMark.current) {
                // Before the lane is served: before what its observers dispatch.
                if let looks { inspect(looks.after) }
                watch?.begin()
                placed()
            }
            return route.flatMap { scope.sendOff(action, by: $0, tally) }
        }
    }

    /// Sends an action along a route, unless this thread must not wait there.
    func submit(
        _ action: S.Action, by route: any ActionRoute<S>, _ mark: UnsafeMutablePointer<ThreadMark>,
        label: DispatchLabel? = nil
    ) -> DispatchHandle {
        if mark.pointee.isNeeded { return dispatchWatched(action, label: label) }
        return route.submit(action)
    }
}

extension GlobalChannel {
    /// Sends an action along a route, unless this thread must not wait there.
    func submit(
        _ action: S.Action, by route: any ActionRoute<S>, _ mark: UnsafeMutablePointer<ThreadMark>
    ) -> DispatchHandle {
        if mark.pointee.isNeeded { return dispatchWatched(action) }
        return route.submit(action)
    }

    /// Dispatches to every store, or to the route.
    @discardableResult
    func dispatchWatched(_ action: S.Action, label: DispatchLabel? = nil) -> DispatchHandle {
        scope.dispatchWatched(action, to: nil as StoreCore<S>?, label: label) {
            [self] action, tally, placed in
            guard let route = admit(action, tally, ThreadMark.current, placed) else { return nil }
            tally.expect(1)
            return scope.sendOff(action, by: route, tally)
        }
    }
}

/// Dispatches along one route, for which there need be no store here.
struct RouteOnly<S: State>: Sendable {
    let route: any ActionRoute<S>
    let scope: Scope

    /// Sends an action on its way, past the scope's middleware and locks.
    func dispatch(_ action: S.Action) -> DispatchHandle {
        let mark = ThreadMark.outsideModels
        guard scope.isWatched || mark.pointee.isNeeded else { return route.submit(action) }
        return scope.dispatchWatched(action, to: nil as StoreCore<S>?, label: nil) {
            [self] action, tally, placed in
            placed()
            tally.expect(1)
            return scope.sendOff(action, by: route, tally)
        }
    }
}

/// The handle of an action that took a route, if it did so already: it can be withdrawn.
private final class SentHandle: Sendable {
    private let content = Mutex<DispatchHandle?>(nil)

    var handle: DispatchHandle? {
        get { content.withLock { $0 } }
        set { content.withLock { $0 = newValue } }
    }
}
