import ConfluxProtocol
import ConfluxVocabulary
import ConfluxZeroMQ

/// The thread that owns the sequencer's sockets and its ``SequencerMachine``: it turns frames,
/// the log's answers and time into inputs, and carries out the effects. It decides nothing, but
/// that another tenure begins when the log has failed (rule 3): with a machine of its own, on the
/// same sockets, which nodes have connected to.
final class ServingThread {
    private var machine: SequencerMachine
    private let router: RouterSocket
    private let feed: XPublisherSocket
    private let poller: Poller
    private let routerToken: Poller.Token
    private let feedToken: Poller.Token
    private let answers: Mailbox<ServingInput>
    private let jobs: Mailbox<LogJob>
    private let events: @Sendable (SequencerEvent) -> Void

    private var effects: [SequencerEffect] = []
    private var pending: [ServingInput] = []
    private var connections = ConnectionNames()
    /// Whether the tenure has begun: before, frames wait in the sockets.
    private var isServing = false
    private var end: SequencerEnd?
    /// Whether the sockets failed: no further tenure would serve.
    private var isCutOff = false
    /// Whether it was asked to stop.
    private var isStopping = false
    /// Which tenure of this process it is. Answers to the others are too late.
    private var tenure: UInt64 = 1
    private var renewal: TenureRenewal

    /// How many frames are taken before the log's answers have their turn.
    private static let framesPerTurn = 1_024

    init(
        machine: SequencerMachine, router: RouterSocket, feed: XPublisherSocket, waker: Waker,
        answers: Mailbox<ServingInput>, jobs: Mailbox<LogJob>, renewal: TenureRenewal,
        events: @escaping @Sendable (SequencerEvent) -> Void
    ) throws(ZeroMQError) {
        self.machine = machine
        self.router = router
        self.feed = feed
        self.answers = answers
        self.jobs = jobs
        self.renewal = renewal
        self.events = events
        poller = Poller(waker: waker)
        routerToken = try poller.add(router, [])
        feedToken = try poller.add(feed)
    }

    /// Serves until the last tenure ends.
    ///
    /// - Returns: Why it ended.
    func run() -> SequencerEnd {
        jobs.post(.claim(.random()))
        var reason = serveTenure()
        while case .logFailed(let message) = reason, !isCutOff, !isStopping,
            let pause = renewal.pause(after: .now)
        {
            events(.tenureFailed(message: message, pause: pause))
            guard rest(for: pause) else {
                reason = isCutOff ? end ?? reason : .stopped
                break
            }
            machine = SequencerMachine(settings: machine.settings)
            tenure += 1
            jobs.post(.renew(.random()))
            reason = serveTenure()
        }
        router.close()
        feed.close()
        return reason
    }

    private func serveTenure() -> SequencerEnd {
        while true {
            do {
                let readiness = try poller.wait(timeout: timeout)
                takeAnswers()
                if isServing, readiness.isReadable(routerToken) { try takeMessages() }
                if readiness.isReadable(feedToken), try feed.receiveSubscriptions() > 0 {
                    perform(.subscribed)
                }
            } catch {
                cutOff(error)
            }
            if let end { return end }
            if let due = machine.nextDeadline, Moment.now.monotonic >= due { perform(.tick) }
            perform(.drained)
            if let end { return end }
        }
    }

    /// Between two tenures: what nodes send waits in the sockets.
    ///
    /// - Returns: Whether the time passed; false when it was asked to stop, or the sockets failed.
    private func rest(for pause: Duration) -> Bool {
        isServing = false
        end = nil
        poller.setInterest([], for: routerToken)
        let until = Moment.now.monotonic + pause
        while !isStopping {
            let left = until - Moment.now.monotonic
            guard left > .zero else { return true }
            do {
                let readiness = try poller.wait(timeout: left)
                takeAnswers()
                if readiness.isReadable(feedToken) { _ = try feed.receiveSubscriptions() }
            } catch {
                cutOff(error)
                return false
            }
        }
        return false
    }

    private func cutOff(_ error: ZeroMQError) {
        isCutOff = true
        end = .logFailed(error.message)
    }

    private var timeout: Duration? {
        machine.nextDeadline.map { max(.zero, $0 - Moment.now.monotonic) }
    }

    private func perform(_ input: SequencerInput) {
        machine.handle(input, at: .now, into: &effects)
        guard !effects.isEmpty else { return }
        let due = effects
        effects.removeAll(keepingCapacity: true)
        for effect in due { carryOut(effect) }
    }

    // MARK: Inputs

    private func takeAnswers() {
        answers.drain(into: &pending)
        for input in pending {
            switch input {
            case .stop:
                isStopping = true
                perform(.stop)
            case .log(let answer):
                if answer.tenure == tenure { perform(answer.input) }
            }
        }
        pending.removeAll(keepingCapacity: true)
    }

    private func takeMessages() throws(ZeroMQError) {
        for _ in 0..<Self.framesPerTurn {
            guard let input = try router.receive() else { return }
            switch input {
            case .message(let route, let frame): take(frame, from: connections.name(of: route))
            case .malformed(let route, let frames):
                perform(
                    .unreadable(
                        .malformed, message: "a message has one frame, not \(frames)",
                        from: connections.name(of: route)))
            case .overlongRoutingID: break  // nobody can be answered
            }
        }
    }

