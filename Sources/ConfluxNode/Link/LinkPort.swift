import Conflux
import ConfluxProtocol
import ConfluxVocabulary
import ConfluxZeroMQ

/// What other threads want of the thread that owns the sockets.
enum LinkCommand: Sendable {
    /// An input of the machine.
    case machine(ReplicaInput)
    /// Ask; every answer goes to the function, on the link's thread.
    case ask(Question.Body, patience: Duration, @Sendable (Answer) -> Void)
    /// Pass this on to the thread that applies.
    case probe(@Sendable () -> Void)
    /// Tell how things are.
    case status(@Sendable (LinkStatus) -> Void)
    /// Leave once everything has its outcome, or the time is over. What has none can be withdrawn
    /// first.
    case leave(timeout: Duration, isWithdrawing: Bool = false)
    /// Withdraw the action with this place in a block that was taken out of the outbox.
    case withdraw(index: Int, OutcomeBlock)
}

/// How things are on the link.
struct LinkStatus: Sendable {
    var isJoined: Bool
    var log: LogID?
    var epoch: Epoch
    var incarnation: Incarnation
    var last: SequenceNumber
    var live: SequenceNumber?
    var applied: SequenceNumber
    var unsettled: UInt64
    var resumption: Resumption?
}

/// Where other threads post to the link.
struct LinkPort: Sendable {
    /// Everything posted is bounded by what causes it: deliveries, questions, stores.
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
