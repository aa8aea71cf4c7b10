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
    /// Whether it has stores, or a route, to go to. Known once places are kept.
    var hasGoal: Bool { get }
    /// These are the lanes. Called once, under locks.
    ///
    /// - Returns: Those in which to keep places: none where the action takes a route.
    func expect(_ lanes: [Lane]) -> [Lane]
    /// Keeps a place in one of the lanes. Called once for each after that, under the same locks.
    func reserve(_ index: Int)
    /// Has the lanes served. Called once after that, holding no lock.
    func serve()
}

extension GlobalChannel: EventChannel {
    var handlesEvents: Bool { events != nil }

    func part(
        of event: any Event, label: DispatchLabel, order: Int, _ whole: Tally
    ) -> EventShare {
        guard let action = events?(event),
            registry.withLock({ !$0.lanes.isEmpty || $0.isRouted })
        else {
            return .none
        }
        guard let passing = scope.middleware.pass(action, to: nil as StoreCore<S>?, label: label)
        else { return .stopped }
        return .part(TypedEventPart(self, passing, order: order, whole))
    }
}

// Sendable: that actions may be committed on another thread is the contract of `State.Action`; the lanes
// are in a mutex.
private final class TypedEventPart<S: State>: EventPart, @unchecked Sendable {
    let channel: any StateChannel
    private let scope: Scope
    private let action: S.Action
    private let tally: Tally
    /// Tells the middleware that the event found no store.
    private let endWithoutStores: @Sendable () -> Void
    private let lanes = Mutex<[Lane]>([])
    private let route = Mutex<(any ActionRoute<S>)?>(nil)
    private let routing: @Sendable () -> (any ActionRoute<S>)?

    init(
        _ channel: GlobalChannel<S>, _ passing: MiddlewareTable.Passing<S>, order: Int,
        _ whole: Tally
    ) {
        self.channel = channel
        scope = channel.scope
        routing = { channel.routeUnderLock }
        action = passing.dispatch.action
        // Sendable: that actions may be committed on another thread is the contract of `State.Action`.
        nonisolated(unsafe) let passed = passing
        let scope = channel.scope
        endWithoutStores = {
            scope.middleware.end(passed, .failed(.noStore(S.self)))
        }
        tally = Tally(ticket: passing.ticket) { outcome in
            scope.middleware.end(passed, outcome)
            whole.report(outcome, order: order)
        }
    }

    var hasGoal: Bool { lanes.withLock { !$0.isEmpty } || route.withLock { $0 != nil } }

    func expect(_ lanes: [Lane]) -> [Lane] {
        let route = routing()
        self.route.withLock { $0 = route }
        let lanes = route == nil ? lanes : []
        self.lanes.withLock { $0 = lanes }
        return lanes
    }

    func reserve(_ index: Int) {
        let lane = lanes.withLock { $0[index] }
        let job = LaneJob<S>.tracked(action, tally, order: index)
        let hold = scope.order.hold(for: lane)
        if !GlobalChannel<S>.core(lane).reserveBehind(job, hold: hold) {
            tally.report(.failed(.passedOver(S.self)), order: index)
        }
    }

    func serve() {
        if let route = route.withLock({ $0 }) {
            tally.expect(1)
            return route.submit(action).whenEnded { [tally] in tally.report($0, order: 0) }
        }
        let lanes = lanes.withLock { $0 }
        // Its stores may have gone since the event was shown to the middleware.
        if lanes.isEmpty { return endWithoutStores() }
        tally.expect(lanes.count)
        GlobalChannel<S>.kick(lanes, ThreadMark.current)
    }
}
