/// The size of a simulated world, and its faults.
///
/// A plan drawn from a seed has some kinds of faults and not others (swarm testing): if everything fails at
/// once, nothing gets far enough to fail in an interesting way.
public struct SimulationPlan: Sendable, Hashable {
    /// What a crash of the sequencer's machine takes from its log.
    public enum Durability: String, Sendable, Hashable, CaseIterable {
        /// Nothing that was acknowledged.
        case fsync
        /// Its end, if the machine loses power.
        case os
        /// All of it, as soon as the process ends.
        case memory
    }

    /// How many nodes host stores and dispatch.
    public var nodes = 3
    /// How many sequencers share a log on an etcd; a single one has a log on a disk.
    public var sequencers = 1
    /// The most that their clocks drift, in microseconds for each thousand.
    var clockDrift = 0
    /// How likely the etcd receives a request twice, the second time after other requests.
    var requestDoubling = 0.0
    /// The mean times between two faults: a sequencer is cut off from the etcd or from the nodes for a while,
    /// the etcd stops, or a sequencer hands over.
    var cutFromLogEvery: Duration?
    var cutFromNodesEvery: Duration?
    var stopLogEvery: Duration?
    var handOverEvery: Duration?
    /// How many nodes only follow.
    public var observers = 0
    /// How many processes only dispatch, a little, and leave.
    public var dispatchers = 0
    /// How long faults happen.
    public var faultsFor: Duration = .seconds(10)
    /// After how many steps faults end in any case: another seed finds more than a longer run.
    public var hostileStepsMax = 10_000
    /// How long after that everything must be current, in simulated time.
    public var recoveryMax: Duration = .seconds(90)
    /// The range of times that a message takes.
    public var latency: ClosedRange<Duration> = .microseconds(50)...(.milliseconds(2))
    /// The range of times that the log takes.
    public var logLatency: ClosedRange<Duration> = .microseconds(100)...(.milliseconds(3))
    /// The mean time between two dispatches of a node.
    public var dispatchEvery: Duration = .milliseconds(60)

    /// How likely one subscriber misses a message of the feed.
    public var feedLoss = 0.0
    /// How likely a message of the feed arrives twice.
    public var feedDuplication = 0.0
    /// How likely a message of the feed arrives late, and so after others.
    public var feedDelay = 0.0
    /// How likely a message on a connection is lost because a queue is full.
    public var queueLoss = 0.0
    /// The mean time between two broken connections.
    public var breakEvery: Duration?
    /// The mean time between two crashes of nodes.
    public var nodeCrashEvery: Duration?
    /// The mean time between two crashes of the sequencer.
    public var sequencerCrashEvery: Duration?
    /// How likely a process crashes after an effect.
    public var crashAtEffect = 0.0
    /// The mean time between two pauses of a process, which continues later.
    public var pauseEvery: Duration?
    /// Whether a second sequencer begins while the first one is paused, which continues later.
    public var hasRivals = false
    /// How long after the pause it begins.
    var rivalsAfter: ClosedRange<Duration> = .milliseconds(10)...(.seconds(3))
    /// The mean time between two clean ends of nodes or of the sequencer.
    public var leaveEvery: Duration?
    /// What a crash takes from the log.
    public var durability = Durability.fsync
    /// The mean time between two power failures.
    public var powerLossEvery: Duration?
    /// The mean time between two restorations of an earlier copy of the log.
    public var oldCopyEvery: Duration?
    /// How likely the answer to an append is lost, whether or not it was carried out.
    public var unknownAppend = 0.0
    /// How likely a call of the log fails.
    public var logFailure = 0.0
    /// How likely a call of the log takes up to three seconds.
    public var slowLog = 0.0
    /// How likely a read of the log takes up to a second.
    var slowRead = 0.0
    /// How likely a store has an executor of its own, which is slow.
    var slowStores = 0.0
    /// How likely applying takes up to a second.
    public var slowApply = 0.0
    /// How likely encoding or decoding a state takes up to four seconds.
    var slowCoding = 0.0
    /// How likely the wall clock jumps between two readings, by up to a minute in either direction.
    public var clockJump = 0.0
    /// How likely the next action has an unknown target, or is too large.
    public var badAction = 0.0
    /// How likely a node starts under another node's name.
    public var nameClash = 0.0
    /// How often stores are closed and opened again.
    public var reopenEvery: Duration?
    /// How likely a store is dropped for everybody instead.
    var dropping = 0.2
    /// How likely a node first starts after the others have run for a while.
    var lateStart = 0.0
    /// How long after one another such nodes first start.
    var joinEvery: Duration?
    /// See `SequencerSettings.feedCommitBytesMax`; nil for the default.
    var feedCommitBytesMax: UInt32?
    /// The mean time between two requests to freeze or thaw a store.
    var freezeEvery: Duration?
    /// The mean time between two replicas whose states are corrupted.
    var spoilEvery: Duration?
    /// The mean time between two entries that crash processes.
    var poisonEvery: Duration?
    /// The mean time until a newer program is released, and then between two nodes that get it.
    var upgradeEvery: Duration?
    /// How likely a node starts with an older program than the newest.
    var rollback = 0.0
    /// How likely a release, or a process, has migrations that fail.
    var badMigration = 0.0
    /// How likely a node has stores whose versions rise only when somebody says so, or never.
    var policies = 0.0
    /// See `SequencerSettings.migrationPatience`.
    var migrationPatience: Duration = .seconds(2)
    /// Whether an older program is brought back, once faults have ended, for a store that the newest one can't host.
    /// Otherwise that one may judge entries again.
    var bringsFormerProgram = false
    /// How likely a part of a snapshot is wrong.
    var badPart = 0.0
    /// How likely a sequencer finds its newest checkpoint damaged.
    var damagedCheckpoint = 0.0
    /// The mean time between two damaged rows, in a log that loses nothing else.
    var damageEvery: Duration?
    /// The bound of the log in bytes; nil if it has none.
    private(set) var logLimitBytes: UInt64?
    /// The settings for digests, snapshots and truncation.
    var keeping = Keeping()
    /// Whether every bound is so small that it is reached.
    public var hasSmallBounds = false

