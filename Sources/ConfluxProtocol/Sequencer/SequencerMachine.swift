import ConfluxVocabulary

/// The sequencer, without sockets, disk or clock.
///
/// **The problem.** Many processes dispatch actions. Connections break, and frames on the feed are
/// lost, or arrive twice after a reconnect. The sequencer itself is stopped and started again.
/// Nevertheless, every action must be in the log exactly once, in the order in which its node
/// dispatched it, and nobody may be told of it before it is durable.
///
/// **The shape.** A term goes through phases. Nodes are served only in the phase `serving`.
///
///     unclaimed ─claimed─▶ reading ─end of log─▶ claiming ─appended─▶ serving ─▶ ended
///                             └─▶ damaged ─confirmed─▶ ended
///
/// A submitted batch is first judged by the `OutcomeLedger` of its session, which deduplicates
/// before any other check. Then `SequencerMachine+Submit` checks whether the batch may be admitted.
/// An admitted batch gathers in the `CommitPipeline` until the log is free. Its outcomes are told
/// after its commit.
///
/// **The contract.** One thread calls ``handle(_:at:into:)`` with every input, in the order in
/// which the inputs happened. It carries out the effects in order before the next input. At
/// ``nextDeadline`` the shell sends ``SequencerInput/tick``. The same state and the same inputs
/// give the same effects: there is no clock, no randomness and no I/O inside.
///
/// *Use*: what a shell asks in each turn is `mutating`, although it changes nothing: the machine is then read in place.
/// Otherwise Swift copies it first.
public struct SequencerMachine: Sendable {
    enum Phase: Sendable, Equatable {
        case unclaimed
        case reading
        /// The sequencer can't continue from what it read. It asks the log whether the term is
        /// over. If so, a newer term changed the log meanwhile, and the log is not damaged.
        case damaged(String)
        case claiming
        case serving
        case stopping
        case ended
    }

    /// Every bound.
    public private(set) var settings: SequencerSettings

    /// The limits for decoding a submit, and for the checks before a batch is admitted.
    public let limits: WireLimits

    var phase = Phase.unclaimed
    /// Log, epoch, numbers and time. *Use*: every message carries some of it.
    var term = Term()
    /// The recovery from the log. It is present only in the phase `reading`.
    var recovery: LogRecovery?
    var sessions = SessionTable()
    /// Stores and states, and the work under way for each life.
    var directory = StoreDirectory()
    var connections = ConnectionTable()
    /// What is admitted and not in the log yet.
    var pipeline: CommitPipeline
    /// Who holds what.
    var leases = LeaseTable()
    var claimQuestions = ClaimQuestions()
    /// What is dispatched later.
    var timers = TimerTable()
    /// When that is. *Invariant*: exactly the timers in `timers` whose time is known.
    var timerSchedule = TimerSchedule()
    /// Hellos whose `joined` entry is not in the log yet. *Invariant*: bounded by
    /// `sessionsMax` together with the sessions.
    var joining = PendingJoins()
    /// Newcomers that want a name or key which another session holds: at most one for each.
    var inquiries: [Held: Inquiry] = [:]
    var questions = QuestionTable(of: .none)
    /// The checkpoints that the log has, ascending: the last two that are known.
    var checkpoints: [SequenceNumber] = []
    /// How much of the log's bound is used, as last told.
    var space = LogSpace(usedBytes: 0, of: .max)
    /// What was last reported to keep the nearly full log from having room.
    var reportedHold: LogHold?
    /// The bytes of the whole log when the entries since the stores' snapshots were last examined.
    var unsavedReviewBytes: UInt64 = 0
    /// The most bytes to keep aside for a store, since then.
    var asideBytesMax = UInt64.max
    /// Whether entries are being kept aside.
    var isKeepingAside = false
    /// When the floor is reviewed next.
    var floorReviewAt = Duration.zero
    /// When this term began to serve.
    var servingSince = Duration.zero
    /// Whether the replicas keep up.
    var admission = Admission()
    /// How fast keys dispatch.
    var pace = Pace()
    /// Which keys send many useless messages.
    var conduct = Conduct()
    /// Which replicas failed to send their states.
    var sourceFailures = SourceFailures()
    /// What nodes want to read from the log.
    var reads = ReadQueue()
    /// The known damage of the log, ascending.
    var damages: [KnownDamage] = []
    /// When the last commit or beat was published.
    var publishedAt = Duration.zero
    /// When presence is reviewed next.
    var sweepAt = Duration.zero
    /// The nodes that have said that they leave, and what tells them that their stores have snapshots; nil once they were
    /// told. *Invariant*: at most one entry for each session.
    var departures: [Incarnation: Asker?] = [:]
    /// The sequencers that stand by, as far as is known, by address. The log on etcd bounds their number.
    var standbys: [SequencerPlace] = []
    /// The address of the standby that takes over. It may be set only in the phase `stopping`.
    var successor: String?
    /// What waits until the log confirms that this term is the newest.
    var confirmations = Confirmations()
    /// Counts. *Use*: only metrics. The next term of the same process continues them.
    package var tally = SequencerTally()

