import ConfluxLog
import ConfluxProtocol

/// How hostile one simulated world is, and how large.
///
/// A plan that is drawn from a seed has some kinds of faults and not others (swarm testing): where
/// everything fails at once nothing gets far enough to fail in an interesting way.
public struct SimulationPlan: Sendable, Hashable {
    /// What a crash of the sequencer's machine takes from its log.
    public enum Durability: String, Sendable, Hashable, CaseIterable {
        /// Nothing that was answered.
        case fsync
        /// The end of it, if the machine loses power.
        case os
        /// All of it, with the process.
        case memory
    }

    /// How many nodes host stores and dispatch.
    public var nodes = 3
    /// How many sequencers share a log on an etcd; one alone has a log on a disk.
    public var sequencers = 1
    /// How far their clocks are off, in a thousand microseconds.
    var clockDrift = 0
    /// How likely a request to the etcd is heard twice, the second time behind others.
    var requestDoubling = 0.0
    /// The mean times between two sequencers that are cut off from the etcd, or from the nodes, for a while, between two
    /// stops of the etcd, and between two handovers.
    var cutFromLogEvery: Duration?
    var cutFromNodesEvery: Duration?
    var stopLogEvery: Duration?
    var handOverEvery: Duration?
    /// How many nodes only follow.
    public var observers = 0
    /// How many processes come, dispatch a little without joining, and go.
    public var visitors = 0
    /// For how long faults happen.
    public var faultsFor: Duration = .seconds(10)
    /// After how many steps they end in any case: a longer run finds less than another seed.
    public var hostileStepsMax = 10_000
    /// How long after that everything has to be current, in simulated time.
    public var recoveryMax: Duration = .seconds(90)
    /// How long a message takes at least and at most.
    public var latency: ClosedRange<Duration> = .microseconds(50)...(.milliseconds(2))
    /// How long the log takes at least and at most.
    public var logLatency: ClosedRange<Duration> = .microseconds(100)...(.milliseconds(3))
    /// The mean time between two dispatches of a node.
    public var dispatchEvery: Duration = .milliseconds(60)

    /// How likely a message of the feed is lost on its way to one subscriber.
    public var feedLoss = 0.0
    /// How likely it comes twice.
    public var feedDuplication = 0.0
    /// How likely it comes late, and so behind others.
    public var feedDelay = 0.0
    /// How likely a message on a connection is lost because a queue is full.
    public var queueLoss = 0.0
    /// The mean time between two broken connections.
    public var breakEvery: Duration?
    /// The mean time between two crashes of nodes.
    public var nodeCrashEvery: Duration?
    /// The mean time between two crashes of the sequencer.
    public var sequencerCrashEvery: Duration?
    /// How likely a process crashes behind any one effect.
    public var crashAtEffect = 0.0
    /// The mean time between two stops of a process, which later continues.
    public var pauseEvery: Duration?
    /// Whether a second sequencer begins while the first is stopped, and continues later.
    public var hasRivals = false
    /// How long after that it begins.
    var rivalsAfter: ClosedRange<Duration> = .milliseconds(10)...(.seconds(3))
    /// The mean time between two clean ends of nodes or of the sequencer.
    public var leaveEvery: Duration?
    /// What a crash takes from the log.
    public var durability = Durability.fsync
    /// The mean time between two losses of power.
    public var powerLossEvery: Duration?
    /// The mean time between two logs that are put back to an earlier copy.
    public var oldCopyEvery: Duration?
    /// How likely the answer to an append is lost, whether it was carried out or not.
    public var unknownAppend = 0.0
    /// How likely the log fails.
    public var logFailure = 0.0
    /// How likely a call of the log takes up to three seconds.
    public var slowLog = 0.0
    /// How likely what is read for somebody takes up to a second.
    var slowRead = 0.0
    /// How likely a store has an executor of its own, which is slow.
    var slowStores = 0.0
    /// How likely applying takes up to a second.
    public var slowApply = 0.0
    /// How likely a state takes up to four seconds to be encoded or decoded.
    var slowCoding = 0.0
    /// How likely the wall clock jumps between two readings, by up to a minute in either direction.
    public var clockJump = 0.0
    /// How likely the next action has a target that nobody knows, or is too large.
    public var badAction = 0.0
    /// How likely a node starts under another one's name.
    public var nameClash = 0.0
    /// How often stores are closed and opened again.
    public var reopenEvery: Duration?
    /// How likely a node starts for the first time when the others have been there for a while.
    var lateStart = 0.0
    /// How long after one another nodes start for the first time, where that is when the first has
    /// been there for a while.
    var joinEvery: Duration?
    /// See `SequencerSettings.feedCommitBytesMax`; the default unless set.
    var feedCommitBytesMax: UInt32?
    /// The mean time between two wishes to freeze or to thaw a store.
    var freezeEvery: Duration?
    /// The mean time between two replicas that are given another state behind everybody's back.
    var spoilEvery: Duration?
    /// The mean time between two entries that processes die of.
    var poisonEvery: Duration?
    /// The mean time until the newer program is there, and then between two nodes that get it.
    var upgradeEvery: Duration?
    /// How likely a part of a snapshot is not what it should be.
    var badPart = 0.0
    /// How likely a sequencer finds its newest checkpoint damaged.
    var damagedCheckpoint = 0.0
    /// The mean time between two rows of the log that are damaged, where the log loses nothing else.
    var damageEvery: Duration?
    /// What is digested, saved and kept.
    var keeping = Keeping()
    /// Whether every bound is so small that it is reached.
    public var hasSmallBounds = false

    /// A world without faults.
    public static let calm = SimulationPlan()

    /// Makes a plan without faults.
    public init() {}

    /// Has a fault happen about once in a second, unless it happens already.
    public mutating func include(_ fault: ClusterFault) {
        let path = Self.path(of: fault)
        if self[keyPath: path] == nil { self[keyPath: path] = .seconds(1) }
    }

    /// The mean time between two of a fault; nil for one that does not happen.
    func interval(of fault: ClusterFault) -> Duration? { self[keyPath: Self.path(of: fault)] }

    private static func path(
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

    /// How many processes there are at a time.
    var slots: Int { nodes + observers + visitors }

    /// What the process in a slot is for.
    func role(of slot: Int) -> Hello.Role {
        slot < nodes ? .member : slot < nodes + observers ? .observer : .visitor
    }

    /// Whether the log may forget what it said it had.
    var mayLoseHistory: Bool {
        durability == .memory || oldCopyEvery != nil
            || (durability == .os && powerLossEvery != nil)
    }
}
