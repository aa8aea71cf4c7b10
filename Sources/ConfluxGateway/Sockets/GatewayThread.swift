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
        /// An authorised key may not read all that is published, and tries to subscribe.
        case denied(Principal)
    }

    enum Message: Sendable {
        case outcome(Desk.Outcome)
        case inquiry(Desk.Inquiry)
        case keys(GatewayKeys)
        case stop
    }

    private let mailbox: Mailbox<Message>
    private let waker: Waker
    private let publisher: Publisher?
    private let desk: Desk?
    private var authenticator: Authenticator?
    private let stores: [StoreName]
    private var keys: GatewayKeys?
    private let report: (Report) -> Void
    /// How often the publisher's socket was to be made anew, and could not; 0 if that is not due.
    private var renewals = 0
    private static let renewalPause = Duration.milliseconds(10)
    private static let renewalsReported = 300

    init(
        mailbox: Mailbox<Message>, waker: Waker, publisher: Publisher?, desk: Desk?,
        authenticator: Authenticator?, keys: GatewayKeys?, stores: [StoreName],
        report: @escaping (Report) -> Void
    ) {
        self.mailbox = mailbox
        self.waker = waker
        self.publisher = publisher
        self.desk = desk
        self.authenticator = authenticator
        self.keys = keys
        self.stores = stores
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
                    if publisher != nil { renewals = max(renewals, 1) }
                case .stop: return
                }
            }
            renew()
            if let keys { authenticate(keys) }
            publisher?.work(at: now)
            if publisher?.mustRenew == true { renewals = max(renewals, 1) }
            isBusy = desk?.work(keys, at: now) ?? false
            desk?.review(at: now)
        }
    }

    private func authenticate(_ keys: GatewayKeys) {
        authenticator?.work(
            keys,
            mayRead: { rights in stores.allSatisfy { rights.allowReading(.store($0)) } },
            report: { report(.denied($0)) })
    }

    /// Makes the publisher's socket anew, if that is due. It is tried until it succeeds, and reported if it takes long.
    private func renew() {
        guard renewals > 0, let publisher else { return }
        do throws(LibraryFailure) {
            try publisher.renew()
            renewals = 0
        } catch {
            renewals += 1
            if renewals.isMultiple(of: Self.renewalsReported) { report(.unbound(error)) }
        }
    }

    /// Sleeps until there is something to do. New records of a store wake it, too.
    private func poll(_ isBusy: Bool) {
        let now = Moment.now.monotonic
        let deadline =
            [publisher?.deadline, desk?.deadline].compactMap(\.self).min() ?? now + .seconds(1)
        waker.poll(
            for: [publisher?.pointer, desk?.pointer, authenticator?.pointer].compactMap(\.self),
            until: renewals > 0 ? min(deadline, now + Self.renewalPause) : deadline,
            mayWait: !isBusy)
    }
}
