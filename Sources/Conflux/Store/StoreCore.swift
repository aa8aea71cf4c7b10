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
    private let state: Unmanaged<S>
    /// What keeps the state alive. Actions may outlive their store and are often captured by the
    /// state's own observers, so it ends with the lane. Guarded by the lane's mutex.
    private var keeper: S?
    private let mutations: S.Mutations
    /// Chooses the random numbers of actions that no log has ordered.
    private let seed: UInt64
    /// Written by the thread that serves the lane.
    let lastOrdered = Atomic<UInt64>(0)
    /// Where ordered actions are noted while they are committed. Touched like `state`.
    var commitMark: CommitMark?
    /// The line. Guarded by the lane's mutex; `Control.waitingCount` is its count.
    private var waiting: [LaneJob<S>] = []
    /// The emptied storage of the last turn, to be used again. Guarded likewise.
    private var spare: [LaneJob<S>] = []
    /// Where dispatches go instead. Guarded likewise; `Control.isRouted` is whether it is there.
    private var route: (any ActionRoute<S>)?

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

    // MARK: Dispatch

    /// Dispatches to this store, or to its route.
    @inline(__always)
    package func dispatch(_ action: S.Action) {
        let mark = ThreadMark.outsideModels
        switch enter() {
        case .free: runEntered(mark) { _ = commit(action) }
        case .taken: dispatchBehind(action, mark)
        case .closed: return
        }
    }

    @inline(never)
    private func dispatchBehind(_ action: S.Action, _ mark: UnsafeMutablePointer<ThreadMark>) {
        switch admit(.action(action)) {
        case .queued(let duty):
            serve(duty, mark)
            waitForRoom(mark)
        case .closed: return
        case .route(let route): _ = route.submit(action)
        }
    }

    /// Dispatches to this store, or to its route, and tells how it ends.
    package func dispatchTracked(_ action: S.Action) -> DispatchHandle {
        let mark = ThreadMark.outsideModels
        switch enter() {
        case .free: return DispatchHandle(runEnteredTracked(action, mark))
        case .closed: return DispatchHandle(.failed(.storeClosed(S.self)))
        case .taken: break
        }
        // What travels needs no tally of its own.
        if let route = currentRoute { return route.submit(action) }
        let tally = Tally()
        tally.expect(1)
        switch admit(.tracked(action, tally, order: 0)) {
        case .queued(let duty):
            serve(duty, mark)
            waitForRoom(mark)
            return tally.handle
        case .closed: return DispatchHandle(.failed(.storeClosed(S.self)))
        case .route(let route): return route.submit(action)
        }
    }

    private var currentRoute: (any ActionRoute<S>)? {
        control.withLock { $0.isClosed ? nil : route }
    }

    private enum Admission {
        case queued(Duty)
        case closed
        case route(any ActionRoute<S>)
    }

    /// Finds the way of a dispatch that can't run at once.
    private func admit(_ job: LaneJob<S>) -> Admission {
        // Written under the lock and read after it, by this thread alone.
        nonisolated(unsafe) var admission = Admission.closed
        control.withLock { control in
            if control.isClosed { return }
            if let route {
                admission = .route(route)
            } else {
                append(job, to: &control)
                admission = .queued(control.claim(isImmediate: isImmediate))
            }
        }
        return admission
    }

    /// Puts a job behind what is in line. Called under the lane's mutex.
    private func append(_ job: LaneJob<S>, to control: inout Control) {
        waiting.append(job)
        control.waitingCount += 1
    }

    // MARK: Global dispatch

    /// Keeps a place in the line for a global action.
    ///
    /// - Returns: false when the store is released, or changes only by its route.
    func reserveBehind(_ job: LaneJob<S>) -> Bool {
        control.withLock { control in
            if control.isClosed || control.isRouted { return false }
            append(job, to: &control)
            return true
        }
    }

    /// Commits a global action as the one that serves the lane, in whose scope the caller runs.
    func runReserved(_ action: S.Action) {
        runEnteredInScope { _ = commit(action) }
    }

    /// Commits an action as the one that serves the lane, and tells how it ended.
    func runEnteredTracked(
        _ action: S.Action, _ mark: UnsafeMutablePointer<ThreadMark>
    ) -> Outcome {
        var outcome: Outcome?
        runEntered(mark) { outcome = commitTracked(action) }
        return outcome ?? .failed(.storeClosed(S.self))
    }

    // MARK: The line

    override func takeTurn() -> Bool {
        var jobs: [LaneJob<S>] = []
        let woken = control.withLock { takeLine(&jobs, &$0) }
        for place in woken { place.signal() }
        guard !jobs.isEmpty else { return false }
        for job in jobs { perform(job) }
        jobs.removeAll(keepingCapacity: jobs.capacity <= LaneLimits.keptCapacityMax)
        control.withLock { _ in swap(&spare, &jobs) }
        return true
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
        control.doublings = 0
        guard !control.crowded.isEmpty else { return [] }
        defer { control.crowded = [] }
        return control.crowded
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
        let (woken, hooks) = control.withLock { control in
            control.isClosed = true
            defer { control.closeHooks = [:] }
            return (takeLine(&dropped, &control), control.closeHooks)
        }
        scope.channel(of: S.self).remove(self)
        for place in woken { place.signal() }
        for job in dropped { drop(job) }
        for hook in hooks.values { hook() }
        setRoute(nil)
        endIfClosed()
    }

    override func letGo() {
        var keeper: S?
        // Let go outside the lock: what the state has is user code's to free.
        control.withLock { _ in swap(&self.keeper, &keeper) }
    }
}

