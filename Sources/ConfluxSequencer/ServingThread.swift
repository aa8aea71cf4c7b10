import ConfluxProtocol
import ConfluxVocabulary
import ConfluxZeroMQ

/// The thread that owns the sequencer's sockets and its ``SequencerMachine``. It turns frames, the log's
/// answers and time into inputs, and carries out the effects. It makes one decision of its own: after the log
/// has failed, another term begins (rule 3), with a new machine on the same sockets, so that nodes stay
/// connected.
final class ServingThread {
    var machine: SequencerMachine
    let router: RouterSocket
    let feed: PublisherSocket
    /// The holder of the lead serves, and may use everything here.
    let lead = Lead()
    let poller: Poller
    private let routerToken: Poller.Token
    private let feedToken: Poller.Token
    let waker: Waker
    let answers: Mailbox<ServingInput>
    let jobs: Mailbox<LogJob>
    let appender: LogThread
    private let reads: Mailbox<ReadTask>
    private let pace: ReadPace
    let events: @Sendable (SequencerEvent) -> Void
    private let meter: SequencerMeter
    /// What the thread needs if several sequencers may serve the log; nil otherwise.
    var standby: Standby?

    private var effects: [SequencerEffect] = []
    private var pending: [ServingInput] = []
    var access: Access
    var reloads: KeyReloads
    /// Whether the term has begun.
    var isServing = false
    /// Messages of nodes that came before the term began.
    var early = EarlyMessages()
    /// The failure of the log that keeps nodes from being served; peers are told of it.
    var failure: String?
    private var noteLimit = NoteLimit()
    var end: SequencerEnd?
    /// Whether the sockets failed, so that no further term could serve.
    var isCutOff = false
    /// Whether it was asked to stop.
    var isStopping = false
    /// Decides which answers of the log count.
    var gate = TermGate()
    var renewal: TermRenewal
    /// Whether the log is in memory, so that appends are always fast.
    let isMemory: Bool
    private let busyPollMax: Duration
    /// How many messages this turn has taken.
    var takenCount = 0
    /// The append that this thread does itself after the turn.
    var ownAppend: Append?
    /// When the append under way was handed to the log.
    private var appendedAt = Duration.zero
    private var commitTimes = CommitTimes()
    /// When the meter was last updated.
    private var publishedAt = Duration.zero
    /// Whether somebody asked for the status, so that the log's space is measured for the next one.
    private var isAskedForStatus = false

    /// How long to take frames before the log's answers have their turn.
    private static let turnMax = Duration.milliseconds(1)
    /// How often to update the meter. No turn waits for longer.
    private static let publishInterval = Duration.seconds(1)

    init(
        machine: SequencerMachine, router: RouterSocket, feed: PublisherSocket, waker: Waker,
        answers: Mailbox<ServingInput>, jobs: Mailbox<LogJob>, appender: LogThread,
        reads: Mailbox<ReadTask>, pace: ReadPace, isMemory: Bool, busyPollMax: Duration,
        renewal: TermRenewal, standby: Standby?, access: Access, authorized: AuthorizedKeys?,
        reloads: KeyReloads,
        meter: SequencerMeter, events: @escaping @Sendable (SequencerEvent) -> Void
    ) throws(ZeroMQError) {
        self.machine = machine
        self.router = router
        self.feed = feed
        self.answers = answers
        self.jobs = jobs
        self.appender = appender
        self.reads = reads
        self.pace = pace
        self.isMemory = isMemory
        self.busyPollMax = busyPollMax
        self.renewal = renewal
        self.standby = standby
        self.access = access
        self.reloads = reloads
        self.meter = meter
        self.events = events
        self.waker = waker
        poller = Poller(waker: waker)
        routerToken = try poller.add(router)
        feedToken = try poller.add(feed)
        if let authorized {
            try self.access.admit(authorized, on: [router, feed])
            self.machine.limit(rates: authorized.rates)
        }
    }

    /// Serves until the last term ends.
    ///
    /// - Returns: Why it ended.
    func run() -> SequencerEnd {
        lead.take()
        defer { lead.letGo() }
        let reason = standby == nil ? runAlone() : runStandingBy()
        router.close()
        feed.close()
        return reason
    }

    func serveTerm() -> SequencerEnd {
        // Nothing is appended after the end. Otherwise the next term would append what the last one had left.
        defer { ownAppend = nil }
        while true {
            if let end { return end }
            // The thread that relieved this one may have left it an append.
            if let append = ownAppend { appendAside(append) } else { turn() }
        }
    }

