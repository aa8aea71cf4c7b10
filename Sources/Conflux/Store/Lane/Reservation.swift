import ConfluxThreads

/// Places in the lanes of one or more stores, for what one thread dispatches.
///
/// The thread first keeps all places, running no user code, and then serves the lanes. So observers'
/// dispatches come later in every lane. Whoever keeps places in several lanes holds a lock meanwhile that
/// all of these have in common (``GlobalChannel``, ``Scope/reserving(in:_:)``): so any two reservations
/// stand in one order in all lanes that they share, and two threads never wait for each other's turns.
///
/// A place is either the lane itself, where that is free (``enter(_:_:_:)``), or one in its line
/// (``place(_:in:behind:isPast:_:)``).
struct Reservation {
    /// Whether there are places at all; of one among several, ``place(_:in:behind:isPast:_:)`` tells.
    var placement: LaneMachine.Placement
    /// The lanes that may be entered.
    private(set) var lanes: [Lane]
    /// Which of the first 64 of these the thread serves, the first one's bit the lowest.
    private var entered: UInt64 = 0
    /// *Use*: lanes with a place that nobody served then; turns to be taken; lines that are too long.
    private var idle: [Lane] = []
    private var turns: [(turn: DispatchTurn, lane: Lane)] = []
    private var rooms: [(room: Latch, lane: Lane)] = []

    @inline(__always)
    init(entering lanes: [Lane] = [], _ placement: LaneMachine.Placement = .kept) {
        self.lanes = lanes
        self.placement = placement
    }

    /// Enters one of the lanes, past the gate, if it is free and one of the first 64.
    ///
    /// - Returns: Whether it is entered.
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

    /// Keeps a place in a store's line: with a turn before it, if the thread may wait for that.
    ///
    /// - Parameters:
    ///   - job: What is to be done.
    ///   - core: The store.
    ///   - hold: What the lane waits for before.
    ///   - isPast: Whether the job is past the gate.
    ///   - mark: The thread's.
    /// - Returns: Whether there is a place.
    @discardableResult
    mutating func place<S: State>(
        _ job: LaneJob<S>, in core: StoreCore<S>, behind hold: (any LaneHold)? = nil,
        isPast: Bool = true, _ mark: UnsafeMutablePointer<ThreadMark>
    ) -> LaneMachine.Placement {
        core.control.withLock { control in
            let placement = control.machine.placement(
                isPaused: !isPast && core.scope.gate.isClosed)
            guard placement == .kept else { return placement }
            if !control.machine.isBusy { idle.append(core) }
            if let hold { core.append(.hold(hold), to: &control, mark) }
            if mark.pointee.mayWait, job.isAction, control.machine.mayTakeTurns {
                let turn = DispatchTurn()
                turns.append((turn, core))
                core.append(.hold(turn), to: &control, mark)
            }
            core.append(job, to: &control, mark)
            if mark.pointee.mayWait,
                let room = control.room.place(behind: control.machine.waitingCount)
            {
                rooms.append((room, core))
            }
            return .kept
        }
    }

    /// Does what the thread entered lanes for, in all of them, and only then what else has come into these lanes
    /// meanwhile: that may be much. Then it has the others served, takes the thread's turns and waits for room.
    /// Called once, holding no lock.
    ///
    /// - Parameters:
    ///   - mark: The thread's.
    ///   - scope: The lanes' scope.
    ///   - run: Does it in one lane. The store may have been released meanwhile.
    @inline(__always)
    func serve(
        _ mark: UnsafeMutablePointer<ThreadMark>, in scope: Scope,
        _ run: (_ order: Int, Lane) -> Void
    ) {
        if entered != 0 {
            // Those in whose lines something stands by then.
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

    /// Passes those of the first 64 lanes to the body that have their bits.
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

    /// As ``serve(_:in:_:)``, where no lane was entered.
    func serve(_ mark: UnsafeMutablePointer<ThreadMark>) {
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
