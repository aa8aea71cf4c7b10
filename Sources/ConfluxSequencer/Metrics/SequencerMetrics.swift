import ConfluxProtocol
import ConfluxVocabulary
import ConfluxZeroMQ

/// A sequencer's counters and measurements at one moment: see ``Sequencer/metrics()``.
public struct SequencerMetrics: Sendable {
    /// How far a node that hosts stores lags behind the log.
    public struct Lag: Sendable, Hashable {
        /// The node's name, if it has one.
        public var name: Name?
        /// How many entries the node has not applied.
        public var entries: UInt64
        /// The age of the oldest entry that the node has not applied, at most the age of the process; zero if
        /// there is none.
        public var age: Duration
    }

    /// Whether a term serves nodes.
    public var isServing = false
    /// Whether it follows the log of another sequencer, and could take over.
    public var isStandingBy = false
    /// How many terms of this process began to serve.
    public var terms: UInt64 = 0
    /// How many of them ended because the log failed.
    public var logFailures: UInt64 = 0
    /// The epoch of the present term.
    public var epoch = Epoch.none
    /// The number of the last committed entry.
    public var last = SequenceNumber.zero
    /// The lowest number that the log still holds.
    public var floor = SequenceNumber.zero
    /// The counts of entries and rejections since the process began.
    public var tally = SequencerTally()
    /// The time from handing commits to the log until they were published.
    public var commitLatency = LatencyHistogram()
    /// The time to write commits to the log, and to sync them if the log's durability asks for it.
    public var appendLatency = LatencyHistogram()
    /// How many frames from nodes were unreadable.
    public var unreadableFrames: UInt64 = 0
    /// How many sessions belong to live nodes.
    public var liveSessions = 0
    /// How many sessions are kept for nodes that are away.
    public var awaySessions = 0
    /// How many connections are observers, which only read.
    public var observers = 0
    /// How many stores there are.
    public var stores = 0
    /// How many timers there are that have not fired for the last time.
    public var timers = 0
    /// How many connected nodes host stores.
    public var replicas = 0
    /// How many replicas in live nodes have stopped: they apply no further entries.
    public var stoppedReplicas = 0
    /// The lag of the slowest of these nodes. A node that has not reported its position yet does not count.
    public var lagMax = Lag(name: nil, entries: 0, age: .zero)
    /// The lags of named nodes, the slowest first, ``lagsMax`` at most.
    public var lags: [Lag] = []
    /// Whether admission is slowed because most replicas lag.
    public var isSlowed = false
    /// How many nodes had a history that was not this log's.
    public var historyLosses: UInt64 = 0
    /// How many stores have replicas that differ.
    public var divergedStores = 0
    /// How often replicas of a store began to differ.
    public var divergences: UInt64 = 0
    /// How many snapshots were taken.
    public var snapshotsTaken: UInt64 = 0
    /// How many snapshots failed.
    public var snapshotsFailed: UInt64 = 0
    /// When the last snapshot was taken; nil if this process has taken none.
    public var lastSnapshotAt: Timestamp?
    /// How many checkpoints were saved.
    public var checkpointsSaved: UInt64 = 0
    /// How many checkpoints failed.
    public var checkpointsFailed: UInt64 = 0
    /// When the last checkpoint was saved; nil if this process has saved none.
    public var lastCheckpointAt: Timestamp?
    /// Whether the log has reached its bound, so that nothing is admitted.
    public var isLogNearlyFull = false
    /// What keeps the log from having room; nil while it has room.
    public var logHold: LogHold?
    /// Whether the wall clock is behind the log's timestamps by five seconds or more.
    public var isClockBehind = false
    /// How often the wall clock jumped forward by five seconds or more.
    public var clockJumps: UInt64 = 0
    /// Approximately how many bytes of commits the log holds.
    public var retainedBytes: UInt64 = 0
    /// The levels of queues, tables and buffers.
    public var bounds: [Bound] = []
    /// How long ago the serving thread finished a turn.
    public var turnAge = Duration.zero
    /// How long the log thread has been running its current job; nil while it is idle.
    public var logJobAge: Duration?

    /// The most nodes in ``lags``.
    public static let lagsMax = 256
    /// A serving thread that finishes no turn for longer than this counts as stuck.
    public static let turnAgeMax = Duration.seconds(10)
    /// A log job that runs for longer than this counts as stuck.
    public static let logJobAgeMax = Duration.seconds(60)
    /// A log whose job runs for longer than this is not healthy.
    public static let healthyLogJobAgeMax = Duration.seconds(10)

    package init() {}

    /// Why the sequencer counts as stuck; empty if it is alive.
    public var livenessFaults: [String] {
        var faults: [String] = []
        if turnAge > Self.turnAgeMax {
            faults.append(
                "the serving thread has been busy for \(turnAge.wholeSeconds) s")
        }
        if let age = logJobAge, age > Self.logJobAgeMax {
            faults.append("the log thread has been busy with one job for \(age.wholeSeconds) s")
        }
        return faults
    }

    /// Why the sequencer is not ready; empty if a term serves, or the
    /// sequencer stands by for another one, and the log is healthy.
    public var readinessFaults: [String] {
        var faults: [String] = []
        if !isServing, !isStandingBy { faults.append("no term is serving") }
        if let age = logJobAge, age > Self.healthyLogJobAgeMax {
            faults.append("the log thread has been busy with one job for \(age.wholeSeconds) s")
        }
        return faults
    }
}

extension Duration {
    fileprivate var wholeSeconds: Int64 { components.seconds }
}

extension ServingLevels {
    /// The bounds of a socket.
    func bounds(of socket: String) -> [Bound] {
        [
            Bound("\(socket)Connections", connections.level, of: connections.most),
            Bound("\(socket)Handshakes", handshakes.level, of: handshakes.most),
            Bound("\(socket)QueueBytes", queueBytes.level, of: queueBytes.most),
        ]
    }
}
