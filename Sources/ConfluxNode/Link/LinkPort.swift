import Conflux
import ConfluxProtocol
import ConfluxVocabulary
import ConfluxZeroMQ

/// The commands of other threads for the thread that owns the sockets.
enum LinkCommand: Sendable {
    /// An input of the machine.
    case machine(ReplicaInput)
    /// Ask a question. The function gets each answer, on the link's thread.
    case ask(Question.Body, patience: Duration, @Sendable (Answer) -> Void)
    /// Pass this on to the thread that applies.
    case probe(@Sendable () -> Void)
    /// Report the status of the link.
    case status(@Sendable (LinkStatus) -> Void)
    /// Leave once every action has its outcome, or after the timeout. Actions without an outcome
    /// can be withdrawn first.
    case leave(timeout: Duration, isWithdrawing: Bool = false)
    /// Withdraw the action at this index in a block that was taken out of the outbox.
    case withdraw(index: Int, OutcomeBlock)
}

/// The status of the link.
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
    /// Whatever causes a command bounds their number: deliveries, questions, stores.
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
