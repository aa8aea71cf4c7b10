import ConfluxLog
import ConfluxProtocol
import ConfluxVocabulary
import ConfluxZeroMQ

/// Where several sequencers may serve one log: stands by, takes over, and stands by again once its tenure is over
/// (rule 47). Each tenure has a machine of its own, which begins with what the log says and nothing else.
extension ServingThread {
    /// What a sequencer has besides, that may stand by.
    struct Standby {
        let jobs: Mailbox<HeraldJob>
        let signs: TenureSigns
        var candidacy: Candidacy
        /// Whether a claim can follow at once: the log was followed to its end, or is damaged, which a claim finds as well.
        var isReady = false
        var last = SequenceNumber.zero
        var look = Look.due(at: .zero)
        /// Until when nothing is read of the log: this one has handed over, and its nodes wait to be told that the
        /// successor serves; or what was read is damaged.
        var yieldsUntil = Duration.zero
        /// The pause before a log that is damaged is read again; nil where none is.
        var damagePause: Duration?
        /// Whether the log has failed since it was opened.
        var hasFailed = false
        /// Whom nodes were told of last.
        var told: String?
        /// What was told last to who watches.
        var reported: SequencerEvent.Standing?

        /// When the log is looked at.
        enum Look {
            /// Then in any case, and sooner behind a hint.
            case due(at: Duration)
            /// It is being looked at, and again at once behind a hint.
            case underWay(isHinted: Bool)
        }

        init(of heralds: Heralds) {
            jobs = heralds.jobs
            signs = heralds.signs
            candidacy = Candidacy(address: heralds.address, lot: .random(in: 0..<1))
        }

        /// The log was looked at.
        mutating func lookEnded(nextAt due: Duration) {
            guard case .underWay(let isHinted) = look else { return }
            look = .due(at: isHinted ? .zero : due)
        }
    }

    /// How long one that has handed over waits for its successor before it reads the log.
    private static let yieldMax = Duration.milliseconds(500)
    /// How often the log is looked at, if no hint comes before.
    private static let lookPause = Duration.milliseconds(250)
    /// The pause where it could not be looked at.
    private static let failurePause = Duration.milliseconds(500)
    /// The pauses before a log that is damaged is read again: somebody may restore it, or a checkpoint behind the damage
    /// may come.
    private static let damagePause = Duration.seconds(1)...Duration.seconds(60)

    /// Stands by and serves until it is asked to stop, or the log is damaged.
    ///
    /// - Returns: Why it ended.
    func runStandingBy() -> SequencerEnd {
        while true {
            guard standBy() else { return end ?? .stopped }
            let reason = serveTenure()
            leave(because: reason)
            guard !isCutOff else { return reason }
            switch reason {
            case .stopped, .logDamaged: return reason
            case _ where isStopping: return .stopped
            // Another one was quicker.
            case .superseded where machine.epoch == .none: break
            case .superseded, .handedOver: events(.steppedDown(reason))
            case .logFailed(let message, let summary):
                guard let pause = renewal.pause(after: .now) else { return reason }
                failure = "its log fails: \(summary). It tries again by itself"
                standby?.hasFailed = true
                events(.tenureFailed(message: message, pause: pause))
                guard rest(for: pause) else { return end ?? .stopped }
            }
        }
    }

    /// The tenure is over.
    private func leave(because reason: SequencerEnd) {
        switch reason {
        case .stopped: standby?.jobs.post(.leave(successor: machine.bestStandby?.address))
        case .handedOver(let successor):
            standby?.jobs.post(.leave(successor: successor))
            standby?.yieldsUntil = Moment.now.monotonic + Self.yieldMax
        case .superseded, .logFailed, .logDamaged: standby?.jobs.post(.fall)
        }
    }

    /// Follows the log until it is time to try to take over.
    ///
    /// - Returns: Whether the log was asked for a tenure; false when it was asked to stop, the sockets failed, or the log
    ///   can't be looked at since it is damaged.
    private func standBy() -> Bool {
        isServing = false
        end = nil
        let tally = machine.tally
        machine = SequencerMachine(settings: machine.settings, secret: .random())
        machine.tally = tally
        gate.standBy()
        standby?.isReady = false
        hinted()
        standby?.reported = nil
        while !isStopping, end == nil {
            do {
                let readiness = try poller.wait(timeout: look())
                publish()
                takeAnswers()
                try takeMessages(readiness)
                _ = try takeSubscriptions(readiness)
            } catch {
                cutOff(error)
                return false
            }
            if takeOverIfDue() { return true }
        }
        return false
    }

    /// Has the log looked at if it is time.
    ///
    /// - Returns: How long to wait for what comes next.
    private func look() -> Duration {
        guard let standby else { return .zero }
        let now = Moment.now.monotonic
        guard case .due(var due) = standby.look else { return Self.lookPause }
        if standby.isReady, let tryAt = standby.candidacy.tryAt { due = min(due, tryAt) }
        guard now >= due || standby.candidacy.needsLook(at: now) else { return due - now }
        let answers = answers
        jobs.post(
            .follow(reopening: standby.hasFailed, yielding: now < standby.yieldsUntil) {
                answers.post(.followed($0, since: now))
            })
        self.standby?.look = .underWay(isHinted: false)
        self.standby?.hasFailed = false
        return Self.lookPause
    }

