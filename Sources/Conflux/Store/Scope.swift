import Dispatch
import Synchronization

/// A world of stores: `Store<S>.actions` reaches the stores of its own scope and no others.
///
/// A program has one scope, ``process``, and need not know of it. Tests and simulations make
/// others, to stay apart from each other, and to run many nodes in one process.
///
/// ```swift
/// let scope = Scope()
/// let store = scope.run { Store<CounterState>(state: .init(), mutations: .init(), executor: .immediate) }
/// scope.run { Store<CounterState>.actions.increment() }   // changes that store, and no other test's
/// ```
///
/// A store belongs to the scope in which it was made. So a `static let shared` store belongs to
/// the scope that first used it. A store's mutations and observers run in its scope; queues of
/// your own and detached tasks run in the process's.
public final class Scope: Sendable {
    /// The scope of everything outside other scopes.
    public static let process = Scope()

    @TaskLocal private static var bound: Scope?
    /// The address of `bound`; zero if nothing is bound. *Use*: a dispatch compares it without
    /// counting a reference.
    @TaskLocal private static var boundAddress: UInt = 0

    private var address: UInt { UInt(bitPattern: Unmanaged.passUnretained(self).toOpaque()) }

    /// Whether the current code runs in this scope.
    @inline(__always)
    var isCurrent: Bool {
        let bound = Scope.boundAddress
        return bound == address || (bound == 0 && self === Scope.process)
    }

    /// The scope that the current task, or the current synchronous code, runs in.
    public static var current: Scope { bound ?? process }

    /// Global channels by state type. An entry is never removed: there are no more than state
    /// types.
    private struct Channels {
        var byState: [ObjectIdentifier: any StateChannel] = [:]
        /// The channels of states that handle events, in the order in which the states were first
        /// used.
        var events: [any EventChannel] = []
    }

    private let channels = Mutex(Channels())

    /// The observers of dispatches and commits.
    let middleware = MiddlewareTable()
    /// Pauses the flow.
    let gate = FlowGate()
    /// Knows which stores wait for which others.
    let order = StoreOrder()
    /// Finds stores by their identifiers.
    let names = StoreNames()
    /// The scope's serial undertakings, except those of locks' holders.
    let series = FlowSeries()
    /// The dispatches in modes that have not ended.
    let backlog = Backlog()
    /// Runs what must not continue on the dispatching thread.
    let queue = DispatchQueue(label: "conflux.scope")
    /// Runs commits that have to be made on the main queue.
    let main = Executor.mainThread

    /// What a dispatch to all stores of a state checks first.
    let watch: FlowWatch

    /// Makes a scope without stores.
    public init() {
        watch = FlowWatch(middleware: middleware, gate: gate, order: order)
    }

    /// Whether a dispatch to all stores of a state has more to do than to go there.
    @inline(__always)
    package var isWatched: Bool { watch.isOn }

    /// Runs synchronous code in this scope.
    ///
    /// - Parameter body: Runs once, before this returns.
    /// - Returns: What the body returns.
    /// - Throws: What the body throws.
    public func run<Result>(_ body: () throws -> Result) rethrows -> Result {
        try Scope.$bound.withValue(self) {
            try Scope.$boundAddress.withValue(address, operation: body)
        }
    }

    /// Runs asynchronous code in this scope, with the tasks that it starts, except detached ones.
    ///
    /// - Parameters:
    ///   - isolation: The actor that the body runs on: the caller's.
    ///   - body: Runs once, before this returns.
    /// - Returns: What the body returns.
    /// - Throws: What the body throws.
    public func run<Result>(
        isolation: isolated (any Actor)? = #isolation, _ body: () async throws -> Result
    ) async rethrows -> Result {
        try await Scope.$bound.withValue(
            self,
            operation: {
                try await Scope.$boundAddress.withValue(
                    address, operation: body, isolation: isolation)
            }, isolation: isolation)
    }

    /// Runs code in the process's scope, whichever scope it is called in.
    static func outside(_ body: () -> Void) {
        if boundAddress == 0 { return body() }
        $bound.withValue(nil) { $boundAddress.withValue(0, operation: body) }
    }

    /// Runs a lane's work in this scope, which it binds only if it isn't bound already.
    @inline(__always)
    func runLane(_ mark: UnsafeMutablePointer<ThreadMark>, _ body: () -> Void) {
        mark.pointee.lanes += 1
        if isCurrent { body() } else { run(body) }
        mark.pointee.lanes -= 1
    }

    /// The channel that takes global dispatches to the stores of a state.
    package func channel<S: State>(of state: S.Type = S.self) -> GlobalChannel<S> {
        let known = channels.withLock { $0.byState[ObjectIdentifier(state)] }
        guard let channel = known else { return makeChannel() }
        // The key is the state's type, so the entry is that state's channel.
        return unsafeDowncast(channel, to: GlobalChannel<S>.self)
    }

    @inline(never)
    private func makeChannel<S: State>() -> GlobalChannel<S> {
        let made = GlobalChannel<S>(scope: self)
        let kept = channels.withLock { channels in
            if let known = channels.byState[ObjectIdentifier(S.self)] { return known }
            channels.byState[ObjectIdentifier(S.self)] = made
            if made.events != nil { channels.events.append(made) }
            return made
        }
        return unsafeDowncast(kept, to: GlobalChannel<S>.self)
    }

    /// The channels of states that handle events, in the order in which the states were first used.
    var eventChannels: [any EventChannel] { channels.withLock { $0.events } }

    /// The lanes of all living stores.
    var lanes: [Lane] {
        var lanes: [Lane] = []
        let channels = channels.withLock { Array($0.byState.values) }
        for channel in channels { channel.withLanes { lanes += $0 } }
        return lanes
    }

    /// Calls a function once when all lanes have done what they have to do now.
    ///
    /// - Parameter body: Gets whether any lane had anything to do.
    func whenStill(_ body: @escaping @Sendable (_ wasBusy: Bool) -> Void) {
        let lanes = lanes
        let wasBusy = AtomicReference(false)
        let rest = Countdown(lanes.count + 1) { body(wasBusy.value) }
        for lane in lanes {
            if lane.whenDone({ rest.count() }) { wasBusy.value = true } else { rest.count() }
        }
        rest.count()
    }

    /// Calls a function once when all that was dispatched here, in any mode, is committed, and no lock
    /// pauses the flow. What is dispatched in a mode meanwhile counts, too. What observers
    /// dispatch may still be under way.
    ///
    /// - Parameter body: Gets whether any store was still busy then.
    package func whenSettled(_ body: @escaping @Sendable (_ wasBusy: Bool) -> Void) {
        backlog.whenEmpty { [self] in
            gate.pass(holding: nil) { [self] _ in whenStill(body) }
        }
    }

    /// The live stores of a state, oldest first: each is a `StoreCore` of the state.
    package func lanes<S: State>(of state: S.Type = S.self) -> [Lane] { channel(of: state).lanes }
}

/// What a dispatch to all stores of a state checks first. A copy spares each one the reference to the scope.
struct FlowWatch {
    let middleware: MiddlewareTable
    let gate: FlowGate
    let order: StoreOrder

    /// Whether somebody observes dispatches, or pauses the flow, or stores wait for others.
    @inline(__always)
    var isOn: Bool { !middleware.hasNone || gate.isClosed || !order.isEmpty }
}
