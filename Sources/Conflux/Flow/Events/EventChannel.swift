import Synchronization

/// A channel of a state that may handle events.
protocol EventChannel: StateChannel {
    /// Whether the state handles any events.
    var handlesEvents: Bool { get }

    /// Throws if the state handles an event by an action that takes a route.
    func checkLock(sending event: any Event) throws(StoreError)

    /// Makes the state's part of an event: its action, as the middleware has left it.
    ///
    /// - Parameters:
    ///   - event: The event.
    ///   - label: The sender's label.
    ///   - order: The state's place among those that handle the event.
    ///   - whole: Gets the outcome of the state's stores, if there are any.
    /// - Returns: The part.
    func part(
        of event: any Event, label: DispatchLabel, order: Int, _ whole: Tally
    ) -> EventShare
}

/// A state's share in an event.
enum EventShare {
    /// The state doesn't handle the event, or has no stores.
    case none
    /// Middleware stopped it for this state.
    case stopped
    case part(any EventPart)
}

/// One state's part of an event.
protocol EventPart: Sendable {
    var channel: any StateChannel { get }
    /// Tells the part which lanes there are. Called once, under locks.
    ///
    /// - Returns: The lanes in which to keep places; none if the action takes a route.
    func expect(_ lanes: [Lane]) -> [Lane]
    /// Keeps a place in one of these lanes. Called once for each lane, after ``expect(_:)`` and
    /// under the same locks.
    func reserve(
        _ lane: Lane, _ index: Int, _ watch: ChangeWatch?, in places: inout Reservation,
        _ mark: UnsafeMutablePointer<ThreadMark>)
    /// Tells the part that all places are kept. Called once, before they are served, holding no
    /// lock.
    ///
    /// - Returns: Whether there are stores, or a route, for the action.
    func go() -> Bool
}

extension GlobalChannel: EventChannel {
    var handlesEvents: Bool { events != nil }

    func checkLock(sending event: any Event) throws(StoreError) {
        guard registry.withLock({ $0.isRouted }), events?(event) != nil else { return }
        throw .noLock(over: S.self)
    }

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

// Sendable: actions may be committed on another thread, by the contract of `State.Action`. The goal
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
        // Actions may be committed on another thread: that is the contract of `State.Action`.
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
        let job = core.job(action, tally, order: index)
        let hold = states.scope.order.hold(for: lane)
        let looks = watch?.looks()
        if let looks { places.place(core.look(looks.before), in: core, behind: hold, mark) }
        let hasPlace =
            places.place(job, in: core, behind: looks == nil ? hold : nil, mark) == .kept
        if let looks, !hasPlace || places.place(core.look(looks.after), in: core, mark) != .kept {
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
            // The stores were released after the middleware saw the event.
            states.scope.middleware.end(passing, .failed(.noStore(S.self)))
            return false
        case .lanes(let lanes): tally.expect(lanes.count)
        }
        return true
    }
}
