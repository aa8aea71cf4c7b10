import Conflux
import ConfluxProtocol
import ConfluxVocabulary
import ConfluxZeroMQ
import Foundation

/// The thread that owns a node's sockets and its ``ReplicaMachine``. It turns frames, commands and time
/// into inputs, and carries out the effects. It makes no decisions.
// Sendable: the thread that has the lead owns everything here. Other threads post to its port.
final class LinkThread: @unchecked Sendable {
    let port: LinkPort
    let outbox: Outbox
    let jobs: Mailbox<ApplyJob>
    let apply: ApplyThread
    let events: @Sendable (NodeEvent) -> Void

    var machine: ReplicaMachine
    let dealer: ClientSocket
    let poller: Poller
    private let busyPollMax: Duration
    private let dealerToken: Poller.Token
    var feed: Feed?
    let relays: (addresses: [Endpoint], retryPause: Duration)
    let security: SocketSecurity
    var refused = RefusedConnections()
    /// What keeps the node from its sequencer, while that lasts.
    var troubles = (requests: WayTrouble(.requests), feed: WayTrouble(.feed))
    /// The callers that wait for the sequencer, by number.
    var vigils: [UInt64: Vigil] = [:]
    /// How often parts of messages had moved, when the machine was last told.
    private var seenStirs = 0

    /// The thread that has it drives the link and owns everything here: see `LinkThread+Leading`.
    let lead = Lead()
    /// Whether the link's thread sleeps.
    var isAsleep = false
    /// Whether the thread that applies has jobs that it was not woken for, and their bytes.
    var hasNews = false
    var newsBytes = 0

    private var effects: [ReplicaEffect] = []
    /// The last frame. Its memory is used again.
    private var frame: [UInt8] = []
    var commands: [LinkCommand] = []
    var asks: [UInt64: Ask] = [:]
    /// The callers that wait for what they load, by request.
    var loads: [UInt64: @Sendable (Bytes?) -> Void] = [:]
    var nextAsk: UInt64 = 1
    private var leaveDeadline: Duration?
    /// Whether the sequencer was told that the node is about to leave.
    private var isSayingLeaving = false
    /// How long the node waits then.
    private static let leavingMax = Duration.seconds(2)
    var end: ReplicaEnd?
    private var sent = SentBatches()
    /// How many outcomes of actions were handed to the thread that applies.
    private var settledCount: UInt64 = 0
    private let progress: SharedProgress
    private var seen = SharedProgress.Content()
    private let meter: NodeMeter
    let diagnosis: AddressDiagnosis
    /// Since when this node's actions are held up, and the reason that was last reported.
    private var heldUp: (since: Duration, told: String?)?
    /// How long they are held up before that is reported. A snapshot mostly ends it sooner.
    private static let heldUpPatience = Duration.seconds(2)
    /// When the status was last published.
    private var publishedAt = Duration.zero

    struct Ask {
        var deadline: Duration
        var reply: @Sendable (Answer) -> Void
    }

    /// See ``NodeSettings/jobsMax``.
    private let jobsMax: Int
    private let shelf: EncodingShelf
    /// The most messages that wait to be sent. The window bounds their bytes, and must be reached before this
    /// count. *At the bound* messages are lost, and repeated.
    private static let sendQueueMessages = 100_000
    /// The memory of a larger frame is not kept. *Use*: full batches fit, an initial state need not.
    private static let frameBytesKept = 1 << 20
    /// How many frames are taken from one socket before the other sockets have their turn.
    static let framesPerTurn = 256

