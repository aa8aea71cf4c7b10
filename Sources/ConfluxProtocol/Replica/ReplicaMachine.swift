import ConfluxVocabulary

/// A node's side of the protocol, without sockets, stores or clock.
///
/// **The problem.** The feed loses messages, connections break, and the sequencer restarts. All the same, every
/// replica gets every entry once and in order, and every action that this node dispatched gets one outcome, in the
/// order of counters. An outcome is delivered as soon as it is known. The applier decides when to tell it, since it
/// alone knows where each store is.
///
/// **The shape.** The session and the feed each go through phases of their own.
///
///     session   idle ──▶ greeting ◀──▶ joined ──▶ ended
///     feed      unwanted ──▶ proving ◀──▶ following
///
/// The feed is wanted from the first store on: one that is hosted, or a local one of a bridged state.
///
/// ``live`` is the number up to which commits were delivered. The feed moves it on, and a hole is fetched
/// (`ReplicaMachine+Feed`). A store that is opened later, or was parked, has a position of its own below `live`, and
/// catches up (`CatchUps`) until it is attached. `Submissions` keeps what was dispatched until it has an outcome.
///
/// **The contract.** One thread calls ``handle(_:at:into:)``, and carries out the effects in their order before the
/// next input. The same state and the same inputs give the same effects.
///
/// *Use*: what a shell asks in each turn is `mutating`, although it changes nothing: the machine is then read in place.
/// Otherwise Swift copies it first.
public struct ReplicaMachine: Sendable {
    enum Phase: Sendable, Equatable {
        case idle
        /// Saying hello until it is answered.
        case greeting(Greeting)
        case joined
        case ended
    }

    /// A hello that has no answer yet.
    struct Greeting: Sendable, Equatable {
        /// The last hello that was said. *Use*: only its answer counts (rule 8).
        var hello: Hello
        /// When it is said again, the pause before that, and since when there is no answer.
        var nextHelloAt, interval, since: Duration
        /// When to try another address.
        var seekAt: Duration
    }

    enum FeedPhase: Sendable, Equatable {
        case unwanted
        /// Subscribed, but no message of this epoch proves it yet (rule 4).
        case proving(since: Duration)
        /// Proven. The time is that of the last message.
        case following(since: Duration)
    }

    /// Every bound and interval.
    public let settings: ReplicaSettings
    /// The random number of the session, or the number that its session key gives. Each session has another one,
    /// since two histories of a log may give two sessions one incarnation (rule 8).
    public internal(set) var nonce: Nonce
    /// The random number of this process, if the nonce comes from a session key (rule 11).
    let process: Nonce?

    var phase = Phase.idle
    var feed = FeedPhase.unwanted
    /// The session, once there was one. *Use*: a hello takes it up again.
    var session: SessionToken?
    /// The last welcome. *Invariant*: nil until the first.
    var welcome: Welcome?
    /// The epoch of the last welcome. Nothing of any other epoch is applied (rule 4).
    public internal(set) var epoch = Epoch.none
    /// The highest number that was applied, receipted, confirmed, restored or passed over, with the term in which
    /// the log had it (rule 2).
    var mark: HistoryMark?

    /// The number up to which commits were delivered, or passed over while no feed is followed; nil before that.
    public internal(set) var live: SequenceNumber?
    /// The epoch of the commit that ends at `live`; nil if that commit was not seen.
    var liveEpoch: Epoch?
    /// The number from which to deliver, if somebody asked to follow the log whatever is hosted.
    var followFrom: SequenceNumber?
    /// The last committed number that the node heard of.
    public internal(set) var remoteLast = SequenceNumber.zero
    /// Commits that wait behind a hole (rule 5).
    var buffer = CommitBuffer()
    /// The fetch that fills the hole, while one is under way.
    var holeFetch: PendingFetch?
    var nextRequest: UInt64 = 1
    /// How many redirects were followed since a welcome. A repeated hello allows one more (rule 46).
    var redirectCount = 0
    /// The number of the last hello.
    var lastHello: UInt64 = 0
    /// The delivery tag of the newest long answer that was read. *Use*: each request sends it. A tag means nothing on
    /// another connection.
    var acknowledged: UInt64 = 0
    /// How often a history was lost, and `Delivery.reset` delivered.
    var resets: UInt64 = 0
    var catchUps = CatchUps()
    /// What this node hosts and bridges, or wants to.
    var hosting = HostingTable()
    /// What was closed while the sequencer could not be told, and may be hosted or asked for there. Each subject is
    /// here once. *Use*: it is closed after the welcome.
    var closedMeanwhile: [HostingSubject] = []

