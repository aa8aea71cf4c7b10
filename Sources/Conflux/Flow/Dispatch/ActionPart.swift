import Synchronization

/// An action for one store, for all stores of a state, or for a route.
// Sendable: actions may be committed on another thread, by the contract of `State.Action`. What changes is used by the
// one thread that takes it past the gate, or is in a mutex.
final class ActionPart<S: State>: DispatchPart, @unchecked Sendable {
    enum Target {
        case store(StoreCore<S>)
        case all
        case route(any ActionRoute<S>)
    }

    private let scope: Scope
    private let target: Target
    private let isOnMain: Bool
    private let watch: ChangeWatch?
    /// The action as the middleware has left it.
    let action: S.Action
    let tally: Tally
    private var expected = 1
    /// The route that it takes.
    private var route: (any ActionRoute<S>)?
    /// The handle of an action that has taken a route. Through it, the action can be withdrawn.
    private let sent = Mutex<DispatchHandle?>(nil)

    /// Makes the part of an action that has passed the middleware.
    ///
    /// - Parameters:
    ///   - passing: The action.
    ///   - target: Where it is for.
    ///   - scope: The scope of its stores.
    ///   - isOnMain: Whether it is to be committed on the main queue.
    ///   - watch: Learns whether the action changes anything here.
    ///   - completion: Called once with the outcome.
    init(
        _ passing: MiddlewareTable.Passing<S>, to target: Target, in scope: Scope,
        isOnMain: Bool = false, watch: ChangeWatch? = nil,
        _ completion: @escaping @Sendable (Outcome) -> Void = { _ in }
    ) {
        (self.scope, self.target, self.isOnMain, self.watch) = (scope, target, isOnMain, watch)
        action = passing.dispatch.action
        // Actions may be committed on another thread: that is the contract of `State.Action`.
        nonisolated(unsafe) let passed = passing
        tally = Tally(ticket: passing.ticket) { [middleware = scope.middleware] outcome in
            middleware.end(passed, outcome)
            completion(outcome)
        }
    }

    private var states: GlobalChannel<S> { scope.channel() }
    var channel: any StateChannel { states }

    /// The handle of a dispatch that has no other part. Ask once it is under way.
    var handle: DispatchHandle { sent.withLock { $0 } ?? tally.handle }

    func expect(_ live: [Lane]) -> [Lane] {
        switch target {
        case .store(let core): return [core]
        case .route(let route): self.route = route
        case .all: route = states.routeUnderLock
        }
        if route != nil { return [] }
        expected = live.count
        return live
    }

    func job(for lane: Lane, at index: Int) -> LaneJob {
        let core = GlobalChannel<S>.core(lane)
        let job = core.job(action, tally, order: index)
        guard case .work(let commit) = job else { return job }
        if isOnMain {
            return .hold(
                Excursion(to: scope.main) { [scope] isThere in
                    scope.runLane(ThreadMark.current) { commit(isThere) }
                })
        }
        guard let watch else { return job }
        watch.expect()
        return .work { isOpen in
            let former = core.value
            commit(isOpen)
            watch.end(isChanged: isOpen && !ChangeWatch.isSame(former, core.value))
        }
    }

    func passOver(_ lane: Lane, at index: Int, _ placement: Lane.Machine.Placement) {
        watch?.end(isChanged: false)
        guard case .store(let core) = target else {
            return tally.report(.failed(.passedOver(S.self)), order: index)
        }
        switch placement {
        case .routed where isOnMain: tally.report(.failed(.executorIsFixed(S.self)), order: index)
        case .routed:
            route = core.currentRoute?.route
            // Its node has let it go meanwhile: it is a store of this process now.
            if route == nil {
                core.putInLine(core.job(action, tally, order: index), ThreadMark.current)
            }
        case .closed: tally.report(.failed(.storeClosed(S.self)), order: index)
        case .kept, .paused: break
        }
    }

    var prepared: (any PreparedAction)? { route?.prepare(action) }

    func go(_ handle: DispatchHandle?) {
        if expected == 0 { tally.report(.failed(.noStore(S.self)), order: 0) }
        tally.expect(max(expected, 1))
        guard let route else { return }
        let handle =
            handle ?? route.submit(action, mayWait: !ThreadMark.current.pointee.isNeeded)
        sent.withLock { $0 = handle }
        handle.whenEnded { [tally] outcome in
            // This thread may be the one that delivers the next outcome, so it must not wait.
            ThreadMark.current.neededByOthers { tally.report(outcome, order: 0) }
        }
    }
}

/// Work of a lane that is done on another executor than the lane's.
private final class Excursion: LaneHold {
    private let executor: Executor
    private let work: @Sendable (_ isThere: Bool) -> Void

    init(to executor: Executor, _ work: @escaping @Sendable (_ isThere: Bool) -> Void) {
        (self.executor, self.work) = (executor, work)
    }

    func arrive(_ lane: Lane) -> Bool {
        executor.run { [self] in
            guard lane.takeUp(after: self) else { return }
            work(true)
            lane.leave()
        }
        return false
    }

    func abandon(_ lane: Lane) { work(false) }
}

extension StoreCore {
    /// Dispatches to this store, or to its route, past middleware and locks.
    ///
    /// - Parameters:
    ///   - action: What happens.
    ///   - label: The dispatcher's label.
    ///   - isOnMain: Whether it is to be committed on the main queue.
    ///   - watch: Learns whether the action changes anything.
    /// - Returns: A handle.
    @discardableResult
    func dispatchWatched(
        _ action: S.Action, label: DispatchLabel? = nil, isOnMain: Bool = false,
        watch: ChangeWatch? = nil
    ) -> DispatchHandle {
        let mark = ThreadMark.outsideModels
        let mayBeAtOnce = watch == nil && !isOnMain && scope.order.isEmpty
        if mayBeAtOnce, !scope.gate.isClosed, let outcome = dispatchUnseen(action, label, mark) {
            return DispatchHandle(outcome)
        }
        guard let passing = scope.middleware.pass(action, to: self, label: label) else {
            watch?.end(isChanged: false)
            return DispatchHandle(.failed(.intercepted))
        }
        if mayBeAtOnce, case .free = enter(mark) {
            let outcome = runEnteredTracked(passing.dispatch.action, passing.ticket, mark)
            scope.middleware.end(passing, outcome)
            return DispatchHandle(outcome)
        }
        let part = ActionPart(
            passing, to: .store(self), in: scope, isOnMain: isOnMain, watch: watch)
        scope.take([part]) { watch?.end(isChanged: false) }
        return part.handle
    }

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
    /// Dispatches to every store, or to the route, past middleware and locks.
    @discardableResult
    func dispatchWatched(_ action: S.Action) -> DispatchHandle {
        _ = ThreadMark.outsideModels
        guard let passing = scope.middleware.pass(action, to: nil as StoreCore<S>?, label: nil)
        else { return DispatchHandle(.failed(.intercepted)) }
        let part = ActionPart<S>(passing, to: .all, in: scope)
        scope.take([part])
        return part.handle
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
        guard scope.isWatched || core?.isConcerned == true else {
            return route.submit(action, mayWait: !mark.pointee.isNeeded)
        }
        guard let passing = scope.middleware.pass(action, to: core, label: nil) else {
            return DispatchHandle(.failed(.intercepted))
        }
        let part = ActionPart(passing, to: .route(route), in: scope)
        scope.take([part])
        return part.handle
    }
}