    init(
        addresses: [Endpoint], machine: ReplicaMachine, port: LinkPort, outbox: Outbox,
        jobs: Mailbox<ApplyJob>, apply: ApplyThread, jobsMax: Int, progress: SharedProgress,
        shelf: EncodingShelf, busyPollMax: Duration,
        security: SocketSecurity,
        relays: (addresses: [Endpoint], retryPause: Duration), meter: NodeMeter,
        diagnosis: AddressDiagnosis, events: @escaping @Sendable (NodeEvent) -> Void
    ) throws(ZeroMQError) {
        self.diagnosis = diagnosis
        self.relays = relays
        self.machine = machine
        self.port = port
        self.outbox = outbox
        self.jobs = jobs
        self.apply = apply
        self.jobsMax = jobsMax
        self.progress = progress
        self.shelf = shelf
        self.busyPollMax = busyPollMax
        self.events = events
        self.meter = meter
        var settings = SocketSettings()
        settings.sendQueueMessages = Self.sendQueueMessages
        settings.security = security
        self.security = security
        dealer = try ClientSocket(.dealer, settings: settings)
        poller = Poller(waker: port.waker)
        dealerToken = try poller.add(dealer)
        try dealer.connect(toAnyOf: addresses)
    }

    /// Runs until the machine ends.
    ///
    /// - Returns: Why it ended. The thread that applies was told to stop.
    func run() -> ReplicaEnd {
        lead.take()
        perform(.start)
        while end == nil {
            turn()
            applyAside()
        }
        lead.letGo()
        finish()
        return end ?? .left
    }

    /// Does what is due, waits until something happens, and handles it. So the caller can apply what a turn brings before
    /// anything else is done.
    func turn() {
        passTime()
        repeat { takeDispatches() } while takeProgress()
        leaveIfSettled()
        publish()
        guard end == nil else { return }
        do {
            let busyMax = machine.isAnswerDue ? busyPollMax : .zero
            let readiness = try poller.wait(timeout: timeout, pollingFor: busyMax) {
                letLead(during: $0)
            }
            takeCommands()
            if readiness.isReadable(dealerToken) { try takeMessages() }
            if let feed, readiness.isReadable(feed.token) { try takeFeed(feed) }
            if let trial = feed?.trial, readiness.isReadable(trial.token) { try takeTrial(trial) }
        } catch {
            end = .unreadable("\(error)")
        }
    }

    var now: Moment { .now }

    private var timeout: Duration {
        let instant = now.monotonic
        var deadline = instant + NodeMeter.publishInterval
        if let due = machine.nextDeadline { deadline = min(deadline, due) }
        for ask in asks.values { deadline = min(deadline, ask.deadline) }
        for vigil in vigils.values { deadline = min(deadline, vigil.deadline) }
        if let leaveDeadline { deadline = min(deadline, leaveDeadline) }
        if let due = feed?.choice.retryDue { deadline = min(deadline, due) }
        return max(.zero, deadline - instant)
    }

    /// Publishes the status, if it is due. Called in each turn.
    private func publish() {
        let instant = now.monotonic
        guard instant - publishedAt >= NodeMeter.publishInterval else { return }
        publishedAt = instant
        meter.publish(machine, at: instant)
    }

    func perform(_ input: ReplicaInput) {
        machine.handle(input, at: now, into: &effects)
        carryOut()
    }

    // MARK: Inputs

    private func takeCommands() {
        port.mailbox.drain(into: &commands)
        // All at once, so that a batch is cut once however many of its actions are withdrawn.
        var withdrawn = RangeSet<UInt64>()
        for command in commands {
            switch command {
            case .machine(let input): perform(input)
            case .ask(let body, let patience, let reply): ask(body, patience, reply)
            case .load(let place, let reference, let reply): load(place, reference, reply)
            case .probe(let passed): post(.look { _ in passed() })
            case .keep(let number, let vigil): vigils[number] = vigil
            case .endVigil(let number): vigils[number] = nil
            case .status(let reply):
                seen = progress.content
                perform(.applied(seen.machine))
                reply(status)
            case .withdraw(let index, let block):
                if let counter = sent.counter(of: index, in: block) {
                    withdrawn.insert(contentsOf: counter..<counter + 1)
                }
            case .leave(let timeout, let isWithdrawing):
                outbox.close()
                // A later command may shorten the time, and not lengthen it.
                let deadline = now.monotonic + timeout
                leaveDeadline = min(leaveDeadline ?? deadline, deadline)
                guard isWithdrawing else { break }
                abandonOutbox()
                withdrawn.insert(contentsOf: 1..<machine.nextCounter)
            }
        }
        commands.removeAll(keepingCapacity: true)
        if !withdrawn.isEmpty { perform(.withdraw(Array(withdrawn.ranges))) }
    }

