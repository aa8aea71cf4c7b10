import ConfluxVocabulary

/// The shell's name for one connection of the ROUTER. It is never used again for another one.
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
    /// The log is claimed: a tenure may begin. The first input. What is known of the log already is not read again.
    case claimed(ClaimedLog, knowing: KnownFold? = nil)
    /// Answers ``SequencerEffect/readCheckpoint(through:)``.
    case checkpointRead(CheckpointAnswer)
    /// Answers ``SequencerEffect/readLog(from:)``: the bodies of the commits, ascending.
    case logRead([Bytes])
    /// Answers ``SequencerEffect/readSnapshots``: the newest confirmed ones and the one before, of each
    /// store, and what is kept aside; and whether some may be missing.
    case snapshotsRead([SnapshotIndexEntry], damage: SnapshotIndexDamage? = nil)
    /// Answers ``SequencerEffect/keepAside(_:through:)``: what is kept now of each store. Nothing where
    /// it could not be done.
    case keptAside([AsideKept])
    /// Answers ``SequencerEffect/saveSnapshot(_:)``.
    case snapshotSaved(SnapshotSaved)
    /// What is not needed any more could not be given up, for a reason that may pass.
    case truncateFailed(message: String)
    /// A checkpoint at this number is in the log.
    case checkpointSaved(SequenceNumber)
    /// Whether all but a reserve of the log's bound is used, as it is from now on; at first it is not.
    case logRoom(isNearlyFull: Bool)
    /// These sequencers stand by, as far as is known.
    case standbys([SequencerPlace])
    /// The tenure is over, or can't be told to continue, for this reason, and the process continues: nodes are told.
    case deposed(SequencerEnd)
    /// The commit of the last ``SequencerEffect/append(_:)`` is in the log.
    case appended
    /// The tenure can't continue: the log said so.
    case logFailed(SequencerEnd)
    /// Answers ``SequencerEffect/confirmTenure``: nobody has superseded this tenure.
    case tenureConfirmed
    /// Answers ``SequencerEffect/read(_:)``.
    case read(ReadJob, ReadOutcome)
    /// Answers the question with this number, which was passed on to the shell.
    case answered(UInt64, by: ConnectionID, Answer.Body)
    /// The answer with this delivery tag was not sent: there was no room, or the connection has ended.
    case answerLost(UInt64, to: ConnectionID)
    /// A message arrived. The speaker is the header's; the principal is the connection's.
    case received(
        NodeMessage, by: Speaker, from: ConnectionID, as: Principal = .anybody)
    /// A submit arrived whose counters can be read, and whose rest can't or mustn't.
    /// A visit is one, too, and names its session.
    case unreadableSubmit(
        BatchOutline, RejectionCode, message: String, visit: Visit.Session? = nil, by: Speaker,
        from: ConnectionID, as: Principal = .anybody)
    /// A connection has ended. Every one of which a message was told MUST be told of once it has, behind
    /// its last message; it may be told again.
    case disconnected(ConnectionID)
    /// A frame arrived that is no message.
    case unreadable(ByeCode, message: String, from: ConnectionID)
    /// The feed has a new subscriber, which gets what is published from now on.
    case subscribed
    /// The sockets had nothing more: what gathered may be committed.
    case drained
    /// ``SequencerMachine/nextDeadline`` has come.
    case tick
    /// End the tenure cleanly once what was admitted is committed.
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
    /// A random number that tells this claim from every other.
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

/// What a node wants to read of the log: commits that the feed did not bring it, or a part of a snapshot.
public struct ReadJob: Sendable, Hashable {
    /// What is read.
    public enum Subject: Sendable, Hashable {
        /// The commits from a number on, up to the last that was in the log when the reading began.
        case commits(from: SequenceNumber, through: SequenceNumber = .zero)
        /// A snapshot, from a byte on, which are counted from 0.
        case snapshot(SnapshotPlace, offset: UInt64)
    }

    /// Who asked.
    public var connection: ConnectionID
    /// The node's number for the request.
    public var request: UInt64
    /// What is read.
    public var subject: Subject
    /// The most bytes; of commits, one commit at least.
    public var limitBytes: UInt32
}

