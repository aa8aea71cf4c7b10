import CZeroMQ
import ConfluxProtocol
import ConfluxSequencer
import ConfluxVocabulary
import ConfluxZeroMQ

/// Passes a feed on. It runs the sockets of a relay.
///
///     connect ── something comes ──▶ listen, and pass on ──┐
///        ▲                                                 │ the connection ends, or nothing comes for a while,
///        │                                                 │ or the keys have changed
///        └──────── pause ◀── close both sockets ◀──────────┘
///
/// *Invariant*: it listens only while its own connection to a feed stands, and no connection of a subscriber spans two
/// of these. A node behind a relay relies on it: if the feed's connection is made again, the feed may be that of another
/// log, so nothing of it counts before another welcome (rule 4). The node sees only its own connection.
// Sendable: only its thread uses what is not constant, from `run()` on.
final class RelayThread: @unchecked Sendable {
    /// What the operator should know.
    enum Report: Sendable {
        /// The feed is passed on.
        case connected(Endpoint)
        /// The feed is no longer passed on.
        case disconnected(Endpoint, reason: String)
        /// A feed can't be passed on.
        case unreachable(Endpoint, reason: String)
        /// The address can't be bound again.
        case unbound(LibraryFailure)
        /// An authorised key may not observe everything, and tries to subscribe.
        case denied(Principal)
    }

    enum Message: Sendable {
        case keys(AuthorizedKeys)
        case probe(@Sendable () -> Void)
        case stop
    }

    /// Why a feed is no longer passed on.
    private enum Ending {
        case stopped
        /// Subscribers have to prove themselves again.
        case keysChanged
        case failed(String)
    }

    private let feeds: [Endpoint]
    /// Where it listens, with the port that the system chose if it was 0.
    let address: String
    private let mailbox: Mailbox<Message>
    private let waker: Waker
    private let context = LibraryContext()
    private var keys: GatewayKeys?
    private var authenticator: Authenticator?
    private let report: (Report) -> Void

    private var batch: [Message] = []
    private var ending: Ending?
    /// How often a feed was tried; with ``turn``, which one it is.
    private var attempts = 0
    private var turn = 0
    /// What was told of each feed that can't be passed on.
    private var told: [Endpoint: String] = [:]
    private static let messagesPerTurn = 1_000
    private static let rebindPause = Duration.milliseconds(10)
    private static let rebindsReported = 300

    /// - Parameters:
    ///   - feeds: The feeds that are tried in turn.
    ///   - address: Where it listens.
    ///   - mailbox: Brings messages.
    ///   - waker: The mailbox's.
    ///   - keys: The keys; nil if nothing is encrypted.
    ///   - report: Gets what happens, on the relay's thread.
    /// - Throws: If the address can't be used.
    init(
        _ feeds: [Endpoint], at address: String, mailbox: Mailbox<Message>, waker: Waker,
        keys: GatewayKeys?, report: @escaping (Report) -> Void
    ) throws(LibraryFailure) {
        self.feeds = feeds
        self.mailbox = mailbox
        self.waker = waker
        self.keys = keys
        self.report = report
        if keys != nil { authenticator = try Authenticator(in: context, admitsOwnKey: true) }
        // Whether the address can be used, and which port it is. It listens only once the feed is there.
        let trial = try Self.listen(at: address, keys, in: context)
        trial.socket.close()
        self.address = trial.address
    }

    /// Makes the socket that subscribers connect to, and binds it.
    static func listen(
        at address: String, _ keys: GatewayKeys?, in context: LibraryContext
    ) throws(LibraryFailure) -> (socket: LibrarySocket, address: String) {
        let socket = try LibrarySocket(ZMQ_PUB, in: context)
        try socket.set(ZMQ_SNDHWM, RelayBounds.waitingMax)
        try socket.set(ZMQ_MAXMSGSIZE, RelayBounds.subscriptionBytesMax)
        try socket.set(ZMQ_TCP_MAXRT, Int32(RelayBounds.unreadMax / .milliseconds(1)))
        try socket.keepAlive()
        if let keys { try Authenticator.secure(socket, for: .publish(0), with: keys) }
        return (socket, try socket.bind(address))
    }