    /// Snapshots on their way to this node, by request.
    var loads = SnapshotLoads()
    /// The replicas that stopped, whether while they were opened or later. Every progress lists them. A replica that is
    /// closed or opened again is not one of them any more.
    var stopped: [StoreName: StoppedStore] = [:]

    /// Where a process with a session key began; nil before its first welcome.
    public internal(set) var resumption: Resumption?
    var submissions = Submissions()
    /// Questions that wait for the session. Bounded by `waitersMax`.
    var unasked: [Question] = []
    /// The last damage of the log that the node met. *Use*: it is reported once.
    var damage: Damage?

    /// The waits whose number is not known yet, by request. Bounded by `waitersMax`, and one more for the node
    /// itself.
    var waiters: [UInt64: Waiter] = [:]

    /// When a node that bridges and follows no feed last asked for the log's last number, and the request for it.
    var askedForLastAt = Duration.zero
    static let ownRequest: UInt64 = 0
    /// The request by which the node says that it is about to leave.
    static let leavingRequest = UInt64.max

    /// Whether the sequencer has not let the node leave yet.
    public var awaitsLeaving: Bool { waiters[Self.leavingRequest] != nil }

    /// The bytes of the feed's commits that were delivered and not handed to the stores. *Use*: the bound of
    /// deliveries.
    var outstandingBytes = 0
    /// The last progress of the thread that applies.
    var progress = ApplyProgress()
    /// The number up to which every attached store has applied everything.
    public internal(set) var applied = SequenceNumber.zero
    /// What the sequencer was last told of `applied`, and when.
    var progressSent = SequenceNumber.zero
    /// What the sequencer was last told of settled counters.
    var settledSent: UInt64 = 0
    var progressSentAt = Duration.zero
    /// Since when the sequencer owes this node an outcome or an open, and gave none. Other messages don't count,
    /// since an answer that was lost does not come by itself.
    var owedSince = Duration.zero
    /// Whether it was reported that the node does not hear from the sequencer, by its answers or by its feed.
    var isDisconnected = false
    /// Whether messages to the sequencer, and its answers, may have been lost since the last welcome.
    var hasLostMessages = false
    /// When a message came last, or a part of one, except on the feed.
    var heardAt = Duration.zero
    /// When the sequencer was last asked whether it is alive.
    var probedAt = Duration.zero
    /// When a part of a snapshot last came. *Use*: a large store takes time to open.
    public internal(set) var loadedAt = Duration.zero
    /// The highest epoch below the present one from which a message came. *Use*: it is reported
    /// once.
    var staleEpoch = Epoch.none

    /// How long the next answer to a fetch may take, once one took too long; zero before. It never shrinks within a
    /// connection. *Use*: on a slow connection each answer that is asked for again delays the next one.
    var slowPatience = Duration.zero

    /// A fetch under way.
    struct PendingFetch: Sendable {
        var request: UInt64
        /// The first number that it asks for; zero if it is only a pause.
        var from = SequenceNumber.zero
        var deadline: Duration
    }

    /// Makes a machine that has not said hello.
    ///
    /// - Parameters:
    ///   - settings: Every bound and interval.
    ///   - nonce: A random number, different for each process, from which the nonces of its sessions come; or what a
    ///     session key gives.
    ///   - process: A random number, if the nonce comes from a session key. The session is then keyed, and counters
    ///     begin behind its settled counter (rule 11).
    public init(settings: ReplicaSettings, nonce: Nonce, process: Nonce? = nil) {
        self.settings = settings
        self.nonce = nonce
        self.process = process
    }

    /// Whether a session key finds the session again.
    public var isKeyed: Bool { process != nil }

    /// Whether the last hello was answered by a welcome.
    public var isJoined: Bool { phase == .joined }
    /// What the last welcome granted.
    public var limits: SessionLimits? { welcome?.limits }
    /// This node's incarnation, once it has one.
    public var incarnation: Incarnation { session?.incarnation ?? .none }