    /// Abandons the actions that were not taken out of the outbox. They will not be sent.
    private func abandonOutbox() {
        for gathered in outbox.takeRest() {
            post(.abandoned(gathered.block, count: gathered.count))
        }
    }

    private func takeMessages() throws(ZeroMQError) {
        for _ in 0..<Self.framesPerTurn {
            guard let event = try dealer.receive() else { return }
            if case .message(let frame) = event { take(frame) } else { take(event) }
        }
    }

    private func passTime() {
        let moment = now
        if let due = machine.nextDeadline, moment.monotonic >= due {
            if dealer.stirCount != seenStirs {
                seenStirs = dealer.stirCount
                machine.handle(.stirred, at: moment, into: &effects)
            }
            seen = progress.content
            machine.handle(.applied(seen.machine), at: moment, into: &effects)
            machine.handle(.tick, at: moment, into: &effects)
            carryOut()
        }
        for (number, ask) in asks where ask.deadline <= moment.monotonic {
            asks[number] = nil
            let place = dealer.endpoint.map { " at \($0)" } ?? ""
            ask.reply(
                Answer(
                    number: number,
                    body: .failed(
                        .timedOut, message: "the sequencer\(place) did not answer in time")))
        }
        lookAtVigils(at: moment.monotonic)
        retryFeed(at: moment.monotonic)
    }

    /// Passes on the progress of the thread that applies, if something waits for it.
    ///
    /// - Returns: Whether there was progress.
    private func takeProgress() -> Bool {
        guard machine.isDeliveryBlocked || seen.isFull || leaveDeadline != nil else { return false }
        let news = progress.awaitChange()
        guard news != seen else { return false }
        seen = news
        perform(.applied(news.machine))
        return true
    }

    func takeDispatches() {
        // While user code keeps the thread that applies, outcomes wait. Then dispatches wait, too.
        seen.isFull = progress.content.isFull
        while jobs.count < jobsMax, !seen.isFull,
            var gathered = outbox.take(if: { machine.canSubmit(bytes: $0) })
        {
            // The place of an outcome must be known before the outcome.
            let firstCounter = machine.nextCounter
            let submitted = SubmittedBatch(
                firstCounter: firstCounter, count: gathered.count, block: gathered.block,
                spans: gathered.spans, begunAt: gathered.begunAt)
            post(.submitted(submitted), isNews: false)
            meter.submitted(gathered.builder.count)
            sent.add(gathered.block, firstCounter: firstCounter, count: gathered.count)
            if gathered.skippedCount > 0 {
                perform(.skipped(gathered.skippedCount))
            } else {
                let batch = machine.batch(of: &gathered.builder, isAtomic: gathered.isAtomic)
                perform(.dispatched(batch, withdrawn: gathered.withdrawn))
            }
        }
    }

    private func leaveIfSettled() {
        guard let leaveDeadline, end == nil else { return }
        let isSettled = outbox.isEmpty && machine.isSettled && seen.toldCount >= settledCount
        if isSettled, !isSayingLeaving, now.monotonic < leaveDeadline {
            isSayingLeaving = true
            // The sequencer may want snapshots of the stores here first.
            perform(.leaving)
            self.leaveDeadline = min(leaveDeadline, now.monotonic + Self.leavingMax)
        }
        guard isSettled && !machine.awaitsLeaving || now.monotonic >= leaveDeadline else { return }
        perform(.leave)
    }

