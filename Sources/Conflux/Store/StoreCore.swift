import ConfluxVocabulary
import Dispatch
import Synchronization

/// What a store is made of: its state, its mutations, and the lane that keeps the state to one
/// thread at a time.
///
/// Actions are committed in the order in which they entered the lane. The store's own count
/// numbers those dispatched here; those that a log has ordered come through
/// ``deliver(_:through:completion:)`` with numbers of their own, and the greatest of these is the
/// ``position``.
///
/// Safe on any thread. No lock is held while user code runs.
// Sendable: `state`, `mutations` and `commitMark` are touched only by the thread that serves the
// lane, `waiting`, `route` and `keeper` only under the lane's mutex.
package final class StoreCore<S: State>: Lane, @unchecked Sendable {
    /// Spares commits the counting of references. Valid as long as `keeper` is there, and that is
    /// whenever somebody serves the lane.
    let state: Unmanaged<S>
    /// What keeps the state alive. Actions may outlive their store and are often captured by the
    /// state's own observers, so it ends with the lane. Guarded by the lane's mutex.
    private var keeper: S?
    let mutations: S.Mutations
    /// Chooses the random numbers of actions that no log has ordered.
    let seed: UInt64
    /// Written by the thread that serves the lane.
    let lastOrdered = Atomic<UInt64>(0)
    /// Where ordered actions are noted while they are committed. Touched like `state`.
    var commitMark: CommitMark?
    /// The line. Guarded by the lane's mutex; `Control.waitingCount` is its count with `ahead`.
    private var waiting: [LaneJob<S>] = []
    /// What stands before it, the first one last: what was taken, and found behind something to wait for.
    /// Guarded likewise.
    private var ahead: [LaneJob<S>] = []
    /// The emptied storage of the last turn, to be used again. Guarded likewise.
    private var spare: [LaneJob<S>] = []
    /// Where dispatches go instead. Guarded likewise; `Control.isRouted` is whether it is there.
    var route: (any ActionRoute<S>)?

    /// Makes a core that isn't yet reached by global dispatches.
    ///
    /// - Parameters:
    ///   - state: The state, used by no other core.
    ///   - mutations: Commits the actions.
    ///   - executor: Where they are committed.
    ///   - scope: Where the store belongs.
    ///   - seed: Chooses the random numbers of actions that no log has ordered; drawn unless given.
    ///   - waitingMax: How many jobs may wait before other threads wait with them.
    package init(
        state: S, mutations: S.Mutations, executor: Executor, scope: Scope,
        seed: UInt64 = .random(in: 0...UInt64.max), waitingMax: Int? = nil
    ) {
        self.state = .passUnretained(state)
        keeper = state
        self.mutations = mutations
        self.seed = seed
        super.init(
            executor: executor, scope: scope, waitingMax: waitingMax ?? LaneLimits.waitingMax)
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

    /// Puts a job behind what is in line. Called under the lane's mutex.
    func append(_ job: LaneJob<S>, to control: inout Control) {
        waiting.append(job)
        control.waitingCount += 1
        if control.server == UInt(bitPattern: ThreadMark.current) { control.hasServerJob = true }
        if case .hold(let hold) = job, !(hold is DispatchTurn) { control.holdCount += 1 }
    }

    /// Puts a job behind what is in line, with a turn before it if the thread may wait for that. Called
    /// under the lane's mutex.
    func appendWithTurn(
        _ job: LaneJob<S>, to control: inout Control, _ mark: UnsafeMutablePointer<ThreadMark>
    ) -> DispatchTurn? {
        // What waits for other stores may need this thread.
        let mayWait = isImmediate && mark.pointee.mayWait && control.holdCount == 0
        let turn = mayWait ? DispatchTurn() : nil
        if let turn { append(.hold(turn), to: &control) }
        append(job, to: &control)
        return turn
    }

    // MARK: Global dispatch

    /// Keeps a place in the line for a global action.
    ///
    /// - Parameters:
    ///   - job: The action.
    ///   - mark: The thread's.
    /// - Returns: Whether it has a place: not when the store is released, or changes only by its route; and
    ///   the turn that the thread has to take.
    func reserveTurn(
        _ job: LaneJob<S>, _ mark: UnsafeMutablePointer<ThreadMark>
    ) -> (hasPlace: Bool, turn: DispatchTurn?) {
        control.withLock { control in
            if control.isClosed || control.isRouted { return (false, nil) }
            return (true, appendWithTurn(job, to: &control, mark))
        }
    }

    /// Keeps a place in the line for an action that no thread waits for.
    ///
    /// - Parameters:
    ///   - job: The action.
    ///   - hold: What is to be waited for before.
    /// - Returns: false when the store is released, or changes only by its route.
    func reserveBehind(_ job: LaneJob<S>, hold: (any LaneHold)? = nil) -> Bool {
        control.withLock { control in
            if control.isClosed || control.isRouted { return false }
            if let hold { append(.hold(hold), to: &control) }
            append(job, to: &control)
            return true
        }
    }

    override func mark(_ body: @escaping @Sendable () -> Void) -> Bool {
        control.withLock { control in
            guard control.isBusy || control.waitingCount > 0, !control.isClosed else {
                return false
            }
            append(.look { _, _ in body() }, to: &control)
            return true
        }
    }

    override func putFirst(_ body: @escaping @Sendable () -> Void) {
        let isClosed = control.withLock { control in
            if control.isClosed { return true }
            ahead.append(.look { _, _ in body() })
            control.waitingCount += 1
            control.hasServerJob = true
            return false
        }
        if isClosed { body() }
    }

    override func append(_ hold: any LaneHold) -> Bool {
        reserveBehind(.hold(hold))
    }

    /// Commits a global action as the one that serves the lane, in whose scope the caller runs.
    func runReserved(_ action: S.Action) {
        runEnteredInScope { _ = commit(action) }
    }

    /// Commits an action as the one that serves the lane, and tells how it ended.
    func runEnteredTracked(
        _ action: S.Action, _ ticket: DispatchTicket?, _ mark: UnsafeMutablePointer<ThreadMark>
    ) -> Outcome {
        var outcome: Outcome?
        runEntered(mark) { outcome = commitTracked(action, ticket) }
        return outcome ?? .failed(.storeClosed(S.self))
    }

    // MARK: The line

    override func takeTurn() -> Turn {
        var jobs: [LaneJob<S>] = []
        var isAhead = false
        let woken = control.withLock { control -> [DispatchSemaphore] in
            isAhead = !ahead.isEmpty
            if !isAhead { return takeLine(&jobs, &control) }
            swap(&ahead, &jobs)
            control.waitingCount -= jobs.count
            return []
        }
        for place in woken { place.signal() }
        if isAhead { return goOn(with: &jobs) }
        guard !jobs.isEmpty else { return .empty }
        for index in jobs.indices {
            if case .hold(let hold) = jobs[index], !isReleased.load(ordering: .relaxed) {
                var rest = Array(jobs[(index + 1)...].reversed())
                jobs = []
                return wait(for: hold, before: &rest)
            }
            perform(jobs[index])
        }
        jobs.removeAll(keepingCapacity: jobs.capacity <= LaneLimits.keptCapacityMax)
        control.withLock { _ in swap(&spare, &jobs) }
        return .worked
    }

    /// Works on what stood behind a hold, the first one last.
    private func goOn(with jobs: inout [LaneJob<S>]) -> Turn {
        while let job = jobs.popLast() {
            if case .hold(let hold) = job, !isReleased.load(ordering: .relaxed) {
                return wait(for: hold, before: &jobs)
            }
            perform(job)
        }
        return .worked
    }

    /// Keeps what stands behind a hold, the first one last, and waits for that without a thread, if it
    /// must. It is moved, never copied: else a line of holds would cost its square.
    private func wait(for hold: any LaneHold, before rest: inout [LaneJob<S>]) -> Turn {
        let isClosed = control.withLock { control in
            if control.isClosed { return true }
            control.waitingCount += rest.count
            swap(&ahead, &rest)
            control.hasServerJob = true
            control.hold = hold
            return false
        }
        if isClosed {
            hold.abandon(self)
            for job in rest.reversed() { drop(job) }
            return .worked
        }
        guard hold.arrive(self) else { return .held }
        return takeUp(after: hold) ? .worked : .held
    }

    /// Takes the whole line. Called under the lane's mutex.
    ///
    /// - Returns: The threads that wait for room, to be woken outside of it.
    private func takeLine(
        _ jobs: inout [LaneJob<S>], _ control: inout Control
    ) -> [DispatchSemaphore] {
        swap(&waiting, &jobs)
        swap(&waiting, &spare)
        control.waitingCount = 0
        return control.room.free(at: 0)
    }

    /// Puts a job of a node's into the lane. Never waits, and takes no route.
    func enqueue(_ job: LaneJob<S>) {
        let mark = ThreadMark.outsideModels
        // Written under the lock and read after it, by this thread alone.
        nonisolated(unsafe) var duty: Duty?
        control.withLock { control in
            if control.isClosed { return }
            append(job, to: &control)
            duty = control.claim(isImmediate: isImmediate)
        }
        if let duty { serve(duty, mark) } else { drop(job) }
    }

    /// Whether what is dispatched to this store goes to a route: a node changes it, and nobody else.
    package var isRouted: Bool { control.withLock { $0.isRouted } }

    /// Sends what is dispatched to this store from now on to a route, or, with nil, to the store.
    /// A released store takes no route.
    ///
    /// - Returns: The route until now.
    @discardableResult
    package func setRoute(_ route: (any ActionRoute<S>)?) -> (any ActionRoute<S>)? {
        control.withLock { control in
            let former = self.route
            self.route = control.isClosed ? nil : route
            control.isRouted = self.route != nil
            return former
        }
    }

    /// Ends the store: from now on nothing is committed, also of what stands in line.
    package func close() {
        isReleased.store(true, ordering: .relaxed)
        var dropped: [LaneJob<S>] = []
        var hold: (any LaneHold)?
        let (woken, hooks) = control.withLock { control in
            control.isClosed = true
            swap(&hold, &control.hold)
            if hold != nil { control.isBusy = false }
            defer { control.closeHooks = [:] }
            let woken = takeLine(&dropped, &control)
            dropped.insert(contentsOf: ahead.reversed(), at: 0)
            ahead = []
            return (woken, control.closeHooks)
        }
        scope.channel(of: S.self).remove(self)
        for place in woken { place.signal() }
        hold?.abandon(self)
        for job in dropped { drop(job) }
        for hook in hooks.values { hook() }
        setRoute(nil)
        endIfClosed()
    }

    override func release() {
        var keeper: S?
        // Let go outside the lock: what the state has is user code's to free.
        control.withLock { _ in swap(&self.keeper, &keeper) }
    }
}
