import Synchronization

/// The stores of one state. Free of the state's type, so that a dispatch touches as little generic
/// data as it can.
private struct Registry {
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
    var isRouted = false
}

/// The way of global dispatches to every store of one state in one scope.
///
/// A dispatch first keeps a place in every store's lane, under one lock and running no user code,
/// and then serves those lanes that nobody else serves. So all stores see global actions in one
/// order, and what an action's observers dispatch comes after it everywhere.
// Sendable: `route` is touched only under the registry's mutex.
package final class GlobalChannel<S: State>: @unchecked Sendable {
    private let registry = Mutex(Registry())
    /// Where all of its stores belong. The scope keeps the channel, and lives as long as one of
    /// its stores.
    private unowned let scope: Scope
    /// Guarded by the registry's mutex.
    private var route: (any ActionRoute<S>)?

    init(scope: Scope) {
        self.scope = scope
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
        let plan = plan { _ in .action(action) }
        if plan.isRouted {
            if let route = currentRoute { _ = route.submit(action) } else { dispatch(action) }
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
        if !plan.isAllEntered { Self.kick(plan.lanes, mark) }
    }

    /// Dispatches to every live store, or to the route, and tells how it ends.
    package func dispatchTracked(_ action: S.Action) -> DispatchHandle {
        let mark = ThreadMark.outsideModels
        // What travels needs no tally of its own.
        if let route = currentRoute { return route.submit(action) }
        let tally = Tally()
        let plan = plan { .tracked(action, tally, order: $0) }
        if plan.isRouted {
            return currentRoute?.submit(action) ?? dispatchTracked(action)
        }
        guard !plan.lanes.isEmpty else { return DispatchHandle(.failed(.noStore(S.self))) }
        for order in plan.absent {
            tally.report(.failed(.passedOver(S.self)), order: order)
        }
        var entered = plan.entered
        for (order, lane) in plan.lanes.enumerated() {
            if entered & 1 == 1 {
                let outcome = Self.core(lane).runEnteredTracked(action, mark)
                tally.report(outcome, order: order)
            }
            entered >>= 1
        }
        Self.kick(plan.lanes, mark)
        tally.expect(plan.lanes.count)
        return tally.handle
    }

    /// Enters the lanes that are free, and keeps a place in the others.
    @inline(__always)
    private func plan(_ job: (_ order: Int) -> LaneJob<S>) -> Plan {
        registry.withLock { registry in
            var plan = Plan()
            plan.isRouted = registry.isRouted
            if registry.isRouted { return plan }
            let lanes = registry.lanes
            plan.lanes = lanes
            var order = 0
            lanes.forEachBorrowed { lane in
                if order < UInt64.bitWidth, case .free = lane.enter() {
                    plan.entered |= 1 << UInt64(order)
                } else {
                    plan.isAllEntered = false
                    if !Self.core(lane).reserveBehind(job(order)) { plan.absent.append(order) }
                }
                order += 1
            }
            return plan
        }
    }

    private var currentRoute: (any ActionRoute<S>)? {
        registry.withLock { _ in route }
    }

    /// The channel's lanes are its stores' cores.
    @inline(__always)
    private static func core(_ lane: Lane) -> StoreCore<S> {
        unsafeDowncast(lane, to: StoreCore<S>.self)
    }

    /// Has every store's line served, then waits for those that are too long.
    private static func kick(_ lanes: [Lane], _ mark: UnsafeMutablePointer<ThreadMark>) {
        for lane in lanes { lane.kick(mark) }
        for lane in lanes { lane.waitForRoom(mark) }
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
