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
        var candidacy: Candidacy
        /// Whether the log was followed to its end.
        var isWarm = false
        var last = SequenceNumber.zero
        /// Whether it is being looked at.
        var isLooking = false
        /// Whether it is to be looked at as soon as it can be.
        var isHinted = true
        /// When it is looked at in any case.
        var lookAt = Duration.zero
        /// Until when nothing is read of the log: this one has handed over, and its nodes wait to be told that the
        /// successor serves.
        var yieldsUntil = Duration.zero
        /// Whether the log has failed since it was opened.
        var hasFailed = false
        /// Whom nodes were told of last.
        var told: String?
        /// What was told last to who watches.
        var reported: SequencerEvent.Standing?

        init(of heralds: Heralds, at address: String) {
            jobs = heralds.jobs
            candidacy = Candidacy(address: address, lot: .random(in: 0..<1))
        }
    }

    /// How long one that has handed over waits for its successor before it reads the log.
    private static let yieldMax = Duration.milliseconds(500)
    /// How often the log is looked at, if no hint comes before.
    private static let lookPause = Duration.milliseconds(250)
    /// The pause where it could not be looked at.
    private static let failurePause = Duration.milliseconds(500)

    /// Stands by and serves until it is asked to stop, or the log is damaged.
    ///
    /// - Returns: Why it ended.
    func runStandingBy() -> SequencerEnd {
        while true {
            guard standBy() else { return isCutOff ? end ?? .stopped : .stopped }
            let reason = serveTenure()
            leave(because: reason)
            guard !isCutOff, !isStopping else { return reason }
            switch reason {
            case .stopped, .logDamaged: return reason
            case .superseded, .handedOver: events(.steppedDown(reason))
            case .logFailed(let message, let summary):
                guard let pause = renewal.pause(after: .now) else { return reason }
                failure = "its log fails: \(summary). It tries again by itself"
                standby?.hasFailed = true
                events(.tenureFailed(message: message, pause: pause))
                guard rest(for: pause) else { return isCutOff ? end ?? reason : .stopped }
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
    /// - Returns: Whether the log was asked for a tenure; false when it was asked to stop, or the sockets failed.
    private func standBy() -> Bool {
        isServing = false
        end = nil
        let tally = machine.tally
        machine = SequencerMachine(settings: machine.settings, secret: .random())
        machine.tally = tally
        gate.standBy()
        standby?.isWarm = false
        standby?.isHinted = true
        standby?.reported = nil
        while !isStopping {
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
        guard var standby else { return .zero }
        let now = Moment.now.monotonic
        if !standby.isLooking,
            standby.isHinted || now >= standby.lookAt || standby.candidacy.needsLook(at: now)
        {
            standby.isLooking = true
            standby.isHinted = false
            let answers = answers
            jobs.post(
                .follow(
                    as: standby.candidacy.address, reopening: standby.hasFailed,
                    yielding: now < standby.yieldsUntil
                ) { found in
                    answers.post(.followed(found, since: now))
                })
            standby.hasFailed = false
            self.standby = standby
        }
        var due = standby.isLooking ? now + Self.lookPause : standby.lookAt
        if let tryAt = standby.candidacy.tryAt, standby.isWarm, !standby.isLooking {
            due = min(due, tryAt)
        }
        return max(.zero, due - now)
    }

    /// The log was looked at.
    func followed(_ found: Result<FollowedLog, LogError>, since begun: Duration) {
        guard var standby else { return }
        let now = Moment.now.monotonic
        standby.isLooking = false
        switch found {
        case .success(let log) where !log.isOver:
            // If it is read now, nodes need not wait for that; it is looked at again behind a hint.
            standby.candidacy.saw(log.view, since: begun, at: now)
            standby.lookAt = now + Self.lookPause
            if standby.candidacy.server(at: now) != nil { standby.yieldsUntil = .zero }
            self.standby = standby
            if !isServing { redirectHellos(at: now) }
            return
        case .success(let log):
            standby.isWarm = log.isWarm
            standby.last = log.last
            standby.isHinted = standby.isHinted || !log.isWarm
            standby.lookAt = now + Self.lookPause
            renewal.stoodBy()
        case .failure(let error):
            standby.candidacy.failed(at: now)
            standby.isWarm = false
            standby.hasFailed = true
            standby.lookAt = now + Self.failurePause
            failure = "it stands by, and its log fails: \(error.code.summary)"
        }
        self.standby = standby
        guard !isServing else { return }
        report(found)
        redirectHellos(at: now)
    }

    /// A hint that the one that serves has said something.
    func hinted() { standby?.isHinted = true }

    private func takeOverIfDue() -> Bool {
        guard let standby, standby.isWarm, !standby.isLooking, let view = standby.candidacy.view,
            standby.candidacy.isDue(at: Moment.now.monotonic)
        else { return false }
        failure = "it is about to take over"
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

    private func report(_ found: Result<FollowedLog, LogError>) {
        let standing: SequencerEvent.Standing
        switch found {
        case .success(let log):
            let now = Moment.now.monotonic
            failure = nil
            // What is about to take over need not be told of.
            guard log.isWarm, let standby, standby.candidacy.tryAt.map({ $0 > now }) ?? false else {
                return
            }
            let server = standby.candidacy.server(at: now)
            guard server != nil || standby.reported?.failure != nil || standby.reported == nil
            else { return }
            standing = SequencerEvent.Standing(server: server, failure: nil)
        case .failure(let error):
            standing = SequencerEvent.Standing(server: nil, failure: error.message)
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