    private func take(_ frame: Bytes, from connection: ConnectionID) {
        do throws(WireError) {
            let epoch = try Frame.header(of: frame).epoch
            perform(
                .received(
                    try Frame.decodeNodeMessage(frame, limits: machine.limits), epoch: epoch,
                    from: connection))
        } catch {
            refuse(frame, error, from: connection)
        }
    }

    /// Where the counters of a submit can be read, its actions are rejected, and their node goes on.
    private func refuse(_ frame: Bytes, _ error: WireError, from connection: ConnectionID) {
        do throws(WireError) {
            let outline = try Frame.outline(ofSubmit: frame)
            let epoch = try Frame.header(of: frame).epoch
            let code = error.byeCode == .unsupported ? RejectionCode.unsupported : .malformed
            perform(
                .unreadableSubmit(
                    outline, code, message: error.message, epoch: epoch, from: connection))
        } catch {
            perform(.unreadable(error.byeCode, message: error.message, from: connection))
        }
    }

    // MARK: Effects

    private func carryOut(_ effect: SequencerEffect) {
        switch effect {
        case .readCheckpoint(let last): jobs.post(.readCheckpoint(through: last))
        case .readLog(let from): jobs.post(.read(from: from))
        case .append(let append): jobs.post(.append(append))
        case .readSnapshots: jobs.post(.readSnapshots)
        case .saveSnapshot(let part): jobs.post(.saveSnapshot(part))
        case .readSnapshot(let job): jobs.post(.readSnapshot(job))
        case .keepAside(let stores, let last):
            jobs.post(.keepAside(AsideRun(stores, through: last)))
        case .removeSnapshots(let store): jobs.post(.removeSnapshots(store))
        case .truncate(let floor): jobs.post(.truncate(below: floor))
        case .readFetch(let job): jobs.post(.fetch(job))
        case .confirmTenure: jobs.post(.confirm)
        case .serve(let beat): serve(beat)
        case .publishCommit(let frame): publish(frame)
        case .publishBeat(let beat): publish(Frame.encode(beat, epoch: machine.epoch)[...])
        case .send(let message, let connection): send(message, to: connection)
        case .note(let note): events(.note(note))
        case .end(let reason): end = reason
        }
    }

    /// The first message of every subscription proves it, so that nobody waits for a beat (rule 4).
    private func serve(_ beat: Beat) {
        do throws(ZeroMQError) {
            try feed.setWelcome(Frame.encode(beat, epoch: machine.epoch)[...])
            poller.setInterest(.readable, for: routerToken)
        } catch {
            cutOff(error)
            return
        }
        isServing = true
        renewal.begun(at: .now)
        events(.serving(log: beat.log, epoch: machine.epoch, last: beat.last))
    }

    private func publish(_ frame: Bytes) {
        do throws(ZeroMQError) {
            // A subscriber that can't keep up loses it, and fetches it later (rule 28).
            _ = try feed.send(frame)
        } catch {
            cutOff(error)
        }
    }

    private func send(_ message: SequencerMessage, to connection: ConnectionID) {
        guard let route = connections.route(of: connection) else { return }
        do throws(ZeroMQError) {
            // What a full queue has no room for is lost. Whoever waits for it asks again, or says
            // hello, or its patience ends: that holds for every message.
            let outcome = try router.send(Frame.encode(message, epoch: machine.epoch), to: route)
            if outcome == .unreachable { connections.remove(connection) }
        } catch {
            cutOff(error)
        }
    }
}

/// What the thread that serves is told by other threads.
enum ServingInput: Sendable {
    /// An answer of the log.
    case log(LogThread.Answer)
    /// End the tenure cleanly.
    case stop
}

/// When a further tenure begins after the log has failed.
struct TenureRenewal {
    /// The first pause. It doubles with each tenure that fails soon.
    static let pauseMin = Duration.milliseconds(100)
    /// A tenure that served for this long is no sign that the next one will fail soon.
    static let steadyMin = Duration.seconds(30)

    /// The longest pause; nil when the first failure ends the sequencer.
    let pauseMax: Duration?
    private var lastPause: Duration?
    private var begunAt: Duration?
    private var hasServed = false

    init(pauseMax: Duration?) {
        self.pauseMax = pauseMax
    }

    /// A tenure serves.
    mutating func begun(at now: Moment) {
        begunAt = now.monotonic
        hasServed = true
    }

    /// The log has failed.
    ///
    /// - Returns: How long to wait; nil when no further tenure is to begin: also when none has
    ///   served yet, since then whoever started it is there to see it.
    mutating func pause(after now: Moment) -> Duration? {
        guard let pauseMax, hasServed else { return nil }
        let isSteady = begunAt.map { now.monotonic - $0 >= Self.steadyMin } ?? false
        begunAt = nil
        let pause = isSteady ? Self.pauseMin : lastPause.map { $0 * 2 } ?? Self.pauseMin
        lastPause = min(pause, max(pauseMax, Self.pauseMin))
        return lastPause
    }
}