    /// Makes a sequencer that has not claimed a log.
    ///
    /// - Parameter settings: Every bound. They must have no ``SequencerSettings/fault``.
    public init(settings: SequencerSettings) {
        precondition(settings.fault == nil, "\(settings.fault ?? "")")
        self.settings = settings
        limits = WireLimits.standard.granted(by: settings.limits)
        pipeline = CommitPipeline(
            log: .none, epoch: .none, predecessor: .none, last: .zero, settings: settings)
    }

    /// The present epoch: what headers carry.
    public var epoch: Epoch { term.epoch }

    /// The last committed sequence number.
    public var last: SequenceNumber { term.last }

    /// Sets the rates of the keys, in this term and in those that begin with its settings.
    package mutating func limit(rates: [Name: UInt32]) { settings.rates = rates }

    /// Handles one input.
    ///
    /// - Parameters:
    ///   - input: What happened.
    ///   - now: What the clocks showed when it happened.
    ///   - effects: Receives what is to be done, in order.
    public mutating func handle(
        _ input: SequencerInput, at now: Moment, into effects: inout [SequencerEffect]
    ) {
        guard phase != .ended else { return }
        switch input {
        case .claimed(let claim, let known): claimed(claim, known, at: now, into: &effects)
        case .checkpointRead(let answer): checkpointRead(answer, at: now, into: &effects)
        case .logRead(let bodies): logRead(bodies, at: now, into: &effects)
        case .snapshotsRead(let snapshots, let damage):
            snapshotsRead(snapshots, damage, at: now, into: &effects)
        case .keptAside(let kept): keptAside(kept, at: now, into: &effects)
        case .snapshotSaved(let answer): saved(answer, at: now, into: &effects)
        case .truncateFailed(let message): effects.append(.note(.truncateFailed(message)))
        case .checkpointSaved(let sequence):
            checkpointSaved(sequence, at: now, into: &effects)
        case .logSpace(let space): spaceChanged(space, at: now, into: &effects)
        case .appended: appended(at: now, into: &effects)
        case .published: published(at: now, into: &effects)
        case .logFailed(let reason):
            end(reason, into: &effects)
        case .deposed(let reason):
            sayBye(.superseded, "this sequencer no longer serves", into: &effects)
            end(reason, into: &effects)
        case .standbys(let places): standbys = places.sorted { $0.address < $1.address }
        case .termConfirmed: confirmed(at: now, into: &effects)
        case .read(let job, let outcome):
            read(outcome, for: job, at: now.monotonic, into: &effects)
        case .answered(let question, let asker, let body):
            guard phase == .serving else { return }
            let answer = Answer(number: question, body: body)
            reply(answer, to: asker, into: &effects)
        case .surplus(let message, let connection, let principal):
            guard phase == .serving else { return }
            refuse(message, from: connection, as: principal, at: now.monotonic, into: &effects)
        case .received(let message, let speaker, let connection, let principal):
            guard phase == .serving else { return }
            received(
                message, by: speaker, from: connection, as: principal, at: now, into: &effects)
        case .unreadableSubmit(
            let outline, let code, let message, let speaker, let connection,
            let principal):
            guard phase == .serving else { return }
            reject(
                outline, as: Fault(code: code, message: message), by: speaker,
                on: connection, as: principal, at: now.monotonic, into: &effects)
        case .disconnected(let connection): disconnected(connection)
        case .unreadable(let code, let message, let connection):
            effects.append(.note(.unreadable(message)))
            effects.append(.send(.bye(Bye(code: code, message: message)), to: connection))
        case .subscribed:
            // libzmq sends its welcome message before the subscription takes effect. A beat after
            // it shows the subscriber what it missed in between (rule 4).
            if phase == .serving { effects.append(.publishBeat(term.beat)) }
        case .drained:
            launch(at: now, into: &effects)
        case .tick:
            if phase == .serving { passTime(at: now, into: &effects) }
        case .stop:
            stop(at: now, into: &effects)
        }
    }

