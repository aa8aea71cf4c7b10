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
    /// the bound is doubled until the line has been taken.
    static let stillnessMax: DispatchTimeInterval = .seconds(1)
    /// How often a lane's bound is doubled: 16 times `waitingMax`, 1,048,576 jobs, is the most.
    /// Behind that a line that isn't taken grows by one job a second and thread.
    static let doublingsMax = 4
}

/// The lane of one store: who serves its waiting line, and when. What stands in the line is the
/// matter of ``StoreCore``, which this is the part of that doesn't depend on the state's type; so
/// an uncontended dispatch touches no generic data.
///
/// At most one thread serves: whoever set `isBusy`, until it finds the line empty. On the
/// immediate executor that is the thread which sent first. On any other it is the executor, which
/// is handed one function at a time:
///
///     idle ──send──▶ busy ──line empty──▶ idle
///                     │ ▲
///          hand over  ▼ │  the run returned, and there is more
///                   executor
///
/// A run that ends while the thread that handed it over is still inside `execute` leaves the next
/// hand-over to that thread, so that an executor which runs functions at once isn't nested ever
/// deeper.
///
/// A job of the line may be something to wait for, a ``LaneHold``. A lane that waits for one is busy
/// without having a thread; whoever ends the wait sees to it that the line is served again.
// Sendable: all of its own is immutable, atomic or in a mutex; the subclass answers for the rest.
package class Lane: @unchecked Sendable {
    /// Guarded by the mutex that it stands in, as is the subclass's waiting line.
    struct Control {
        var isBusy = false
        var isClosed = false
        /// Whether dispatches go to a route instead.
        var isRouted = false
        /// What the lane waits for. *Invariant*: while there is one, the lane is busy and no thread
        /// serves it, but the one that is just leaving.
        var hold: (any LaneHold)?
        /// How many jobs stand in the line.
        var waitingCount = 0
        /// Use: threads that wait, having found the line longer than its bound.
        var crowded: [DispatchSemaphore] = []
        /// How often the bound was doubled since the line was taken last.
        var doublings = 0
        /// Whether the lane has come to rest for good.
        private(set) var hasEnded = false
        /// Whether a thread is inside the executor's `execute`.
        private var isHandingOver = false
        /// Whether that thread has to hand over once more.
        private var handsOverAgain = false
        /// Use: told once that the store was released. Invariant: empty from then on.
        var closeHooks: [Int: @Sendable () -> Void] = [:]
        var closeHookCount = 0
        /// Use: told once that nothing is committed any more, behind the last commit.
        var endHooks: [Int: @Sendable () -> Void] = [:]

        /// Sees to it that the line is served, if it isn't.
        mutating func claim(isImmediate: Bool) -> Duty {
            if isBusy || waitingCount == 0 { return .none }
            isBusy = true
            if isImmediate { return .serve }
            if isHandingOver {
                handsOverAgain = true
                return .none
            }
            isHandingOver = true
            return .handOver
        }

        /// Ends the lane if it is closed and nobody serves it.
        ///
        /// - Returns: Whether it ended just now, which is true once.
        mutating func end() -> Bool {
            guard isClosed, !isBusy, !hasEnded else { return false }
            hasEnded = true
            return true
        }

        /// After the executor's `execute` returned: whether to call it again.
        mutating func handOverReturned() -> Bool {
            isHandingOver = handsOverAgain
            handsOverAgain = false
            return isHandingOver
        }
    }

    /// What a thread that put a job into the line has to do next.
    enum Duty {
        /// Nothing: someone serves the line.
        case none
        /// Serve the line.
        case serve
        /// Hand the line to the executor.
        case handOver
    }

    /// What a turn came to.
    enum Turn {
        /// Nothing stood in line.
        case empty
        /// What stood there was worked on.
        case worked
        /// The lane waits for something: the thread serves it no more, and must not touch it.
        case held
    }

    /// What a lane says to a job that wants to run at once.
    enum Entrance {
        /// The caller serves the lane, and its own job comes first.
        case free
        /// The job has to stand in line, or to take the route.
        case taken
        /// A lock was taken meanwhile: the dispatch has to begin anew.
        case paused
        case closed
    }

    let control = Mutex(Control())
    let executor: Executor
    let isImmediate: Bool
    package let scope: Scope
    private let waitingMax: Int
    /// A copy of `Control.isClosed` that is looked at before each action.
    let isReleased = Atomic(false)
    /// How many actions were numbered here. Written by the serving thread.
    let count = Atomic<UInt64>(0)

    init(executor: Executor, scope: Scope, waitingMax: Int) {
        self.executor = executor
        self.isImmediate = executor.isImmediate
        self.scope = scope
        self.waitingMax = waitingMax
    }

    /// How many jobs stand in the line, besides those that are being worked on.
    package final var waitingCount: Int { control.withLock { $0.waitingCount } }

    /// Works on all that stands in the line at the beginning of the call, and on no more.
    func takeTurn() -> Turn {
        preconditionFailure("a lane has a line")
    }

    /// Has a function called once when the lane has done all that it has to do now, or its store is
    /// released; unless it is idle.
    ///
    /// - Returns: Whether it will be; false if the lane is idle.
    func mark(_ body: @escaping @Sendable () -> Void) -> Bool {
        preconditionFailure("a lane has a line")
    }

    /// Puts something to wait for into the line.
    ///
    /// - Returns: false when the store is released.
    func append(_ hold: any LaneHold) -> Bool {
        preconditionFailure("a lane has a line")
    }

    /// Puts a function before all that stands in the line, while the lane waits for something.
    ///
    /// - Parameter body: Called once, in the lane, or by whoever finds that the store is released.
    func putFirst(_ body: @escaping @Sendable () -> Void) {
        preconditionFailure("a lane has a line")
    }

    /// Frees what only commits need; called once, when the lane is closed and nobody serves it.
    func letGo() {}

    /// Lets go if the lane is closed and nobody serves it. Whoever closes calls it, and whoever
    /// stops serving: the later of the two finds it so.
    final func endIfClosed() {
        let hooks = control.withLock { control -> [Int: @Sendable () -> Void]? in
            guard control.end() else { return nil }
            defer { control.endHooks = [:] }
            return control.endHooks
        }
        guard let hooks else { return }
        letGo()
        for hook in hooks.values { hook() }
    }

    /// Tries to become the one that serves the lane, for a job of the caller's own.
    @inline(__always)
    final func enter(isPast: Bool = false) -> Entrance {
        control.withLock { control in
            if control.isClosed { return .closed }
            // Looked at again here: whoever holds a lock and dispatched has been in this mutex.
            if !isPast, scope.gate.isClosed { return .paused }
            guard isImmediate, !control.isBusy, control.waitingCount == 0, !control.isRouted else {
                return .taken
            }
            control.isBusy = true
            return .free
        }
    }

    /// Runs the job of a caller that entered, then whatever came meanwhile.
    @inline(__always)
    final func runEntered(_ mark: UnsafeMutablePointer<ThreadMark>, _ job: () -> Void) {
        mark.pointee.lanes += 1
        scope.runLane { runEnteredInScope(job) }
        mark.pointee.lanes -= 1
    }

    /// As ``runEntered(_:_:)``, for a caller that runs in the lane's scope and serves a lane.
    @inline(__always)
    final func runEnteredInScope(_ job: () -> Void) {
        if !isReleased.load(ordering: .relaxed) { job() }
        let isDone = control.withLock { control in
            guard control.waitingCount == 0, !control.isClosed else { return false }
            control.isBusy = false
            return true
        }
        if !isDone { drain() }
    }

    /// Sees to it that the line is served.
    final func kick(_ mark: UnsafeMutablePointer<ThreadMark>) {
        serve(control.withLock { $0.claim(isImmediate: isImmediate) }, mark)
    }

    /// Does what a thread that put a job into the line has to do.
    final func serve(_ duty: Duty, _ mark: UnsafeMutablePointer<ThreadMark>) {
        switch duty {
        case .none: break
        case .serve:
            mark.pointee.lanes += 1
            drain()
            mark.pointee.lanes -= 1
        case .handOver: handOver()
        }
    }

    /// Serves the lane until the line is empty.
    private func drain() {
        scope.runLane {
            repeat {
                var turn = Turn.worked
                while turn == .worked { turn = takeTurn() }
                if turn == .held { return }
            } while control.withLock { control in
                control.isBusy = control.waitingCount > 0
                return control.isBusy
            }
        }
        if isReleased.load(ordering: .relaxed) { endIfClosed() }
    }

    /// Gives the executor one run after the other, as long as that falls to this thread.
    private func handOver() {
        repeat {
            executor.execute { self.runOnExecutor() }
        } while control.withLock { $0.handOverReturned() }
    }

    private func runOnExecutor() {
        let mark = ThreadMark.current
        mark.pointee.lanes += 1
        var turn = Turn.empty
        scope.runLane { turn = takeTurn() }
        mark.pointee.lanes -= 1
        if turn == .held { return }
        let duty = control.withLock { control in
            control.isBusy = false
            return control.claim(isImmediate: false)
        }
        if duty == .handOver { handOver() }
        if isReleased.load(ordering: .relaxed) { endIfClosed() }
    }

    /// Waits while the line is longer than its bound and moves, if this thread may.
    final func waitForRoom(_ mark: UnsafeMutablePointer<ThreadMark>) {
        guard mark.pointee.mayWait else { return }
        let place = control.withLock { control -> DispatchSemaphore? in
            guard control.waitingCount > waitingMax << control.doublings else { return nil }
            let place = DispatchSemaphore(value: 0)
            control.crowded.append(place)
            return place
        }
        guard let place else { return }
        var seen = count.load(ordering: .relaxed)
        while place.wait(timeout: .now() + LaneLimits.stillnessMax) == .timedOut {
            let moved = count.load(ordering: .relaxed)
            if moved == seen { return widen() }
            seen = moved
        }
    }

    /// Doubles the bound of a line that is still longer, after a wait in vain.
    private func widen() {
        control.withLock { control in
            guard control.waitingCount > waitingMax << control.doublings else { return }
            control.doublings = min(control.doublings + 1, LaneLimits.doublingsMax)
        }
    }
}
