import ConfluxVocabulary

/// A question to the sequencer, or to nodes through it.
public struct Question: Sendable, Equatable {
    /// The asker's number for it, repeated in every answer.
    public var number: UInt64
    /// For how long an answer is of use. After that, the sequencer ends the question.
    public var patience: Duration
    /// The delivery tag of the newest answer that was read on this connection; 0 if there is none, or if the
    /// sequencer asks.
    public var acknowledged: UInt64
    /// What is asked.
    public var body: Body

    /// What is asked.
    public enum Body: Sendable, Equatable {
        /// The sequencer's view of itself, its sessions and its stores.
        case status
        /// The same, with the shapes of a state's actions. A sequencer that does not know shapes
        /// answers with the status alone.
        case shapes(Name)
        /// The state of a store, in every node that hosts it, or only in the named node.
        ///
        /// The answer comes once the store's position is above `after`. To follow a store, ask
        /// again with the number of the last answer. So there is one answer at a time, and none too
        /// many.
        case observe(StoreName, node: Name?, after: SequenceNumber)
        /// What a reader of the log begins with for a store: the same as an opener, but the store isn't opened.
        case start(StoreName)
        /// Whether the entry with this number was applied or refused. The first such answer counts.
        case applied(SequenceNumber, Target)
        /// Whether the node is there. The sequencer asks when another process wants the node's name
        /// or its session key (rule 10).
        case alive
        /// Asks the sequencer to read its file of authorised keys again.
        case reload
        /// Which sequencers the log has, and how far each of them is.
        case sequencers
        /// Asks the sequencer to hand over to a standby: to the one with this address, or, if it is nil, to the one
        /// that is furthest.
        case handOver(to: String?)
        /// The timers behind a number, ascending: up to 1,000 of those whose actions the asker may dispatch or read.
        case timers(behind: SequenceNumber)
        /// How the claim with this number and epoch stands: now, or once it does not wait any more.
        case lease(StoreVersion, untilHeld: Bool)
        /// The claims behind a number, ascending: up to 1,000 of those that the asker may see.
        case leases(behind: SequenceNumber)
    }

    /// Makes a question.
    public init(number: UInt64, patience: Duration, acknowledged: UInt64 = 0, body: Body) {
        self.number = number
        self.patience = patience
        self.acknowledged = acknowledged
        self.body = body
    }
}

/// An answer. A question to several nodes gets several answers, and `isLast` marks the last one.
public struct Answer: Sendable, Equatable {
    /// The number of the question.
    public var number: UInt64
    /// Whether no further answer will come.
    public var isLast: Bool
    /// The node that answers; nil for the sequencer, and for a node without a name.
    public var node: Name?
    /// The tag that a later request acknowledges; 0 in an answer from a node.
    public var deliveryTag: UInt64
    /// What is answered.
    public var body: Body
    /// What a reader of the log may begin with earlier than `start` says; nil in other answers.
    public var earlier: EarlierStart?

    /// What is answered.
    public enum Body: Sendable, Equatable {
        /// The sequencer's view.
        case status(SequencerStatus)
        /// The state of a store, in the canonical JSON encoding.
        case state(StoreName, SequenceNumber, Bytes)
        /// What a reader of the log begins with.
        case start(StoreName, Opened.Outcome)
        /// The entry was applied by the answering node.
        case applied
        /// The entry was refused by the state.
        case refused(message: String)
        /// A store of the answering node stopped, and did not apply the entry. The number is that
        /// of the entry at which it stopped; zero if it stopped at none.
        case stopped(at: SequenceNumber, message: String)
        /// The entry concerned no store of the answering node.
        case concernedNobody
        /// The question can't be answered.
        case failed(QuestionFailure, message: String)
        /// The node is there.
        case alive
        /// The file was read, and has this many keys.
        case reloaded(count: UInt32)
        /// The sequencer that serves, and those that stand by.
        case sequencers([SequencerPlace])
        /// The sequencer with this address takes over.
        case handingOver(to: String)
        /// The next timers; none if there are no more.
        case timers([TimerStatus])
        /// How the claim stands.
        case lease(LeaseState)
        /// The next claims; none if there are no more.
        case leases([LeaseStatus])
    }

    /// Makes an answer.
    public init(
        number: UInt64, isLast: Bool = true, node: Name? = nil, deliveryTag: UInt64 = 0, body: Body,
        earlier: EarlierStart? = nil
    ) {
        self.number = number
        self.isLast = isLast
        self.node = node
        self.deliveryTag = deliveryTag
        self.body = body
        self.earlier = earlier
    }
}

/// What a reader needs that begins with a store earlier than an opener does.
public struct EarlierStart: Sendable, Equatable {
    /// The confirmed snapshot before the newest one; nil if the sequencer knows of none.
    public var snapshot: SnapshotReference?
    /// The entries for the store in the log that have no effect (rule 23), ascending.
    public var skipped: [SequenceNumber]
}

/// Why a question can't be answered.
public enum QuestionFailure: UInt8, Sendable, Hashable, CaseIterable {
    /// No live node hosts the store.
    case notHosted = 1
    /// No live node has that name, or it does not host the store.
    case unknownNode = 2
    /// Nobody answered in time.
    case timedOut = 3
    /// A table of questions is full, or the asker has too many answers that it may not have read.
    case tableFull = 4
    /// The effect of the entry is no longer known.
    case effectUnknown = 5
    /// The answer is larger than a frame may be.
    case tooLarge = 7
    /// The connection's key may not ask this.
    case notAllowed = 8
    /// The file of authorised keys is invalid or can't be read, or there is none. The former keys stay.
    case reloadFailed = 9
    /// No sequencer stands by, or none with that address.
    case noStandby = 10
}

