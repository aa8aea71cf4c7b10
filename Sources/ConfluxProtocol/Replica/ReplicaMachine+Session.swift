import ConfluxVocabulary

/// The session: hello, welcome, bye, and what time brings (rules 2, 7 and 8).
extension ReplicaMachine {
    mutating func greet(at now: Duration, into effects: inout [ReplicaEffect]) {
        phase = .greeting(
            nextHelloAt: now + settings.helloInterval, interval: settings.helloInterval)
        sayHello(into: &effects)
    }

    private func sayHello(into effects: inout [ReplicaEffect]) {
        let hosted = hosting.hosted()
        effects.append(
            .send(
                .hello(
                    Hello(
                        nonce: nonce, name: settings.name, role: settings.role,
                        process: process, session: settings.role == .member ? session : nil,
                        history: mark,
                        hosted: hosted.stores, bridged: hosted.states))))
    }

    /// The sequencer is not heard of any more: look for it.
    mutating func lose(at now: Duration, into effects: inout [ReplicaEffect]) {
        guard phase == .joined else { return }
        isDisconnected = true
        effects.append(.event(.disconnected))
        greet(at: now, into: &effects)
    }

    mutating func welcomed(
        _ welcome: Welcome, epoch: Epoch, at now: Duration, into effects: inout [ReplicaEffect]
    ) {
        // A welcome of a tenure that is over comes late; nothing of it counts. But a log that was
        // put back to an earlier copy begins again with lower epochs, and says that it knows.
        if self.welcome?.log == welcome.log, epoch < self.epoch, welcome.refuted < self.epoch {
            return
        }
        let isOfOtherLog = self.welcome.map { $0.log != welcome.log } ?? false
        let isOfSameTenure = !isOfOtherLog && isPresent(welcome, epoch)
        // Several hellos may have waited together, and each has its welcome, which says how much is
        // agreed of what *that* hello named. What was received since then is more, and no loss:
        // within a tenure nothing is lost, and of another one the next welcome tells.
        let isShort = !isOfSameTenure && (mark.map { welcome.agreed < $0.sequence } ?? false)
        if isShort, !isOfOtherLog {
            guard phase != .joined else {
                lose(at: now, into: &effects)
                return
            }
            // A hello that waited in a socket names less than this node has by now. What is lost is
            // so only when the answer to a hello that is said from here on says it, too.
            guard doubtedClaim == welcome.claim else {
                doubtedClaim = welcome.claim
                greet(at: now, into: &effects)
                return
            }
        }
        owedSince = now
        let isLost = isOfOtherLog || isShort
        let isNew =
            session != SessionToken(log: welcome.log, incarnation: welcome.incarnation)
            || self.welcome == nil
        if isLost { loseHistory(agreed: welcome.agreed, at: now, into: &effects) }
        if isNew {
            // Counters that are lines of a file can't begin anew (rule 11).
            guard resumption == nil else {
                loseKeyedSession(into: &effects)
                return
            }
            forgetSession(into: &effects)
            if isKeyed { resume(welcome) }
        }
        // A sequencer may be replaced faster than its absence is noticed, and its bye be lost.
        let isOtherTenure = epoch != self.epoch
        self.epoch = epoch
        // What waits behind a hole was never had, so no history speaks for it: where the log was put
        // back to an earlier copy, another tenure may have given the same numbers in the same epoch.
        if self.welcome?.claim != welcome.claim { buffer.removeAll() }
        self.welcome = welcome
        session = SessionToken(log: welcome.log, incarnation: welcome.incarnation)
        // What a former tenure had last may be lost with the end of its log.
        remoteLast = isOfSameTenure ? max(remoteLast, welcome.last) : welcome.last
        phase = .joined
        if isNew {
            effects.append(.event(.joined(welcome.log, epoch, welcome.incarnation)))
        } else if isDisconnected || isOtherTenure {
            effects.append(.event(.reconnected(epoch)))
        }
        if isDisconnected || isOtherTenure {
            // What was asked on the connection before is not answered any more.
            slowPatience = .zero
            holeFetch?.deadline = now
            catchUp?.fetch?.deadline = now
            loads.repeatAll(at: now)
        }
        isDisconnected = false
        if feed != .unwanted {
            feed = .proving(since: now)
            effects.append(.subscribe(welcome.feed))
        }
        // First of all what is settled: what was told as rejected, and is known to nobody since a
        // restart, is then not judged again.
        sendProgress(at: now, settled: submissions.reported, into: &effects)
        // What has no outcome is submitted again, with the boundaries that it had; what this
        // tenure has judged already it tells behind its welcome.
        submissions.rewind(
            past: isNew || isOtherTenure ? 0 : welcome.lastCounter,
            knownThrough: max(welcome.lastCounter, submissions.reported))
        pump(at: now, into: &effects)
        sayClosed(into: &effects)
        hosting.wantAgain()
        sendOpens(into: &effects)
        beginLoads(at: now, into: &effects)
        pumpCatchUp(at: now, into: &effects)
        askAgain(at: now, into: &effects)
    }

