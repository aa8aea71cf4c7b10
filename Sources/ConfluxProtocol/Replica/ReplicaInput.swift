import ConfluxVocabulary

/// An input of a node's machine: something that happened.
public enum ReplicaInput: Sendable {
    /// Begin, and say hello. The first input.
    case start
    /// The connection to the sequencer was made anew. Messages that were on their way are lost.
    case reconnected
    /// The feed's connection was made anew, and no message of the new connection was passed on yet.
    /// It may be the feed of another history, with the same epoch (rule 2).
    case feedReconnected
    /// A part of a message came from the sequencer, or it took a part of one. On a slow connection a large message takes
    /// a while, and the sequencer is not silent meanwhile. Due before a ``tick``.
    case stirred
    /// A message of the sequencer arrived. `epoch` is the sender's, from the header.
    case received(SequencerMessage, epoch: Epoch)
    /// A commit arrived on the feed.
    case fed(Commit, byteCount: Int, epoch: Epoch)
    /// A beat arrived on the feed.
    case beaten(Beat, epoch: Epoch)
    /// Application threads dispatched these actions; only while `ReplicaMachine.canSubmit`. The batch is the one that
    /// ``ReplicaMachine/batch(of:isAtomic:)`` has just made. Actions whose places in it, from 0, are in `withdrawn` are
    /// submitted as void.
    case dispatched(Batch, withdrawn: Set<Int> = [])
    /// Use up this many counters without an action; only while `ReplicaMachine.canSubmit`.
    case skipped(UInt32)
    /// Withdraw the actions with these counters (rule 12). Those that have an outcome keep it.
    case withdraw([Range<UInt64>])
    /// The outcomes up to this counter were told to whoever reads them. Only a process with a
    /// session key says so, and only then do they count as settled (rule 11).
    case told(UInt64)
    /// Host a store, or bridge a state. Answered by ``Delivery/opened(request:_:)``.
    case open(Open)
    /// Stop hosting it.
    case close(HostingSubject)
    /// Deliver every commit from this number on, whatever is hosted.
    case follow(from: SequenceNumber)
    /// Load a snapshot, or entries that are kept aside, for nobody here but the caller; answered by
    /// ``ReplicaEffect/loaded(request:_:)``.
    case load(SnapshotPlace, SnapshotReference, request: UInt64)
    /// Ask a question; answered by ``ReplicaEffect/answered(_:)``.
    case ask(Question)
    /// Answer a question of ``ReplicaEffect/asked(_:)``.
    case answer(Answer)
    /// A report of the thread that applies, about a history. `resets` is how often its replicas had begun anew by
    /// then (``Delivery/reset``): a report about a lost history does not count.
    case reported(ApplyReport, resets: UInt64)
    /// Answers ``ReplicaEffect/give(_:)``.
    case given(SnapshotChunk)
    /// Freeze or thaw a store, and notify when that is applied here; answered by
    /// ``Delivery/reach(request:_:)``.
    case freeze(Freeze)
    /// Ask that an entry have no effect, and notify when that is applied here; answered by
    /// ``Delivery/reach(request:_:)``.
    case skip(Skip)
    /// Ask that a store's schema version rise, and notify when that is applied here; answered by
    /// ``Delivery/reach(request:_:)``.
    case upgrade(Upgrade)
    /// Say that the node is about to leave, if it hosts stores. Until they have snapshots, `awaitsLeaving` is true.
    case leaving
    /// Ask for the latest number, and notify when everything up to it is applied here; answered by
    /// ``Delivery/reach(request:_:)``.
    case barrier(request: UInt64)
    /// End a life of a store, and notify when its end is applied here; answered by
    /// ``Delivery/reach(request:_:)``.
    case drop(Drop)
    /// Notify when everything up to this receipt's number is applied here; answered by
    /// ``Delivery/reach(request:_:)``.
    case await(Receipt, request: UInt64)
    /// Nobody waits for this request any more.
    case giveUp(request: UInt64)
    /// The progress of the thread that applies. The newest progress includes all earlier ones. It is due before each
    /// ``tick``, and as soon as there is news while ``ReplicaMachine/isDeliveryBlocked``.
    case applied(ApplyProgress)
    /// ``ReplicaMachine/nextDeadline`` has come.
    case tick
    /// Leave. The last input.
    case leave
}

/// How far the thread that applies has come. Sums count from the beginning of the process.
public struct ApplyProgress: Sendable, Hashable {
    /// The bytes of the feed's commits that were handed to the stores.
    public var liveBytes = 0
    /// The bytes of the commits that stores catch up with, and that were handed to them.
    public var catchUpBytes = 0
    /// Every attached store here has applied everything up to this number.
    public var applied = SequenceNumber.zero
    /// How often the replicas began anew. `applied` is a number of the history since then.
    public var resets: UInt64 = 0

    /// Makes the progress before anything was delivered.
    public init() {}
}

/// A report of the thread that applies, about the history that its replicas have.
public enum ApplyReport: Sendable, Equatable {
    /// The subject has everything up to this number, and wants what follows: the store of
    /// ``Delivery/restore(_:life:_:in:aside:skipped:through:request:)``, or a subject that was parked.
    case ready(HostingSubject, through: SequenceNumber, request: UInt64)
    /// The subject is slower than what is delivered. It gets nothing more until it is ready again.
    case parked(HostingSubject, request: UInt64)
    /// What the store has is of no use: load its newest snapshot.
    case reload(StoreName)
    /// The store did not apply this entry, or has no state, and stopped. If it is not hosted any more, it could not be
    /// opened.
    case stopped(StoppedStore)
    /// The vote of a store here at a digest point.
    case digested(Vote)
    /// What came of migrating a snapshot.
    case migrated(Migrated)
    /// The place where a store here differs from the state that it was compared with.
    case located(DigestReport.Location)
}
