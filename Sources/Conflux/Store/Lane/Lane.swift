import ConfluxThreads
import Dispatch
import Synchronization

/// The bounds of a lane.
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
    /// How many lanes a thread serves inside of each other before another thread takes over.
    static let nestingMax = 16
}

/// A line of jobs that one thread at a time serves: of a store, of a sink's observers, or of an observer on
/// an executor. It does what its ``LaneMachine`` says.
///
/// On the immediate executor a dispatching thread does its own job (``DispatchTurn``), then
/// the jobs that are in the line by then and that nobody waits for. It leaves the rest to a
/// queue. Any other executor gets one run of the line at a time, and the next one when that has returned.
///
/// A job of the line may be something that the lane waits for, a ``LaneHold``. The code that ends
/// the wait has the line served again.
// Sendable: all of its own is immutable, atomic or in a mutex; a subclass answers for the rest.
@usableFromInline
package class Lane: @unchecked Sendable {
    @usableFromInline typealias Machine = LaneMachine<LaneJob>

    /// What the lane's mutex guards, besides what a subclass has.
    @usableFromInline
    struct Control {
        @usableFromInline var machine: Machine
        /// Bounds the length of the line.
        var room: Room
    }

    @usableFromInline let control: Mutex<Control>
    let executor: Executor
    let isImmediate: Bool
    /// Where jobs run; nil for the scope of the thread that does them.
    let home: Scope?
    /// The same, for dispatches, which count no reference to it.
    let place: Unmanaged<Scope>?
    /// A copy of the machine's `isClosed`, which is read before each job.
    let isReleased = Atomic(false)
    /// Rises as jobs are done: it is the number of a store's actions. Written by the serving thread.
    @usableFromInline let count = Atomic<UInt64>(0)
    /// How much middleware the store has of its own, and for how many stores it waits.
    let concernCount = Atomic(0)
    /// What to call when the store ends, in one way or another.
    let hooks = Mutex(EndHooks())

    init(executor: Executor, scope: Scope?, waitingMax: Int) {
        self.executor = executor
        self.isImmediate = executor.isImmediate
        home = scope
        place = scope.map { .passUnretained($0) }
        control = Mutex(
            Control(
                machine: Machine(isImmediate: isImmediate), room: Room(countMax: waitingMax)))
    }

    /// How many jobs are in the line, without those that are being worked on.
    package final var waitingCount: Int { control.withLock { $0.machine.waitingCount } }

    /// Whether nothing is in the line or being done.
    package final var isIdle: Bool {
        control.withLock { !$0.machine.isBusy && $0.machine.waitingCount == 0 }
    }

    /// Whether dispatches to this store go to a route: a node changes it, and nobody else.
    package final var isRouted: Bool { control.withLock { $0.machine.isRouted } }

    /// Whether the store has middleware of its own, or waits for others.
    @inline(__always)
    final var isConcerned: Bool { concernCount.load(ordering: .relaxed) > 0 }

    /// Which store it is.
    var identity: StoreIdentity { preconditionFailure("a lane is a store's") }

    /// Frees what only jobs need. Called once, when the lane is closed and nobody serves it.
    func didEnd() {}

    // MARK: At once

    /// Tries to become the thread that serves the lane, for a job of the caller's own.
    @inline(__always)
    final func enter(
        _ mark: UnsafeMutablePointer<ThreadMark>, isPast: Bool = false
    ) -> Machine.Entrance {
        guard isImmediate || executor.begin() else { return .behind }
        let entrance = control.withLock { control in
            // Read again here: a lock's holder that has dispatched has been in this mutex, so its
            // lock is seen.
            control.machine.enter(by: mark.thread, isPaused: !isPast && isPaused)
        }
        if isImmediate || entrance == .free { return entrance }
        executor.end()
        return entrance == .busy ? .behind : entrance
    }

    /// Whether a lock pauses the flow.
    @inline(__always)
    final var isPaused: Bool {
        guard let place else { return false }
        return place._withUnsafeGuaranteedRef { $0.gate.isClosed }
    }

    /// Runs the job of a caller that has entered, then whatever has come meanwhile.
    @inline(__always)
    final func runEntered(_ mark: UnsafeMutablePointer<ThreadMark>, _ job: () -> Void) {
        var isDone = true
        run(mark) {
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
    @usableFromInline
    final func goOn(_ mark: UnsafeMutablePointer<ThreadMark>) {
        if isImmediate { return drain(mark) }
        serve(control.withLock { $0.machine.leave() }, mark)
        if isReleased.load(ordering: .relaxed) { endIfClosed() }
    }

    // MARK: In line

    /// Puts a job behind what is in line. Called under the lane's mutex.
    final func append(_ job: LaneJob, to control: inout Control, by thread: UInt) {
        var hold: (any LaneHold)?
        if case .hold(let waited) = job { hold = waited }
        control.machine.append(job, waitingFor: hold, by: thread)
    }

    /// Does a job, at once if the lane is immediate and free, or else behind what is in line. Never waits, and
    /// takes no route.
    ///
    /// - Parameters:
    ///   - job: The job, made only if it goes into the line: to make one takes longer than a small job.
    ///   - perform: Does the job at once.
    final func enqueue(_ job: @autoclosure () -> LaneJob, perform: () -> Void) {
        let mark = ThreadMark.outsideModels
        if isImmediate, control.withLock({ $0.machine.enterIfFree(by: mark.thread) }) {
            var isDone = true
            run(mark) { isDone = runEnteredInScope { FlowLock.holding(nil, perform) } }
            if !isDone { goOn(mark) }
            return
        }
        putInLine(job(), mark)
    }

    /// Puts a job behind what is in line, and has the line served.
    final func putInLine(_ job: LaneJob, _ mark: UnsafeMutablePointer<ThreadMark>) {
        // Written under the lock and read after it, by this thread alone.
        nonisolated(unsafe) var duty: Machine.Duty?
        let thread = mark.thread
        control.withLock { control in
            if control.machine.isClosed { return }
            append(job, to: &control, by: thread)
            duty = control.machine.claim()
        }
        if let duty { serve(duty, mark) } else { drop(job) }
    }

    /// Keeps a place for a hold behind what is in line, and serves nothing.
    ///
    /// - Returns: Whether there is a place; false if the store is released.
    final func keepPlace(for hold: any LaneHold, by thread: UInt) -> Bool {
        control.withLock { control in
            if !control.machine.isClosed { append(.hold(hold), to: &control, by: thread) }
            return !control.machine.isClosed
        }
    }

    /// Calls a function once when the lane has done all that it has to do now, or its store is
    /// released. Does nothing if the lane is idle.
    ///
    /// - Returns: Whether the function will be called; false if the lane is idle.
    final func whenDone(_ body: @escaping @Sendable () -> Void) -> Bool {
        control.withLock { control in
            let machine = control.machine
            guard machine.isBusy || machine.waitingCount > 0, !machine.isClosed else {
                return false
            }
            append(.work { _ in body() }, to: &control, by: ThreadMark.current.thread)
            return true
        }
    }

    /// Puts a function before all that is in the line, while the lane waits for something.
    ///
    /// - Parameter body: Called once, in the lane, or on the thread that finds the store released.
    final func putFirst(_ body: @escaping @Sendable () -> Void) {
        let isClosed = control.withLock { control in
            if control.machine.isClosed { return true }
            control.machine.putFirst(.work { _ in body() })
            return false
        }
        if isClosed { body() }
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

    // MARK: Serving

    /// Makes sure that the line is served.
    final func kick(_ mark: UnsafeMutablePointer<ThreadMark>) {
        serve(control.withLock { $0.machine.claim() }, mark)
    }

    /// Does what the machine says is the duty of this thread.
    private func serve(_ duty: Machine.Duty, _ mark: UnsafeMutablePointer<ThreadMark>) {
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
        var next = Machine.Next.line
        runJobs(mark) {
            while next == .line {
                next = serveLine() ? control.withLock { $0.machine.next() } : .nothing
            }
        }
        if next == .othersLine {
            return Self.apart { self.serve(.serve, ThreadMark.current) }
        }
        if isReleased.load(ordering: .relaxed) { endIfClosed() }
    }

    /// Runs a function on another thread, even if all other queues are blocked.
    private static func apart(_ body: @escaping @Sendable () -> Void) {
        DispatchQueue(label: "conflux.lane").async(execute: body)
    }

    /// Gives the executor one run after the other, as long as that is this thread's duty.
    private func handOver() {
        repeat {
            executor.run { self.runOnExecutor() }
        } while control.withLock { $0.machine.handOverReturned() }
    }

    private func runOnExecutor() {
        var isServing = false
        runJobs(ThreadMark.current) { isServing = serveLine() }
        guard isServing else { return }
        if control.withLock({ $0.machine.leave() }) == .handOver { handOver() }
        if isReleased.load(ordering: .relaxed) { endIfClosed() }
    }

    /// Runs jobs of several threads: those of a store under no lock, unless they say otherwise.
    private func runJobs(_ mark: UnsafeMutablePointer<ThreadMark>, _ body: () -> Void) {
        run(mark) {
            if home == nil { body() } else { FlowLock.holding(nil, body) }
        }
    }

    /// Works on all that is in the line at the beginning of the call, and on no more.
    ///
    /// - Returns: Whether the thread still serves the lane. If not, the lane waits for something,
    ///   and the thread must not touch it.
    private func serveLine() -> Bool {
        // The first job is last.
        var jobs: [LaneJob] = []
        let woken = control.withLock { control in
            control.machine.take(&jobs)
            return control.room.free(at: control.machine.waitingCount)
        }
        for place in woken { place.open() }
        while let job = jobs.popLast() {
            switch job {
            case .work(let body): body(!isReleased.load(ordering: .relaxed))
            case .hold(let hold):
                if control.withLock({ $0.machine.wait(for: hold, before: &jobs) }) {
                    return hold.arrive(self) && takeUp(after: hold)
                }
                hold.abandon(self)
            }
        }
        if jobs.capacity <= LaneLimits.keptCapacityMax {
            control.withLock { $0.machine.reuse(&jobs) }
        }
        return true
    }

    // MARK: Holds

    /// Lets the lane continue behind a hold, if it waits for that.
    ///
    /// Call it holding no lock. If the executor is immediate, this thread serves the line.
    final func resume(_ hold: any LaneHold) {
        if takeUp(after: hold) { leave() }
    }

    /// Makes the calling thread serve the lane behind a hold, until it calls ``leave()``.
    ///
    /// - Returns: Whether it serves the lane; false if the store was released meanwhile.
    final func takeUp(after hold: any LaneHold) -> Bool {
        control.withLock { $0.machine.takeUp(after: hold) }
    }

    /// Ends the calling thread's service of the lane. If the executor is immediate, the thread
    /// still serves what is in the line.
    final func leave() {
        let mark = ThreadMark.current
        let duty = control.withLock { $0.machine.leave() }
        if duty == .serve, mark.pointee.lanes >= LaneLimits.nestingMax {
            // Each lane that continues may let others continue, which would nest ever deeper.
            Self.apart { [self] in serve(duty, ThreadMark.current) }
        } else {
            serve(duty, mark)
        }
        if isReleased.load(ordering: .relaxed) { endIfClosed() }
    }

    // MARK: The end

    /// Closes the lane: from now on nothing is done, not even what is in line.
    final func closeLine() {
        isReleased.store(true, ordering: .relaxed)
        let (hold, dropped, woken) = control.withLock { control in
            let (hold, dropped) = control.machine.close()
            return (hold, dropped, control.room.free(at: 0))
        }
        for place in woken { place.open() }
        hold?.abandon(self)
        for job in dropped { drop(job) }
    }

    private func drop(_ job: LaneJob) {
        switch job {
        case .work(let body): body(false)
        case .hold(let hold): hold.abandon(self)
        }
    }

    /// Calls ``didEnd()`` if the lane is closed and nobody serves it. The thread that closes calls
    /// this, and so does the thread that stops serving. The later of the two finds both to be true.
    final func endIfClosed() {
        if control.withLock({ $0.machine.end() }) { didEnd() }
    }
}
