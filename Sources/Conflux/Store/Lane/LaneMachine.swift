/// Which thread serves the line of one store, and when. What stands in the line is in a ``LaneLine``; it
/// is free of the state's type, so that an uncontended dispatch touches no generic data.
///
/// A pure machine: its functions are told what happens, and say what the calling thread does next. The
/// ``Lane`` keeps it under a mutex and does that.
///
///     free ──enter, claim──▶ busy, a thread serves ──line empty──▶ free
///                        wait ▼ ▲ takeUp
///                       busy, waits for a hold, no thread
///
/// **Invariants.** At most one thread serves. While the lane is free, nothing stands in the line but what
/// somebody is about to ``claim()`` it for. What is put into the line is taken out once: by who serves it, or
/// by ``close(_:)``.
struct LaneMachine {
    /// What a thread that put a job into the line has to do next: nothing where someone serves the line, or to
    /// serve it, or to hand it to the executor.
    enum Duty { case none, serve, handOver }

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

    /// What a lane says to a job that wants to stand in line.
    enum Placement {
        case kept, paused, closed
        /// The store changes only by its route.
        case routed
    }

    /// What a thread that has served a line does next: continues, or leaves the others' line to a queue.
    enum Next { case line, othersLine, nothing }

    /// Whether a thread that dispatches serves the line itself.
    let isImmediate: Bool
    /// Whether dispatches go to a route instead.
    var isRouted = false
    private(set) var isBusy = false
    private(set) var isClosed = false
    /// Whether the lane has come to rest for good.
    private(set) var hasEnded = false
    /// How many jobs stand in the line.
    private(set) var waitingCount = 0
    /// What the lane waits for. *Invariant*: while there is one, the lane is busy and no thread serves it,
    /// but the one that is just leaving.
    private(set) var hold: (any LaneHold)?
    /// How many jobs of the line wait for other stores, or for the main thread, and with them what the lane
    /// waits for.
    private(set) var holdCount = 0
    /// Which thread serves the line, or did last.
    private(set) var server: UInt = 0
    /// Whether that thread has to serve on: it has put a job into the line, or stopped within one.
    private(set) var hasServerJob = false
    /// Whether a thread is inside the executor's `execute`.
    private(set) var isHandingOver = false
    /// Whether that thread has to hand over once more.
    private(set) var handsOverAgain = false

    init(isImmediate: Bool) {
        self.isImmediate = isImmediate
    }

    // MARK: At once

    /// Makes a thread the one that serves the lane, for a job of its own, if the lane is free. The thread is where
    /// the lane's executor would run the job.
    @inline(__always)
    mutating func enter(by thread: UInt, isPaused: Bool) -> Entrance {
        if isClosed { return .closed }
        if isPaused { return .paused }
        guard !isRouted, holdCount == 0 else { return .behind }
        guard !isBusy, waitingCount == 0 else { return .busy }
        isBusy = true
        server = thread
        return .free
    }

    /// The thread that entered has done its job.
    ///
    /// - Returns: Whether it may go; otherwise it has to drain the line, or, where an executor does that, to leave.
    @inline(__always)
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

    /// Whether a thread may wait for its turn: what waits for other stores may need this thread.
    var mayTakeTurns: Bool { isImmediate && holdCount == 0 }

    /// Puts a job behind what is in line; with what is to be waited for, if it is that.
    mutating func append<Job>(
        _ job: Job, waitingFor hold: (any LaneHold)?, to line: inout LaneLine<Job>, by thread: UInt
    ) {
        line.waiting.append(job)
        waitingCount += 1
        if server == thread { hasServerJob = true }
        if let hold, !(hold is DispatchTurn) { holdCount += 1 }
    }

    /// Puts a job before what is in line, while the lane waits for something.
    mutating func putFirst<Job>(_ job: Job, in line: inout LaneLine<Job>) {
        line.ahead.append(job)
        waitingCount += 1
        hasServerJob = true
    }

    /// Sees to it that the line is served, if it isn't.
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

    /// A thread begins to drain the line: it does the rest of one, and the one that came meanwhile.
    mutating func beginDraining(by thread: UInt) {
        server = thread
        hasServerJob = true
    }

    /// Takes out what stands in the line: what was found behind a hold, the first job last, or else all.
    ///
    /// - Returns: Whether it is what was found behind a hold.
    mutating func take<Job>(_ jobs: inout [Job], from line: inout LaneLine<Job>) -> Bool {
        let isAhead = !line.ahead.isEmpty
        if isAhead {
            swap(&line.ahead, &jobs)
        } else {
            swap(&line.waiting, &jobs)
            swap(&line.waiting, &line.spare)
        }
        waitingCount -= jobs.count
        return isAhead
    }

    /// Makes the lane wait for a hold, and keeps the jobs after it, the first job last. It is moved, never
    /// copied: else a line of holds would cost its square.
    ///
    /// - Returns: Whether it waits; not if it is closed.
    mutating func wait<Job>(
        for hold: any LaneHold, before rest: inout [Job], in line: inout LaneLine<Job>
    ) -> Bool {
        if isClosed { return false }
        waitingCount += rest.count
        swap(&line.ahead, &rest)
        hasServerJob = true
        self.hold = hold
        return true
    }

    /// Has the calling thread serve the lane behind a hold.
    ///
    /// - Returns: Whether it does: not if the lane doesn't wait for that any more.
    mutating func takeUp(after hold: any LaneHold) -> Bool {
        guard self.hold === hold else { return false }
        self.hold = nil
        if !(hold is DispatchTurn) { holdCount -= 1 }
        return true
    }

    /// The thread that drains the line has done what it took.
    mutating func next() -> Next {
        isBusy = waitingCount > 0
        if !isBusy { return .nothing }
        defer { hasServerJob = false }
        return hasServerJob ? .line : .othersLine
    }

    /// The calling thread serves the lane no more, but for what it is told.
    mutating func leave() -> Duty {
        isBusy = false
        return claim()
    }

    /// After the executor's `execute` returned: whether to call it again. A run that ends while the thread
    /// that handed it over is still inside leaves the next one to that thread, so that an executor which
    /// runs functions at once isn't nested ever deeper.
    mutating func handOverReturned() -> Bool {
        isHandingOver = handsOverAgain
        handsOverAgain = false
        return isHandingOver
    }

    // MARK: The end

    /// Closes the lane.
    ///
    /// - Returns: What it waited for, and what stood in line, in order; nothing of it is done any more.
    mutating func close<Job>(
        _ line: inout LaneLine<Job>
    ) -> (hold: (any LaneHold)?, dropped: [Job]) {
        defer {
            if hold != nil { isBusy = false }
            (isClosed, hold, waitingCount, line) = (true, nil, 0, LaneLine())
        }
        return (hold, line.ahead.reversed() + line.waiting)
    }

    /// Ends the lane if it is closed and nobody serves it.
    ///
    /// - Returns: Whether it ended just now, which is true once.
    mutating func end() -> Bool {
        guard isClosed, !isBusy, !hasEnded else { return false }
        hasEnded = true
        return true
    }
}

/// The jobs of a lane; the ``LaneMachine`` changes it and knows their number.
struct LaneLine<Job> {
    fileprivate(set) var waiting: [Job] = []
    /// What stands before it, the first one last: what was taken, and found behind something to wait for.
    fileprivate(set) var ahead: [Job] = []
    /// The emptied storage of what was done last, to be used again.
    fileprivate(set) var spare: [Job] = []

    /// Keeps the storage of jobs that are done.
    mutating func reuse(_ jobs: inout [Job]) {
        swap(&spare, &jobs)
    }
}
