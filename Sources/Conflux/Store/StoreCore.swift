import ConfluxVocabulary
import Dispatch
import Synchronization

/// What a store is made of: its state, its mutations, and the lane that keeps the state to one
/// thread at a time.
///
/// Actions are committed in the order in which they entered the lane. The store's own count numbers
/// the actions that are dispatched here. Those that a log has ordered come through
/// ``deliver(_:through:completion:)`` with numbers of their own; the greatest of these is the
/// ``position``.
///
/// Safe on any thread. No lock is held while user code runs.
// Sendable: `state`, `mutations`, `commitMark` and `follower` are used only by the thread that serves the lane;
// `line`, `route` and `keeper` only under the lane's mutex.
package final class StoreCore<S: State>: Lane, @unchecked Sendable {
    /// Unmanaged, so that commits count no references. Valid as long as `keeper` is set, which it
    /// is whenever a thread serves the lane.
    let state: Unmanaged<S>
    /// Keeps the state alive. Actions may outlive their store, and the state's own observers often
    /// capture them, so this reference ends with the lane. Guarded by the lane's mutex.
    private var keeper: S?
    /// Checks and commits one action. *Use*: the type of the mutations is bound here once. To ask for it at run
    /// time takes longer than to commit a small action.
    let commitment: (S.Action, S, () -> ActionContext) throws -> Void
    /// Chooses the random numbers of actions that no log has ordered.
    let seed: UInt64
    /// Written by the thread that serves the lane.
    let lastOrdered = Atomic<UInt64>(0)
    /// A term in which the log had that entry. Written after ``lastOrdered``, by the same thread.
    let lastEpoch = Atomic<UInt64>(0)
    /// The schema version in force; zero before the store was replicated. Written by the thread that serves the lane.
    package let versionInForce = Atomic<Int>(0)
    /// The time that a test gives to actions that no log has ordered; `Int64.min` for the system's.
    package let givenTime = Atomic<Int64>(.min)
    /// Records which ordered action is being committed. Used only where `state` is.
    var commitMark: CommitMark?
    /// Sees what a log gives to the store. Used only where `state` is.
    var follower: RunFollower<S>?
    package let scope: Scope
    /// Ticks if the model has a schedule. Set before any other thread has the core.
    package private(set) var timekeeper: Timekeeper?
    /// The route that dispatches take instead. Guarded by the lane's mutex. The machine's
    /// `isRouted` says whether there is one.
    var route: AnyKeptRoute?

    /// Makes a core that isn't yet reached by global dispatches.
    ///
    /// - Parameters:
    ///   - state: The state, used by no other core.
    ///   - mutations: Commits the actions.
    ///   - executor: Where they are committed.
    ///   - scope: Where the store belongs.
    ///   - seed: Chooses the random numbers of actions that no log has ordered; drawn unless given.
    ///   - waitingMax: How many jobs may wait before dispatching threads wait with them.
    package init(
        state: S, mutations: S.Mutations, executor: Executor, scope: Scope,
        seed: UInt64 = .random(in: 0...UInt64.max), waitingMax: Int? = nil
    ) {
        self.state = .passUnretained(state)
        keeper = state
        commitment = Self.commitment(of: mutations)
        self.seed = seed
        self.scope = scope
        super.init(
            executor: executor, scope: scope, waitingMax: waitingMax ?? LaneLimits.waitingMax)
    }

    private static func commitment<Mutations: Conflux.Mutations>(
        of mutations: Mutations
    ) -> (S.Action, S, () -> ActionContext) throws -> Void where Mutations.State == S {
        { try mutations._perform(action: $0, state: $1, context: $2) }
    }

    /// Lets global dispatches reach the core, and begins to keep its model's schedule.
    package func open() {
        if let holder = state.takeUnretainedValue() as? any ScheduleHolder {
            timekeeper = holder.makeTimekeeper(of: self)
        }
        scope.channel(of: S.self).add(self)
    }

    /// The number of the last ordered action that this store has dealt with; zero before the
    /// first. It moves after a run was committed, never before.
    package var position: SequenceNumber {
        SequenceNumber(lastOrdered.load(ordering: .acquiring))
    }

    override var identity: StoreIdentity { StoreIdentity(self) }

    /// The state; nil if the store has ended. Of a state that is not a value, only count references.
    var kept: S? {
        // Written under the lock and read after it, by this thread alone.
        nonisolated(unsafe) var state: S?
        control.withLock { _ in state = keeper }
        return state
    }

    /// The present value of the state, on any thread; nil if the state is not a value, or the store has ended.
    var value: (any Sendable)? { (kept as? any ValueReading)?.anyContent }

    /// Commits an action as the thread that serves the lane, and reports how it ended.
    func runEnteredTracked(
        _ action: S.Action, _ ticket: DispatchTicket?, _ mark: UnsafeMutablePointer<ThreadMark>
    ) -> Outcome {
        var outcome: Outcome?
        runEntered(mark) { outcome = commitTracked(action, ticket) }
        return outcome ?? .failed(.storeClosed(S.self))
    }

    /// Sends further dispatches to this store to a route, or, with nil, to the store itself. A
    /// released store takes no route.
    ///
    /// - Returns: The route until now.
    @discardableResult
    package func setRoute(_ route: (any ActionRoute<S>)?) -> (any ActionRoute<S>)? {
        let kept = route.map { KeptRoute.keeping($0) }
        let former = control.withLock { control -> AnyKeptRoute? in
            let former = self.route
            self.route = control.machine.isClosed ? nil : kept
            control.machine.isRouted = self.route != nil
            return former
        }
        return KeptRoute<S>.of(former)?.route
    }

    /// Whether an action with an origin was dispatched through the node that hosts the store, or bridges its state.
    func isOrigin(_ origin: Origin) -> Bool {
        let own = control.withLock { _ in self.route }
        let kept = KeptRoute<S>.of(own) ?? scope.channel(of: S.self).currentRoute
        return kept?.route.isOrigin(origin) ?? false
    }

    /// Ends the store: from now on nothing is committed, not even what is in line.
    package func close() {
        let hooks = hooks.withLock { $0.takeClosed() }
        closeLine()
        scope.channel(of: S.self).remove(self)
        for hook in hooks { hook() }
        setRoute(nil)
        endIfClosed()
    }

    override func didEnd() {
        var keeper: S?
        // Released outside the lock: freeing what the state has may run user code.
        control.withLock { _ in swap(&self.keeper, &keeper) }
        for hook in hooks.withLock({ $0.takeEnded() }) { hook() }
    }
}