    /// The log was looked at.
    func followed(_ look: LogLook, since begun: Duration) {
        guard var standby else { return }
        let now = Moment.now.monotonic
        var fault: LogError?
        switch look {
        case .looked(.success(let view)):
            // If it is read now, nodes need not wait for that.
            standby.candidacy.saw(view, since: begun, at: now)
            if standby.candidacy.server(at: now) != nil, standby.damagePause == nil {
                standby.yieldsUntil = .zero
            }
        case .read(.success(let read)):
            if let read {
                standby.isReady = read.isWarm
                standby.last = read.last
                standby.damagePause = nil
                renewal.stoodBy()
            }
            standby.lookEnded(nextAt: read?.isWarm == false ? now : now + Self.lookPause)
        case .read(.failure(let error)) where error.code == .damaged:
            fault = error
            standby.isReady = true
            let pause = standby.damagePause.map { $0 * 2 } ?? Self.damagePause.lowerBound
            standby.damagePause = min(pause, Self.damagePause.upperBound)
            standby.yieldsUntil = now + pause
            standby.lookEnded(nextAt: now + Self.lookPause)
        case .looked(.failure(let error)), .read(.failure(let error)):
            fault = error
            standby.candidacy.failed(at: now)
            standby.isReady = false
            standby.hasFailed = true
            standby.lookEnded(nextAt: now + Self.failurePause)
            // Nobody can claim it.
            if error.code == .damaged, !isServing { end = .logDamaged(error.message) }
        }
        if let fault { failure = "it stands by, and its log fails: \(fault.code.summary)" }
        self.standby = standby
        guard !isServing else { return }
        if case .looked(.success) = look {} else { report(fault) }
        redirectHellos(at: now)
    }

    /// A hint that the one that serves has said something.
    func hinted() {
        switch standby?.look {
        case .due: standby?.look = .due(at: .zero)
        case .underWay: standby?.look = .underWay(isHinted: true)
        case nil: break
        }
    }

    private func takeOverIfDue() -> Bool {
        guard !isStopping, let standby, standby.isReady, case .due = standby.look,
            let view = standby.candidacy.view,
            standby.candidacy.isDue(at: Moment.now.monotonic)
        else { return false }
        failure = nil
        self.standby?.told = nil
        gate.ask()
        jobs.post(.takeOver(.random(), after: view.epoch))
        return true
    }

    /// What the thread that says who serves has found.
    func take(_ news: HeraldNews, of epoch: Epoch) {
        guard epoch == machine.epoch, end == nil else { return }
        switch news {
        case .standbys(let words):
            let places = words.map {
                SequencerPlace(address: $0.address, isServing: false, last: $0.last)
            }
            perform(.standbys(places))
        case .deposed(let reason): perform(.deposed(reason))
        }
    }

    // MARK: Nodes

    /// Answers a hello at once; it is kept as well, for when this one serves.
    func answer(hello frame: Bytes, from route: RoutingID) {
        let connection = ConnectionID(route)
        let limits = WireLimits.standard
        guard case .hello(let hello)? = try? Frame.decodeNodeMessage(frame, limits: limits) else {
            return
        }
        if !isServing, let server = standby?.candidacy.server(at: Moment.now.monotonic) {
            send(.redirect(Redirect(request: hello.request, address: server)), to: connection)
        } else {
            let text = (failure ?? "it stands by, and no other sequencer is known to serve") + "."
            send(.bye(Bye(code: .notServing, message: text)), to: connection)
        }
    }

    /// Those that wait here are told once another sequencer serves.
    private func redirectHellos(at now: Duration) {
        let server = standby?.candidacy.server(at: now)
        guard server != standby?.told else { return }
        standby?.told = server
        guard server != nil else { return }
        for (route, frame) in early.hellos { answer(hello: frame, from: route) }
    }

    // MARK: Who watches

    private func report(_ fault: LogError?) {
        let now = Moment.now.monotonic
        var standing = SequencerEvent.Standing(server: nil, failure: fault?.message)
        if fault == nil {
            failure = nil
            // What is about to take over need not be told of.
            guard let standby, standby.isReady, standby.candidacy.tryAt.map({ $0 > now }) ?? false
            else { return }
            standing.server = standby.candidacy.server(at: now)
            guard
                standing.server != nil || standby.reported?.failure != nil
                    || standby.reported == nil
            else { return }
        }
        guard standing != standby?.reported else { return }
        standby?.reported = standing
        events(.standingBy(standing, last: standby?.last ?? .zero))
    }
}

extension SequencerInput {
    /// A process that goes on standing by tells nodes that its tenure is over.
    package func told(standsBy: Bool) -> SequencerInput {
        if standsBy, case .logFailed(let reason) = self { .deposed(reason) } else { self }
    }
}
