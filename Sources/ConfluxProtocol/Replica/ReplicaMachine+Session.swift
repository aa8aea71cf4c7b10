import ConfluxVocabulary

/// The session: hello, welcome, bye, and what time brings (rules 2, 7 and 8).
extension ReplicaMachine {
    mutating func greet(at now: Duration, into effects: inout [ReplicaEffect]) {
        phase = .greeting(
            nextHelloAt: now + settings.helloInterval, interval: settings.helloInterval)
        sayHello(into: &effects)
    }

    private func sayHello(into effects: inout [ReplicaEffect]) {
        let hosted = hosting.compactMap { subject, hosting -> HostedStore? in
            guard case .store(let store) = subject, case .opened(let life) = hosting.phase else {
                return nil
            }
            return HostedStore(
                store: store, life: life, schemaVersion: hosting.open.schemaVersion)
        }
        let bridged = hosting.compactMap { subject, hosting -> Name? in
            guard case .state(let state) = subject, case .opened = hosting.phase else {
                return nil
            }
            return state
        }
        effects.append(
            .send(
                .hello(
                    Hello(
                        nonce: nonce, name: settings.name, role: settings.role,
                        session: settings.role == .member ? session : nil, history: mark,
                        hosted: hosted.sorted { $0.store < $1.store },
                        bridged: bridged.sorted()))))
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
        // A welcome of a tenure that is over comes late; nothing of it counts.
        if let session, session.log == welcome.log, epoch < self.epoch { return }
        heardAt = now
        let isLost =
            (self.welcome.map { $0.log != welcome.log } ?? false)
            || (mark.map { welcome.agreed < $0.sequence } ?? false)
        let isNew =
            session != SessionToken(log: welcome.log, incarnation: welcome.incarnation)
            || self.welcome == nil
        if isLost { loseHistory(agreed: welcome.agreed, at: now, into: &effects) }
        if isNew { forgetSession(into: &effects) }
        // A sequencer may be replaced faster than its absence is noticed, and its bye be lost.
        let isLaterTenure = epoch > self.epoch
        self.epoch = epoch
        self.welcome = welcome
        session = SessionToken(log: welcome.log, incarnation: welcome.incarnation)
        remoteLast = max(remoteLast, welcome.last)
        phase = .joined
        if isNew {
            effects.append(.event(.joined(welcome.log, epoch, welcome.incarnation)))
        } else if isDisconnected || isLaterTenure {
            effects.append(.event(.reconnected(epoch)))
        }
        isDisconnected = false
        if feed != .unwanted {
            feed = .proving(since: now)
            effects.append(.subscribe(welcome.feed))
        }
        // What has no outcome is submitted again, with the boundaries that it had.
        submissions.rewind()
        pump(at: now, into: &effects)
        sendOpens(into: &effects)
        sendProgress(at: now, into: &effects)
    }

    /// What was dispatched in a session that is gone: its outcome can't be known any more.
    private mutating func forgetSession(into effects: inout [ReplicaEffect]) {
        releaseHeld(isForced: true, into: &effects)
        guard var open = submissions.forget() else { return }
        while open.count > 0 {
            let count = UInt32(min(open.count, UInt64(UInt32.max)))
            let outcome = ActionOutcome(firstCounter: open.first, count: count, fate: .unknown)
            effects.append(.deliver(.settle(outcome)))
            open = (open.first + UInt64(count), open.count - UInt64(count))
        }
    }

    /// The log is not the one whose history the replicas have (rule 2): they begin anew.
    mutating func loseHistory(
        agreed: SequenceNumber, at now: Duration, into effects: inout [ReplicaEffect]
    ) {
        if let mark {
            effects.append(
                .event(.historyLost(from: agreed.next, through: max(mark.sequence, agreed.next))))
        }
        releaseHeld(isForced: true, into: &effects)
        effects.append(.deliver(.reset))
        mark = nil
        live = nil
        liveEpoch = nil
        remoteLast = .zero
        buffer.removeAll()
        holeFetch = nil
        catchUp = nil
        applied = .zero
        lastOwn = .zero
        for subject in hosting.keys {
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
        case .nameTaken, .version, .unsupported, .malformed, .tableFull:
            end(.refused(bye.code, message: bye.message), into: &effects)
        }
    }

    mutating func leave(into effects: inout [ReplicaEffect]) {
        if phase == .joined {
            effects.append(
                .send(.progress(Progress(applied: applied, settled: submissions.settled))))
            effects.append(
                .send(.bye(Bye(code: .leaving, message: "the node leaves"))))
        }
        end(.left, into: &effects)
    }

    /// Ends with an outcome for every action: what has none by now has none that can be known.
    mutating func end(_ reason: ReplicaEnd, into effects: inout [ReplicaEffect]) {
        forgetSession(into: &effects)
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
        if isAnswerDue { deadline = min(deadline, heardAt + settings.answerPatience) }
        if let until = submissions.pausedUntil { deadline = min(deadline, until) }
        if let fetch = holeFetch { deadline = min(deadline, fetch.deadline) }
        if let fetch = catchUp?.fetch { deadline = min(deadline, fetch.deadline) }
        return deadline
    }

    /// Whether the sequencer owes this node something.
    private var isAnswerDue: Bool {
        submissions.isAwaiting || hosting.values.contains { $0.phase == .asked }
    }

    /// When the next progress is due: soon when there is some, else as a sign of life.
    private var progressDue: Duration {
        guard let limits = welcome?.limits else { return .zero }
        let pause = applied > progressSent ? limits.beatInterval : limits.silenceMax / 4
        return progressSentAt + pause
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
        if isAnswerDue, now >= heardAt + settings.answerPatience {
            // The session may be gone, or a message lost: hello tells, and repeats what is due.
            heardAt = now
            greet(at: now, into: &effects)
            return
        }
        pump(at: now, into: &effects)
        retryFetches(at: now, into: &effects)
        if now >= progressDue { sendProgress(at: now, into: &effects) }
    }

    /// Since when the feed owes this node a message.
    private var silentSince: Duration? {
        switch feed {
        case .unwanted: nil
        case .proving(let since): since
        case .following: fedAt
        }
    }

    private mutating func sendProgress(at now: Duration, into effects: inout [ReplicaEffect]) {
        progressSent = applied
        progressSentAt = now
        effects.append(
            .send(.progress(Progress(applied: applied, settled: submissions.settled))))
    }
}
