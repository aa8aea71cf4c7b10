import Conflux
import ConfluxProtocol
import ConfluxVocabulary
import ConfluxZeroMQ

/// A command of another thread for the thread that owns the sockets.
enum LinkCommand: Sendable {
    /// An input of the machine.
    case machine(ReplicaInput)
    /// Ask a question. Every answer goes to the function, on the link's thread.
    case ask(Question.Body, patience: Duration, @Sendable (Answer) -> Void)
    /// Load a snapshot, or entries that are kept aside. They go to the function, on the link's thread; nil if they
    /// can't be loaded.
    case load(SnapshotPlace, SnapshotReference, @Sendable (Bytes?) -> Void)
    /// Pass this function on to the thread that applies.
    case probe(@Sendable () -> Void)
    /// Notify a caller if it waits for the sequencer for too long.
    case keep(UInt64, Vigil)
    /// The caller with this number waits no longer.
    case endVigil(UInt64)
    /// Return the status.
    case status(@Sendable (LinkStatus) -> Void)
    /// Leave once all actions have their outcomes, or the time is over. Actions without an outcome can be
    /// withdrawn first.
    case leave(timeout: Duration, isWithdrawing: Bool = false)
    /// Withdraw the action with this index in a block that was taken out of the outbox.
    case withdraw(index: Int, OutcomeBlock)
}

/// The status of the link.
struct LinkStatus: Sendable {
    var isConnected: Bool
    var log: LogID?
    var epoch: Epoch
    var incarnation: Incarnation
    var last: SequenceNumber
    var live: SequenceNumber?
    var applied: SequenceNumber
    var unsettled: UInt64
    var resumption: Resumption?
}

/// The place where other threads post commands to the link.
struct LinkPort: Sendable {
    /// What causes the commands bounds their number: deliveries, questions, stores.
    private static let capacity = 1 << 20
    let mailbox: Mailbox<LinkCommand>
    let waker: Waker

    init() throws(ZeroMQError) {
        waker = try Waker()
        mailbox = Mailbox(capacity: Self.capacity, waker: waker)
    }

    @discardableResult
    func post(_ command: LinkCommand) -> PostOutcome {
        mailbox.post(command)
    }
}