    /// A world without faults.
    public static let calm = SimulationPlan()

    /// Makes a plan without faults.
    public init() {}

    /// Makes a fault happen about once a second, unless the plan already includes it.
    public mutating func include(_ fault: ClusterFault) {
        let path = Self.path(of: fault)
        if self[keyPath: path] == nil { self[keyPath: path] = .seconds(1) }
    }

    /// Makes the faults last for a simulated time, for states with rules of time. Nodes then dispatch less often, so that
    /// there are about as many actions as in ten seconds.
    ///
    /// - Parameter duration: The time. A plan that lasts longer stays as it is.
    public mutating func last(for duration: Duration) {
        guard duration > faultsFor else { return }
        dispatchEvery = max(dispatchEvery, dispatchEvery * (duration / .seconds(10)))
        faultsFor = duration
        hostileStepsMax = .max
    }

    /// Bounds the log, unless it is on other machines' disks. A damaged log is not bounded: it may need what can't be
    /// read for as long as nobody drops the store, and so may have no room.
    ///
    /// - Parameter limitBytes: The bound.
    public mutating func boundLog(to limitBytes: UInt64) {
        guard !isShared, damageEvery == nil else { return }
        logLimitBytes = limitBytes
    }

    /// The mean time between two occurrences of a fault; nil if it does not happen.
    func interval(of fault: ClusterFault) -> Duration? { self[keyPath: Self.path(of: fault)] }

    static func path(
        of fault: ClusterFault
    ) -> WritableKeyPath<SimulationPlan, Duration?> {
        switch fault {
        case .breakConnection: \.breakEvery
        case .crashNode: \.nodeCrashEvery
        case .crashSequencer: \.sequencerCrashEvery
        case .pause: \.pauseEvery
        case .leave: \.leaveEvery
        case .losePower: \.powerLossEvery
        case .restoreCopy: \.oldCopyEvery
        case .reopen: \.reopenEvery
        case .freeze: \.freezeEvery
        case .spoil: \.spoilEvery
        case .poison: \.poisonEvery
        case .upgrade: \.upgradeEvery
        case .damage: \.damageEvery
        case .cutFromLog: \.cutFromLogEvery
        case .cutFromNodes: \.cutFromNodesEvery
        case .stopLog: \.stopLogEvery
        case .handOver: \.handOverEvery
        }
    }

    /// Whether several sequencers share a log.
    var isShared: Bool { sequencers > 1 }

    /// How many processes run at a time.
    var slots: Int { nodes + observers + dispatchers }

    /// What the process in a slot is for.
    func kind(of slot: Int) -> SimulatedNode.Kind {
        slot < nodes ? .worker : slot < nodes + observers ? .observer : .dispatcher
    }
}
