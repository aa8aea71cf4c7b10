import ConfluxVocabulary
import Dispatch
import Synchronization

/// The bounds of a store's lane.
enum LaneLimits {
    /// How many jobs may wait before other threads than those that serve a lane wait with them.
    static let waitingMax = 65_536
    /// The capacity that an emptied line keeps.
    static let keptCapacityMax = 1_024
    /// How long a thread waits for room while the lane doesn't move. The lane may need that very
    /// thread, as when it sends from the queue that its store's executor uses; then it goes on, and
    /// the line grows by one job a second.
    static let stillnessMax: DispatchTimeInterval = .seconds(1)
}

/// What a store is made of: its state, its mutations, and the lane that keeps the state to one
/// thread at a time.
///
/// Actions are committed in the order in which they entered the lane. The store's own count
/// numbers those dispatched here; those that a log has ordered come through ``deliver(_:through:completion:)``
/// with numbers of their own, and the greatest of these is the ``position``.
///
/// `state` and `mutations` are touched only by the thread that serves the lane (`Lane.isBusy`).
/// Safe on any thread. No lock is held while user code runs.
// Sendable: the lane's mutex hands `state` and `mutations` from one serving thread to the next.
package final class StoreCore<S: State>: @unchecked Sendable {
    let state: S
    let mutations: S.Mutations
    let executor: Executor
    let isImmediate: Bool
    let scope: Scope
    let waitingMax: Int
    /// Chooses the random numbers of actions that no log has ordered.
    let seed: UInt64

    let lane = Mutex(Lane<S>())
    /// A copy of `Lane.isClosed` that is looked at before each action.
    let isReleased = Atomic(false)
    /// How many actions were numbered here. Written by the serving thread.
    let count = Atomic<UInt64>(0)
    /// Written by the serving thread.
    let lastOrdered = Atomic<UInt64>(0)

    /// Makes a core that isn't yet reached by global dispatches.
    ///
    /// - Parameters:
    ///   - state: The state, used by no other core.
    ///   - mutations: Commits the actions.
    ///   - executor: Where they are committed.
    ///   - scope: Where the store belongs.
    ///   - seed: Chooses the random numbers of actions that no log has ordered.
    ///   - waitingMax: How many jobs may wait before other threads wait with them.
    package init(
        state: S, mutations: S.Mutations, executor: Executor, scope: Scope,
        seed: UInt64? = nil, waitingMax: Int? = nil
    ) {
        self.state = state
        self.mutations = mutations
        self.executor = executor
        self.isImmediate = executor.isImmediate
        self.scope = scope
        self.seed = seed ?? .random(in: 0...UInt64.max)
        self.waitingMax = waitingMax ?? LaneLimits.waitingMax
    }

    /// Lets global dispatches reach the core.
    package func open() {
        scope.channel(of: S.self).add(self)
    }

    /// The number of the last ordered action that this store has dealt with; zero before the
    /// first. It moves after a run was committed, never before.
    package var position: SequenceNumber {
        SequenceNumber(lastOrdered.load(ordering: .acquiring))
    }

    // MARK: Dispatch

    /// Dispatches to this store, or to its route.
    @inline(__always)
    func dispatch(_ action: S.Action) {
        let mark = ThreadMark.outsideModels
        switch admit(.action(action)) {
        case .now: runNow(mark) { _ = commit(action) }
        case .queued(let duty):
            serve(duty, mark)
            waitForRoom(mark)
        case .closed: return
        case .route(let route): _ = route.submit(action)
        }
    }

    /// Dispatches to this store, or to its route, and tells how it ends.
    func dispatchTracked(_ action: S.Action) -> DispatchHandle {
        let mark = ThreadMark.outsideModels
        var tally: Tally?
        func job() -> LaneJob<S> {
            let made = Tally(stores: 1)
            tally = made
            return .tracked(action, made, order: 0)
        }
        switch admit(job()) {
        case .now:
            var outcome = Outcome.failed(.storeClosed(S.self))
            runNow(mark) { outcome = commitTracked(action) }
            return DispatchHandle(outcome)
        case .queued(let duty):
            serve(duty, mark)
            waitForRoom(mark)
        case .closed:
            return DispatchHandle(.failed(.storeClosed(S.self)))
        case .route(let route):
            return route.submit(action)
        }
        guard let tally else { preconditionFailure("a queued dispatch has no tally") }
        return tally.handle
    }

    enum Admission {
        /// The caller serves the lane, and its own job comes first.
        case now
        case queued(Lane<S>.Duty)
        case closed
        case route(any ActionRoute<S>)
    }

    @inline(__always)
    private func admit(_ job: @autoclosure () -> LaneJob<S>) -> Admission {
        lane.withLock { lane in
            if lane.isClosed { return .closed }
            if let route = lane.route { return .route(route) }
            if isImmediate, !lane.isBusy, lane.waiting.isEmpty {
                lane.isBusy = true
                return .now
            }
            lane.waiting.append(job())
            return .queued(lane.claim(isImmediate: isImmediate))
        }
    }

    // MARK: Global dispatch

    /// What became of a store's part in a global dispatch.
    enum Reservation {
        /// The caller serves the lane and has to call ``runReserved(_:)`` or its tracked twin.
        case claimed
        /// The action stands in line, and the caller has to call ``kick()``.
        case queued
        /// The store is released, or changes only by its route.
        case absent
    }

    /// Keeps a place in the lane, so that whatever is dispatched from now on comes after it.
    @inline(__always)
    func reserve(mayClaim: Bool, _ job: @autoclosure () -> LaneJob<S>) -> Reservation {
        lane.withLock { lane in
            if lane.isClosed || lane.route != nil { return .absent }
            if mayClaim, isImmediate, !lane.isBusy, lane.waiting.isEmpty {
                lane.isBusy = true
                return .claimed
            }
            lane.waiting.append(job())
            return .queued
        }
    }

    func runReserved(_ action: S.Action, _ mark: UnsafeMutablePointer<ThreadMark>) {
        runNow(mark) { _ = commit(action) }
    }

    func runReservedTracked(
        _ action: S.Action, _ mark: UnsafeMutablePointer<ThreadMark>
    ) -> Outcome {
        var outcome = Outcome.failed(.storeClosed(S.self))
        runNow(mark) { outcome = commitTracked(action) }
        return outcome
    }

    /// Sees to it that the line is served.
    func kick(_ mark: UnsafeMutablePointer<ThreadMark>) {
        serve(lane.withLock { $0.claim(isImmediate: isImmediate) }, mark)
    }
}
