import Conflux
import ConfluxProtocol
import ConfluxVocabulary

/// A node's counters and measurements at one moment: see ``Node/metrics()``.
public struct NodeMetrics: Sendable {
    /// The outcome of an action, as its dispatcher learned it.
    public enum OutcomeKind: String, Sendable, Hashable, CaseIterable {
        /// The action is in the log and was applied here.
        case receipt
        /// The action is in the log and changed nothing.
        case refused
        /// The sequencer rejected the action: it is not in the log.
        case rejected
        /// The action was withdrawn in time: it is not in the log.
        case withdrawn
        /// The action is in the log, but a store here stopped before it.
        case storeStopped
        /// It is unknown whether the action is in the log.
        case outcomeUnknown
        /// The action is in the log, but its effect here is unknown.
        case effectUnknown
    }

    /// Why the node had to resynchronise with the log.
    public enum ResyncReason: String, Sendable, Hashable, CaseIterable {
        /// ``NodeEvent/reconnected(_:)``.
        case reconnected
        /// ``NodeEvent/historyLost(from:through:)``.
        case historyLost
        /// ``NodeEvent/sessionForgotten``.
        case sessionForgotten
        /// ``NodeEvent/missed(from:through:)``.
        case missed
        /// ``NodeEvent/logDamaged(from:through:message:)``.
        case logDamaged
    }

    /// Whether the node has a session and hears from the sequencer.
    public var isConnected = false
    /// The epoch of the last welcome.
    public var epoch = Epoch.none
    /// The highest committed number that the node knows of.
    public var last = SequenceNumber.zero
    /// The number up to which every store here has applied entries.
    public var applied = SequenceNumber.zero
    /// The stores that the node hosts.
    public var stores: [StoreName] = []
    /// How many stores and bridged states are opening or catching up.
    public var catchingUp = 0
    /// How many stores have stopped: they apply no further entries. Those that stopped while the node opened them, and so
    /// could not be opened, are among them.
    public var stopped = 0
    /// How many actions the node has submitted.
    public var actions: UInt64 = 0
    /// How many submitted actions have no outcome yet.
    public var unsettled: UInt64 = 0
    /// How many actions ended in each outcome.
    public var outcomes: [OutcomeKind: UInt64] = [:]
    /// The time from the dispatch of a batch's first action until the outcomes of its actions were reported.
    /// Each action is one observation.
    public var receiptLatency = LatencyHistogram()
    /// How often the node lost contact with the sequencer.
    public var disconnections: UInt64 = 0
    /// How often a connection was refused.
    public var refusedConnections: UInt64 = 0
    /// How often the node had to resynchronise, by reason.
    public var resyncs: [ResyncReason: UInt64] = [:]
    /// How often replicas of a store hosted here diverged.
    public var divergences: UInt64 = 0
    /// The levels of queues, tables and buffers. The outbox is `outboxBytesMax`.
    public var bounds: [Bound] = []
    /// How long ago the thread that owns the connection finished a turn.
    public var turnAge = Duration.zero
    /// How long the apply thread has been running its current job; nil while it is idle.
    public var applyJobAge: Duration?

    /// How many entries the stores here lag behind the log.
    public var lagEntries: UInt64 { last.rawValue - min(applied, last).rawValue }

    /// A thread that is busy for longer than this counts as stuck.
    public static let busyMax = Duration.seconds(10)

    package init() {}

    /// Why the node counts as stuck; empty if it is alive.
    public var livenessFaults: [String] {
        var faults: [String] = []
        if turnAge > Self.busyMax {
            let seconds = turnAge.components.seconds
            faults.append("the connection thread has been busy for \(seconds) s")
        }
        if let age = applyJobAge, age > Self.busyMax {
            let seconds = age.components.seconds
            faults.append("the apply thread has been busy with one job for \(seconds) s")
        }
        return faults
    }

    /// Why the node is not ready; empty if it is connected and all its stores are current.
    public var readinessFaults: [String] {
        var faults: [String] = []
        if !isConnected { faults.append("not connected to the sequencer") }
        if catchingUp > 0 { faults.append("stores that are opening or catching up: \(catchingUp)") }
        if stopped > 0 { faults.append("stopped stores: \(stopped)") }
        return faults
    }
}
