import ConfluxVocabulary

/// A message from the sequencer to one node.
public enum SequencerMessage: Sendable, Equatable {
    /// Answers a hello: the session, the term, the limits.
    case welcome(Welcome)
    /// Answers an open.
    case opened(Opened)
    /// Actions of this node that are in the log.
    case receipts(Receipts)
    /// Actions of this node that are not, and will not be, in the log.
    case rejection(Rejection)
    /// A batch was discarded: it has no outcome, and nothing advanced.
    case expected(Expected)
    /// Answers a fetch.
    case entries(Entries)
    /// A question for this node.
    case question(Question)
    /// Answers this node's question.
    case answer(Answer)
    /// Answers a barrier, a drop, a freeze or a skip.
    case confirmed(Confirmed)
    /// Answers a load.
    case snapshotServed(SnapshotServed)
    /// Asks for a part of this node's encoding of a store at a digest point.
    case snapshotRequest(SnapshotRequest)
    /// Replicas of a store differ.
    case divergence(Divergence)
    /// Asks a replica that stopped to load the store's newest snapshot.
    case reload(Reload)
    /// Asks this node to migrate a snapshot of a store that it hosts or opens.
    case migrate(Migrate)
    /// Answers a hello: another sequencer serves the log.
    case redirect(Redirect)
    /// The sequencer ends the session or the connection.
    case bye(Bye)
}

extension SequencerMessage {
    /// The tag that a later request acknowledges, if the message is an answer that may be long.
    package var deliveryTag: UInt64? {
        switch self {
        case .entries(let entries): entries.deliveryTag
        case .snapshotServed(let served): served.deliveryTag
        case .answer(let answer): answer.deliveryTag
        default: nil
        }
    }
}

/// Answers a hello. It follows the commit of the `joined` entry that the hello caused.
public struct Welcome: Sendable, Equatable {
    /// The number of the hello that it answers.
    public var request: UInt64
    /// The log's id. Everything that a node knows is of one log.
    public var log: LogID
    /// The nonce of this term's claim.
    public var claim: Nonce
    /// The session's incarnation; `Incarnation.none` for an observer.
    public var incarnation: Incarnation
    /// The last committed number.
    public var last: SequenceNumber
    /// The lowest number that the log still holds.
    public var floor: SequenceNumber
    /// The highest number up to which the history that the hello named is this log's (rule 2). If
    /// it is below the number that the hello named, the entries in between were lost. Zero if the
    /// hello named no history.
    public var agreed: SequenceNumber
    /// The counter up to which the sequencer knows that the node has every outcome.
    public var settled: UInt64
    /// The last counter of the session that was judged. The next batch begins behind it.
    public var lastCounter: UInt64
    /// The feed's address. A host of `*` stands for the host that the node connected to.
    public var feed: String
    /// The limits that the node must keep.
    public var limits: SessionLimits
}

/// The limits that a node must keep, as the welcome grants them.
public struct SessionLimits: Sendable, Hashable {
    /// The most bytes of batches without an outcome (rule 27).
    public var windowBytes: UInt32
    /// The most bytes of one batch.
    public var batchBytesMax: UInt32
    /// The most bytes of one payload.
    public var payloadBytesMax: UInt32
    /// The longest time between two messages of the feed.
    public var beatInterval: Duration
    /// A node that is silent for this long has left.
    public var silenceMax: Duration
}

/// Answers an open. It follows the commit of the `created` entry, if the open caused one.
public struct Opened: Sendable, Equatable {
    /// The request that is answered.
    public var request: UInt64
    /// The outcome of the open.
    public var outcome: Outcome

    /// The outcome of an open.
    public enum Outcome: Sendable, Equatable {
        /// The store is hosted, or the state bridged.
        ///
        /// - Parameters:
        ///   - life: The number of the store's `created` entry; zero for a bridged state.
        ///   - schemaVersion: The store's schema version. If it is newer than the snapshot's, it is in force from the
        ///     snapshot on (rule 17).
        ///   - last: The log's last number, at which all of this holds.
        ///   - floor: The number from which the log may be read for the store: above what the log has discarded, what
        ///     is damaged, and `aside`. Between the snapshot and the floor, nothing concerns the store, except for
        ///     what is kept aside.
        ///   - snapshot: The newest snapshot; nil for a bridged state.
        ///   - aside: The entries above the snapshot that concern the store and that the log no longer holds, up to
        ///     the number of this reference. They are loaded like a snapshot; nil if there are none.
        ///   - skipped: The entries above the snapshot that have no effect (rule 23), ascending.
        ///   - migrated: The digest that the snapshot's state has in the store's version; nil if the snapshot has that
        ///     version, or if nobody had migrated it before the version rose.
        case opened(
            life: SequenceNumber, schemaVersion: UInt32, last: SequenceNumber,
            floor: SequenceNumber = SequenceNumber(1), snapshot: SnapshotOffer?,
            aside: SnapshotReference? = nil, skipped: [SequenceNumber] = [],
            migrated: Digest? = nil)
        /// The open failed.
        case failed(RejectionCode, message: String)
    }
}

