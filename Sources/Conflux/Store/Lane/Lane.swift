import Dispatch
import Synchronization

/// The bounds of a store's lane.
enum LaneLimits {
    /// How many jobs may wait before other threads than those that serve a lane wait with them.
    static let waitingMax = 65_536
    /// The capacity that an emptied line keeps.
    static let keptCapacityMax = 1_024
    /// How often a thread looks for its turn before it sleeps: for some ten microseconds, about as
    /// long as it takes to wake another thread.
    static let looksMax = 2_000
    /// How often it looks between two tries to enter a lane.
    static let looksPerTry = 20
}

/// The lane of one store: who serves its waiting line, and when. What stands in the line is the
/// matter of ``StoreCore``, which this is the part of that doesn't depend on the state's type; so
/// an uncontended dispatch touches no generic data.
///
/// At most one thread serves: the one that set `isBusy`, until it finds the line empty. On the
/// immediate executor that is a thread that dispatches: it commits its own action (``DispatchTurn``),
/// then what stands in the line by then and nobody waits for, and leaves the rest to a queue. On any
/// other executor it is that, which is handed one function at a time:
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
/// without having a thread; the code that ends the wait has the line served again.
// Sendable: all of its own is immutable, atomic or in a mutex; the subclass answers for the rest.
package class Lane: @unchecked Sendable {
    /// Guarded by the mutex that it stands in, as is the subclass's waiting line.
    struct Control {
        var isBusy = false
        var isClosed = false
        /// Whether dispatches go to a route instead.
        var isRouted = false
        /// Which thread serves the line, or did last.
        var server: UInt = 0
        /// Whether that thread has to serve on: it has put a job into the line, or stopped within one.
        var hasServerJob = false
        /// What the lane waits for. *Invariant*: while there is one, the lane is busy and no thread
        /// serves it, but the one that is just leaving.
        var hold: (any LaneHold)?
        /// How many jobs stand in the line.
        var waitingCount = 0
        /// How many of these wait for other stores, or for the main thread, and with them what the lane
        /// waits for.
        var holdCount = 0
        /// How long the line may be.
        var room: Room
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

        init(waitingMax: Int) {
            room = Room(countMax: waitingMax)
        }

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
        /// Another thread serves the lane, or is about to.
        case busy
        /// The job has to stand in line, or to take the route: at any rate not to wait here.
        case behind
        /// A lock was taken meanwhile: the dispatch has to begin anew.
        case paused
        case closed
    }

    let control: Mutex<Control>
    let executor: Executor
    let isImmediate: Bool
    package let scope: Scope
    /// A copy of `Control.isClosed` that is looked at before each action.
    let isReleased = Atomic(false)
    /// How many actions were numbered here. Written by the serving thread.
    let count = Atomic<UInt64>(0)

    init(executor: Executor, scope: Scope, waitingMax: Int) {
        self.executor = executor
        self.isImmediate = executor.isImmediate
        self.scope = scope
        control = Mutex(Control(waitingMax: waitingMax))
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
    /// - Parameter body: Called once, in the lane, or on the thread that finds the store released.
    func putFirst(_ body: @escaping @Sendable () -> Void) {
        preconditionFailure("a lane has a line")
    }

    /// Frees what only commits need; called once, when the lane is closed and nobody serves it.
    func release() {}

    /// Releases if the lane is closed and nobody serves it. Called by the thread that closes and by the
    /// thread that stops serving: the later of the two finds it so.
    final func endIfClosed() {
        let hooks = control.withLock { control -> [Int: @Sendable () -> Void]? in
            guard control.end() else { return nil }
            defer { control.endHooks = [:] }
            return control.endHooks
        }
        guard let hooks else { return }
        release()
        for hook in hooks.values { hook() }
    }

    /// Tries to become the one that serves the lane, for a job of the caller's own.
    @inline(__always)
    final func enter(
        _ mark: UnsafeMutablePointer<ThreadMark>, isPast: Bool = false
    ) -> Entrance {
        control.withLock { control in
            if control.isClosed { return .closed }
            // Checked again here: a lock's holder that dispatched has been in this mutex.
            if !isPast, scope.gate.isClosed { return .paused }
            guard isImmediate, !control.isRouted, control.holdCount == 0 else { return .behind }
            guard !control.isBusy, control.waitingCount == 0 else { return .busy }
            control.isBusy = true
            control.server = UInt(bitPattern: mark)
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
        if !isDone { drain(ThreadMark.current) }
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
            drain(mark)
            mark.pointee.lanes -= 1
        case .handOver: handOver()
        }
    }

    /// Serves the lane until the line is empty, or has only what others have put there since.
    private func drain(_ mark: UnsafeMutablePointer<ThreadMark>) {
        control.withLock { control in
            control.server = UInt(bitPattern: mark)
            // The rest of a line, and the one that came meanwhile.
            control.hasServerJob = true
        }
        var next = Next.line
        scope.runLane {
            FlowLock.holding(nil) {
                while next == .line { next = takeTurn() == .held ? .nothing : nextLine() }
            }
        }
        if next == .othersLine {
            return DispatchQueue.global().async { self.serve(.serve, ThreadMark.current) }
        }
        if isReleased.load(ordering: .relaxed) { endIfClosed() }
    }

    /// What a thread that has served a line does next.
    private enum Next {
        case line
        /// Leave the line to a queue.
        case othersLine
        case nothing
    }

    private func nextLine() -> Next {
        control.withLock { control in
            control.isBusy = control.waitingCount > 0
            if !control.isBusy { return .nothing }
            defer { control.hasServerJob = false }
            return control.hasServerJob ? .line : .othersLine
        }
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
        scope.runLane { FlowLock.holding(nil) { turn = takeTurn() } }
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
        guard mark.pointee.mayWait,
            let place = control.withLock({ $0.room.place(behind: $0.waitingCount) })
        else { return }
        var seen = count.load(ordering: .relaxed)
        while place.wait(timeout: .now() + Room.stillnessMax) == .timedOut {
            let moved = count.load(ordering: .relaxed)
            if moved == seen { return control.withLock { $0.room.widen(at: $0.waitingCount) } }
            seen = moved
        }
    }
}
