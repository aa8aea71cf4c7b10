import ConfluxVocabulary

/// What happens to a node.
public enum ReplicaInput: Sendable {
    /// Begin: say hello. The first input.
    case start
    /// The connection to the sequencer was made anew: what was on its way is lost.
    case reconnected
    /// The feed is connected anew, and nothing that it brings since was told: it may be that of
    /// another history, with the same epoch (rule 2).
    case feedReconnected
    /// A message of the sequencer arrived. `epoch` is the speaker's, from the header.
    case received(SequencerMessage, epoch: Epoch)
    /// A commit arrived on the feed.
    case fed(Commit, byteCount: Int, epoch: Epoch)
    /// A beat arrived on the feed.
    case beaten(Beat, epoch: Epoch)
    /// Application threads dispatched these; only while `ReplicaMachine.canSubmit`. Those whose
    /// places in the batch, from 0, are in `withdrawn` are submitted as void.
    case dispatched(BatchBuilder, isAtomic: Bool, withdrawn: RangeSet<Int> = RangeSet())
    /// So many counters are for nothing; only while `ReplicaMachine.canSubmit`.
    case skipped(UInt32)
    /// Withdraw the actions with these counters (rule 12). Those that have an outcome keep it.
    case withdraw(RangeSet<UInt64>)
    /// The outcomes up to this counter were told to whoever reads them: only a process with a key
    /// says so, and only then they count as settled (rule 11).
    case told(UInt64)
    /// Host a store, or bridge a state. Answered by ``Delivery/opened(request:_:)``.
    case open(Open)
    /// Host it no longer.
    case close(HostingSubject)
    /// Deliver every commit from this number on, whatever is hosted.
    case follow(from: SequenceNumber)
    /// Ask; answered by ``ReplicaEffect/answered(_:)``.
    case ask(Question)
    /// Answer a question of ``ReplicaEffect/asked(_:)``.
    case answer(Answer)
    /// What the thread that applies has to say of a history. `resets` is how often its replicas began
    /// anew before (``Delivery/reset``): what it says of a lost history does not count.
    case reported(ApplyReport, resets: UInt64)
    /// Answers ``ReplicaEffect/give(_:)``.
    case given(SnapshotChunk)
    /// Freeze or thaw a store, and tell when that is applied here; answered alike.
    case freeze(Freeze)
    /// Have an entry be without effect; answered alike.
    case skip(Skip)
    /// Ask for the latest number, and tell when everything up to it is applied here; answered by
    /// ``Delivery/reach(request:_:)``.
    case barrier(request: UInt64)
    /// End a life of a store, and tell when its end is applied here; answered alike.
    case drop(Drop)
    /// Tell when everything up to this receipt's number is applied here; answered alike.
    case await(Receipt, request: UInt64)
    /// Nobody waits any more.
    case giveUp(request: UInt64)
    /// How far the thread that applies has come; the newest says all that earlier ones did. It is due
    /// before each ``tick``, and as soon as there is news while ``ReplicaMachine/isDeliveryBlocked``.
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
    /// The bytes of the commits that stores catch up with, likewise.
    public var catchUpBytes = 0
    /// Every attached store here has applied everything up to this number.
    public var applied = SequenceNumber.zero
    /// How often the replicas began anew: the number is of the history since.
    public var resets: UInt64 = 0

    /// Nothing was delivered yet.
    public init() {}
}

/// What the thread that applies tells of the history that its replicas have.
public enum ApplyReport: Sendable, Equatable {
    /// It has everything up to this number, and wants what comes behind it: the store of
    /// ``Delivery/restore(_:life:_:aside:skipped:through:request:)``, or what was parked.
    case ready(HostingSubject, through: SequenceNumber, request: UInt64)
    /// It is slower than what is delivered: it gets nothing more until it is ready again.
    case parked(HostingSubject, request: UInt64)
    /// Load the store's newest snapshot: what it has is of no use.
    case reload(StoreName)
    /// The store did not apply this entry, and goes no further.
    case stopped(StoppedStore)
    /// What a store here is at a digest point.
    case digested(Vote)
    /// Where a store here differs from the state that it was compared with.
    case located(DigestReport.Location)
}