/// One of the sequencers of a log, as the serving sequencer knows it.
public struct SequencerPlace: Sendable, Hashable {
    /// The address at which nodes reach it.
    public var address: String
    /// Whether it serves. If not, it stands by.
    public var isServing: Bool
    /// The number up to which it has the log.
    public var last: SequenceNumber

    /// Makes a place.
    public init(address: String, isServing: Bool, last: SequenceNumber) {
        self.address = address
        self.isServing = isServing
        self.last = last
    }
}

/// The sequencer's view of itself.
public struct SequencerStatus: Sendable, Equatable {
    /// The log's id.
    public var log: LogID
    /// The epoch of the present term.
    public var epoch: Epoch
    /// The last committed number.
    public var last: SequenceNumber
    /// The lowest number that the log still holds.
    public var floor: SequenceNumber
    /// The number of the newest checkpoint; zero if none is known.
    public var checkpoint: SequenceNumber
    /// The sessions, by incarnation.
    public var sessions: [SessionStatus]
    /// The stores, by name.
    public var stores: [StoreStatus]
    /// The shapes that were asked for, by schema version, as far as live programs sent them.
    public var shapes: [ActionShapes] = []
    /// What the sequencer knows of its log, its clock and its bounds; nil from older sequencers.
    public var health: SequencerHealth?
}

/// What a sequencer knows of its log, its clock and its bounds.
public struct SequencerHealth: Sendable, Equatable {
    /// The most ``bounds``.
    package static let boundsMax = 8

    /// How many bytes the log uses, by everything that its bound counts: as of about a second ago, if somebody asked then.
    public var usedBytes: UInt64
    /// The bound, in bytes.
    public var limitBytes: UInt64
    /// How many bytes were free on the log's disk at that time; nil if that is not known, as with a log on etcd.
    public var freeBytes: UInt64?
    /// What keeps the log from having room, and what to do about it; nil unless it has reached its bound, so that no
    /// action is admitted.
    public var held: String?
    /// Whether actions are admitted slowly, because most replicas lag.
    public var isSlowed: Bool
    /// Whether the wall clock is behind the log's timestamps by five seconds or more.
    public var isClockBehind: Bool
    /// The fullest queues, tables and buffers, the fullest first.
    public var bounds: [Bound]
}

/// The shapes of a state's actions, as sent by programs with one version of the state.
public struct ActionShapes: Sendable, Hashable {
    /// The schema version.
    public var schemaVersion: UInt32
    /// The shapes, as JSON. The sequencer does not parse them.
    public var json: Bytes
}

/// One session, as the sequencer sees it.
public struct SessionStatus: Sendable, Equatable {
    /// The session's identity.
    public var incarnation: Incarnation
    /// The node's name, if it has one.
    public var name: Name?
    /// The name of the connection's key that began the session; nil if there were no keys.
    public var owner: Name?
    /// Whether its node is present: the sequencer heard from it in this term, and it has not
    /// left.
    public var isLive: Bool
    /// How far its replicas have applied the log.
    public var applied: SequenceNumber
    /// The last counter that the sequencer has judged.
    public var lastCounter: UInt64
    /// The stores it hosts.
    public var hosted: [StoreName]
    /// The states it bridges.
    public var bridged: [Name]
}

/// One store, as the sequencer sees it.
public struct StoreStatus: Sendable, Equatable {
    /// The store.
    public var store: StoreName
    /// The number of its `created` entry.
    public var life: SequenceNumber
    /// Its schema version.
    public var schemaVersion: UInt32
    /// How many live nodes host it.
    public var hosts: UInt32
    /// The number of its newest snapshot; before the first snapshot, that of its `created` entry.
    public var snapshot: SequenceNumber
    /// Whether it is frozen (rule 21).
    public var isFrozen: Bool = false
    /// Where its replicas differ, if they do (rule 22).
    public var divergence: DivergenceStatus?
    /// The replicas in live nodes that stopped, ascending by incarnation (rules 17 and 23). A node does not host a store
    /// that stopped while the node opened it.
    public var stopped: [StoppedReplica] = []
}

/// A replica that stopped.
public struct StoppedReplica: Sendable, Equatable {
    /// Its node.
    public var node: Incarnation
    /// The entry that it did not apply; the number of the store's life if it has no state, because it could not be
    /// loaded.
    public var sequence: SequenceNumber
}

/// Where the replicas of a store differ.
public struct DivergenceStatus: Sendable, Equatable {
    /// The last digest point at which all replicas were equal, or the store's life.
    public var lastEqual: SequenceNumber
    /// The first digest point at which they differed.
    public var firstUnequal: SequenceNumber
    /// The nodes whose state differs from the majority's; without a majority, all that voted.
    public var nodes: [Incarnation]
    /// Whether there is a majority. Its state is then the store's.
    public var isMajority: Bool
    /// The first key path at which they differ, as a JSON pointer; nil until it is known.
    public var path: String?
}
