import ConfluxEtcd
import ConfluxLog
import ConfluxProtocol
import ConfluxSequencer
import ConfluxVocabulary

/// Several sequencers on one log: what the serving thread and the log's thread of each do (rule 47).
extension SimulatedCluster {
    // MARK: Processes

    func startStandby(_ slot: Int) {
        guard !sequencers.values.contains(where: { $0.standby?.slot == slot }) else { return }
        let process = takeProcess()
        let drift = plan.clockDrift
        let clock = DriftingClock(
            offset: random.duration(in: .zero ... .seconds(3_600)),
            rate: 1_000 + random.int(in: -drift...drift))
        let logSettings = etcdSettings(of: process, clock)
        let log: EtcdLog
        do throws(LogError) {
            log = try EtcdLog(logSettings)
        } catch {
            trace.note(now, "sequencer \(process) can't open the log: \(error)")
            leavePlace(slot)
            return
        }
        var settings = settings
        settings.address = SimulatedStandby.address(of: slot)
        settings.feed = SimulatedStandby.feed(of: slot)
        let sequencer = SimulatedSequencer(
            process: process, settings: settings, log: log,
            checkpointBytes: plan.keeping.checkpointBytes,
            clockOffset: Int64(random.int(in: -2_000...2_000)) * 1_000_000, clock: clock,
            now: { [unowned self] in clock.reading(at: now) },
            reopen: { (former) throws(LogError) in
                former.close()
                return try EtcdLog(logSettings)
            })
        sequencer.standby = SimulatedStandby(
            slot: slot, lot: Double(random.int(in: 0...999)) / 1_000)
        sequencers[process] = sequencer
        trace.note(now, "sequencer \(process) starts at \(settings.address)")
        standBy(sequencer)
    }

    /// The process in a slot is gone.
    func leavePlace(_ slot: Int) {
        schedule(
            .startStandby(slot: slot), after: random.duration(in: .milliseconds(20)...(.seconds(4)))
        )
    }

    // MARK: Standing by

    /// Begins to stand by, with a new machine for the next term.
    func standBy(_ sequencer: SimulatedSequencer) {
        sequencer.gate.standBy()
        sequencer.beginAnew()
        sequencer.standby?.isStandingBy = true
        sequencer.standby?.course.begin()
        watch(sequencer)
    }

    /// Requests a look at the log, if it is time, or takes over.
    func watch(_ sequencer: SimulatedSequencer) {
        guard var standby = sequencer.standby, standby.isStandingBy else { return }
        let reading = sequencer.clock.reading(at: now)
        if let former = standby.course.takeOver(at: reading) {
            marks.hit(.takeOverTried)
            trace.note(now, "sequencer \(sequencer.process) claims the log after \(former)")
            standby.isStandingBy = false
            sequencer.gate.ask()
            sequencer.logJobs.append(.takeOver(.random(using: &random), after: former))
        } else {
            var pause = StandbyCourse.lookPause
            switch standby.course.next(at: reading) {
            case .wait(let left): pause = left
            case .look(let reopening, let isYielding):
                standby.lookBegunAt = reading
                let looks = sequencer.looks
                sequencer.logJobs.append(
                    .follow(reopening: reopening, yielding: isYielding) { looks.add($0) })
            }
            timeline.schedule(
                .watch(process: sequencer.process),
                at: max(now, sequencer.clock.time(of: reading + pause)))
        }
        sequencer.standby = standby
        call(sequencer)
    }

    private func heard(_ look: LogLook, _ sequencer: SimulatedSequencer) throws(Violation) {
        let reading = sequencer.clock.reading(at: now)
        let begun = sequencer.standby?.lookBegunAt ?? reading
        if let fault = sequencer.standby?.course.heard(look, since: begun, at: reading) {
            trace.note(now, "sequencer \(sequencer.process) can't follow the log: \(fault)")
            marks.hit(.followFailed)
            try require(fault.code != .damaged, "order", "the log is damaged: \(fault)")
        }
        guard !sequencer.isServing else { return }
        try redirectHellos(to: sequencer)
        watch(sequencer)
    }

    /// Takes a hint: the serving sequencer may have written something.
    func hint(_ sequencer: SimulatedSequencer) {
        sequencer.standby?.course.hint()
        watch(sequencer)
    }

    // MARK: The log's thread

    /// Starts the next job, unless one is under way.
    func call(_ sequencer: SimulatedSequencer) {
        guard case .none? = sequencer.standby?.call, !sequencer.logJobs.isEmpty else { return }
        sequencer.standby?.call = .asked
        schedule(.workLog(process: sequencer.process), after: logLatency)
    }

