import Conflux
import ConfluxEtcd
import ConfluxNode
import ConfluxProtocol

/// A whole system in one value: sequencers, their log, nodes with stores, the network between
/// them, and a clock that moves from one event to the next.
///
/// All random choices come from one generator, in the order of events, so that a seed gives the same run each
/// time. All parts that make decisions are the production ones: both machines, the log's worker, the outbox,
/// the applier and the stores. Every frame is encoded and decoded. Only sockets, threads, disk and clocks are
/// simulated.
final class SimulatedCluster {
    let plan: SimulationPlan
    let states: [SimulatedState]
    /// Makes the user's program in a process.
    let makeProgram: (@Sendable (Int) -> any SimulatedProgram)?
    let settings: SequencerSettings
    var random: SimulationRandom
    /// The random source for damage.
    var damageRandom: SimulationRandom
    var marks = Marks()
    let trace: Trace

    var now = Duration.zero
    var stepCount = 0
    var timeline = Timeline<ClusterEvent>()
    /// Whether nodes dispatch.
    var isBusy = true
    /// Whether all published frames are lost.
    var isFeedLost = false
    /// When each digest point was appended. *Use*: marks.
    var pointAt: [SnapshotPlace: Duration] = [:]
    /// The connection that was last asked for a part of each snapshot. *Use*: marks.
    var asked: [SnapshotPlace: UInt64] = [:]
    /// The connections on which a hello was received. Messages before it don't count (rule 8).
    var greeted: Set<UInt64> = []
    /// The connection whose frame was answered with the request to say hello first: that frame did not count.
    var sentBack: UInt64?
    /// What each session has said it no longer hosts.
    var closed: [Incarnation: Set<HostingSubject>] = [:]
    /// The session that each connection's last hello named.
    var named: [UInt64: SessionToken] = [:]
    /// The entries that crash processes.
    var deaths: [Death] = []
    /// The entries at which stores have stopped, and that nobody has skipped.
    var stuck: [Death] = []
    /// The newest program that is released.
    var release = 0
    /// What is wrong with its migrations.
    var releaseFault: MigrationFault?
    /// When the last snapshot of each store was saved. *Use*: marks.
    var savedAt: [StoreName: Duration] = [:]
    /// Whether faults still happen.
    var isHostile = true
    /// The first violation. After it nothing is promised any more.
    var violation: Violation?

    let disk: SimulatedDisk
    let truth: Truth
    var sequencers: [Int: SimulatedSequencer] = [:]
    /// The process that has the address: the newest one.
    var listening: Int?
    /// The etcd that several sequencers share; nil if a single one has a disk.
    let etcd: SimulatedEtcd?
    /// Reads the log in the etcd.
    var observer: EtcdLog?
    /// The time until which the etcd answers nobody.
    var etcdStoppedUntil = Duration.zero
    /// The times until which sequencers are cut off from the etcd, and from the nodes.
    var cutFromLog: [Int: Duration] = [:]
    var cutFromNodes: [Int: Duration] = [:]
    /// The last number of a commit that some sequencer has published.
    var toldThrough = SequenceNumber.zero
    /// The additional time that the current call of the log takes.
    var slowness = Duration.zero
    var nodes: [Int: SimulatedNode] = [:]
    var connections: [UInt64: Connection] = [:]
    var subscriptions: [UInt64: Subscription] = [:]
    /// The sessions whose nodes have left, according to the log. *Use*: marks.
    var away: Set<Incarnation> = []
    private var nextNumber: UInt64 = 1
    /// Claims for leases that processes have receipts of, and the questions about them.
    var claims: [StoreVersion] = []
    /// Those that lock a store, and that nobody has released.
    var locks: [StoreVersion] = []
    var claimQuestions: [UInt64: StoreVersion] = [:]
    private var nextProcess = 1

    init(
        plan: SimulationPlan, states: [SimulatedState],
        makeProgram: (@Sendable (Int) -> any SimulatedProgram)? = nil, random: SimulationRandom,
        isTracing: Bool
    ) {
        self.plan = plan
        self.makeProgram = makeProgram
        self.states = states
        self.random = random
        trace = Trace(isOn: isTracing)
        settings = plan.sequencerSettings
        let log = LogID.random(using: &self.random)
        damageRandom = SimulationRandom(seed: log.low)
        disk = SimulatedDisk(
            id: log, durability: plan.durability, limitBytes: plan.logLimitBytes ?? .max)
        etcd = plan.isShared ? SimulatedEtcd() : nil
        truth = Truth(
            log: log,
            states: Dictionary(states.map { ($0.name, $0) }, uniquingKeysWith: { $1 }))
    }

    // MARK: Beginning

    func begin() {
        if plan.isShared {
            openEtcd()
            for slot in 0..<plan.sequencers {
                schedule(
                    .startStandby(slot: slot),
                    after: random.duration(in: .zero...(.milliseconds(500))))
            }
        } else {
            timeline.schedule(.startSequencer, at: .zero)
        }
        for slot in 0..<plan.slots {
            timeline.schedule(.startNode(slot: slot), at: firstStart(of: slot))
        }
        for fault in ClusterFault.allCases { scheduleNext(fault) }
    }

    private func firstStart(of slot: Int) -> Duration {
        if slot > 0, let joinEvery = plan.joinEvery {
            return plan.faultsFor / 3 + joinEvery * (slot - 1)
                + random.duration(in: .zero...joinEvery)
        }
        return slot > 0 && random.chance(plan.lateStart)
            ? random.duration(in: .seconds(1)...plan.faultsFor)
            : random.duration(in: .zero...(.milliseconds(500)))
    }

