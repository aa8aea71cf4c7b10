import Conflux
import ConfluxProtocol
import ConfluxVocabulary
@_exported import struct ConfluxZeroMQ.CurveKeyPair
@_exported import struct ConfluxZeroMQ.CurvePublicKey
@_exported import enum ConfluxZeroMQ.KeyFile
@_exported import struct ConfluxZeroMQ.KeyFileError
import enum ConfluxZeroMQ.SocketSecurity

/// How a node behaves.
public struct NodeSettings: Sendable {
    /// What a dispatch does when the outbox is full. It never silently drops an action.
    public enum OutboxPolicy: Sendable, Hashable {
        /// The dispatch fails with `DispatchError.Code.outboxFull`.
        case fail
        /// The dispatching thread waits for room. Some threads must not wait, since others depend
        /// on them. Their actions are accepted up to twice the bound, and fail with `outboxFull`
        /// above. These are: the threads that run tasks; one inside a commit or an observer of a
        /// replicated store; one that releases a lock, or reports how a dispatch in a mode has
        /// ended. A task that dispatches many actions awaits ``Node/waitForRoom(within:)`` in between.
        case wait
    }

    /// The node's unique name; nil for a process that needs none.
    public var name: Name?
    /// The node's key and the sequencer's, if connections are encrypted; otherwise nil.
    public var keys: NodeKeys?
    /// The addresses of relays (`conflux relay`) that the feed may come from, 16 at most; empty for those that the
    /// sequencer announces, if any. The node begins at a random one. If it fails or is silent, the node goes on to the
    /// next one, and in the end to the sequencer's own feed, which it always knows: see ``NodeEvent/feedFellBack(from:to:message:)``.
    public var feeds: [String] = []
    /// The shortest pause before a node that follows another feed tries its first choice again. It grows tenfold.
    package var feedRetryPause = Duration.seconds(30)
    /// How long ``Node/connect(to:settings:scope:)`` waits for the sequencer.
    public var connectTimeout: Duration = .seconds(5)
    /// How long ``Node/close(within:)`` waits for the outcomes of dispatched actions.
    public var closeTimeout: Duration = .seconds(5)
    /// The most bytes of actions that the sequencer has not taken yet; twice as many for threads
    /// that must not wait (``OutboxPolicy/wait``).
    public var outboxBytesMax: Int = 16 << 20
    /// What a dispatch does above that bound.
    public var outboxPolicy: OutboxPolicy = .wait
    /// The most bytes of one encoded action.
    public var payloadBytesMax: Int = 1 << 20
    /// How many jobs may wait for the apply thread: commits, outcomes, batches, questions. *At the
    /// bound*, as while a reducer or an observer takes long, nothing more is taken out of the
    /// outbox, waits fail, and questions of other nodes stay unanswered. Outcomes of submitted
    /// actions, and the feed within `ReplicaSettings.deliveryBytesMax`, are not delayed by it.
    public var jobsMax: Int = 100_000
    /// The most bytes of reasons why entries had no effect, per store. They answer questions about
    /// entries. *At the bound* the oldest are forgotten, and the answer is that the effect is
    /// unknown.
    public var refusalBytesMax: Int = 4 << 20
    /// The most events that wait for a reader of ``Node/events``; the oldest are dropped.
    public var eventsMax: Int = 256
    /// The most bytes of encoded states kept for snapshots: each store's states at its last two
    /// digest points. *At the bound* the oldest are dropped, and other nodes are asked.
    public var encodingsBytesMax: Int = 256 << 20
    /// A file in which the node's stores note which entry they apply; nil for none. If a program
    /// died of an entry twice in a row, its next run stops the store before that entry, and
    /// reports ``NodeEvent/storeStopped(_:at:message:)``, instead of dying again. Each node needs
    /// a file of its own, on a disk that outlives the process.
    public var crashJournal: String?
    /// When the schema versions of the stores that this node hosts rise, if the program understands newer ones
    /// (`BridgedState.oldestSchemaVersion`).
    public var upgrades = UpgradePolicy.whenAllUnderstand
    /// How long the node's thread polls for the outcome of an action before it sleeps, 10 ms at most; zero if it
    /// sleeps at once. Polling shortens the time to an outcome, and keeps a processor busy meanwhile, unless other
    /// threads need it. A node polls only while it awaits an outcome, and if the last one took no longer than this; one
    /// that only follows the log never does. Set it to zero in a container with a quota of processor time. With one
    /// processor it has no effect.
    public var busyPollMax = Duration.microseconds(400)
    /// Bounds and intervals of the protocol. The node sets their name and role.
    public var replica = ReplicaSettings(name: nil, role: .member)

    /// Makes the default settings.
    ///
    /// - Parameter name: The node's unique name; nil for a process that needs none.
    public init(name: Name? = nil) {
        self.name = name
    }
}

/// The keys of a node and of its sequencer, for encrypted connections.
///
/// ```swift
/// var settings = NodeSettings(name: "alpha")
/// settings.keys = NodeKeys(
///     own: try KeyFile.readPair("alpha.secret"),
///     sequencer: try KeyFile.readPublicKey("sequencer.public"))
/// ```
public struct NodeKeys: Sendable, Hashable {
    /// The node's own pair. The sequencer decides by its public half whether to admit the node.
    public var own: CurveKeyPair
    /// The sequencer's public key. Only a server with its secret half can answer.
    public var sequencer: CurvePublicKey

    /// Makes keys of a pair and the sequencer's public key.
    public init(own: CurveKeyPair, sequencer: CurvePublicKey) {
        self.own = own
        self.sequencer = sequencer
    }

    var security: SocketSecurity { .client(own, server: sequencer) }
}