    /// When ``SequencerInput/tick`` is due, on the monotonic clock; nil if nothing is due.
    public var nextDeadline: Duration? {
        mutating get {
            guard phase == .serving else { return nil }
            var deadline = min(publishedAt + settings.beatInterval, sweepAt, floorReviewAt)
            if let due = questions.nextDeadline { deadline = min(deadline, due) }
            for inquiry in inquiries.values { deadline = min(deadline, inquiry.deadline) }
            if let due = directory.lives.nextDeadline { deadline = min(deadline, due) }
            if !isLogNearlyFull, let due = timerSchedule.nextDeadline {
                deadline = min(deadline, due)
            }
            return deadline
        }
    }

    func refuse(_ connection: ConnectionID, into effects: inout [SequencerEffect]) {
        let bye = Bye(code: .rejoin, message: "say hello first")
        effects.append(.send(.bye(bye), to: connection))
    }

    private mutating func received(
        _ message: NodeMessage, by speaker: Speaker, from connection: ConnectionID,
        as principal: Principal, at now: Moment, into effects: inout [SequencerEffect]
    ) {
        if case .hello(let hello) = message {
            waste(.stale, by: principal, at: now.monotonic, into: &effects)
            if let denial = principal.denial(of: message) {
                refuse(hello, .notAllowed, denial, to: connection, into: &effects)
            } else {
                greeted(
                    with: hello.owned(by: principal), by: speaker, from: connection, at: now,
                    into: &effects)
            }
            return
        }
        if speaker.epoch > term.epoch { challenge(by: speaker.epoch, into: &effects) }
        guard let peer = peer(speaker, on: connection, at: now.monotonic) else {
            // A peer that leaves needs no answer.
            if case .bye = message { return }
            waste(.stale, by: principal, at: now.monotonic, into: &effects)
            refuse(connection, into: &effects)
            return
        }
        if let denial = principal.denial(of: message) {
            waste(.stale, by: principal, at: now.monotonic, into: &effects)
            deny(message, denial, to: connection, into: &effects)
            return
        }
        switch (message, peer) {
        case (.hello, _): break
        case (.fetch(let fetch), _):
            self.fetch(
                fetch, from: connection, as: principal, at: now.monotonic, into: &effects)
        case (.question(let question), _):
            ask(
                principal.rights.answerable(question), from: connection, as: principal, at: now,
                into: &effects)
        case (.barrier(let barrier), _):
            self.barrier(barrier, from: connection, as: principal, into: &effects)
        case (.drop(let drop), _):
            self.drop(drop, from: connection, as: principal, into: &effects)
        case (.freeze(let freeze), _):
            self.freeze(freeze, from: connection, as: principal, into: &effects)
        case (.upgrade(let upgrade), _):
            self.upgrade(upgrade, from: connection, as: principal, at: now, into: &effects)
        case (.skip(let skip), _):
            self.skip(skip, from: connection, as: principal, into: &effects)
        case (.load(let load), _):
            self.load(
                load, from: connection, as: principal, at: now.monotonic, into: &effects)
        case (.digest(let report), .member(let incarnation)):
            take(report, of: incarnation, at: now, into: &effects)
        case (.migrated(let migrated), .member(let incarnation)):
            take(migrated, of: incarnation, at: now, into: &effects)
        case (.leaving(let leaving), .member(let incarnation)):
            self.leaving(leaving, of: incarnation, on: connection, into: &effects)
        case (.snapshot(let chunk), .member(let incarnation)):
            take(chunk, of: incarnation, at: now, into: &effects)
        case (.bye, .observer): connections.remove(connection)
        case (.open(let open), .member(let incarnation)):
            self.open(open, by: incarnation, on: connection, at: now, into: &effects)
        case (.close(let close), .member(let incarnation)):
            endHosting(of: close.subject, by: incarnation)
        case (.submit(let batch), .member(let incarnation)):
            submit(
                batch, by: incarnation, on: connection, as: principal, at: now.monotonic,
                into: &effects)
        case (.progress(let progress), .member(let incarnation)):
            self.progress(progress, of: incarnation, as: principal)
        case (.answer(let answer), .member(let incarnation)):
            self.answer(answer, by: incarnation, into: &effects)
        case (.bye, .member(let incarnation)):
            leave(incarnation, on: connection, at: now.monotonic, into: &effects)
        case (.progress, .observer): break
        case (.open, .observer), (.close, .observer), (.submit, .observer), (.answer, .observer),
            (.digest, .observer), (.snapshot, .observer), (.migrated, .observer),
            (.leaving, .observer):
            let bye = Bye(
                code: .unsupported, message: "an observer has no session: join as a member")
            connections.remove(connection)
            effects.append(.send(.bye(bye), to: connection))
        }
    }
}
