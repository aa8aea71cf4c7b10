import Synchronization

/// The way of global dispatches to every store of one state in one scope.
///
/// A dispatch first keeps a place in every store's lane, under one lock and running no user code,
/// and then serves those lanes that nobody else serves. So all stores see global actions in one
/// order, and what an action's observers dispatch comes after it everywhere.
package final class GlobalChannel<S: State>: Sendable {
    private struct Registry {
        /// Use: the live stores, oldest first. A store's core leaves when the store is released.
        var cores: [StoreCore<S>] = []
        var route: (any ActionRoute<S>)?
    }

    private enum Plan {
        case route(any ActionRoute<S>)
        /// The stores, and which of those up to the 64th the caller serves.
        case stores([StoreCore<S>], claimed: UInt64, areAllClaimed: Bool)
    }

    private let registry = Mutex(Registry())

    /// How many stores of a dispatch can be served without a place in line: the bits of a mask.
    private static var claimedMax: Int { UInt64.bitWidth }

    /// The live stores, oldest first.
    package var cores: [StoreCore<S>] { registry.withLock { $0.cores } }

    /// Sends global dispatches from now on to a route, or, with nil, to the stores here.
    ///
    /// Each dispatch goes wholly to the one or to the other.
    ///
    /// - Returns: The route until now.
    @discardableResult
    package func setRoute(_ route: (any ActionRoute<S>)?) -> (any ActionRoute<S>)? {
        registry.withLock { registry in
            let former = registry.route
            registry.route = route
            return former
        }
    }

    func add(_ core: StoreCore<S>) {
        registry.withLock { $0.cores.append(core) }
    }

    func remove(_ core: StoreCore<S>) {
        // Let go outside the lock: the last release frees a state, which is user code.
        _ = registry.withLock { registry in
            registry.cores.firstIndex { $0 === core }.map { registry.cores.remove(at: $0) }
        }
    }

    /// Dispatches to every live store, or to the route.
    func dispatch(_ action: S.Action) {
        let mark = ThreadMark.outsideModels
        let plan = registry.withLock { registry -> Plan in
            if let route = registry.route { return .route(route) }
            var claimed: UInt64 = 0
            var areAllClaimed = true
            var bit: UInt64 = 1
            for core in registry.cores {
                if case .claimed = core.reserve(mayClaim: bit != 0, .action(action)) {
                    claimed |= bit
                } else {
                    areAllClaimed = false
                }
                bit <<= 1
            }
            return .stores(registry.cores, claimed: claimed, areAllClaimed: areAllClaimed)
        }
        switch plan {
        case .route(let route): _ = route.submit(action)
        case .stores(let cores, var claimed, let areAllClaimed):
            for core in cores {
                if claimed & 1 == 1 { core.runReserved(action, mark) }
                claimed >>= 1
            }
            if !areAllClaimed { Self.kick(cores, mark) }
        }
    }

    /// Dispatches to every live store, or to the route, and tells how it ends.
    func dispatchTracked(_ action: S.Action) -> DispatchHandle {
        let mark = ThreadMark.outsideModels
        var tally: Tally?
        var absent: [Int] = []
        let plan = registry.withLock { registry -> Plan in
            if let route = registry.route { return .route(route) }
            let cores = registry.cores
            let made = Tally(stores: max(1, cores.count))
            tally = made
            var claimed: UInt64 = 0
            for (order, core) in cores.enumerated() {
                let reservation = core.reserve(
                    mayClaim: order < Self.claimedMax,
                    .tracked(action, made, order: order))
                switch reservation {
                case .claimed: claimed |= 1 << UInt64(order)
                case .queued: break
                case .absent: absent.append(order)
                }
            }
            return .stores(cores, claimed: claimed, areAllClaimed: false)
        }
        switch plan {
        case .route(let route): return route.submit(action)
        case .stores(let cores, let claimed, _):
            guard let tally, !cores.isEmpty else {
                return DispatchHandle(.failed(.noStore(S.self)))
            }
            for order in absent {
                tally.report(.failed(.storeClosed(S.self)), order: order)
            }
            for (order, core) in cores.prefix(Self.claimedMax).enumerated()
            where claimed & (1 << UInt64(order)) != 0 {
                tally.report(core.runReservedTracked(action, mark), order: order)
            }
            Self.kick(cores, mark)
            return tally.handle
        }
    }

    /// Has every store's line served, then waits for those that are too long.
    private static func kick(_ cores: [StoreCore<S>], _ mark: UnsafeMutablePointer<ThreadMark>) {
        for core in cores { core.kick(mark) }
        for core in cores { core.waitForRoom(mark) }
    }
}