    func takeProcess() -> Int {
        defer { nextProcess += 1 }
        return nextProcess
    }

    func takeNumber() -> UInt64 {
        defer { nextNumber += 1 }
        return nextNumber
    }

    func schedule(_ event: ClusterEvent, after delay: Duration) {
        timeline.schedule(event, at: now + delay)
    }

    var latency: Duration { random.duration(in: plan.latency) }

    /// Whether a fault of this probability happens now.
    func strikes(_ probability: Double) -> Bool { isHostile && random.chance(probability) }

    // MARK: One step

    /// Processes the next event.
    ///
    /// - Returns: false if there are no more events.
    func step() -> Bool {
        guard let (at, event) = timeline.takeFirst() else { return false }
        now = at
        stepCount += 1
        do throws(Violation) {
            try happen(event)
            try checkBounds()
        } catch {
            fail(error)
        }
        return true
    }

    /// Records a broken promise; only the first one counts.
    func fail(_ promise: String, _ message: String) { fail(Violation(promise, message)) }

    func fail(_ violation: Violation) {
        guard self.violation == nil else { return }
        self.violation = violation
        trace.note(now, "VIOLATION  \(violation)")
    }

    private func happen(_ event: ClusterEvent) throws(Violation) {
        switch event {
        case .arriveUp(let connection): try arriveUp(connection)
        case .arriveDown(let connection): try arriveDown(connection)
        case .findEnd(let process, let connection): findEnd(of: connection, process)
        case .arriveFeed(let subscription, let frame): try arriveFeed(subscription, frame)
        case .workLog(let process), .workReads(let process), .drained(let process),
            .sequencerTick(let process),
            .subscribed(let process), .renewTerm(let process), .answerLog(let process),
            .watch(let process), .rested(let process), .hinted(let process),
            .doubted(let process), .say(let process, _), .said(let process, _):
            if let sequencer = running(sequencer: process, event) { try happen(event, sequencer) }
        case .nodeTick(let process), .apply(let process), .tell(let process),
            .dispatch(let process), .runProgram(let process), .background(let process),
            .migrate(let process),
            .workStore(let process):
            if let node = running(node: process, event) { try happen(event, node) }
        case .connect(let process): try connect(process)
        case .subscribe(let process): subscribe(process)
        case .startSequencer: startSequencer()
        case .startStandby(let slot): startStandby(slot)
        case .hearLate(let transaction): hearLate(transaction)
        case .startNode(let slot): try startNode(slot)
        case .fault(let fault): try strike(fault)
        case .resume(let process): resume(process)
        case .giveUpLeaving(let process): try finishLeaving(process, isForced: true)
        }
    }

    private func happen(
        _ event: ClusterEvent, _ sequencer: SimulatedSequencer
    ) throws(Violation) {
        switch event {
        case .workLog: try workLog(sequencer)
        case .workReads: try workReads(sequencer)
        case .drained:
            sequencer.isDrainScheduled = false
            try handle(.drained, sequencer)
        case .sequencerTick:
            sequencer.tickAt = nil
            if let due = sequencer.nextDeadline, due <= sequencer.clock.reading(at: now) {
                try handle(.tick, sequencer)
            }
            scheduleTick(sequencer)
        case .subscribed: try handle(.subscribed, sequencer)
        case .renewTerm: post(.renew(.random(using: &random)), sequencer)
        case .answerLog: try answerCall(of: sequencer)
        case .watch: watch(sequencer)
        case .rested: standBy(sequencer)
        case .hinted: hint(sequencer)
        case .doubted: if sequencer.isServing { post(.review, sequencer) }
        case .say(_, let epoch): say(sequencer, epoch)
        case .said(_, let epoch): try heard(sequencer, epoch)
        default: preconditionFailure("\(event) is no sequencer's")
        }
    }

    private func happen(_ event: ClusterEvent, _ node: SimulatedNode) throws(Violation) {
        switch event {
        case .nodeTick:
            node.tickAt = nil
            if let due = node.nextDeadline, due <= now { try handle(.tick, node) }
            try turn(node)
        case .apply: try apply(node)
        case .tell: try tell(node)
        case .background: try workBehind(node)
        case .migrate: try migrate(node)
        case .workStore: try workStore(node)
        case .dispatch: try dispatch(node)
        case .runProgram: try runProgram(node)
        default: preconditionFailure("\(event) is no node's")
        }
    }

    /// The process, if it exists and is not paused. A paused one gets the event later.
    private func running(sequencer process: Int, _ event: ClusterEvent) -> SimulatedSequencer? {
        guard let sequencer = sequencers[process], sequencer.isPaused else {
            return sequencers[process]
        }
        sequencer.deferred.append(event)
        return nil
    }

    private func running(node process: Int, _ event: ClusterEvent) -> SimulatedNode? {
        guard let node = nodes[process], node.isPaused else { return nodes[process] }
        node.deferred.append(event)
        return nil
    }

    private func checkBounds() throws(Violation) {
        guard stepCount % 16 == 0 else { return }
        try checkSpace()
        for sequencer in sequencers.values {
            try check(sequencer.machine.bounds, of: "sequencer \(sequencer.process)")
        }
        for node in nodes.values { try check(node.machine.bounds, of: node.text) }
    }

    private func check(_ bounds: [Bound], of who: String) throws(Violation) {
        for bound in bounds where bound.level > bound.most {
            throw Violation("P7", "\(bound.name) of \(who) is \(bound.level), above \(bound.most)")
        }
    }
}
