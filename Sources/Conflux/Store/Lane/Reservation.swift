import ConfluxThreads

/// Places in the lanes of one or more stores, for what one thread dispatches.
///
/// The thread first keeps all places, without running user code, and then serves the lanes. So
/// observers' dispatches come later in every lane. A thread that keeps places in several lanes
/// holds a lock that all of these have in common (``GlobalChannel``, ``Scope/reserving(in:_:)``).
/// So any two reservations stand in the same order in all lanes that they share, and two threads
/// never wait for each other's turns.
///
/// A place is either the lane itself, if that is free (``enter(_:_:_:)``), or one in its line
/// (``place(_:in:behind:isPast:_:)``).
struct Reservation {
    /// Whether there are places at all. ``place(_:in:behind:isPast:_:)`` returns it for one of several.
    var placement: Lane.Machine.Placement
    /// The lanes that may be entered.
    private(set) var lanes: [Lane]
    /// Which of the first 64 lanes the thread serves; the first lane has the lowest bit.
    private var entered: UInt64 = 0
    /// *Use*: other lanes that the thread serves, with its jobs.
    private var own: [(lane: Lane, job: @Sendable (_ isOpen: Bool) -> Void)] = []
    /// *Use*: lanes that have a place and that nobody served then; turns to take; lines that are too long.
    private var idle: [Lane] = []
    private var turns: [(turn: DispatchTurn, lane: Lane)] = []
    private var rooms: [(room: Latch, lane: Lane)] = []

    @inline(__always)
    init(entering lanes: [Lane] = [], _ placement: Lane.Machine.Placement = .kept) {
        self.lanes = lanes
        self.placement = placement
    }

    /// Enters a lane for a dispatch that has passed the gate, if it is free and one of the first
    /// 64.
    ///
    /// - Returns: Whether it has entered.
    @inline(__always)
    mutating func enter(
        _ lane: Lane, _ order: Int, _ mark: UnsafeMutablePointer<ThreadMark>
    ) -> Bool {
        guard order < UInt64.bitWidth, case .free = lane.enter(mark, isPast: true) else {
            return false
        }
        entered |= 1 << UInt64(order)
        return true
    }

    /// Whether the thread serves lanes by now.
    var isServing: Bool { !own.isEmpty }

    /// Enters a lane for a job that has passed the gate, if it is free, or else keeps a place in its line.
    ///
    /// - Returns: As ``place(_:in:behind:isPast:_:)``.
    mutating func enter(
        _ lane: Lane, with job: LaneJob, behind hold: (any LaneHold)?,
        _ mark: UnsafeMutablePointer<ThreadMark>
    ) -> Lane.Machine.Placement {
        if hold == nil, case .work(let body) = job, case .free = lane.enter(mark, isPast: true) {
            own.append((lane, body))
            return .kept
        }
        return place(job, in: lane, behind: hold, mark)
    }

    /// Keeps a place in a lane's line: with a turn before it, if the thread may wait for that.
    ///
    /// - Parameters:
    ///   - job: The job, made under the lane's mutex if there is a place.
    ///   - lane: The lane.
    ///   - hold: What the lane has to wait for first.
    ///   - isPast: Whether the job has passed the gate.
    ///   - mayTurn: Whether the thread may wait for its turn. Called under the lane's mutex.
    ///   - mark: The thread's mark.
    /// - Returns: Whether there is a place, or why there is none.
    @discardableResult
    mutating func place(
        _ job: @autoclosure () -> LaneJob, in lane: Lane, behind hold: (any LaneHold)? = nil,
        isPast: Bool = true, mayTurn: @autoclosure () -> Bool = true,
        _ mark: UnsafeMutablePointer<ThreadMark>
    ) -> Lane.Machine.Placement {
        let (thread, mayWait) = (mark.thread, mark.pointee.mayWait)
        return lane.control.withLock { control in
            let placement = control.machine.placement(isPaused: !isPast && lane.isPaused)
            guard placement == .kept else { return placement }
            if !control.machine.isBusy { idle.append(lane) }
            if let hold { lane.append(.hold(hold), to: &control, by: thread) }
            let job = job()
            if mayWait, case .work = job, control.machine.mayTakeTurns, mayTurn() {
                let turn = DispatchTurn()
                turns.append((turn, lane))
                lane.append(.hold(turn), to: &control, by: thread)
            }
            lane.append(job, to: &control, by: thread)
            if mayWait,
                let room = control.room.place(behind: control.machine.waitingCount)
            {
                rooms.append((room, lane))
            }
            return .kept
        }
    }

    /// Does the thread's own job in all lanes that it entered, and only then what else has come
    /// into these lanes meanwhile: that may be much. Then it has the other lanes served, takes the
    /// thread's turns and waits for room. Called once, holding no lock.
    ///
    /// - Parameters:
    ///   - mark: The thread's mark.
    ///   - scope: The lanes' scope.
    ///   - run: Does the job in one lane. The store may have been released meanwhile.
    @inline(__always)
    func serve(
        _ mark: UnsafeMutablePointer<ThreadMark>, in scope: Scope,
        _ run: (_ order: Int, Lane) -> Void
    ) {
        if entered != 0 {
            // The lanes whose lines are not empty by then.
            var busy: UInt64 = 0
            scope.runLane(mark) {
                forEach(of: entered) { order, lane in
                    let isDone = lane.runEnteredInScope { run(order, lane) }
                    if !isDone { busy |= 1 << UInt64(order) }
                }
            }
            if busy != 0 { forEach(of: busy) { _, lane in lane.goOn(mark) } }
        }
        serve(mark)
    }

    /// Passes those of the first 64 lanes to the body whose bits are set.
    @inline(__always)
    private func forEach(of bits: UInt64, _ body: (_ order: Int, Lane) -> Void) {
        var bits = bits
        var order = 0
        lanes.forEachBorrowed { lane in
            if bits & 1 == 1 { body(order, lane) }
            bits >>= 1
            order += 1
        }
    }

    /// Like ``serve(_:in:_:)``, if the thread's jobs are known.
    func serve(_ mark: UnsafeMutablePointer<ThreadMark>) {
        let busy = own.filter { lane, job in
            var isDone = true
            lane.run(mark) {
                isDone = lane.runEnteredInScope { job(!lane.isReleased.load(ordering: .relaxed)) }
            }
            return !isDone
        }
        for (lane, _) in busy { lane.goOn(mark) }
        for lane in idle { lane.kick(mark) }
        for (turn, lane) in turns { turn.take(in: lane) }
        for (room, lane) in rooms { lane.wait(in: room) }
    }
}

extension [Lane] {
    /// Passes each lane to the body without counting a reference to it: the array holds one.
    @inline(__always)
    func forEachBorrowed(_ body: (Lane) -> Void) {
        withUnsafeBufferPointer { lanes in
            guard let first = lanes.baseAddress else { return }
            first.withMemoryRebound(to: Unmanaged<Lane>.self, capacity: lanes.count) { borrowed in
                for index in 0..<lanes.count {
                    borrowed[index]._withUnsafeGuaranteedRef { body($0) }
                }
            }
        }
    }
}