    // MARK: Effects

    private func carryOut() {
        guard !effects.isEmpty else { return }
        // Carrying out an effect may cause further ones, which are carried out within it. The memory is used again.
        var due: [ReplicaEffect] = []
        swap(&due, &effects)
        for effect in due { carryOut(effect) }
        due.removeAll(keepingCapacity: true)
        swap(&due, &effects)
    }

    private func carryOut(_ effect: ReplicaEffect) {
        switch effect {
        case .send(let message): send(message)
        case .connect(let address): move(to: address)
        case .subscribe(let endpoint): subscribe(endpoint)
        case .deliver(let delivery):
            if case .settle(let outcome) = delivery {
                heldUp = nil
                sent.settle(outcome)
                settledCount += UInt64(outcome.count)
            }
            post(.deliver(delivery, log: machine.log, epoch: machine.epoch))
        case .give(let request): perform(.given(shelf.part(request)))
        case .asked(let question):
            // A question expires. Questions must not crowd out other jobs, however many there are.
            if jobs.count < jobsMax { post(.asked(question)) }
        case .answered(let answer): pass(answer)
        case .loaded(let request, let bytes): loads.removeValue(forKey: request)?(bytes)
        case .event(.notAllowed(let message)):
            if let reason = refused.tell(message) { events(.connectionRefused(message: reason)) }
        case .event(.heldUp(let message)):
            let now = Moment.now.monotonic
            let held = heldUp ?? (now, nil)
            let isDue = now - held.since >= Self.heldUpPatience && message != held.told
            heldUp = (held.since, isDue ? message : held.told)
            if isDue { events(.heldUp(message: message)) }
        case .event(.notServing(let message)):
            diagnosis.sequencerSays(message, at: dealer.endpoint)
            if let reason = refused.tell(message) { events(.sequencerNotServing(message: reason)) }
        case .event(let event):
            switch event {
            case .joined(let log, let epoch, let incarnation):
                refused.served()
                troubles.requests.works()
                sent.beginSession(incarnation, of: log, in: epoch)
                post(.identified(incarnation))
            case .reconnected:
                refused.served()
                troubles.requests.works()
                troubles.feed.works()
            case .feedSilent:
                if let message = troubles.feed.tell(isSilent: true) {
                    events(.unreachable(message: message))
                }
                return leaveSilentFeed()
            default: break
            }
            if let event = NodeEvent.protocolEvent(event) { events(event) }
            if event == .disconnected { tellTroubles() }
        case .end(let reason): end = reason
        }
    }

    /// Hands a job to the thread that applies. No job may be lost: the bytes of deliveries and batches bound
    /// their number, far below the mailbox's capacity. The thread is notified after the turn.
    private func post(_ job: ApplyJob, isNews: Bool = true) {
        hasNews = hasNews || isNews
        if case .deliver(.commit(_, let byteCount), _, _) = job { newsBytes += byteCount }
        if case .deliver(.catchUp(_, let byteCount, _), _, _) = job { newsBytes += byteCount }
        let outcome = jobs.post(job, quietly: true)
        precondition(outcome != .full, "\(jobs.capacity) jobs wait for the thread that applies")
    }

    /// Sends a message. One that can't be sent is lost, like one on a breaking connection: the machine repeats
    /// messages that get no answer.
    private func send(_ message: NodeMessage) {
        Frame.encode(message, by: machine.speaker, into: &frame)
        do {
            _ = try dealer.send(frame)
        } catch {
            end = .unreadable("\(error)")
        }
        if frame.capacity > Self.frameBytesKept { frame = [] }
    }

    private func finish() {
        abandonOutbox()
        post(.stop)
        jobs.announce()
        port.mailbox.close()
        abandonQuestions()
        takeLastCommands()
        for vigil in vigils.values { vigil.end(.closed) }
        closeFeed()
        dealer.close()
    }
}
