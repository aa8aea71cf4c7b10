import ConfluxVocabulary

/// What a node's machine wants done. Effects are carried out one after another, in their order.
public enum ReplicaEffect: Sendable, Equatable {
    /// Send a message to the sequencer.
    case send(NodeMessage)
    /// Give up the connection, and connect to this address; without one, to the next of those that the node was
    /// given, if there is another. The next input about the connection is ``ReplicaInput/reconnected``.
    case connect(to: String?)
    /// Subscribe to the feed at this endpoint, and to no other.
    case subscribe(String)
    /// Hand to the thread that applies. It handles deliveries in their order.
    case deliver(Delivery)
    /// A part of a store's encoding at a digest point is wanted: give it by ``ReplicaInput/given(_:)``.
    case give(SnapshotRequest)
    /// A question for this node: answer it by ``ReplicaInput/answer(_:)``.
    case asked(Question)
    /// An answer to this node's question.
    case answered(Answer)
    /// Tell whoever watches.
    case event(ReplicaEvent)
    /// The node can't continue. The last effect.
    case end(ReplicaEnd)
}

/// What the thread that applies is to do, in this order. An outcome, or the number that somebody
/// waits for, is delivered as soon as it is known: the applier tells it once every store here that it
/// concerns has reached the number (P6).
public enum Delivery: Sendable, Equatable {
    /// Apply to every store that is attached, and to every store of a bridged state.
    case commit(Commit, byteCount: Int)
    /// Apply to these, which catch up, and to nothing else.
    case catchUp(Commit, byteCount: Int, to: [HostingSubject])
    /// Give the store this state; answered by ``ApplyReport/ready(_:through:request:)``. It catches up
    /// from there, past the entries that have no effect (rule 23).
    /// Behind it the store gets what is kept aside for it, in the encoding of `AsideEntries`: then it
    /// has everything up to `through`.
    case restore(
        StoreName, life: SequenceNumber, Snapshot, aside: Bytes?, skipped: [SequenceNumber],
        through: SequenceNumber, request: UInt64)
    /// From here on it gets what it catches up with.
    case begin(HostingSubject)
    /// The next commit of the feed begins behind this number. Entries up to it are in the states that
    /// the replicas get, or nowhere: bridged states have none of them.
    case passOver(SequenceNumber)
    /// Replicas of a store differ: compare the state that this node had at the point with these
    /// bytes, tell where they differ, and answer by ``ApplyReport/located(_:)``. Nil where the other
    /// state can't be loaded. A store that is to load it gets nothing more until it has it.
    case compare(Divergence, Bytes?)
    /// It has caught up: commits apply to it from here on.
    case attach(HostingSubject)
    /// Tell the outcome of actions that this node dispatched, once every store here that they concern
    /// has reached their numbers.
    case settle(ActionOutcome)
    /// Answer an open, once the store has applied what was delivered to it before.
    case opened(request: UInt64, OpenOutcome)
    /// Tell who waits, once every store here has reached the number.
    case reach(request: UInt64, ReachOutcome)
    /// The history that the replicas have is not the log's: nothing of it counts (rule 2).
    case reset
}

/// What came of an open.
public enum OpenOutcome: Sendable, Equatable {
    /// The store is hosted, or the state bridged.
    case opened(life: SequenceNumber)
    /// It was not.
    case failed(RejectionCode, message: String)
}

/// What came of waiting for a number.
public enum ReachOutcome: Sendable, Equatable {
    /// Everything up to this number is to be applied here.
    case due(SequenceNumber)
    /// The number is of another log than this one, which the node is at.
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
    public var fate: Fate

    /// What became of actions.
    public enum Fate: Sendable, Equatable {
        /// In the log; consecutive numbers from this one on.
        case committed(LogID, SequenceNumber, Epoch, Timestamp)
        /// Not in the log, and never will be.
        case rejected(RejectionCode, message: String)
        /// Submitted, and whether they are in the log can't be known any more (P5).
        case unknown
    }

    /// Makes an outcome.
    public init(firstCounter: UInt64, count: UInt32, fate: Fate) {
        self.firstCounter = firstCounter
        self.count = count
        self.fate = fate
    }
}

/// What a node tells whoever watches it. Events change nothing.
public enum ReplicaEvent: Sendable, Equatable {
    /// The session is there, in this epoch of this log.
    case joined(LogID, Epoch, Incarnation)
    /// The sequencer is not heard of; the node tries to reach it.
    case disconnected
    /// The sequencer is heard of again, or another tenure has begun.
    case reconnected(Epoch)
    /// A sequencer of an older epoch still speaks; it is ignored.
    case staleSequencer(Epoch)
    /// The log lost what this node had, from the first number to the last.
    case historyLost(from: SequenceNumber, through: SequenceNumber)
    /// The sequencer has forgotten the session; actions without a receipt have no known outcome.
    case sessionForgotten
    /// The key that this node has may not do what the node does. It says hello again from time to time.
    case notAllowed(message: String)
    /// The sequencer is there, and hears nobody before its log works again.
    case notServing(message: String)
    /// Entries that a bridged state will never see: the log no longer holds them.
    case missed(from: SequenceNumber, through: SequenceNumber)
    /// Entries that this node asked for can't be read in the log. Stores that need them begin anew with
    /// a newer snapshot, or can't be opened.
    case damaged(Damage)
}

/// Why a node can't continue.
public enum ReplicaEnd: Sendable, Hashable {
    /// It left.
    case left
    /// The sequencer refused it.
    case refused(ByeCode, message: String)
    /// The log holds what this node can't read.
    case unreadable(String)
}