    /// Works until it is told to stop.
    func run() {
        var failures = 0
        while true {
            let feed = feeds[turn % feeds.count]
            attempts += 1
            var isPassing = false
            switch pass(on: feed, isPassing: &isPassing) {
            case .stopped: return
            case .keysChanged:
                if isPassing { report(.disconnected(feed, reason: "the keys have changed")) }
            case .failed(let reason):
                turn += 1
                if isPassing {
                    failures = 0
                    report(.disconnected(feed, reason: reason))
                } else if told.updateValue(reason, forKey: feed) != reason {
                    report(.unreachable(feed, reason: reason))
                }
                // Each feed is tried before there is a pause.
                failures += 1
                if failures % feeds.count == 0, rest(after: failures / feeds.count) { return }
            }
        }
    }

    /// Waits before the next attempt.
    ///
    /// - Returns: Whether it was told to stop.
    private func rest(after rounds: Int) -> Bool {
        let range = RelayBounds.pauseRange
        let pause = min(range.upperBound, range.lowerBound * (1 << min(rounds - 1, 10)))
        let until = Moment.now.monotonic + pause * Double.random(in: 0.5...1)
        while Moment.now.monotonic < until {
            wait(for: [], until: until)
            if case .stopped? = takeEnding() { return true }
        }
        return false
    }

    /// Passes one feed on, for as long as its connection stands.
    private func pass(on feed: Endpoint, isPassing: inout Bool) -> Ending {
        do throws(LibraryFailure) {
            let upstream = try Upstream(feed, own: keys?.own, in: context, number: attempts)
            defer { upstream.close() }
            var publisher: LibrarySocket?
            defer { publisher?.close() }
            var rebinds = 0
            var heardAt = Moment.now.monotonic
            var patience = RelayBounds.connectMax
            while true {
                wait(
                    for: [upstream.socket, upstream.monitor],
                    until: publisher == nil && rebinds > 0
                        ? Moment.now.monotonic + Self.rebindPause : heardAt + patience)
                if let ending = takeEnding() { return ending }
                // First: what is left of an ended connection may be of a term that is over.
                if let reason = upstream.takeEnd(patience == RelayBounds.silenceMax) {
                    return .failed(reason)
                }
                let count = upstream.socket.forward(to: publisher, limit: Self.messagesPerTurn)
                let now = Moment.now.monotonic
                if count > 0 { (heardAt, patience) = (now, RelayBounds.silenceMax) }
                if publisher == nil, count > 0 || rebinds > 0 {
                    publisher = listen(&rebinds)
                    guard publisher != nil else { continue }
                    isPassing = true
                    told = [:]
                    report(.connected(feed))
                } else if now >= heardAt + patience {
                    return .failed("nothing comes from there; see whether a sequencer serves")
                }
            }
        } catch {
            return .failed(error.message)
        }
    }

    /// Begins to listen. The address is free only some time after the former socket was closed.
    private func listen(_ attempts: inout Int) -> LibrarySocket? {
        do throws(LibraryFailure) {
            return try Self.listen(at: address, keys, in: context).socket
        } catch {
            attempts += 1
            if attempts.isMultiple(of: Self.rebindsReported) { report(.unbound(error)) }
            return nil
        }
    }

    private func takeEnding() -> Ending? {
        defer { ending = nil }
        return ending
    }

    /// Sleeps until something comes, or until a time. Messages of other threads, and questions of the library about keys,
    /// are handled here.
    private func wait(for sockets: [LibrarySocket], until deadline: Duration) {
        waker.poll(
            for: sockets.map(\.pointer) + [authenticator?.pointer].compactMap(\.self),
            until: deadline)
        mailbox.drain(into: &batch)
        for message in batch {
            switch message {
            case .keys(let authorized):
                keys?.authorized = authorized
                if ending == nil { ending = .keysChanged }
            case .probe(let passed): passed()
            case .stop: ending = .stopped
            }
        }
        batch.removeAll(keepingCapacity: true)
        if let keys {
            authenticator?.work(
                keys, mayRead: { rights, _ in rights.allowReadingAll },
                report: { principal, _ in report(.denied(principal)) })
        }
    }
}