    /// Waits until something happens, and handles it. What is only told to others comes first, so that it delays no
    /// append.
    func turn() {
        takenCount = 0
        tellOmissions()
        publish()
        do {
            let readiness = try poller.wait(timeout: timeout, pollingFor: busyPollMax) { wait in
                lead.letGo()
                wait()
                lead.take()
            }
            takeAnswers()
            try takeMessages(readiness)
            if try takeSubscriptions(readiness) { perform(.subscribed) }
        } catch {
            cutOff(error)
        }
        guard end == nil else { return }
        if let due = machine.nextDeadline, Moment.now.monotonic >= due { perform(.tick) }
        perform(.drained)
    }

    /// Updates the meter, if it is time. Called in each turn.
    func publish() {
        let now = Moment.now.monotonic
        standby?.signs.turn(at: now)
        guard now - publishedAt >= Self.publishInterval else { return }
        publishedAt = now
        meter.publish(
            machine.gauges, machine.tally, commitTimes,
            bounds: router.levels.bounds(of: "router") + feed.levels.bounds(of: "feed"), at: now)
        guard isAskedForStatus, isServing else { return }
        isAskedForStatus = false
        jobs.post(.measure)
    }

    private func tellOmissions() {
        for omission in noteLimit.endSpans(at: Moment.now.monotonic) {
            events(.omitted(omission.kind.rawValue, count: omission.count, span: NoteLimit.span))
        }
    }

