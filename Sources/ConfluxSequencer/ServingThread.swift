import ConfluxProtocol
import ConfluxVocabulary
import ConfluxZeroMQ

/// The thread that owns the sequencer's sockets and its ``SequencerMachine``: it turns frames,
/// the log's answers and time into inputs, and carries out the effects. It decides nothing.
final class ServingThread {
    private var machine: SequencerMachine
    private let router: RouterSocket
    private let feed: XPublisherSocket
    private let poller: Poller
    private let routerToken: Poller.Token
    private let feedToken: Poller.Token
    private let answers: Mailbox<SequencerInput>
    private let jobs: Mailbox<LogJob>
    private let events: @Sendable (SequencerEvent) -> Void

    private var effects: [SequencerEffect] = []
    private var pending: [SequencerInput] = []
    private var connections = ConnectionNames()
    /// Whether the tenure has begun: before, frames wait in the sockets.
    private var isServing = false
    private var end: SequencerEnd?

    /// How many frames are taken before the log's answers have their turn.
    private static let framesPerTurn = 1_024

    init(
        machine: SequencerMachine, router: RouterSocket, feed: XPublisherSocket, waker: Waker,
        answers: Mailbox<SequencerInput>, jobs: Mailbox<LogJob>,
        events: @escaping @Sendable (SequencerEvent) -> Void
    ) throws(ZeroMQError) {
        self.machine = machine
        self.router = router
        self.feed = feed
        self.answers = answers
        self.jobs = jobs
        self.events = events
        poller = Poller(waker: waker)
        routerToken = try poller.add(router, [])
        feedToken = try poller.add(feed)
    }

    /// Serves until the tenure ends.
    ///
    /// - Returns: Why it ended.
    func run() -> SequencerEnd {
        jobs.post(.claim(.random()))
        while end == nil {
            do {
                let readiness = try poller.wait(timeout: timeout)
                takeAnswers()
                if isServing, readiness.isReadable(routerToken) { try takeMessages() }
                if readiness.isReadable(feedToken), try feed.receiveSubscriptions() > 0 {
                    perform(.subscribed)
                }
            } catch {
                end = .logFailed(error.message)
                break
            }
            if let due = machine.nextDeadline, Moment.now.monotonic >= due { perform(.tick) }
            perform(.drained)
        }
        jobs.post(.close)
        router.close()
        feed.close()
        return end ?? .stopped
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
        for input in pending { perform(input) }
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
            let code = error.byeCode == .unsupported ? RejectionCode.unsupported : .malformed
            perform(
                .unreadableSubmit(outline, code, message: error.message, from: connection))
        } catch {
            perform(.unreadable(error.byeCode, message: error.message, from: connection))
        }
    }

    // MARK: Effects

    private func carryOut(_ effect: SequencerEffect) {
        switch effect {
        case .readLog(let from): jobs.post(.read(from: from))
        case .append(let append): jobs.post(.append(append))
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
            end = .logFailed(error.message)
            return
        }
        isServing = true
        events(.serving(log: beat.log, epoch: machine.epoch, last: beat.last))
    }

    private func publish(_ frame: Bytes) {
        do throws(ZeroMQError) {
            // A subscriber that can't keep up loses it, and fetches it later (rule 28).
            _ = try feed.send(frame)
        } catch {
            end = .logFailed(error.message)
        }
    }

    private func send(_ message: SequencerMessage, to connection: ConnectionID) {
        guard let route = connections.route(of: connection) else { return }
        do throws(ZeroMQError) {
            let outcome = try router.send(Frame.encode(message, epoch: machine.epoch), to: route)
            if outcome == .unreachable { connections.remove(connection) }
        } catch {
            end = .logFailed(error.message)
        }
    }
}
