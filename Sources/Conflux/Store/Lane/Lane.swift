import ConfluxThreads
import Dispatch
import Synchronization

/// The bounds of a store's lane.
enum LaneLimits {
    /// How many jobs may wait before dispatching threads wait with them.
    static let waitingMax = 65_536
    /// The capacity that an emptied line keeps.
    static let keptCapacityMax = 1_024
    /// How often a thread polls for its turn before it sleeps: for some ten microseconds, about as
    /// long as it takes to wake another thread.
    static let looksMax = 2_000
    /// How often it polls between two tries to enter a lane.
    static let looksPerTry = 20
}

/// The lane of one store. It does what its ``LaneMachine`` says. It is the part of ``StoreCore``
/// that doesn't depend on the state's type; the core itself has what is in the line.
///
/// On the immediate executor a dispatching thread commits its own action (``DispatchTurn``), then
/// the jobs that are in the line by then and that nobody waits for. It leaves the rest to a
/// queue. Any other executor gets one run of the line at a time, and the next one when that has returned.
///
/// A job of the line may be something that the lane waits for, a ``LaneHold``. The code that ends
/// the wait has the line served again.
// Sendable: all of its own is immutable, atomic or in a mutex; the subclass answers for the rest.
package class Lane: @unchecked Sendable {
    /// What the lane's mutex guards, besides the subclass's line.
    struct Control {
        var machine: LaneMachine
        /// Bounds the length of the line.
        var room: Room
        /// *Use*: called once, when the store is released. *Invariant*: empty from then on.
        var closeHooks: [Int: @Sendable () -> Void] = [:]
        var closeHookCount = 0
        /// *Use*: called once, when the last commit has ended and no other can come.
        var endHooks: [Int: @Sendable () -> Void] = [:]
        /// *Use*: called once, when nothing changes the store any more: with `endHooks`, or before.
        var overHooks: [Int: @Sendable () -> Void] = [:]
        /// Whether nothing changes the store any more, although it was not released.
        var isOver = false
    }

    let control: Mutex<Control>
    let executor: Executor
    let isImmediate: Bool
    package let scope: Scope
    /// A copy of the machine's `isClosed`, which is read before each action.
    let isReleased = Atomic(false)
    /// How many actions were numbered here. Written by the serving thread.
    let count = Atomic<UInt64>(0)

    init(executor: Executor, scope: Scope, waitingMax: Int) {
        self.executor = executor
        self.isImmediate = executor.isImmediate
        self.scope = scope
        control = Mutex(
            Control(
                machine: LaneMachine(isImmediate: isImmediate), room: Room(countMax: waitingMax)))
    }

    /// How many jobs are in the line, without those that are being worked on.
    package final var waitingCount: Int { control.withLock { $0.machine.waitingCount } }

    /// Whether dispatches to this store go to a route: a node changes it, and nobody else.
    package final var isRouted: Bool { control.withLock { $0.machine.isRouted } }

    /// Works on all that is in the line at the beginning of the call, and on no more.
    ///
    /// - Returns: Whether the thread still serves the lane. If not, the lane waits for something,
    ///   and the thread must not touch it.
    func serveLine() -> Bool {
        preconditionFailure("a lane has a line")
    }

    /// Calls a function once when the lane has done all that it has to do now, or its store is
    /// released. Does nothing if the lane is idle.
    ///
    /// - Returns: Whether the function will be called; false if the lane is idle.
    func whenDone(_ body: @escaping @Sendable () -> Void) -> Bool {
        preconditionFailure("a lane has a line")
    }

    /// Puts a function before all that is in the line, while the lane waits for something.
    ///
    /// - Parameter body: Called once, in the lane, or on the thread that finds the store released.
    func putFirst(_ body: @escaping @Sendable () -> Void) {
        preconditionFailure("a lane has a line")
    }

    /// Which store it is.
    var identity: StoreIdentity { preconditionFailure("a lane is a store's") }

    /// Frees what only commits need. Called once, when the lane is closed and nobody serves it.
    func release() {}

    /// Calls ``release()`` if the lane is closed and nobody serves it. The thread that closes calls
    /// this, and so does the thread that stops serving. The later of the two finds both to be true.
    final func endIfClosed() {
        let hooks = control.withLock { control -> [Int: @Sendable () -> Void]? in
            guard control.machine.end() else { return nil }
            defer { (control.endHooks, control.overHooks) = ([:], [:]) }
            return control.endHooks.merging(control.overHooks) { hook, _ in hook }
        }
        guard let hooks else { return }
        release()
        for hook in hooks.values { hook() }
    }

    /// Tries to become the thread that serves the lane, for a job of the caller's own.
    @inline(__always)
    final func enter(
        _ mark: UnsafeMutablePointer<ThreadMark>, isPast: Bool = false
    ) -> LaneMachine.Entrance {
        guard isImmediate || executor.begin() else { return .behind }
        let entrance = control.withLock { control in
            // Read again here: a lock's holder that has dispatched has been in this mutex, so its
            // lock is seen.
            control.machine.enter(by: mark.thread, isPaused: !isPast && scope.gate.isClosed)
        }
        if isImmediate || entrance == .free { return entrance }
        executor.end()
        return entrance == .busy ? .behind : entrance
    }

    /// Runs the job of a caller that has entered, then whatever has come meanwhile.
    @inline(__always)
    final func runEntered(_ mark: UnsafeMutablePointer<ThreadMark>, _ job: () -> Void) {
        var isDone = true
        scope.runLane(mark) {
            isDone = runEnteredInScope { if !isReleased.load(ordering: .relaxed) { job() } }
        }
        if !isDone { goOn(mark) }
    }

    /// Runs the job of a caller that has entered, and that runs in the lane's scope already.
    ///
    /// - Returns: Whether the lane is free again. If not, the caller has to call ``goOn(_:)``.
    @inline(__always)
    final func runEnteredInScope(_ job: () -> Void) -> Bool {
        job()
        let isDone = control.withLock { $0.machine.leaveEntered() }
        if !isImmediate { executor.end() }
        return isDone
    }

    /// Has the line served after the job of a caller that has entered.
    final func goOn(_ mark: UnsafeMutablePointer<ThreadMark>) {
        if isImmediate { return drain(mark) }
        serve(control.withLock { $0.machine.leave() }, mark)
        if isReleased.load(ordering: .relaxed) { endIfClosed() }
    }

    /// Makes sure that the line is served.
    final func kick(_ mark: UnsafeMutablePointer<ThreadMark>) {
        serve(control.withLock { $0.machine.claim() }, mark)
    }

    /// Does what the machine says is the duty of this thread.
    final func serve(_ duty: LaneMachine.Duty, _ mark: UnsafeMutablePointer<ThreadMark>) {
        switch duty {
        case .none: break
        case .serve: drain(mark)
        case .handOver: handOver()
        }
    }

    /// Serves the lane until the line is empty, or has only what other threads have put there
    /// since.
    private func drain(_ mark: UnsafeMutablePointer<ThreadMark>) {
        control.withLock { $0.machine.beginDraining(by: mark.thread) }
        var next = LaneMachine.Next.line
        scope.runLane(mark) {
            FlowLock.holding(nil) {
                while next == .line {
                    next = serveLine() ? control.withLock { $0.machine.next() } : .nothing
                }
            }
        }
        if next == .othersLine {
            return DispatchQueue.global().async { self.serve(.serve, ThreadMark.current) }
        }
        if isReleased.load(ordering: .relaxed) { endIfClosed() }
    }

    /// Gives the executor one run after the other, as long as that is this thread's duty.
    private func handOver() {
        repeat {
            executor.run { self.runOnExecutor() }
        } while control.withLock { $0.machine.handOverReturned() }
    }

    private func runOnExecutor() {
        var isServing = false
        scope.runLane(ThreadMark.current) { FlowLock.holding(nil) { isServing = serveLine() } }
        guard isServing else { return }
        if control.withLock({ $0.machine.leave() }) == .handOver { handOver() }
        if isReleased.load(ordering: .relaxed) { endIfClosed() }
    }

    /// Waits for room as long as the line moves.
    final func wait(in place: Latch) {
        var seen = count.load(ordering: .relaxed)
        while !place.wait(for: Room.stillnessMax) {
            let moved = count.load(ordering: .relaxed)
            if moved == seen {
                return control.withLock { $0.room.widen(at: $0.machine.waitingCount) }
            }
            seen = moved
        }
    }
}