    /// Whether a welcome is of the tenure of the last one.
    private func isPresent(_ welcome: Welcome, _ epoch: Epoch) -> Bool {
        self.welcome?.claim == welcome.claim && self.epoch == epoch
    }

    /// The first welcome of a process with a key says where its session stands (rule 11).
    private mutating func resume(_ welcome: Welcome) {
        resumption = Resumption(settled: welcome.settled, lastCounter: welcome.lastCounter)
        submissions = Submissions(resumingAfter: welcome.settled)
        settledSent = welcome.settled
    }

    private mutating func loseKeyedSession(into effects: inout [ReplicaEffect]) {
        effects.append(.event(.sessionForgotten))
        let text =
            "the session of the key is not remembered any more, so that what has no outcome can't "
            + "be submitted again; look at the log, and go on with another key"
        end(.refused(.forgotten, message: text), into: &effects)
    }

    /// What was dispatched in a session that is gone: its outcome can't be known any more. It stands
    /// behind outcomes that are known and wait until this node has applied what they are about.
    private mutating func forgetSession(into effects: inout [ReplicaEffect]) {
        if var open = submissions.forget() {
            while open.count > 0 {
                let count = UInt32(min(open.count, UInt64(UInt32.max)))
                let outcome = ActionOutcome(
                    firstCounter: open.first, count: count, fate: .unknown)
                held.append(HeldOutcome(outcome: outcome, opening: []))
                open = (open.first + UInt64(count), open.count - UInt64(count))
            }
        }
        releaseHeld(isForced: false, into: &effects)
    }

    /// The log is not the one whose history the replicas have (rule 2): they begin anew.
    mutating func loseHistory(
        agreed: SequenceNumber, at now: Duration, into effects: inout [ReplicaEffect]
    ) {
        if let mark {
            effects.append(
                .event(.historyLost(from: agreed.next, through: max(mark.sequence, agreed.next))))
        } else if session != nil {
            // It had nothing of that log but its session.
            effects.append(.event(.sessionForgotten))
        }
        releaseHeld(isForced: true, into: &effects)
        giveUpDrops(above: agreed, into: &effects)
        resets += 1
        effects.append(.deliver(.reset))
        mark = nil
        live = nil
        liveEpoch = nil
        remoteLast = .zero
        buffer.removeAll()
        holeFetch = nil
        catchUp = nil
        loads.removeAll()
        stopped = [:]
        applied = .zero
        lastOwn = .zero
        // A number above what both have in common is not one of this history.
        followFrom = followFrom.map { min($0, agreed.next) }
        for subject in hosting.subjects {
            hosting[subject]?.phase = .wanted
            if case .store(let store) = subject { opening.insert(store) }
        }
    }

    mutating func dismissed(_ bye: Bye, at now: Duration, into effects: inout [ReplicaEffect]) {
        switch bye.code {
        case .rejoin:
            // Several may be on their way, one for each message that was sent meanwhile.
            guard phase == .joined else { return }
            greet(at: now, into: &effects)
        case .forgotten:
            guard session != nil else { return }
            guard !isKeyed else {
                loseKeyedSession(into: &effects)
                return
            }
            effects.append(.event(.sessionForgotten))
            forgetSession(into: &effects)
            session = nil
            greet(at: now, into: &effects)
        case .leaving, .superseded:
            // Another tenure may begin soon; hellos are repeated until one is answered.
            guard phase == .joined else { return }
            isDisconnected = true
            effects.append(.event(.disconnected))
            phase = .greeting(
                nextHelloAt: now + settings.helloInterval, interval: settings.helloInterval)
        case .nameTaken, .keyTaken, .version, .unsupported, .malformed, .tableFull:
            end(.refused(bye.code, message: bye.message), into: &effects)
        }
    }

