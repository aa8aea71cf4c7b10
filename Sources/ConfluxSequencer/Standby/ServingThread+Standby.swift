import ConfluxLog
import ConfluxProtocol
import ConfluxVocabulary
import ConfluxZeroMQ

/// Runs a sequencer whose log several sequencers may serve: it stands by, takes over, and stands by again after its
/// term (rule 47). Each term has a machine of its own, which begins only with what is in the log.
extension ServingThread {
    /// What a sequencer needs in order to stand by.
    struct Standby {
        let jobs: Mailbox<HeartbeatJob>
        let signs: TermSigns
        var course: StandbyCourse
        /// The standing that was last reported.
        var reported: SequencerEvent.Standing?

        init(of heartbeats: Heartbeats) {
            jobs = heartbeats.jobs
            signs = heartbeats.signs
            course = StandbyCourse(address: heartbeats.address, lot: .random(in: 0..<1))
        }
    }

    /// Stands by and serves, in turn, until it is asked to stop or the log is damaged.
    ///
    /// - Returns: Why it ended.
    func runStandingBy() -> SequencerEnd {
        while true {
            guard standBy() else { return end ?? .stopped }
            let reason = serveTerm()
            leave(because: reason)
            guard !isCutOff else { return reason }
            switch reason {
            case .stopped, .logDamaged, .logMoved: return reason
            case _ where isStopping: return .stopped
            // Another sequencer claimed the log first.
            case .superseded where machine.epoch == .none: break
            case .superseded, .handedOver: events(.steppedDown(reason))
            case .logFailed(let message, let summary):
                guard let pause = renewal.pause(after: .now) else { return reason }
                failure = "its log fails: \(summary). It tries again by itself"
                if let signs = standby?.signs { standby?.course.gaveUp(signs.claimed) }
                events(.termFailed(message: message, pause: pause))
                guard rest(for: pause) else { return end ?? .stopped }
            }
        }
    }

    /// Ends a term.
    private func leave(because reason: SequencerEnd) {
        switch reason {
        case .stopped: standby?.jobs.post(.leave(successor: machine.bestStandby?.address))
        case .handedOver(let successor):
            standby?.jobs.post(.leave(successor: successor))
            standby?.course.yield(at: Moment.now.monotonic)
        case .superseded, .logFailed, .logDamaged, .logMoved: standby?.jobs.post(.fall)
        }
    }

    /// Follows the log until it is time to take over.
    ///
    /// - Returns: Whether a term was requested; false if the thread was asked to stop, the sockets failed,
    ///   or the log is damaged and can't be looked at.
    private func standBy() -> Bool {
        isServing = false
        end = nil
        let tally = machine.tally
        machine = SequencerMachine(settings: machine.settings)
        machine.tally = tally
        gate.standBy()
        standby?.course.begin()
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

    /// Requests a look at the log, if it is time.
    ///
    /// - Returns: How long to wait for the next step.
    private func look() -> Duration {
        let now = Moment.now.monotonic
        switch standby?.course.next(at: now) {
        case nil: return .zero
        case .wait(let pause): return pause
        case .look(let reopening, let isYielding):
            let answers = answers
            jobs.post(
                .follow(reopening: reopening, yielding: isYielding) {
                    answers.post(.followed($0, since: now))
                })
            return StandbyCourse.lookPause
        }
    }

    /// Takes the outcome of a look at the log.
    func followed(_ look: LogLook, since begun: Duration) {
        let now = Moment.now.monotonic
        let fault = standby?.course.heard(look, since: begun, at: now)
        if let fault { failure = "it stands by, and its log fails: \(fault.code.summary)" }
        switch look {
        case .read(.success(_?)): renewal.stoodBy()
        // A damaged log can't be claimed.
        case .looked(.failure(let error)) where error.code == .damaged && !isServing:
            end = .logDamaged(error.message)
        default: break
        }
        guard !isServing else { return }
        switch look {
        // Nothing was read, so the last report still holds.
        case .looked(.success), .read(.success(nil)): break
        default: report(fault)
        }
        redirectHellos(at: now)
    }

    /// Takes a hint that the serving sequencer has written something.
    func hinted() { standby?.course.hint() }

    private func takeOverIfDue() -> Bool {
        guard !isStopping, let former = standby?.course.takeOver(at: Moment.now.monotonic) else {
            return false
        }
        failure = nil
        gate.ask()
        jobs.post(.takeOver(.random(), after: former))
        return true
    }

    /// Takes what the heartbeat thread has found.
    func take(_ news: HeartbeatNews, of epoch: Epoch) {
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

    /// Answers a hello at once, and keeps it for the time when this sequencer serves.
    func answer(hello frame: Bytes, from route: RoutingID) {
        let connection = ConnectionID(route)
        let limits = WireLimits.standard
        guard case .hello(let hello)? = try? Frame.decodeNodeMessage(frame, limits: limits) else {
            return
        }
        if !isServing, let server = standby?.course.candidacy.server(at: Moment.now.monotonic) {
            send(.redirect(Redirect(request: hello.request, address: server)), to: connection)
        } else {
            let text = (failure ?? "it stands by, and no other sequencer is known to serve") + "."
            send(.bye(Bye(code: .notServing, message: text)), to: connection)
        }
    }

    /// Redirects the nodes that wait here, once another sequencer serves.
    private func redirectHellos(at now: Duration) {
        guard standby?.course.newServer(at: now) != nil else { return }
        for (route, frame) in early.hellos { answer(hello: frame, from: route) }
    }

    // MARK: Reports

    private func report(_ fault: LogError?) {
        let now = Moment.now.monotonic
        var standing = SequencerEvent.Standing(server: nil, failure: fault?.message)
        if fault == nil {
            failure = nil
            // A sequencer that is about to take over need not report its standing.
            guard let standby, standby.course.isReady,
                standby.course.candidacy.tryAt.map({ $0 > now }) ?? false
            else { return }
            standing.server = standby.course.candidacy.server(at: now)
            guard
                standing.server != nil || standby.reported?.failure != nil
                    || standby.reported == nil
            else { return }
        }
        guard standing != standby?.reported else { return }
        standby?.reported = standing
        events(.standingBy(standing, last: standby?.course.last ?? .zero))
    }
}

extension SequencerInput {
    /// The form in which the machine gets this input. If the process stands by again, nodes are told only that its
    /// term is over.
    package func told(standsBy: Bool) -> SequencerInput {
        if standsBy, case .logFailed(let reason) = self { .deposed(reason) } else { self }
    }
}
