import ConfluxVocabulary

/// The shell's name for one connection of the ROUTER. It is never reused for another connection.
public struct ConnectionID: RawRepresentable, Hashable, Sendable {
    /// The shell's number.
    public let rawValue: UInt64

    /// Makes the name.
    public init(rawValue: UInt64) {
        self.rawValue = rawValue
    }
}

/// What happens to the sequencer.
public enum SequencerInput: Sendable {
    /// The log is claimed, so a term may begin. This is the first input. The part of the log that
    /// is known already is not read again.
    case claimed(ClaimedLog, knowing: KnownLogState? = nil)
    /// Answers ``SequencerEffect/readCheckpoint(through:)``.
    case checkpointRead(CheckpointAnswer)
    /// Answers ``SequencerEffect/readLog(from:)``: the bodies of the commits, ascending.
    case logRead([Bytes])
    /// Answers ``SequencerEffect/readSnapshots``: of each store the newest confirmed snapshot and
    /// the one before it, the entries that are kept aside, and whether some of these may be
    /// missing.
    case snapshotsRead([SnapshotIndexEntry], damage: SnapshotIndexDamage? = nil)
    /// Answers ``SequencerEffect/keepAside(_:through:)``: what is now kept aside of each
    /// store. A store for which that failed has a failure, or is missing.
    case keptAside([AsideKept])
    /// Answers ``SequencerEffect/saveSnapshot(_:)``.
    case snapshotSaved(SnapshotSaved)
    /// Entries that are not needed any more could not be discarded, for a reason that may pass.
    case truncateFailed(message: String)
    /// A checkpoint at this number is in the log.
    case checkpointSaved(SequenceNumber)
    /// How much of the log's bound is used. Told when the room or the advice changes; at first there is ample room.
    case logSpace(LogSpace)
    /// The sequencers that stand by, as far as is known.
    case standbys([SequencerPlace])
    /// The term is over, or can't be known to continue, for this reason. The process continues,
    /// so the nodes are told.
    case deposed(SequencerEnd)
    /// The commit of the last ``SequencerEffect/append(_:)`` is in the log.
    case appended
    /// The effects of ``appended`` are carried out, so the commit is published. The shell MUST report this
    /// before anything else.
    case published
    /// The log reported that the term can't continue.
    case logFailed(SequencerEnd)
    /// Answers ``SequencerEffect/confirmTerm``: nobody has superseded this term.
    case termConfirmed
    /// Answers ``SequencerEffect/read(_:)``.
    case read(ReadJob, ReadOutcome)
    /// Answers the question with this number, which was passed to the shell.
    case answered(UInt64, by: ConnectionID, Answer.Body)
    /// A message arrived. The speaker is from its header; the principal is the connection's.
    case received(
        NodeMessage, by: Speaker, from: ConnectionID, as: Principal = .anybody)
    /// A request for a long answer arrived, and the node has too much to read already (rule 40).
    case surplus(NodeMessage, from: ConnectionID, as: Principal = .anybody)
    /// A submit arrived whose counters can be read. The rest can't be read, or must not be.
    case unreadableSubmit(
        BatchOutline, RejectionCode, message: String, by: Speaker,
        from: ConnectionID, as: Principal = .anybody)
    /// A connection has ended. The shell MUST report this for every connection that it received a
    /// message from, after its last message. It may report it more than once.
    case disconnected(ConnectionID)
    /// A frame arrived that is not a valid message.
    case unreadable(ByeCode, message: String, from: ConnectionID)
    /// The feed has a new subscriber, which gets what is published from now on.
    case subscribed
    /// The sockets had nothing more to read, so what has gathered may be committed.
    case drained
    /// ``SequencerMachine/nextDeadline`` has come.
    case tick
    /// Commit what was admitted, then end the term.
    case stop
}

/// What a claim of the log found.
public struct ClaimedLog: Sendable, Hashable {
    /// The log's id.
    public var log: LogID
    /// The epoch that the claim took.
    public var epoch: Epoch
    /// The last number in the log.
    public var last: SequenceNumber
    /// The epoch of the commit that ends there; `Epoch.none` in an empty log.
    public var lastEpoch: Epoch
    /// The lowest number in the log.
    public var floor: SequenceNumber
    /// A random number that distinguishes this claim from every other.
    public var nonce: Nonce

    /// Makes a claim's result.
    public init(
        log: LogID, epoch: Epoch, last: SequenceNumber, lastEpoch: Epoch, floor: SequenceNumber,
        nonce: Nonce
    ) {
        self.log = log
        self.epoch = epoch
        self.last = last
        self.lastEpoch = lastEpoch
        self.floor = floor
        self.nonce = nonce
    }
}

/// What a node wants to read from the log: commits that the feed did not bring it, or a part of a
/// snapshot.
public struct ReadJob: Sendable, Hashable {
    /// What is read.
    public enum Subject: Sendable, Hashable {
        /// The commits from a number on, up to the last one in the log when the reading began.
        case commits(from: SequenceNumber, through: SequenceNumber = .zero)
        /// A snapshot, from a byte offset on.
        case snapshot(SnapshotPlace, offset: UInt64)
    }

