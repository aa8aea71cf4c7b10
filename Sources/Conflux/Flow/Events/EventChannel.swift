import Synchronization

/// A channel of a state that may handle events.
protocol EventChannel: StateChannel {
    /// Whether it handles any.
    var handlesEvents: Bool { get }

    /// What the state makes of an event, as the middleware has left it.
    ///
    /// - Parameters:
    ///   - event: The event.
    ///   - label: What the sender said of it.
    ///   - order: The state's place among those that handle it.
    ///   - whole: Told how the state's stores ended, if it has any.
    /// - Returns: The part.
    func part(
        of event: any Event, label: DispatchLabel, order: Int, _ whole: Tally
    ) -> EventShare
}

/// What a state has to do with an event.
enum EventShare {
    /// It doesn't handle it, or has no stores.
    case none
    /// Middleware stopped it for this state.
    case stopped
    case part(any EventPart)
}

/// One state's part of an event.
protocol EventPart: Sendable {
    var channel: any StateChannel { get }
    /// These are the lanes. Called once, under locks.
    ///
    /// - Returns: Those in which to keep places: none where the action takes a route.
    func expect(_ lanes: [Lane]) -> [Lane]
    /// Keeps a place in one of these lanes. Called once for each after that, under the same locks.
    func reserve(
        _ lane: Lane, _ index: Int, _ watch: ChangeWatch?, in places: inout Reservation,
        _ mark: UnsafeMutablePointer<ThreadMark>)
    /// All places are kept. Called once after that and before they are served, holding no lock.
    ///
    /// - Returns: Whether there are stores, or a route, to go to.
    func go() -> Bool
}

extension GlobalChannel: EventChannel {
    var handlesEvents: Bool { events != nil }

    func part(
        of event: any Event, label: DispatchLabel, order: Int, _ whole: Tally
    ) -> EventShare {
        guard let action = events?(event),
            registry.withLock({ !$0.isEmpty || $0.isRouted })
        else {
            return .none
        }
        guard let passing = scope.middleware.pass(action, to: nil as StoreCore<S>?, label: label)
        else { return .stopped }
        return .part(TypedEventPart(self, passing, order: order, whole))
    }
}

// Sendable: that actions may be committed on another thread is the contract of `State.Action`; the goal
// is in a mutex.
private final class TypedEventPart<S: State>: EventPart, @unchecked Sendable {
    /// Where the event goes: to stores, or along a route.
    private enum Goal {
        case lanes([Lane])
        case route(any ActionRoute<S>)
    }

    private let states: GlobalChannel<S>
    private let passing: MiddlewareTable.Passing<S>
    private let tally: Tally
    private let goal = Mutex(Goal.lanes([]))

    init(
        _ states: GlobalChannel<S>, _ passing: MiddlewareTable.Passing<S>, order: Int,
        _ whole: Tally
    ) {
        self.states = states
        self.passing = passing
        // Sendable: that actions may be committed on another thread is the contract of `State.Action`.
        nonisolated(unsafe) let passed = passing
        let middleware = states.scope.middleware
        tally = Tally(ticket: passing.ticket) { outcome in
            middleware.end(passed, outcome)
            whole.report(outcome, order: order)
        }
    }

    var channel: any StateChannel { states }

    private var action: S.Action { passing.dispatch.action }

    func expect(_ lanes: [Lane]) -> [Lane] {
        if let route = states.routeUnderLock {
            goal.withLock { $0 = .route(route) }
            return []
        }
        goal.withLock { $0 = .lanes(lanes) }
        return lanes
    }

    func reserve(
        _ lane: Lane, _ index: Int, _ watch: ChangeWatch?, in places: inout Reservation,
        _ mark: UnsafeMutablePointer<ThreadMark>
    ) {
        let core = GlobalChannel<S>.core(lane)
        let job = LaneJob<S>.tracked(action, tally, order: index)
        let hold = states.scope.order.hold(for: lane)
        let looks = watch?.looks()
        if let looks { places.place(.look(looks.before), in: core, behind: hold, mark) }
        let hasPlace =
            places.place(job, in: core, behind: looks == nil ? hold : nil, mark) == .kept
        if let looks, !hasPlace || places.place(.look(looks.after), in: core, mark) != .kept {
            looks.after(nil, .zero)
        }
        if !hasPlace { tally.report(.failed(.passedOver(S.self)), order: index) }
    }

    func go() -> Bool {
        switch goal.withLock({ $0 }) {
        case .route(let route):
            tally.expect(1)
            _ = states.scope.submit(action, by: route, tally)
        case .lanes(let lanes) where lanes.isEmpty:
            // They have gone since the event was shown to the middleware.
            states.scope.middleware.end(passing, .failed(.noStore(S.self)))
            return false
        case .lanes(let lanes): tally.expect(lanes.count)
        }
        return true
    }
}
