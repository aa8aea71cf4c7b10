import Synchronization

/// The stores of one state. Free of the state's type, so that a dispatch touches as little generic
/// data as it can.
struct Registry {
    /// Use: the live stores, oldest first; each is a `StoreCore` of the state. It leaves when the
    /// store is released.
    var lanes: [Lane] = []
    /// Whether there is a route.
    var isRouted = false
}

/// What of a dispatch there is to do outside the registry's lock.
private struct Plan {
    var lanes: [Lane] = []
    /// Which of the first 64 lanes the caller serves, the first one's bit the lowest.
    var entered: UInt64 = 0
    /// Which lanes are neither served by the caller nor have the action in line.
    var absent: [Int] = []
    var isAllEntered = true
    /// The turns that the caller has to take.
    var turns: [(turn: DispatchTurn, lane: Lane)] = []
    var isRouted = false
    /// Whether a lock was taken meanwhile: the dispatch has to begin anew.
    var isPaused = false
}

/// The way of global dispatches to every store of one state in one scope.
///
/// A dispatch first keeps a place in every store's lane, under one lock and running no user code,
/// and then serves those lanes that nobody else serves. So all stores see global actions in one
/// order, and what an action's observers dispatch comes after it everywhere.
// Sendable: `route` is touched only under the registry's mutex.
package final class GlobalChannel<S: State>: @unchecked Sendable {
    let registry = Mutex(Registry())
    /// Where all of its stores belong. The scope keeps the channel, and lives as long as one of
    /// its stores.
    unowned let scope: Scope
    /// Guarded by the registry's mutex.
    private var route: (any ActionRoute<S>)?
    /// What the state makes of an event; nil if it handles none.
    let events: (@Sendable (any Event) -> S.Action?)?

    init(scope: Scope) {
        self.scope = scope
        if let handling = S.self as? any EventHandling.Type {
            events = Self.handlers(of: handling)
        } else {
            events = nil
        }
    }

    private static func handlers<Handling: EventHandling>(
        of state: Handling.Type
    ) -> @Sendable (any Event) -> S.Action? {
        { Handling.events.action(for: $0) as? S.Action }
    }

    /// The live stores, oldest first.
    package var cores: [StoreCore<S>] {
        registry.withLock { $0.lanes }.map(Self.core)
    }

    /// Sends global dispatches from now on to a route, or, with nil, to the stores here.
    ///
    /// Each dispatch goes wholly to the one or to the other.
    ///
    /// - Returns: The route until now.
    @discardableResult
    package func setRoute(_ route: (any ActionRoute<S>)?) -> (any ActionRoute<S>)? {
        registry.withLock { registry in
            let former = self.route
            self.route = route
            registry.isRouted = route != nil
            return former
        }
    }

    /// Replaces the route, or, with nil, removes it, if it is the one that is meant.
    ///
    /// - Parameters:
    ///   - route: The route from now on.
    ///   - isMeant: Whether a route is to be replaced; called under a lock.
    package func replaceRoute(
        by route: (any ActionRoute<S>)?, where isMeant: (any ActionRoute<S>) -> Bool
    ) {
        // Let go outside the lock.
        let former: (any ActionRoute<S>)? = registry.withLock { registry in
            guard let former = self.route, isMeant(former) else { return nil }
            self.route = route
            registry.isRouted = route != nil
            return former
        }
        _ = former
    }

    func add(_ core: StoreCore<S>) {
        registry.withLock { $0.lanes.append(core) }
    }

    /// The store hears of global dispatches no more; nothing happens for one that does not.
    package func remove(_ core: StoreCore<S>) {
        // Let go outside the lock: the last release frees a state, which is user code.
        _ = registry.withLock { registry in
            registry.lanes.firstIndex { $0 === core }.map { registry.lanes.remove(at: $0) }
        }
    }

    /// Dispatches to every live store, or to the route.
    func dispatch(_ action: S.Action) {
        let mark = ThreadMark.outsideModels
        if scope.isWatched {
            dispatchWatched(action)
            return
        }
        let plan = plan(mark, isPast: false) { _ in .action(action) }
        if plan.isPaused {
            dispatchWatched(action)
            return
        }
        if plan.isRouted {
            if let route = currentRoute {
                _ = route.submit(action, mayWait: !mark.pointee.isNeeded)
            } else {
                dispatch(action)
            }
            return
        }
        if plan.entered != 0 {
            mark.pointee.lanes += 1
            scope.runLane {
                var entered = plan.entered
                plan.lanes.forEachBorrowed { lane in
                    if entered & 1 == 1 { Self.core(lane).runReserved(action) }
                    entered >>= 1
                }
            }
            mark.pointee.lanes -= 1
        }
        if !plan.isAllEntered { Self.kick(plan, mark) }
    }

    /// Dispatches to every live store, or to the route, and tells how it ends.
    package func dispatchTracked(_ action: S.Action) -> DispatchHandle {
        let mark = ThreadMark.outsideModels
        if scope.isWatched { return dispatchWatched(action) }
        // What travels needs no tally of its own.
        if let route = currentRoute {
            return route.submit(action, mayWait: !mark.pointee.isNeeded)
        }
        let tally = Tally()
        let plan = plan(mark, isPast: false) { .tracked(action, tally, order: $0) }
        if plan.isPaused { return dispatchWatched(action) }
        if plan.isRouted {
            return currentRoute.map { $0.submit(action, mayWait: !mark.pointee.isNeeded) }
                ?? dispatchTracked(action)
        }
        carry(out: plan, action, tally, mark)
        return tally.handle
    }

    /// Dispatches to every live store what is past the gate, and tells a tally how it ends in each.
    ///
    /// - Parameters:
    ///   - action: What happens.
    ///   - tally: Told how it ends.
    ///   - mark: The thread's.
    ///   - placed: Called once, when it has its places and before the lanes are served, or needs none.
    /// - Returns: The route that the action has to take instead; then nothing else was done.
    func admit(
        _ action: S.Action, _ tally: Tally, _ mark: UnsafeMutablePointer<ThreadMark>,
        _ placed: () -> Void
    ) -> (any ActionRoute<S>)? {
        let plan =
            scope.order.isEmpty
            ? plan(mark, isPast: true) { .tracked(action, tally, order: $0) }
            : orderedPlan(action, tally)
        if plan.isRouted {
            guard let route = currentRoute else { return admit(action, tally, mark, placed) }
            placed()
            return route
        }
        placed()
        carry(out: plan, action, tally, mark)
        return nil
    }

    /// Serves the lanes in which places are kept.
    private func carry(
        out plan: Plan, _ action: S.Action, _ tally: Tally, _ mark: UnsafeMutablePointer<ThreadMark>
    ) {
        guard !plan.lanes.isEmpty else {
            tally.expect(1)
            return tally.report(.failed(.noStore(S.self)), order: 0)
        }
        for order in plan.absent {
            tally.report(.failed(.passedOver(S.self)), order: order)
        }
        var entered = plan.entered
        for (order, lane) in plan.lanes.enumerated() {
            if entered & 1 == 1 {
                let outcome = Self.core(lane).runEnteredTracked(action, tally.ticket, mark)
                tally.report(outcome, order: order)
            }
            entered >>= 1
        }
        Self.kick(plan, mark)
        tally.expect(plan.lanes.count)
    }

    /// Enters the lanes that are free, and keeps a place in the others.
    @inline(__always)
    private func plan(
        _ mark: UnsafeMutablePointer<ThreadMark>, isPast: Bool,
        _ job: (_ order: Int) -> LaneJob<S>
    ) -> Plan {
        registry.withLock { registry in
            var plan = Plan()
            plan.isRouted = registry.isRouted
            // Checked again here: a lock's holder that dispatched has been in this mutex.
            plan.isPaused = !isPast && scope.gate.isClosed
            if plan.isRouted || plan.isPaused { return plan }
            let lanes = registry.lanes
            plan.lanes = lanes
            var order = 0
            lanes.forEachBorrowed { lane in
                if order < UInt64.bitWidth, case .free = lane.enter(mark, isPast: true) {
                    plan.entered |= 1 << UInt64(order)
                } else {
                    plan.isAllEntered = false
                    let place = Self.core(lane).reserveTurn(job(order), mark)
                    if let turn = place.turn { plan.turns.append((turn, lane)) }
                    if !place.hasPlace { plan.absent.append(order) }
                }
                order += 1
            }
            return plan
        }
    }

    /// Keeps a place in every lane, where some wait for others.
    private func orderedPlan(_ action: S.Action, _ tally: Tally) -> Plan {
        // Written under locks and read after them, by this thread alone.
        nonisolated(unsafe) var plan = Plan()
        nonisolated(unsafe) let action = action
        scope.reserving(in: [self]) { lanes in
            // The registry's lock is held.
            plan.isRouted = route != nil
            if plan.isRouted { return }
            plan.lanes = lanes[0]
            plan.isAllEntered = false
            for order in scope.order.sorted(lanes[0]) {
                let lane = lanes[0][order]
                let job = LaneJob<S>.tracked(action, tally, order: order)
                if !Self.core(lane).reserveBehind(job, hold: scope.order.hold(for: lane)) {
                    plan.absent.append(order)
                }
            }
        }
        return plan
    }

    /// The route, for who holds the registry's lock.
    var routeUnderLock: (any ActionRoute<S>)? { route }

    private var currentRoute: (any ActionRoute<S>)? {
        registry.withLock { _ in route }
    }

    /// The channel's lanes are its stores' cores.
    @inline(__always)
    static func core(_ lane: Lane) -> StoreCore<S> {
        unsafeDowncast(lane, to: StoreCore<S>.self)
    }

    private static func kick(_ plan: Plan, _ mark: UnsafeMutablePointer<ThreadMark>) {
        kick(plan.lanes, mark)
        // Two global dispatches stand in the same order in all lanes. So two threads never wait for
        // each other's turns.
        for (turn, lane) in plan.turns { turn.take(in: lane) }
    }

    /// Has every store's line served, then waits for those that are too long.
    static func kick(_ lanes: [Lane], _ mark: UnsafeMutablePointer<ThreadMark>) {
        for lane in lanes { lane.kick(mark) }
        for lane in lanes { lane.waitForRoom(mark) }
    }
}

/// A channel of whatever state.
protocol StateChannel: AnyObject, Sendable {
    /// Passes the live lanes to the body, under the registry's lock: no place in any of them is kept by
    /// a global dispatch meanwhile.
    func withLanes(_ body: ([Lane]) -> Void)
}

extension GlobalChannel: StateChannel {
    func withLanes(_ body: ([Lane]) -> Void) {
        registry.withLock { body($0.lanes) }
    }
}

extension [Lane] {
    /// Passes each lane to the body without counting a reference to it: the array holds one.
    @inline(__always)
    fileprivate func forEachBorrowed(_ body: (Lane) -> Void) {
        withUnsafeBufferPointer { lanes in
            guard let first = lanes.baseAddress else { return }
            first.withMemoryRebound(to: Unmanaged<Lane>.self, capacity: lanes.count) { borrowed in
                for index in 0..<lanes.count {
                    borrowed[index]._withUnsafeGuaranteedRef { body($0) }
                }
            }
        }
    }
}