/// What a store's lane works on, one after the other.
// Sendable: a job is handed from one thread to another and used by one at a time; that actions
// may be committed on another thread is the contract of `State.Action`.
enum LaneJob<S: State>: @unchecked Sendable {
    case action(S.Action)
    case tracked(S.Action, Tally, order: Int)
    case run(
        [OrderedAction<S>], through: SequenceNumber, completion: @Sendable (RunReport) -> Void)
    case look(@Sendable (_ state: S?, _ position: SequenceNumber) -> Void)
}

/// Working on jobs; called by the thread that serves the lane.
extension StoreCore {
    private func perform(_ job: LaneJob<S>) {
        if isReleased.load(ordering: .relaxed) { return drop(job) }
        switch job {
        case .action(let action): _ = commit(action)
        case .tracked(let action, let tally, let order):
            tally.report(commitTracked(action), order: order)
        case .run(let actions, let through, let completion):
            completion(commit(actions, through: through))
        case .look(let body): body(state.takeUnretainedValue(), position)
        }
    }

    /// Says of a job that the store was released before its turn.
    private func drop(_ job: LaneJob<S>) {
        switch job {
        case .action: break
        case .tracked(_, let tally, let order):
            tally.report(.failed(.storeClosed(S.self)), order: order)
        case .run(_, _, let completion):
            var report = RunReport()
            report.isClosed = true
            completion(report)
        case .look(let body): body(nil, position)
        }
    }

    /// Commits under the next number of the store's own count.
    ///
    /// - Returns: Why the action was refused, if it was.
    @inline(__always)
    fileprivate func commit(_ action: S.Action) -> (any Error)? {
        let number = nextNumber()
        do {
            try perform(action) {
                ActionContext(sequence: number, timestamp: WallClock.now, origin: nil, seed: seed)
            }
            return nil
        } catch {
            return error
        }
    }

    fileprivate func commitTracked(_ action: S.Action) -> Outcome {
        let context = ActionContext(
            sequence: nextNumber(), timestamp: WallClock.now, origin: nil, seed: seed)
        let receipt = Receipt(
            log: nil, epoch: .none, sequence: context.sequence, timestamp: context.timestamp)
        do {
            try perform(action) { context }
            return .committed(receipt)
        } catch {
            return .failed(.refused(error, receipt: receipt))
        }
    }

    @inline(__always)
    private func perform(_ action: S.Action, context: () -> ActionContext) throws {
        try state._withUnsafeGuaranteedRef { state in
            try mutations._perform(action: action, state: state, context: context)
        }
    }

    @inline(__always)
    private func nextNumber() -> SequenceNumber {
        let number = count.load(ordering: .relaxed) + 1
        count.store(number, ordering: .relaxed)
        return SequenceNumber(number)
    }

    /// Commits what a log has ordered, passing over what the store has already.
    private func commit(_ actions: [OrderedAction<S>], through: SequenceNumber) -> RunReport {
        var report = RunReport()
        var last = position
        let mark = commitMark
        for index in actions.indices {
            let ordered = actions[index]
            if isReleased.load(ordering: .relaxed) {
                report.isClosed = true
                break
            }
            report.completed = index + 1
            guard ordered.context.sequence > last else { continue }
            mark?.begin(ordered.context.sequence)
            do {
                try perform(ordered.action) { ordered.context }
            } catch {
                report.refusals.append(RunReport.Refusal(index: index, error: error))
            }
            last = ordered.context.sequence
        }
        if !report.isClosed { last = max(last, through) }
        mark?.end(at: last)
        lastOrdered.store(last.rawValue, ordering: .releasing)
        return report
    }
}
