import Synchronization

/// The stores of one state. It is free of the state's type, so that a dispatch touches as little
/// generic data as it can.
struct Registry {
    /// *Invariant*: the live stores, oldest first; each is a `StoreCore` of the state. A store
    /// leaves the list when it is released.
    private var list = IdentityList<Lane>()
    /// *Use*: the same without gaps, for dispatches; nil when a store has left, until the next use.
    private var dense: [Lane]? = []
    /// Whether there is a route.
    var isRouted = false
    /// *Use*: called once, when the next store is added.
    var whenInhabited: (@Sendable () -> Void)?

    var isEmpty: Bool { list.isEmpty }

    /// The live stores, oldest first.
    var lanes: [Lane] {
        mutating get {
            if let dense { return dense }
            let lanes = list.slots.compactMap { $0 }
            dense = lanes
            return lanes
        }
    }

    mutating func add(_ lane: Lane) {
        list.append(lane, as: ObjectIdentifier(lane))
        dense?.append(lane)
    }

    /// - Returns: What to release outside of any lock.
    mutating func remove(_ lane: Lane) -> (lane: Lane, dense: [Lane]?)? {
        guard let removed = list.remove(ObjectIdentifier(lane)) else { return nil }
        return (removed, dense.take())
    }
}

/// Takes global dispatches to every store of one state in one scope.
///
/// A dispatch first keeps a place in every store's lane, under one lock and without running user
/// code. Then it serves those lanes that nobody else serves. So all stores see global actions in
/// one order, and what an action's observers dispatch comes after it everywhere.
// Sendable: `route` is used only under the registry's mutex.
package final class GlobalChannel<S: State>: @unchecked Sendable {
    let registry = Mutex(Registry())
    /// The scope of all its stores. The scope keeps the channel, and lives as long as any of these
    /// stores.
    unowned let scope: Scope
    /// The scope's own.
    private let watch: FlowWatch
    /// Guarded by the registry's mutex.
    private var route: AnyKeptRoute?
    /// How the state handles events; nil if it handles none.
    let events = S.eventHandlers

    init(scope: Scope) {
        self.scope = scope
        watch = scope.watch
    }

    /// Whether global dispatches take a route.
    var isRouted: Bool { registry.withLock { $0.isRouted } }

    /// The live stores, oldest first: each is a `StoreCore` of the state.
    var lanes: [Lane] { registry.withLock { $0.lanes } }

    /// Sends global dispatches from now on to a route, or, with nil, to the stores here.
    ///
    /// Each dispatch goes either to the route or to the stores, never to both.
    ///
    /// - Returns: The route until now.
    @discardableResult
    package func setRoute(_ route: (any ActionRoute<S>)?) -> (any ActionRoute<S>)? {
        let kept = route.map { KeptRoute.keeping($0) }
        let former = registry.withLock { registry in
            let former = self.route
            self.route = kept
            registry.isRouted = kept != nil
            return former
        }
        return KeptRoute<S>.of(former)?.route
    }

    /// Replaces the route, or, with nil, removes it, if it is the one that the caller means.
    ///
    /// - Parameters:
    ///   - route: The route from now on.
    ///   - isMeant: Whether a route is the one to be replaced; called under a lock.
    package func replaceRoute(
        by route: (any ActionRoute<S>)?, where isMeant: (any ActionRoute<S>) -> Bool
    ) {
        // The former route is released outside the lock.
        let kept = route.map { KeptRoute.keeping($0) }
        let former: AnyKeptRoute? = registry.withLock { registry in
            guard let former = KeptRoute<S>.of(self.route), isMeant(former.route) else {
                return nil
            }
            self.route = kept
            registry.isRouted = kept != nil
            return former
        }
        _ = former
    }

    func add(_ core: StoreCore<S>) {
        let hook = registry.withLock { registry in
            registry.add(core)
            return exchange(&registry.whenInhabited, with: nil)
        }
        hook?()
    }

    /// Calls a function once there is a store: at once, or before the initialiser of the first
    /// one returns. It replaces the function that was set before.
    ///
    /// - Parameters:
    ///   - guest: A store that does not count.
    ///   - hook: Called holding no lock; nil for none.
    /// - Returns: The function that was set before and is not called any more.
    @discardableResult
    package func whenInhabited(
        besides guest: StoreCore<S>? = nil, _ hook: (@Sendable () -> Void)?
    ) -> (@Sendable () -> Void)? {
        let (isInhabited, former) = registry.withLock { registry in
            let isInhabited = registry.lanes.contains { $0 !== guest }
            let former = registry.whenInhabited
            registry.whenInhabited = isInhabited ? nil : hook
            return (isInhabited, former)
        }
        if isInhabited { hook?() }
        return former
    }

    /// Stops global dispatches from reaching a store; does nothing if they don't reach it.
    package func remove(_ core: StoreCore<S>) {
        // Released outside the lock: the last reference frees a state, which runs user code.
        _ = registry.withLock { $0.remove(core) }
    }

    /// Dispatches to every live store, or to the route.
    func dispatch(_ action: S.Action) {
        let mark = ThreadMark.outsideModels
        if watch.isOn {
            dispatchWatched(action)
            return
        }
        let places = reserve(mark, nil) { core, _ in core.job(action) }
        switch places.placement {
        case .kept:
            places.serve(mark, in: scope) { _, lane in
                if !lane.isReleased.load(ordering: .relaxed) { _ = Self.core(lane).commit(action) }
            }
        case .closed: break
        case .paused: dispatchWatched(action)
        case .routed: sendOnRoute(action, mark)
        }
    }

    @inline(never)
    private func sendOnRoute(_ action: S.Action, _ mark: UnsafeMutablePointer<ThreadMark>) {
        guard let route = currentRoute else { return dispatch(action) }
        _ = route.submit(action, mayWait: !mark.pointee.isNeeded)
    }

    /// Dispatches to every live store, or to the route, and reports how it ends.
    package func dispatchTracked(_ action: S.Action) -> DispatchHandle {
        let mark = ThreadMark.outsideModels
        if watch.isOn { return dispatchWatched(action) }
        // An action that takes a route needs no tally of its own, and no room for a job, which
        // would look up the state's types.
        guard let route = currentRoute else { return dispatchHere(action, mark) }
        return route.submit(action, mayWait: !mark.pointee.isNeeded)
    }

    @inline(never)
    private func dispatchHere(
        _ action: S.Action, _ mark: UnsafeMutablePointer<ThreadMark>
    ) -> DispatchHandle {
        let tally = Tally()
        let places = reserve(mark, tally) { $0.job(action, tally, order: $1) }
        switch places.placement {
        case .closed: return DispatchHandle(.failed(.noStore(S.self)))
        case .paused: return dispatchWatched(action)
        case .routed: return dispatchTracked(action)
        case .kept: break
        }
        places.serve(mark, in: scope) { order, lane in
            let isReleased = lane.isReleased.load(ordering: .relaxed)
            tally.report(
                isReleased
                    ? .failed(.storeClosed(S.self))
                    : Self.core(lane).commitTracked(action, tally.ticket), order: order)
        }
        tally.expect(places.lanes.count)
        return tally.handle
    }

    /// Enters the lanes that are free, and keeps a place in the others.
    ///
    /// - Parameters:
    ///   - mark: The thread's mark.
    ///   - tally: Gets a failure for each store in which there is no place.
    ///   - job: Makes the job for a store.
    /// - Returns: The places. Their placement is `closed` if there is no store.
    @inline(__always)
    private func reserve(
        _ mark: UnsafeMutablePointer<ThreadMark>, _ tally: Tally?,
        _ job: (StoreCore<S>, _ order: Int) -> LaneJob
    ) -> Reservation {
        registry.withLock { registry in
            if registry.isRouted { return Reservation(.routed) }
            // Read again here: a lock's holder that has dispatched has been in this mutex, so its
            // lock is seen.
            if watch.gate.isClosed { return Reservation(.paused) }
            let lanes = registry.lanes
            var places = Reservation(entering: lanes, lanes.isEmpty ? .closed : .kept)
            var order = 0
            lanes.forEachBorrowed { lane in
                if !places.enter(lane, order, mark) {
                    place(job(Self.core(lane), order), order, in: lane, &places, tally, mark)
                }
                order += 1
            }
            return places
        }
    }

    @inline(never)
    private func place(
        _ job: LaneJob, _ order: Int, in lane: Lane, _ places: inout Reservation, _ tally: Tally?,
        _ mark: UnsafeMutablePointer<ThreadMark>
    ) {
        if places.place(job, in: lane, mark) != .kept {
            tally?.report(.failed(.passedOver(S.self)), order: order)
        }
    }

    /// The route, for code that holds the registry's lock.
    var routeUnderLock: (any ActionRoute<S>)? { KeptRoute<S>.of(route)?.route }

    @inline(__always)
    var currentRoute: KeptRoute<S>? {
        KeptRoute.of(registry.withLock { _ -> AnyKeptRoute? in route })
    }

    /// The channel's lanes are its stores' cores.
    @inline(__always)
    package static func core(_ lane: Lane) -> StoreCore<S> {
        unsafeDowncast(lane, to: StoreCore<S>.self)
    }
}

/// A channel, whatever its state.
protocol StateChannel: AnyObject, Sendable {
    /// Passes the live lanes to the body, under the registry's lock. Meanwhile no global dispatch
    /// keeps a place in any of them.
    func withLanes(_ body: ([Lane]) -> Void)
}

extension GlobalChannel: StateChannel {
    func withLanes(_ body: ([Lane]) -> Void) {
        registry.withLock { body($0.lanes) }
    }
}
