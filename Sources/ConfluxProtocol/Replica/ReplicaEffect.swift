import ConfluxVocabulary

/// An effect that a node's machine wants. Effects are carried out one after another, in their
/// order.
public enum ReplicaEffect: Sendable, Equatable {
    /// Send a message to the sequencer.
    case send(NodeMessage)
    /// Give up the connection, and connect to this address. If it is nil, connect to the next of the addresses that
    /// the node was given, if there is another. The next input about the connection is ``ReplicaInput/reconnected``.
    case connect(to: String?)
    /// Subscribe to the feed at this endpoint, and to no other.
    case subscribe(String)
    /// Hand a delivery to the thread that applies. It handles deliveries in their order.
    case deliver(Delivery)
    /// Give a part of a store's encoding at a digest point, by ``ReplicaInput/given(_:)``.
    case give(SnapshotRequest)
    /// Answer a question for this node, by ``ReplicaInput/answer(_:)``.
    case asked(Question)
    /// Pass on an answer to this node's question.
    case answered(Answer)
    /// Pass on what was loaded; nil if the sequencer no longer has it, or it is too large.
    case loaded(request: UInt64, Bytes?)
    /// Report an event to whoever watches the node.
    case event(ReplicaEvent)
    /// The node can't continue. This is the last effect.
    case end(ReplicaEnd)
}

/// A job for the thread that applies, which does its jobs in the order of their delivery. An outcome, or a number
/// that somebody waits for, is delivered as soon as it is known. The applier reports it once every store here that it
/// concerns has reached the number (P6).
public enum Delivery: Sendable, Equatable {
    /// Apply a commit to every store that is attached, and to every store of a bridged state.
    case commit(Commit, byteCount: Int)
    /// Apply a commit to these subjects, which catch up, and to nothing else.
    case catchUp(Commit, byteCount: Int, to: [HostingSubject])
    /// Give the store this state. The answer is ``ApplyReport/ready(_:through:request:)``. The store catches up from
    /// there, without the entries that have no effect (rule 23).
    ///
    /// After the state, the store gets what is kept aside for it, in the encoding of `AsideEntries`. Then it has
    /// everything up to `through`.
    case restore(
        StoreName, life: SequenceNumber, Snapshot, in: VersionInForce, aside: Bytes?,
        skipped: [SequenceNumber],
        through: SequenceNumber, request: UInt64)
    /// Migrate a snapshot of a store to a schema version, and answer by ``ApplyReport/migrated(_:)``. Nothing here
    /// changes (rule 17).
    case migrate(StoreName, life: SequenceNumber, Snapshot, to: UInt32)
    /// From here on the subject gets the commits that it catches up with.
    case begin(HostingSubject)
    /// The next commit of the feed begins behind this number. Entries up to it are in the states that the replicas
    /// get, or nowhere: bridged states get none of them.
    case passOver(SequenceNumber)
    /// Replicas of a store differ. Compare the state that this node had at the digest point with these bytes, find
    /// the place where they differ, and answer by ``ApplyReport/located(_:)``. The bytes are nil if the other state
    /// can't be loaded. A store that is to load that state gets nothing more until it has it.
    case compare(Divergence, Bytes?)
    /// The subject has caught up: from here on commits apply to it.
    case attach(HostingSubject)
    /// Report the outcome of actions that this node dispatched, once every store here that they concern has reached
    /// their numbers.
    case settle(ActionOutcome)
    /// Answer an open, once the store has applied everything that was delivered to it before.
    case opened(request: UInt64, OpenOutcome)
    /// Notify whoever waits, once every store here has reached the number.
    case reach(request: UInt64, ReachOutcome)
    /// The history that the replicas have is not the log's: none of it counts (rule 2).
    case reset
}

/// The schema version that is in force for a store from its snapshot on (rule 17).
public struct VersionInForce: Sendable, Hashable {
    /// The version.
    public var version: UInt32
    /// The digest that the snapshot's state has in this version; nil if the snapshot has it, or if nobody had migrated
    /// it before the version rose.
    public var migrated: Digest?

    /// Makes a version.
    public init(_ version: UInt32, migrated: Digest? = nil) {
        self.version = version
        self.migrated = migrated
    }
}

/// The outcome of an open.
public enum OpenOutcome: Sendable, Equatable {
    /// The store is hosted, or the state bridged.
    case opened(life: SequenceNumber)
    /// The open failed.
    case failed(RejectionCode, message: String)
}

/// The outcome of waiting for a number.
public enum ReachOutcome: Sendable, Equatable {
    /// The wait ends once everything up to this number is applied here.
    case due(SequenceNumber)
    /// The number is of another log than the node's, which is this one.
    case otherLog(LogID)
    /// The question can't be answered.
    case failed(RejectionCode, message: String)
}

/// The outcome of consecutive actions of this node.
public struct ActionOutcome: Sendable, Equatable {
    /// The first action's counter.
    public var firstCounter: UInt64
    /// How many actions.
    public var count: UInt32
    /// What became of them.
    public var status: Status

    /// What became of actions.
    public enum Status: Sendable, Equatable {
        /// They are in the log, with consecutive numbers from this one on.
        case committed(LogID, SequenceNumber, Epoch, Timestamp)
        /// They are not in the log, and never will be.
        case rejected(RejectionCode, message: String)
        /// They are not in the log, and never will be: the store has this version, which is not that of their condition.
        case conflict(StoreVersion, message: String)
        /// They were submitted, and it is no longer possible to know whether they are in the log
        /// (P5).
        case unknown
    }
}

/// Something that a node reports to whoever watches it. Events change nothing.
public enum ReplicaEvent: Sendable, Equatable {
    /// The node has its session, in this epoch of this log.
    case joined(LogID, Epoch, Incarnation)
    /// The node no longer hears from the sequencer, by its answers or by its feed, and tries to reach it.
    case disconnected
    /// The sequencer answers, but its feed brings nothing. It comes again as long as that lasts.
    case feedSilent
    /// The node hears from the sequencer again, by its answers and by its feed, or another term has begun.
    case reconnected(Epoch)
    /// A sequencer of an older epoch still sends messages. They are ignored.
    case staleSequencer(Epoch)
    /// The log lost entries that this node had, from the first number to the last.
    case historyLost(from: SequenceNumber, through: SequenceNumber)
    /// The sequencer has forgotten the session. Actions without a receipt have an unknown outcome.
    case sessionForgotten
    /// The node's key may not do what the node does. The node says hello again from time to time.
    case notAllowed(message: String)
    /// The sequencer runs but does not serve: its log fails, or it stands by and knows of none that
    /// serves.
    case notServing(message: String)
    /// The sequencer admits no actions of this node now, for the reason in the message. It comes again as long as that
    /// lasts.
    case heldUp(message: String)
    /// Entries that a bridged state, or somebody who follows the log, will never see: the log no
    /// longer holds them, or can't read them.
    case missed(from: SequenceNumber, through: SequenceNumber)
    /// The log can't read entries that this node asked for. Stores that need them begin anew with a newer snapshot,
    /// or can't be opened.
    case damaged(Damage)
}

/// Why a node can't continue.
public enum ReplicaEnd: Sendable, Hashable {
    /// The node left.
    case left
    /// The sequencer refused the node, or has forgotten its session for good.
    case refused(ByeCode, message: String)
    /// The log holds something that this node can't read.
    case unreadable(String)
}