    mutating func leave(into effects: inout [ReplicaEffect]) {
        if phase == .joined {
            effects.append(
                .send(.progress(Progress(applied: applied, settled: submissions.reported))))
            effects.append(
                .send(.bye(Bye(code: .leaving, message: "the node leaves"))))
        }
        end(.left, into: &effects)
    }

    /// Ends with an outcome for every action: what has none by now has none that can be known.
    mutating func end(_ reason: ReplicaEnd, into effects: inout [ReplicaEffect]) {
        forgetSession(into: &effects)
        releaseHeld(isForced: true, into: &effects)
        phase = .ended
        effects.append(.end(reason))
    }

    // MARK: What time brings

    /// When ``ReplicaInput/tick`` is due, on the monotonic clock; nil when nothing is awaited.
    public var nextDeadline: Duration? {
        switch phase {
        case .idle, .ended: return nil
        case .greeting(let nextHelloAt, _): return nextHelloAt
        case .joined: break
        }
        var deadline = progressDue
        if let silentSince { deadline = min(deadline, silentSince + settings.feedSilenceMax) }
        if isAnswerDue { deadline = min(deadline, owedSince + settings.answerPatience) }
        if let until = submissions.pausedUntil { deadline = min(deadline, until) }
        if let fetch = holeFetch { deadline = min(deadline, fetch.deadline) }
        if let fetch = catchUp?.fetch { deadline = min(deadline, fetch.deadline) }
        if let due = waitDeadline { deadline = min(deadline, due) }
        if let due = loads.nextDeadline { deadline = min(deadline, due) }
        return deadline
    }

    /// Whether the sequencer owes this node something.
    var isAnswerDue: Bool {
        submissions.isAwaiting || isConfirmationDue || hosting.isAsking
    }

    /// When the next progress is due: soon when there is some, else as a sign of life.
    private var progressDue: Duration {
        guard let limits = welcome?.limits else { return .zero }
        let isNews = applied > progressSent || (isKeyed && submissions.reported > settledSent)
        let pause = isNews ? limits.beatInterval : limits.silenceMax / 4
        return progressSentAt + max(pause, settings.progressPauseMin)
    }

    mutating func passTime(at now: Duration, into effects: inout [ReplicaEffect]) {
        switch phase {
        case .idle, .ended: return
        case .greeting(let nextHelloAt, let interval):
            guard now >= nextHelloAt else { return }
            let longer = min(interval * 2, settings.helloIntervalMax)
            // Nodes that lost the same sequencer at once do not come back at once (rule 7).
            let jitter = longer * Int(truncatingIfNeeded: nonce.low % 64) / 256
            phase = .greeting(nextHelloAt: now + longer + jitter, interval: longer)
            sayHello(into: &effects)
            return
        case .joined: break
        }
        if let silentSince, now >= silentSince + settings.feedSilenceMax {
            lose(at: now, into: &effects)
            return
        }
        if isAnswerDue, now >= owedSince + settings.answerPatience {
            // The session may be gone, or a message lost: hello tells, and repeats what is due.
            owedSince = now
            greet(at: now, into: &effects)
            return
        }
        pump(at: now, into: &effects)
        retryFetches(at: now, into: &effects)
        askOverdue(at: now, into: &effects)
        repeatLoads(at: now, into: &effects)
        if now >= progressDue {
            sendProgress(at: now, settled: submissions.reported, into: &effects)
        }
    }

    /// Since when the feed owes this node a message.
    private var silentSince: Duration? {
        switch feed {
        case .unwanted: nil
        case .proving(let since): since
        case .following: fedAt
        }
    }

    mutating func sendProgress(
        at now: Duration, settled: UInt64, into effects: inout [ReplicaEffect]
    ) {
        progressSent = applied
        progressSentAt = now
        settledSent = max(settledSent, settled)
        effects.append(
            .send(
                .progress(
                    Progress(
                        applied: applied, settled: settled,
                        stopped: stopped.values.sorted { $0.store < $1.store }))))
    }
}