    /// Waits between two terms, and keeps the messages of nodes within a bound.
    ///
    /// - Returns: Whether the pause has passed; false if the thread was asked to stop, or the sockets failed.
    func rest(for pause: Duration) -> Bool {
        isServing = false
        end = nil
        let until = Moment.now.monotonic + pause
        while !isStopping {
            let left = until - Moment.now.monotonic
            guard left > .zero else { return true }
            do {
                let readiness = try poller.wait(timeout: min(left, Self.publishInterval))
                publish()
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

    func cutOff(_ error: ZeroMQError) {
        isCutOff = true
        end = .logFailed(error.message)
    }

    private var timeout: Duration {
        guard end == nil, let due = machine.nextDeadline else { return Self.publishInterval }
        return min(max(.zero, due - Moment.now.monotonic), Self.publishInterval)
    }

    func perform(_ input: SequencerInput) {
        machine.handle(input, at: .now, into: &effects)
        guard !effects.isEmpty else { return }
        // Carrying out an effect may cause further ones, which are carried out within it. The memory is used again.
        var due: [SequencerEffect] = []
        swap(&due, &effects)
        for effect in due { carryOut(effect) }
        due.removeAll(keepingCapacity: true)
        swap(&due, &effects)
    }

    // MARK: Inputs

    func takeAnswers() {
        answers.drain(into: &pending)
        for input in pending {
            switch input {
            case .stop:
                isStopping = true
                perform(.stop)
            case .authorize(let keys): authorize(keys, askedBy: nil)
            case .reload: reload(for: nil)
            case .reloaded(let outcome): reloaded(outcome)
            case .probe(let passed): jobs.post(.probe(passed))
            case .log(let answer):
                guard gate.admits(answer.term) else { continue }
                perform(answer.input.told(standsBy: standby != nil))
                guard case .appended = answer.input else { continue }
                perform(.published)
                measureCommit()
            case .followed(let look, let begun): followed(look, since: begun)
            case .hinted: hinted()
            case .news(let news, let epoch): take(news, of: epoch)
            case .read(let answer):
                if answer.epoch == machine.epoch { perform(answer.input) }
            }
        }
        pending.removeAll(keepingCapacity: true)
    }

    private func measureCommit() {
        let now = Moment.now.monotonic
        meter.committed(after: now - appendedAt)
        commitTimes.add(through: machine.last, at: now)
    }

    /// Reads the sockets. This happens at all times, also while no node is served, so that peers can connect
    /// and connections can end.
    func takeMessages(_ readiness: Poller.Readiness) throws(ZeroMQError) {
        let begun = Moment.now.monotonic
        try router.review(at: begun)
        if isServing { for input in early.takeAll() { take(input) } }
        guard readiness.isReadable(routerToken) else { return }
        repeat {
            guard let input = try router.receive() else { return }
            takenCount += 1
            if isServing { take(input) } else { keep(input) }
        } while Moment.now.monotonic - begun < Self.turnMax
    }

    /// Keeps a message until the term begins. If that will take a while, a hello is answered at once.
    private func keep(_ input: RouterInput) {
        early.add(input, of: router.key(of: input.peer))
        guard gate.isStandingBy || failure != nil,
            case .message(let route, let frame) = input,
            (try? Frame.header(of: frame))?.kind == .hello
        else { return }
        answer(hello: frame, from: route)
    }

    /// - Returns: Whether somebody has subscribed.
    func takeSubscriptions(_ readiness: Poller.Readiness) throws(ZeroMQError) -> Bool {
        try feed.review(at: Moment.now.monotonic)
        guard readiness.isReadable(feedToken) else { return false }
        return try feed.receiveSubscriptions() > 0
    }

    private func take(_ input: RouterInput) {
        switch input {
        case .message(let route, let frame):
            // If the key is no longer authorised, or the connection is gone, ignore the message.
            guard let principal = access.principal(of: router.key(of: route)) else { return }
            take(
                .frame(
                    frame, limits: machine.limits, from: ConnectionID(route), as: principal,
                    isBehind: !router.hasRoomForAnswers(to: route)),
                from: route)
        case .malformed(let route, let frames):
            let text = "a message has one frame, not \(frames)"
            take(.unreadable(.malformed, message: text, from: ConnectionID(route)), from: route)
        case .ended(let route): perform(.disconnected(ConnectionID(route)))
        }
    }

    /// Hands an input to the machine. An unreadable message is answered; if a peer sends many of them, its
    /// connection ends.
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
        case .append(let append):
            appendedAt = Moment.now.monotonic
            pace.appended(at: appendedAt)
            if mayAppend(append) { ownAppend = append } else { jobs.post(.append(append)) }
        case .readSnapshots: jobs.post(.readSnapshots)
        case .saveSnapshot(let part): jobs.post(.saveSnapshot(part))
        case .keepAside(let stores, let last): read(.gather(AsideRun(stores, through: last)))
        case .removeSnapshots(let store): jobs.post(.removeSnapshots(store))
        case .truncate(let floor): jobs.post(.truncate(below: floor))
        case .read(let job): read(.read(job))
        case .makeRoom: jobs.post(.makeRoom)
        case .confirmTerm: jobs.post(.confirm)
        case .reloadKeys(let question, let connection):
            reload(
                for: KeyReloads.Asker(
                    connection: connection, question: question,
                    key: router.key(of: RoutingID(connection))))
        case .bar(let name, let pause): bar(name, for: pause)
        case .serve(let beat): serve(beat)
        case .publishCommit(let frame): publish(frame)
        case .publishBeat(let beat): publish(Frame.encode(beat, epoch: machine.epoch)[...])
        case .send(let message, let connection): send(message, to: connection)
        case .note(let note):
            if noteLimit.admits(note, at: Moment.now.monotonic) { events(.note(note)) }
        case .end(let reason):
            end = reason
            if standby != nil {
                isServing = false
                failure = "its term is over"
            }
        }
    }

    private func read(_ job: ReaderJob) {
        reads.post(ReadTask(epoch: machine.epoch, job: job))
    }

    private func serve(_ beat: Beat) {
        isServing = true
        isAskedForStatus = true
        failure = nil
        renewal.begun(at: .now)
        events(.serving(log: beat.log, epoch: machine.epoch, last: beat.last))
        // Early subscribers learn the new epoch at once (rule 4).
        publish(Frame.encode(beat, epoch: machine.epoch)[...])
    }

    private func publish(_ frame: Bytes) {
        do throws(ZeroMQError) {
            // A subscriber that can't keep up loses the frame, and fetches it later (rule 39).
            try access.publish(frame, on: feed)
        } catch {
            cutOff(error)
        }
    }

    func send(_ message: SequencerMessage, to connection: ConnectionID) {
        if case .answer(let answer) = message, case .status = answer.body {
            isAskedForStatus = true
        }
        let route = RoutingID(connection)
        do throws(ZeroMQError) {
            // A message is lost if the queue is full or its receiver may no longer receive it. That is safe
            // for every message: the receiver asks again, sends another hello, or times out.
            guard let principal = access.principal(of: router.key(of: route)) else { return }
            let visible = principal.rights.visible(message)
            _ = try router.send(Frame.encode(visible, epoch: machine.epoch), to: route)
        } catch {
            cutOff(error)
        }
    }
}
