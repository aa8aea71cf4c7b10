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
    private let feed: PublisherSocket
    private let poller: Poller
    private let routerToken: Poller.Token
    private let feedToken: Poller.Token
    private let answers: Mailbox<ServingInput>
    private let jobs: Mailbox<LogJob>
    private let reads: Mailbox<ReadTask>
    private let events: @Sendable (SequencerEvent) -> Void

    private var effects: [SequencerEffect] = []
    private var pending: [ServingInput] = []
    /// Whether the tenure has begun.
    private var isServing = false
    /// What nodes said before the tenure began.
    private var early = EarlyMessages()
    private var noteLimit = NoteLimit()
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
        machine: SequencerMachine, router: RouterSocket, feed: PublisherSocket, waker: Waker,
        answers: Mailbox<ServingInput>, jobs: Mailbox<LogJob>, reads: Mailbox<ReadTask>,
        renewal: TenureRenewal,
        events: @escaping @Sendable (SequencerEvent) -> Void
    ) throws(ZeroMQError) {
        self.machine = machine
        self.router = router
        self.feed = feed
        self.answers = answers
        self.jobs = jobs
        self.reads = reads
        self.renewal = renewal
        self.events = events
        poller = Poller(waker: waker)
        routerToken = try poller.add(router)
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
            machine = SequencerMachine(settings: machine.settings, secret: .random())
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
                try takeMessages(readiness)
                if try takeSubscriptions(readiness) { perform(.subscribed) }
            } catch {
                cutOff(error)
            }
            if let end { return end }
            if let due = machine.nextDeadline, Moment.now.monotonic >= due { perform(.tick) }
            perform(.drained)
            tellOmissions()
            if let end { return end }
        }
    }

    private func tellOmissions() {
        for omission in noteLimit.endSpans(at: Moment.now.monotonic) {
            events(.omitted(omission.kind.rawValue, count: omission.count, span: NoteLimit.span))
        }
    }

    /// Between two tenures: what nodes send is kept within a bound.
    ///
    /// - Returns: Whether the time passed; false when it was asked to stop, or the sockets failed.
    private func rest(for pause: Duration) -> Bool {
        isServing = false
        end = nil
        let until = Moment.now.monotonic + pause
        while !isStopping {
            let left = until - Moment.now.monotonic
            guard left > .zero else { return true }
            do {
                let readiness = try poller.wait(timeout: left)
                takeAnswers()
                try takeMessages(readiness)
                _ = try takeSubscriptions(readiness)
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
            case .read(let answer):
                if answer.epoch == machine.epoch { perform(answer.input) }
            }
        }
        pending.removeAll(keepingCapacity: true)
    }

    /// Sockets are read at all times, whoever is served, so that peers can connect and be ended.
    private func takeMessages(_ readiness: Poller.Readiness) throws(ZeroMQError) {
        try router.review(at: Moment.now.monotonic)
        if isServing { for input in early.takeAll() { take(input) } }
        guard readiness.isReadable(routerToken) else { return }
        for _ in 0..<Self.framesPerTurn {
            guard let input = try router.receive() else { return }
            if isServing { take(input) } else { early.add(input) }
        }
    }

    /// - Returns: Whether somebody has subscribed.
    private func takeSubscriptions(_ readiness: Poller.Readiness) throws(ZeroMQError) -> Bool {
        try feed.review(at: Moment.now.monotonic)
        guard readiness.isReadable(feedToken) else { return false }
        return try feed.receiveSubscriptions() > 0
    }

    private func take(_ input: RouterInput) {
        switch input {
        case .message(let route, let frame):
            take(.frame(frame, limits: machine.limits, from: ConnectionID(route)), from: route)
        case .malformed(let route, let frames):
            let text = "a message has one frame, not \(frames)"
            take(.unreadable(.malformed, message: text, from: ConnectionID(route)), from: route)
        case .ended(let route): perform(.disconnected(ConnectionID(route)))
        }
    }

    /// What can't be read is answered; of a peer that says much of it the connection ends.
    private func take(_ input: SequencerInput, from route: RoutingID) {
        perform(input)
        guard case .unreadable = input else { return }
        do throws(ZeroMQError) {
            try router.refuse(route)
        } catch {
            cutOff(error)
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
        case .keepAside(let stores, let last): read(.gather(AsideRun(stores, through: last)))
        case .removeSnapshots(let store): jobs.post(.removeSnapshots(store))
        case .truncate(let floor): jobs.post(.truncate(below: floor))
        case .read(let job): read(.read(job))
        case .confirmTenure: jobs.post(.confirm)
        case .serve(let beat): serve(beat)
        case .publishCommit(let frame): publish(frame)
        case .publishBeat(let beat): publish(Frame.encode(beat, epoch: machine.epoch)[...])
        case .send(let message, let connection): send(message, to: connection)
        case .note(let note):
            if noteLimit.admits(note, at: Moment.now.monotonic) { events(.note(note)) }
        case .end(let reason): end = reason
        }
    }

    private func read(_ job: ReaderJob) {
        reads.post(ReadTask(epoch: machine.epoch, job: job))
    }

    private func serve(_ beat: Beat) {
        isServing = true
        renewal.begun(at: .now)
        events(.serving(log: beat.log, epoch: machine.epoch, last: beat.last))
        // Whoever subscribed before learns the new epoch at once (rule 4).
        publish(Frame.encode(beat, epoch: machine.epoch)[...])
    }

    private func publish(_ frame: Bytes) {
        do throws(ZeroMQError) {
            // A subscriber that can't keep up loses it, and fetches it later (rule 39).
            try feed.send(frame)
        } catch {
            cutOff(error)
        }
    }

    private func send(_ message: SequencerMessage, to connection: ConnectionID) {
        do throws(ZeroMQError) {
            // What a full queue has no room for is lost. Whoever waits for it asks again, or says
            // hello, or its patience ends: that holds for every message.
            let outcome = try router.send(
                Frame.encode(message, epoch: machine.epoch), to: RoutingID(connection))
            if outcome != .sent, let tag = message.deliveryTag {
                perform(.answerLost(tag, to: connection))
            }
        } catch {
            cutOff(error)
        }
    }
}

