import ConfluxNode
import ConfluxProtocol
import ConfluxVocabulary
import ConfluxZeroMQ

/// Runs the sockets of a gateway.
// Sendable: only its thread uses what is not constant, from `run()` on.
final class GatewayThread: @unchecked Sendable {
    /// What the operator should know.
    enum Report {
        /// The address can't be bound again.
        case unbound(LibraryFailure)
        /// An authorised key may not read all that is published at an address, and tries to subscribe there.
        case denied(Principal, at: String)
    }

    enum Message: Sendable {
        case outcome(Desk.Outcome)
        case inquiry(Desk.Inquiry)
        case keys(GatewayKeys)
        case stop
    }

    private let mailbox: Mailbox<Message>
    private let waker: Waker
    private let publishers: [Publisher]
    private let desk: Desk?
    private var authenticator: Authenticator?
    private var keys: GatewayKeys?
    private let report: (Report) -> Void

    /// The publishers are in the order of their indices in ``Authenticator/Domain/publish(_:)``.
    init(
        mailbox: Mailbox<Message>, waker: Waker, publishers: [Publisher], desk: Desk?,
        authenticator: Authenticator?, keys: GatewayKeys?, report: @escaping (Report) -> Void
    ) {
        self.mailbox = mailbox
        self.waker = waker
        self.publishers = publishers
        self.desk = desk
        self.authenticator = authenticator
        self.keys = keys
        self.report = report
    }

    /// Works until it is told to stop.
    func run() {
        var batch: [Message] = []
        var isBusy = false
        while true {
            poll(isBusy)
            mailbox.drain(into: &batch)
            let now = Moment.now.monotonic
            for message in batch {
                switch message {
                case .outcome(let outcome): desk?.take(outcome)
                case .inquiry(let inquiry): desk?.take(inquiry, at: now)
                case .keys(let keys):
                    self.keys = keys
                    desk?.revoke(keys)
                    for publisher in publishers { publisher.endConnections() }
                case .stop: return
                }
            }
            for publisher in publishers {
                if let failure = publisher.renew() { report(.unbound(failure)) }
            }
            if let keys { authenticate(keys) }
            for publisher in publishers { publisher.work(at: now) }
            isBusy = desk?.work(keys, at: now) ?? false
            desk?.review(at: now)
        }
    }

    private func authenticate(_ keys: GatewayKeys) {
        authenticator?.work(
            keys,
            mayRead: { publishers[$1].mayRead($0) },
            report: { report(.denied($0, at: publishers[$1].address)) })
    }

    /// Sleeps until there is something to do. New records of a store wake it, too.
    private func poll(_ isBusy: Bool) {
        let now = Moment.now.monotonic
        let deadlines =
            publishers.map { $0.deadline(at: now) } + [desk?.deadline].compactMap(\.self)
        let sockets = publishers.map(\.pointer) + [desk?.pointer, authenticator?.pointer]
        waker.poll(
            for: sockets.compactMap(\.self), until: deadlines.min() ?? now + .seconds(1),
            mayWait: !isBusy)
    }
}