    /// The sender that this node's frames name: the term and the session of its last welcome.
    public var speaker: Speaker {
        mutating get { Speaker(epoch: epoch, session: incarnation) }
    }

    /// The log of the session; `Identifier.none` before the first welcome.
    public var log: LogID { welcome?.log ?? .none }
    /// The counter that the next action gets.
    public var nextCounter: UInt64 { submissions.nextCounter }
    /// Whether the outcome of every action of this node was delivered.
    public var isSettled: Bool { submissions.unsettledCount == 0 }

    /// How many actions of this node have no outcome yet.
    public var unsettledCount: UInt64 { submissions.unsettledCount }

    /// How many replicas here have stopped, whether they are still hosted or not.
    package var stoppedCount: Int { stopped.count }

    /// Handles one input.
    ///
    /// - Parameters:
    ///   - input: What happened.
    ///   - now: The clocks' readings when it happened.
    ///   - effects: The effects are appended to it, in the order in which they are to be carried out.
    public mutating func handle(
        _ input: ReplicaInput, at now: Moment, into effects: inout [ReplicaEffect]
    ) {
        guard phase != .ended else { return }
        let instant = now.monotonic
        switch input {
        case .start:
            greet(at: instant, into: &effects)
        case .reconnected:
            // The sequencer's last messages may be lost with the connection, so the break is reported.
            if phase == .joined {
                lose(at: instant, into: &effects)
            } else {
                greet(at: instant, into: &effects)
            }
        case .feedReconnected:
            // The welcome tells whose feed it is. Until then nothing of it counts.
            if phase == .joined, feed != .unwanted { greet(at: instant, into: &effects) }
        case .stirred: heardAt = instant
        case .received(let message, let epoch):
            received(message, epoch: epoch, at: instant, into: &effects)
        case .fed(let commit, let byteCount, let epoch):
            fed(commit, byteCount: byteCount, epoch: epoch, at: instant, into: &effects)
        case .beaten(let beat, let epoch):
            beaten(beat, epoch: epoch, at: instant, into: &effects)
        case .dispatched(let batch, let withdrawn):
            precondition(phase == .joined, "dispatched while \(phase): ask canSubmit first")
            if !isAnswerDue { owedSince = instant }
            submissions.add(batch, withdrawn: withdrawn)
            pump(at: instant, into: &effects)
        case .skipped(let count):
            precondition(phase == .joined, "skipped while \(phase): ask canSubmit first")
            if !isAnswerDue { owedSince = instant }
            submissions.addVoid(count)
            pump(at: instant, into: &effects)
        case .withdraw(let counters):
            withdraw(RangeSet(counters), at: instant, into: &effects)
        case .told(let counter):
            if isKeyed { submissions.tell(through: counter) }
        case .open(let open):
            host(open, at: instant, into: &effects)
        case .close(let subject):
            endHosting(of: subject, at: instant, into: &effects)
        case .follow(let from):
            followFrom = from
            wantFeed(at: instant, into: &effects)
        case .load(let place, let reference, let request):
            load(place, reference, for: .reading(request: request), at: instant, into: &effects)
        case .ask(let question):
            ask(question, into: &effects)
        case .answer(let answer):
            if phase == .joined { effects.append(.send(.answer(answer))) }
        case .barrier(let request):
            ask(.barrier(Barrier(request: request)), request, at: instant, into: &effects)
        case .drop(let drop): ask(.drop(drop), drop.request, at: instant, into: &effects)
        case .freeze(let freeze):
            ask(.freeze(freeze), freeze.request, at: instant, into: &effects)
        case .upgrade(let upgrade):
            ask(.upgrade(upgrade), upgrade.request, at: instant, into: &effects)
        case .leaving:
            guard phase == .joined, !hosting.hosted().stores.isEmpty else { break }
            let request = Self.leavingRequest
            ask(.leaving(Leaving(request: request)), request, at: instant, into: &effects)
        case .skip(let skip): ask(.skip(skip), skip.request, at: instant, into: &effects)
        case .reported(let report, let resets):
            // A report about a lost history does not count for this one.
            if resets == self.resets { take(report, at: instant, into: &effects) }
        case .given(let chunk):
            if phase == .joined { effects.append(.send(.snapshot(chunk))) }
        case .await(let receipt, let request):
            awaitReceipt(receipt, request, at: instant, into: &effects)
        case .giveUp(let request): waiters[request] = nil
        case .applied(let progress): advance(to: progress, at: instant, into: &effects)
        case .tick:
            passTime(at: instant, into: &effects)
        case .leave:
            leave(into: &effects)
        }
        beginLoads(at: instant, into: &effects)
    }

