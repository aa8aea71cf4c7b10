/// Decides which thread serves one line of jobs, and when.
///
/// A pure machine: its functions are told what happens, and return what the calling thread does
/// next. A ``Lane`` keeps it under a mutex, and acts on what it returns.
///
///     free ──enter, claim──▶ busy, a thread serves ──line empty──▶ free
///                        wait ▼ ▲ takeUp
///                       busy, waits for a hold, no thread
///
/// **Invariants.** At most one thread serves. While the lane is free, nothing is in the line,
/// except what a thread is about to ``claim()`` it for. What is put into the line is taken out
/// once: by the thread that serves it, or by ``close()``.
@usableFromInline
struct LaneMachine<Job: Sendable>: Sendable {
    /// What a thread that put a job into the line has to do next: nothing, since another thread
    /// serves the line; serve it; or hand it to the executor.
    enum Duty { case none, serve, handOver }

    /// The lane's answer to a job that wants to run at once.
    enum Entrance {
        /// The caller serves the lane, and its own job comes first.
        case free
        /// Another thread serves the lane, or is about to.
        case busy
        /// The job has to stand in line, or to take the route. In any case it must not wait here.
        case behind
        /// A lock was taken meanwhile, so the dispatch has to begin anew.
        case paused
        case closed
    }

    /// The lane's answer to a job that wants to stand in line.
    enum Placement {
        case kept, paused, closed
        /// The store changes only through its route.
        case routed
    }

    /// What a thread that has served a line does next: continues, leaves others' jobs to a queue, or stops.
    enum Next { case line, othersLine, nothing }

    /// Whether a thread that dispatches serves the line itself.
    let isImmediate: Bool
    /// Whether dispatches go to a route instead.
    var isRouted = false
    @usableFromInline var isBusy = false
    @usableFromInline private(set) var isClosed = false
    /// Whether the lane has come to rest for good.
    private(set) var hasEnded = false
    private(set) var waiting: [Job] = []
    /// Jobs that come before `waiting`, the first one last: kept behind a hold, or put first.
    private(set) var ahead: [Job] = []
    /// The emptied storage of the jobs that were done last, to be used again.
    private var spare: [Job] = []
    /// How many jobs are in the line.
    @usableFromInline private(set) var waitingCount = 0
    /// What the lane waits for. *Invariant*: while there is a hold, the lane is busy and no thread
    /// serves it, except the one that is just leaving.
    private(set) var hold: (any LaneHold)?
    /// How many holds of the line wait for other stores or for the main thread, including the one
    /// that the lane waits for.
    private(set) var holdCount = 0
    /// The thread that serves the line, or served it last.
    @usableFromInline var server: UInt = 0
    /// Whether that thread has to continue: it has put a job into the line, or stopped at a hold.
    private(set) var hasServerJob = false
    /// Whether a thread is inside the executor's `execute`.
    private(set) var isHandingOver = false
    /// Whether that thread has to hand over once more.
    private(set) var handsOverAgain = false

    init(isImmediate: Bool) {
        self.isImmediate = isImmediate
    }

    // MARK: At once

    /// Makes a thread the one that serves the lane, for a job of its own, if the lane is free. The
    /// thread must be where the lane's executor would run the job.
    @inline(__always)
    mutating func enter(by thread: UInt, isPaused: Bool) -> Entrance {
        if isClosed { return .closed }
        if isPaused { return .paused }
        guard !isRouted, holdCount == 0 else { return .behind }
        return enterIfFree(by: thread) ? .free : .busy
    }

    /// Makes a thread the one that serves the lane, if the lane is free.
    @inlinable
    mutating func enterIfFree(by thread: UInt) -> Bool {
        guard !isBusy, waitingCount == 0 else { return false }
        isBusy = true
        server = thread
        return true
    }

    /// Ends the job of the thread that entered.
    ///
    /// - Returns: Whether the thread may go. If not, it has to drain the line, or to ``leave()`` it
    ///   if an executor drains it.
    @inlinable
    mutating func leaveEntered() -> Bool {
        guard waitingCount == 0, !isClosed else { return false }
        isBusy = false
        return true
    }