    /// The log receives the request.
    func hearCall(of sequencer: SimulatedSequencer) throws(Violation) {
        guard case .asked = sequencer.standby?.call else { return }
        slowness = .zero
        let done = sequencer.work()
        if let violation { throw violation }
        sequencer.standby?.call = .answered(done)
        var takes = logLatency + slowness
        if strikes(plan.slowLog) {
            marks.hit(.logSlow)
            takes += random.duration(in: .milliseconds(50)...(.seconds(3)))
        }
        schedule(.answerLog(process: sequencer.process), after: takes)
    }

    /// The answer arrives.
    func answerCall(of sequencer: SimulatedSequencer) throws(Violation) {
        guard case .answered(let done) = sequencer.standby?.call else { return }
        sequencer.standby?.call = .none
        if let rest = done.rest { post(rest, sequencer) }
        takeReader(of: sequencer)
        try makeCheckpoint(sequencer)
        beginHeartbeat(of: sequencer)
        for look in done.looks { try heard(look, sequencer) }
        for input in done.inputs {
            guard sequencer.gate.admits(done.term) else {
                marks.hit(.answerOfOtherTerm)
                continue
            }
            try handle(input.told(standsBy: true), sequencer)
        }
        if sequencers[sequencer.process] != nil { call(sequencer) }
    }

    // MARK: Ends

    func endTerm(of sequencer: SimulatedSequencer, _ reason: SequencerEnd) {
        sequencer.isServing = false
        switch reason {
        case .stopped:
            marks.hit(.sequencerStopped)
            leave(sequencer, to: sequencer.machine.bestStandby?.address)
            remove(sequencer)
        case .handedOver(let successor):
            marks.hit(.handedOver)
            leave(sequencer, to: successor)
            sequencer.standby?.course.yield(at: sequencer.clock.reading(at: now))
            standBy(sequencer)
        case .superseded:
            marks.hit(.superseded)
            sequencer.standby?.heartbeat = nil
            standBy(sequencer)
        case .logFailed:
            marks.hit(.termRenewed)
            sequencer.standby?.heartbeat = nil
            if let claimed = sequencer.standby?.claimed {
                sequencer.standby?.course.gaveUp(claimed)
            }
            schedule(
                .rested(process: sequencer.process),
                after: random.duration(in: .milliseconds(100)...(.seconds(2))))
        case .logDamaged(let what), .logMoved(let what):
            fail("order", "the log is damaged: \(what)")
        }
    }

    // MARK: Nodes

    /// Keeps what arrives before a term, and answers a hello at once.
    func keep(
        _ number: UInt64, _ connection: Connection, _ sequencer: SimulatedSequencer
    ) throws(Violation) {
        let kept = sequencer.waiting[number] ?? 0
        guard kept < connection.up.count else { return }
        guard isHello(connection.up[kept]) else {
            sequencer.waiting[number] = kept + 1
            return
        }
        // A hello begins a connection anew.
        connection.up.removeFirst(kept)
        sequencer.waiting[number] = 1
        try answer(hello: connection.up[0], from: number, sequencer)
    }

    private func isHello(_ frame: [UInt8]) -> Bool {
        (try? Frame.header(of: frame[...]))?.kind == .hello
    }

    private func answer(
        hello frame: [UInt8], from number: UInt64, _ sequencer: SimulatedSequencer
    ) throws(Violation) {
        guard
            case .hello(let hello)? = try? Frame.decodeNodeMessage(
                frame[...], limits: sequencer.machine.limits)
        else { return }
        let reading = sequencer.clock.reading(at: now)
        if let server = sequencer.standby?.course.candidacy.server(at: reading) {
            marks.hit(.redirected)
            try send(
                .redirect(Redirect(request: hello.request, address: server)), to: number, sequencer)
        } else {
            try send(
                .bye(Bye(code: .notServing, message: "it stands by")), to: number, sequencer)
        }
    }

    /// Redirects the nodes that wait here, once another sequencer serves.
    private func redirectHellos(to sequencer: SimulatedSequencer) throws(Violation) {
        let reading = sequencer.clock.reading(at: now)
        guard sequencer.standby?.course.newServer(at: reading) != nil else { return }
        for (number, kept) in sequencer.waiting.sorted(by: { $0.key < $1.key }) where kept > 0 {
            guard let connection = connections[number], let frame = connection.up.first,
                isHello(frame)
            else { continue }
            try answer(hello: frame, from: number, sequencer)
        }
    }
}