/// What came of a ``ReadJob``.
public enum ReadOutcome: Sendable {
    /// The bodies of the commits, ascending; the damage where there are none because of it.
    case commits([Bytes], damage: Damage? = nil)
    /// The part of the snapshot: nothing where there is no such snapshot, or it can't be read, for this
    /// reason.
    case snapshot(SnapshotChunk, failure: String? = nil)
    /// It can't be read now. Who asked asks again.
    case failed
}

/// A part of a snapshot on its way to the log.
public struct SnapshotPart: Sendable, Equatable {
    /// Which snapshot.
    public var place: SnapshotPlace
    /// All of it, but for its bytes.
    public var reference: SnapshotReference
    /// Whether it is the store's state; else it is kept only to be compared with (rule 22).
    public var isConfirmed: Bool
    /// Where in it the bytes begin, from 0. Parts come in their order.
    public var offset: UInt64
    /// The bytes.
    public var bytes: Bytes

    /// Whether the snapshot is whole with it.
    public var isLast: Bool { offset + UInt64(bytes.count) == reference.byteCount }
}

/// What came of saving a part of a snapshot.
public struct SnapshotSaved: Sendable, Hashable {
    /// Which snapshot.
    public var place: SnapshotPlace
    /// The snapshot, if the log has all of it now.
    public var whole: SnapshotReference?
    /// Why the part is not saved, if it is not.
    public var failure: String?

    /// Makes an answer.
    public init(place: SnapshotPlace, whole: SnapshotReference?, failure: String? = nil) {
        self.place = place
        self.whole = whole
        self.failure = failure
    }
}

/// A store of which entries are to be kept beside the log (rule 21).
public struct AsideJob: Sendable, Hashable {
    /// The store.
    public var store: StoreName
    /// Its life.
    public var life: SequenceNumber
    /// Up to here they are in its snapshot, or kept aside.
    public var after: SequenceNumber
    /// Where those are that are kept aside.
    public var former: SnapshotReference?
}

/// What is kept of a store beside the log.
public struct AsideKept: Sendable, Hashable {
    /// The store.
    public var store: StoreName
    /// Its life.
    public var life: SequenceNumber
    /// Up to here all entries that concern it are kept.
    public var through: SequenceNumber
    /// Where they are; nil if there are none.
    public var reference: SnapshotReference?
    /// Why they are not kept, if they are not.
    public var failure: String?

    /// Makes one.
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

/// A confirmed snapshot that the log has, or entries that are kept aside.
public struct SnapshotIndexEntry: Sendable, Hashable {
    /// Which one.
    public var place: SnapshotPlace
    /// All of it, but for its bytes.
    public var reference: SnapshotReference
    /// Whether it is no state, but entries that concern the store (rule 21).
    public var isAside: Bool

    /// Makes an entry.
    public init(place: SnapshotPlace, reference: SnapshotReference, isAside: Bool = false) {
        self.place = place
        self.reference = reference
        self.isAside = isAside
    }
}

/// Snapshots, or entries that are kept aside, that the log may have and can't list.
public struct SnapshotIndexDamage: Sendable, Hashable {
    /// The stores that they may be of; nil if they may be of any.
    public var stores: Set<StoreName>?
    /// What was found there and what to do, for people.
    public var message: String

    /// Names what can't be listed.
    public init(stores: Set<StoreName>?, message: String) {
        self.stores = stores
        self.message = message
    }

    func concerns(_ name: StoreName) -> Bool { stores?.contains(name) ?? true }
}

/// Why a tenure ended.
public enum SequencerEnd: Sendable, Hashable {
    /// It was asked to.
    case stopped
    /// A newer tenure has begun.
    case superseded
    /// The log failed; nothing that was admitted but not committed is trusted (rule 3). The message is
    /// for whoever runs the sequencer, and may name files. Peers are told the summary.
    case logFailed(String, summary: String = "it can't be read or written")
    /// The log holds what no sequencer wrote.
    case logDamaged(String)
    /// It gave its place to the one with this address, which stands by.
    case handedOver(to: String)
}