    // MARK: In line

    /// Whether a job may stand in line.
    func placement(isPaused: Bool) -> Placement {
        if isClosed { return .closed }
        if isPaused { return .paused }
        return isRouted ? .routed : .kept
    }

    /// Whether a thread may wait for its turn. Jobs that wait for other stores may need the thread.
    var mayTakeTurns: Bool { isImmediate && holdCount == 0 }

    /// Puts a job behind what is in line; with its hold, if the job is one.
    mutating func append(_ job: Job, waitingFor hold: (any LaneHold)? = nil, by thread: UInt) {
        waiting.append(job)
        waitingCount += 1
        if server == thread { hasServerJob = true }
        if let hold, !hold.isTurn { holdCount += 1 }
    }

    /// Puts a job before what is in line, while the lane waits for something.
    mutating func putFirst(_ job: Job) {
        ahead.append(job)
        waitingCount += 1
        hasServerJob = true
    }

    /// Makes sure that the line is served.
    mutating func claim() -> Duty {
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

    // MARK: Serving

    /// Makes a thread the one that drains the line: the rest of its run, and what came meanwhile.
    mutating func beginDraining(by thread: UInt) {
        server = thread
        hasServerJob = true
    }

    /// Takes out what is in the line, the first job last: what was kept behind a hold, or else all.
    mutating func take(_ jobs: inout [Job]) {
        if ahead.isEmpty {
            swap(&waiting, &jobs)
            swap(&waiting, &spare)
            jobs.reverse()
        } else {
            swap(&ahead, &jobs)
        }
        waitingCount -= jobs.count
    }

    /// Keeps the storage of jobs that are done.
    mutating func reuse(_ jobs: inout [Job]) { swap(&spare, &jobs) }

    /// Makes the lane wait for a hold, and keeps the jobs behind it, the first job last. They are
    /// moved, never copied: otherwise a line of holds would take quadratic time.
    ///
    /// - Returns: Whether it waits; false if it is closed.
    mutating func wait(for hold: any LaneHold, before rest: inout [Job]) -> Bool {
        if isClosed { return false }
        waitingCount += rest.count
        swap(&ahead, &rest)
        hasServerJob = true
        self.hold = hold
        return true
    }

    /// Makes the calling thread serve the lane behind a hold.
    ///
    /// - Returns: Whether it does; false if the lane no longer waits for that hold.
    mutating func takeUp(after hold: any LaneHold) -> Bool {
        guard self.hold === hold else { return false }
        self.hold = nil
        if !hold.isTurn { holdCount -= 1 }
        return true
    }

    /// Says what the thread that drains the line does, now that it has done what it took.
    mutating func next() -> Next {
        isBusy = waitingCount > 0
        if !isBusy { return .nothing }
        defer { hasServerJob = false }
        return hasServerJob ? .line : .othersLine
    }

    /// Ends the calling thread's service of the lane. It still has to do what this returns.
    mutating func leave() -> Duty {
        isBusy = false
        return claim()
    }

    /// Whether to call the executor's `execute` again, after it has returned. If a run ends while
    /// the thread that handed it over is still inside `execute`, that thread hands over the next
    /// one. So an executor that runs functions at once isn't nested ever deeper.
    mutating func handOverReturned() -> Bool {
        isHandingOver = handsOverAgain
        handsOverAgain = false
        return isHandingOver
    }

    // MARK: The end

    /// Closes the lane.
    ///
    /// - Returns: What it waited for, and what stood in line, in order. None of it is done any more.
    mutating func close() -> (hold: (any LaneHold)?, dropped: [Job]) {
        let dropped = ahead.reversed() + waiting
        defer {
            if hold != nil { isBusy = false }
            (isClosed, hold, waitingCount, ahead, waiting) = (true, nil, 0, [], [])
        }
        return (hold, dropped)
    }

    /// Ends the lane if it is closed and nobody serves it.
    ///
    /// - Returns: Whether it has ended just now. That is true once.
    mutating func end() -> Bool {
        guard isClosed, !isBusy, !hasEnded else { return false }
        hasEnded = true
        return true
    }
}