/// What nodes say while the sequencer reads its log: within a bound, and the rest is lost, as on a
/// connection that breaks, and said again.
struct EarlyMessages {
    static let countMax = 1_024
    static let bytesMax = 4 << 20

    private var inputs: [RouterInput] = []
    private var bytes = 0

    mutating func add(_ input: RouterInput) {
        switch input {
        case .message(_, let frame):
            guard inputs.count < Self.countMax, bytes + frame.count <= Self.bytesMax else { return }
            inputs.append(input)
            bytes += frame.count
        case .ended(let route): remove(route)
        case .malformed: break
        }
    }

    /// Nobody waits for answers on a connection that has ended.
    private mutating func remove(_ route: RoutingID) {
        inputs.removeAll { input in
            guard case .message(route, let frame) = input else { return false }
            bytes -= frame.count
            return true
        }
    }

    /// Takes what was kept, oldest first.
    mutating func takeAll() -> [RouterInput] {
        defer { self = EarlyMessages() }
        return inputs
    }
}

extension ConnectionID {
    /// The machine's name of a connection.
    init(_ route: RoutingID) {
        self.init(rawValue: UInt64(route.number))
    }
}

extension RoutingID {
    /// The connection that has a name of the machine's.
    init(_ connection: ConnectionID) {
        self.init(number: UInt32(truncatingIfNeeded: connection.rawValue))
    }
}

/// What the thread that serves is told by other threads.
enum ServingInput: Sendable {
    /// An answer of the log.
    case log(LogThread.Answer)
    /// What was read of the log for others.
    case read(ReadThread.Answer)
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