    /// The connection that asked.
    public var connection: ConnectionID
    /// The node's number for the request.
    public var request: UInt64
    /// What is read.
    public var subject: Subject
    /// The most bytes to read. At least one commit is read, even if it is larger.
    public var limitBytes: UInt32
}

/// The result of a ``ReadJob``.
public enum ReadOutcome: Sendable {
    /// The bodies of the commits, ascending. If the log is damaged there, there are none, and the
    /// damage is given.
    case commits([Bytes], damage: Damage? = nil)
    /// The part of the snapshot. It is empty if there is no such snapshot, or if it can't be read,
    /// for this reason.
    case snapshot(SnapshotChunk, failure: String? = nil)
    /// The log can't be read now. The node will ask again.
    case failed
}

/// A part of a snapshot on its way to the log.
public struct SnapshotPart: Sendable, Equatable {
    /// Which snapshot.
    public var place: SnapshotPlace
    /// The snapshot's description: everything except its bytes.
    public var reference: SnapshotReference
    /// Whether it is the store's state. Otherwise it is kept only for comparison (rule 22).
    public var isConfirmed: Bool
    /// The offset of the bytes in the snapshot, from 0. Parts come in order.
    public var offset: UInt64
    /// The bytes.
    public var bytes: Bytes

    /// Whether this part completes the snapshot.
    public var isLast: Bool { offset + UInt64(bytes.count) == reference.byteCount }
}

/// The result of saving a part of a snapshot.
public struct SnapshotSaved: Sendable, Hashable {
    /// Which snapshot.
    public var place: SnapshotPlace
    /// The snapshot, if the log now has all of it.
    public var whole: SnapshotReference?
    /// Why the part was not saved; nil if it was.
    public var failure: String?

    /// Makes a result.
    public init(place: SnapshotPlace, whole: SnapshotReference?, failure: String? = nil) {
        self.place = place
        self.whole = whole
        self.failure = failure
    }
}

/// A store whose entries are to be kept beside the log (rule 21).
public struct AsideJob: Sendable, Hashable {
    /// The store.
    public var store: StoreName
    /// Its life.
    public var life: SequenceNumber
    /// The entries up to this number are in the store's snapshot, or kept aside already.
    public var after: SequenceNumber
    /// The entries that are kept aside already; nil if there are none.
    public var former: SnapshotReference?
}

/// What is kept of a store beside the log.
public struct AsideKept: Sendable, Hashable {
    /// The store.
    public var store: StoreName
    /// Its life.
    public var life: SequenceNumber
    /// All entries up to this number that concern the store are kept.
    public var through: SequenceNumber
    /// The entries that are kept; nil if there are none.
    public var reference: SnapshotReference?
    /// Why they are not kept; nil if they are.
    public var failure: String?

    /// Makes a result.
    public init(
        store: StoreName, life: SequenceNumber, through: SequenceNumber,
        reference: SnapshotReference?, failure: String? = nil
    ) {
        self.store = store
        self.life = life
        self.through = through
        self.reference = reference
        self.failure = failure
    }
}

/// A confirmed snapshot in the log, or entries that are kept aside.
public struct SnapshotIndexEntry: Sendable, Hashable {
    /// Which one.
    public var place: SnapshotPlace
    /// Its description: everything except its bytes.
    public var reference: SnapshotReference
    /// Whether it is not a state, but entries that concern the store (rule 21).
    public var isAside: Bool

    /// Makes an entry.
    public init(place: SnapshotPlace, reference: SnapshotReference, isAside: Bool = false) {
        self.place = place
        self.reference = reference
        self.isAside = isAside
    }
}

/// Snapshots, or entries that are kept aside, that the log may have but can't list.
public struct SnapshotIndexDamage: Sendable, Hashable {
    /// The stores that they may belong to; nil if they may belong to any.
    public var stores: Set<StoreName>?
    /// What was found there, and what to do about it, for people.
    public var message: String

    /// Makes a description of what can't be listed.
    public init(stores: Set<StoreName>?, message: String) {
        self.stores = stores
        self.message = message
    }

    func concerns(_ name: StoreName) -> Bool { stores?.contains(name) ?? true }
}

/// Why a term ended.
public enum SequencerEnd: Sendable, Hashable {
    /// The shell asked it to stop.
    case stopped
    /// A newer term has begun.
    case superseded
    /// The log failed. Nothing that was admitted but not committed can be relied on (rule 3). The
    /// message is for the operator of the sequencer, and may name files. Peers are told only the
    /// summary.
    case logFailed(String, summary: String = "it can't be read or written")
    /// The log holds something that no sequencer wrote.
    case logDamaged(String)
    /// Somebody moved or replaced the log while it was open: what is at its place now is another log, or another
    /// state of it. The message says which file it was.
    case logMoved(String)
    /// It handed over to the standby with this address.
    case handedOver(to: String)
}