    private mutating func received(
        _ message: SequencerMessage, epoch: Epoch, at now: Duration,
        into effects: inout [ReplicaEffect]
    ) {
        switch message {
        case .welcome(let welcome):
            return welcomed(welcome, epoch: epoch, at: now, into: &effects)
        case .bye(let bye): return dismissed(bye, at: now, into: &effects)
        case .redirect(let redirect): return redirected(redirect, at: now, into: &effects)
        default: break
        }
        // Nothing of an epoch counts before its welcome. Only the sender's epoch fences.
        guard phase == .joined else { return drop(message, at: now) }
        guard epoch == self.epoch else {
            meet(epoch, at: now, into: &effects)
            return
        }
        heardAt = now
        if let tag = message.deliveryTag, tag != 0 { acknowledged = tag }
        switch message {
        case .welcome, .bye, .redirect: break
        case .opened(let opened):
            owedSince = now
            self.opened(opened, at: now, into: &effects)
        case .receipts(let receipts):
            let settled = submissions.settled
            defer { if submissions.settled > settled { hearAnswer(at: now) } }
            for run in receipts.runs {
                learn(
                    ActionOutcome(
                        firstCounter: run.firstCounter, count: run.count,
                        status: .committed(
                            session?.log ?? .none, run.firstSequence, run.epoch, run.timestamp)),
                    into: &effects)
            }
            pump(at: now, into: &effects)
        case .rejection(let rejection):
            hearAnswer(at: now)
            learn(
                ActionOutcome(
                    firstCounter: rejection.firstCounter, count: rejection.count,
                    status: rejection.version.map { .conflict($0, message: rejection.message) }
                        ?? .rejected(rejection.code, message: rejection.message)),
                into: &effects)
            pump(at: now, into: &effects)
        case .expected(let expected):
            discarded(expected, at: now, into: &effects)
        case .entries(let entries):
            self.entries(entries, at: now, into: &effects)
        case .question(let question):
            if question.body == .alive {
                let answer = Answer(
                    number: question.number, isLast: true, node: settings.name, body: .alive)
                effects.append(.send(.answer(answer)))
            } else {
                effects.append(.asked(question))
            }
        case .answer(let answer):
            // An observer has seen a state of this number, and nothing else tells it that the log loses that. The
            // answer doesn't name the entry's epoch, so what has replicas does not rely on it.
            if phase == .joined, settings.role == .observer, let welcome,
                case .state(_, let sequence, _) = answer.body
            {
                remember(welcome.log, sequence, of: epoch)
            }
            if answer.number != Self.probeNumber { effects.append(.answered(answer)) }
        case .snapshotServed(let served):
            self.served(served, at: now, into: &effects)
        case .snapshotRequest(let request): effects.append(.give(request))
        case .divergence(let divergence):
            diverged(divergence, at: now, into: &effects)
        case .migrate(let migrate):
            self.migrate(migrate, at: now, into: &effects)
        case .reload(let reload):
            // A replica that has begun anew meanwhile is not stopped any more.
            if let place = stopped[reload.place.store], place.life == reload.place.life,
                place.sequence <= reload.place.sequence
            {
                reopen(reload.place.store, at: now, into: &effects)
            }
        case .confirmed(let confirmed):
            if confirmed.request != Self.ownRequest { hearAnswer(at: now) }
            take(confirmed, into: &effects)
            fillHole(at: now, into: &effects)
        }
    }

    /// Takes notice of a sender of another epoch than the session's.
    mutating func meet(_ other: Epoch, at now: Duration, into effects: inout [ReplicaEffect]) {
        if other > epoch {
            // A newer term: nothing of it counts before its welcome.
            lose(at: now, into: &effects)
        } else if other > staleEpoch {
            staleEpoch = other
            effects.append(.event(.staleSequencer(other)))
        }
    }
}