/// Actions of one node that are in the log, in the order of their counters.
public struct Receipts: Sendable, Equatable {
    /// The runs, ascending by counter.
    public var runs: [Run]

    /// Consecutive counters with consecutive sequence numbers.
    public struct Run: Sendable, Hashable {
        /// The first action's counter.
        public var firstCounter: UInt64
        /// How many actions.
        public var count: UInt32
        /// The first action's sequence number.
        public var firstSequence: SequenceNumber
        /// The term that committed them.
        public var epoch: Epoch
        /// When the sequencer ordered them.
        public var timestamp: Timestamp
    }
}

/// Why something was not accepted. Codes are stable; messages are for people.
public enum RejectionCode: UInt16, Sendable, Hashable, CaseIterable {
    /// No live node hosts the state and the log has never seen it; or there is no such store.
    case unknownTarget = 1
    /// The payload is larger than the limit.
    case payloadTooLarge = 2
    /// The batch breaks the grammar.
    case malformed = 3
    /// It was rejected before a restart of the sequencer, which did not keep the reason.
    case unrecorded = 4
    /// The target names a life of the store that is not the present one.
    case otherLife = 5
    /// The schema version is zero, or newer than the store's.
    case schemaVersion = 6
    /// A table of the sequencer is full.
    case tableFull = 7
    /// The batch has an extension that must be understood, and this sequencer does not know it.
    case unsupported = 8
    /// The node withdrew the action before it was ordered (rule 12).
    case withdrawn = 9
    /// The store is frozen (rule 21).
    case frozen = 10
    /// A replica has passed the entry that was to be skipped, or may have passed it (rule 23).
    case passed = 11
    /// The log can't read what the store begins with, or continues with.
    case damaged = 12
    /// The connection's key may not do this.
    case notAllowed = 13
    /// The store's schema version could not rise: a migration failed, for example (rule 17). Nothing has changed.
    case upgradeFailed = 14
    /// The action has a condition, and the store has changed since the version that it names (rule 24).
    case conflict = 15
    /// No timer has the key: it has fired, was cancelled, or was never set (rule 26).
    case noSuchTimer = 16
    /// The lease under which it was dispatched is not held (rule 42).
    case leaseLost = 17
    /// Another session has locked the store for longer than actions wait (rule 42).
    case locked = 18
}

/// Actions of one node that are not, and will not be, in the log.
public struct Rejection: Sendable, Equatable {
    /// The first action's counter.
    public var firstCounter: UInt64
    /// How many consecutive actions.
    public var count: UInt32
    /// The reason.
    public var code: RejectionCode
    /// What to do, for people.
    public var message: String
    /// The version that the store has, if the code is ``RejectionCode/conflict``.
    public var version: StoreVersion?
}

/// A batch was discarded: it has no outcome, and nothing advanced (rules 9 and 27).
public struct Expected: Sendable, Equatable {
    /// The counter that the next batch must begin with.
    public var counter: UInt64
    /// Why the batch was discarded.
    public var reason: Reason
    /// What holds it up, for people, if it was full because the log has no room; nil otherwise.
    public var message: String?

    /// Why a batch was discarded.
    public enum Reason: UInt8, Sendable, CaseIterable {
        /// It did not begin with the expected counter: a batch before it was lost or discarded.
        case gap = 0
        /// The sequencer, or this node's window, is full, or the key is above its rate: submit
        /// again at the next beat.
        case full = 1
    }
}

/// Answers a fetch.
public struct Entries: Sendable, Equatable {
    /// The request that is answered.
    public var request: UInt64
    /// The last committed number.
    public var last: SequenceNumber
    /// The lowest number that the log still holds.
    public var floor: SequenceNumber
    /// The tag that a later request acknowledges.
    public var deliveryTag: UInt64 = 0
    /// The encoded commits, ascending, without a hole. Empty if `from` is above `last`, below
    /// `floor`, or damaged.
    public var commits: [Bytes]
    /// The entries that can't be read, `from` among them; nil if `from` can be read.
    public var damage: Damage?
}

/// Answers a barrier, once the log has confirmed that this term was the newest at some moment
/// after the question (rule 29). Also answers a drop, a freeze or a skip, once it is in the log
/// (rule 16).
public struct Confirmed: Sendable, Equatable {
    /// The request that is answered.
    public var request: UInt64
    /// The outcome of the request.
    public var outcome: Outcome

    /// The outcome of a request.
    public enum Outcome: Sendable, Equatable {
        /// Whoever has applied this number has read the latest, or has seen the request take
        /// effect.
        case confirmed(SequenceNumber)
        /// The request can't be met.
        case failed(RejectionCode, message: String)
    }
}
