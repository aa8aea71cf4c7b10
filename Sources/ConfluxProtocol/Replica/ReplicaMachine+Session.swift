import ConfluxVocabulary

/// The session: hello, welcome, bye, and what is done as time passes (rules 2, 7 and 8).
extension ReplicaMachine {
    mutating func greet(at now: Duration, into effects: inout [ReplicaEffect]) {
        lastHello += 1
        // A node that tries one address after another has had no answer since the first.
        var since = now
        if case .greeting(let greeting) = phase { since = greeting.since }
        sayHello(
            hello(lastHello), pause: settings.helloInterval, jitter: .zero, since: since,
            seekAt: now + settings.seekInterval, at: now, into: &effects)
    }

    /// Says hello again. As long as its content is the same, it is the same hello with the same number: the answer
    /// may be on its way, and may take longer than the pause between two hellos.
    private mutating func greetAgain(
        _ greeting: Greeting, at now: Duration, into effects: inout [ReplicaEffect]
    ) {
        if hello(lastHello) != greeting.hello { lastHello += 1 }
        let longer = min(greeting.interval * 2, settings.helloIntervalMax)
        // Nodes that lost the same sequencer at once must not all come back at once (rule 7).
        let jitter = longer * Int(truncatingIfNeeded: nonce.low % 64) / 256
        if welcome != nil, !isDisconnected, now >= greeting.since + settings.feedSilenceMax {
            // A node without a feed has no other way to notice it.
            hasLostMessages = true
            disconnect(into: &effects)
        }
        redirectCount = min(redirectCount, settings.redirectsMax - 1)
        var seekAt = greeting.seekAt
        if now >= seekAt {
            seekAt = now + settings.seekInterval
            effects.append(.connect(to: nil))
        }
        sayHello(
            hello(lastHello), pause: longer, jitter: jitter, since: greeting.since, seekAt: seekAt,
            at: now, into: &effects)
    }

    private mutating func sayHello(
        _ hello: Hello, pause: Duration, jitter: Duration, since: Duration, seekAt: Duration,
        at now: Duration, into effects: inout [ReplicaEffect]
    ) {
        phase = .greeting(
            Greeting(
                hello: hello, nextHelloAt: now + pause + jitter, interval: pause, since: since,
                seekAt: seekAt))
        effects.append(.send(.hello(hello)))
    }

    private func hello(_ request: UInt64) -> Hello {
        let hosted = hosting.hosted()
        return Hello(
            request: request, nonce: nonce, name: settings.name, role: settings.role,
            process: process, session: settings.role == .member ? session : nil, history: mark,
            hosted: hosted.stores, bridged: hosted.states)
    }

    /// The hello that an answer is for: it must be the last one, and still without an answer.
    private func awaited(_ request: UInt64) -> Hello? {
        guard case .greeting(let greeting) = phase, greeting.hello.request == request else {
            return nil
        }
        return greeting.hello
    }

    /// Another sequencer serves this log, or served it a moment ago. The redirect is a hint: what counts is who
    /// answers at that address. If sequencers point to each other, the node does not follow them for ever.
    mutating func redirected(
        _ redirect: Redirect, at now: Duration, into effects: inout [ReplicaEffect]
    ) {
        guard case .greeting(var greeting) = phase, awaited(redirect.request) != nil,
            redirectCount < settings.redirectsMax
        else { return }
        redirectCount += 1
        // The new address gets as much time as any other.
        greeting.seekAt = now + settings.seekInterval
        phase = .greeting(greeting)
        effects.append(.connect(to: redirect.address))
    }

    /// The node no longer hears from the sequencer, and looks for it.
    mutating func lose(at now: Duration, into effects: inout [ReplicaEffect]) {
        guard phase == .joined else { return }
        hasLostMessages = true
        disconnect(into: &effects)
        greet(at: now, into: &effects)
    }

    /// Takes a welcome. It answers one hello (rule 8), and its `agreed` is about the history that this hello named
    /// (rule 2). So only the answer to the last hello counts, and only while the node has nothing beyond that
    /// history. A sequencer of a lower epoch asked the log before it answered, and found that this node's history was
    /// lost (rule 1).
    mutating func welcomed(
        _ welcome: Welcome, epoch: Epoch, at now: Duration, into effects: inout [ReplicaEffect]
    ) {
        guard let hello = awaited(welcome.request), hello.history == mark else { return }
        let former = self.welcome
        let isOfOtherLog = former.map { $0.log != welcome.log } ?? false
        if isOfOtherLog || mark.map({ welcome.agreed < $0.sequence }) ?? false {
            loseHistory(agreed: welcome.agreed, at: now, into: &effects)
            // What this process knows as settled may be lost. If it said so, the lost actions would count as judged,
            // and no process could dispatch them again (rule 11).
            guard resumption == nil else {
                let text =
                    "the log has lost entries, and receipts for them are void; a process with the same key "
                    + "continues with what the log has"
                end(.refused(.forgotten, message: text), into: &effects)
                return
            }
        }
        let token = SessionToken(log: welcome.log, incarnation: welcome.incarnation)
        let isNew = session != token || former == nil
        if isNew {
            // Counters that stand for the lines of a file can't begin anew (rule 11).
            guard resumption == nil else {
                loseKeyedSession(into: &effects)
                return
            }
            forgetSession(into: &effects)
            if isKeyed { resume(welcome) }
        }
        // A sequencer may be replaced before its absence is noticed, and its bye may be lost.
        let isOtherTerm = former?.claim != welcome.claim || epoch != self.epoch
        // What waits behind a hole is no part of the node's history, so nothing shows that the log still has it. If
        // the log was restored from an earlier copy, another term may have given the same numbers in the same
        // epoch.
        if isOtherTerm { buffer.removeAll() }
        // A newer term decides at digest points of its own, and counts another session as another
        // voter.
        if isOtherTerm || isNew { hosting.forgetVotes() }
        self.epoch = epoch
        self.welcome = welcome
        session = token
        // The log said up to this number where the session stands. If it loses that, the session stands elsewhere.
        if isNew, isKeyed { remember(welcome.log, welcome.last, of: epoch) }
        // The last number of a former term may be lost with the end of its log.
        remoteLast = welcome.last
        phase = .joined
        redirectCount = 0
        owedSince = now
        heardAt = now
        if isNew {
            isDisconnected = false
            effects.append(.event(.joined(welcome.log, epoch, welcome.incarnation)))
        } else if isDisconnected, feed == .unwanted {
            reconnect(into: &effects)
        } else if isOtherTerm, !isDisconnected {
            effects.append(.event(.reconnected(epoch)))
        }
        if hasLostMessages || isOtherTerm {
            // Requests on the former connection get no answer any more.
            slowPatience = .zero
            holeFetch?.deadline = now
            catchUps.repeatAll(at: now)
            loads.repeatAll(at: now)
        }
        let wasLost = hasLostMessages
        hasLostMessages = false
        hear(of: welcome.last, into: &effects)
        if feed != .unwanted {
            prove(isNew || wasLost, at: now)
            effects.append(.subscribe(welcome.feed))
        }
        // Batches without an outcome are submitted again, with unchanged boundaries. What this
        // term has judged already follows its welcome.
        submissions.rewind(
            past: isNew || isOtherTerm ? 0 : welcome.lastCounter,
            knownThrough: max(welcome.lastCounter, submissions.reported))
        sayAllAgain(at: now, into: &effects)
    }

    /// Sends what is due when a session begins or continues. The settled counter comes first. Then actions that were
    /// reported as rejected, and that a restarted sequencer does not know, are not judged again.
    private mutating func sayAllAgain(at now: Duration, into effects: inout [ReplicaEffect]) {
        sendProgress(at: now, settled: submissions.reported, into: &effects)
        // If a vote was lost with its connection, the others would decide without it.
        for vote in hosting.votes { effects.append(.send(.digest(.vote(vote)))) }
        pump(at: now, into: &effects)
        sayClosed(into: &effects)
        hosting.wantAgain()
        sendOpens(into: &effects)
        pumpCatchUps(at: now, into: &effects)
        askAgain(at: now, into: &effects)
    }

    /// The first welcome of a process with a session key says where its session stands (rule 11).
    private mutating func resume(_ welcome: Welcome) {
        resumption = Resumption(settled: welcome.settled, lastCounter: welcome.lastCounter)
        submissions = Submissions(resumingAfter: welcome.settled)
        settledSent = welcome.settled
    }

    private mutating func loseKeyedSession(into effects: inout [ReplicaEffect]) {
        effects.append(.event(.sessionForgotten))
        let text =
            "the sequencer no longer remembers the key's session; if its log was restored from an older copy, "
            + "receipts may be void, and a process with the same key continues with what the log has"
        end(.refused(.forgotten, message: text), into: &effects)
    }

    /// The session is gone: the outcome of what was dispatched in it can't be known any more.
    private mutating func forgetSession(into effects: inout [ReplicaEffect]) {
        guard var open = submissions.forget() else { return }
        while open.count > 0 {
            let count = UInt32(min(open.count, UInt64(UInt32.max)))
            effects.append(
                .deliver(
                    .settle(
                        ActionOutcome(firstCounter: open.first, count: count, status: .unknown))))
            open = (open.first + UInt64(count), open.count - UInt64(count))
        }
    }

    /// The history that the replicas have is not the log's (rule 2): they begin anew.
    mutating func loseHistory(
        agreed: SequenceNumber, at now: Duration, into effects: inout [ReplicaEffect]
    ) {
        if let mark {
            effects.append(
                .event(.historyLost(from: agreed.next, through: max(mark.sequence, agreed.next))))
        } else if session != nil {
            // The node had nothing of that log but its session.
            effects.append(.event(.sessionForgotten))
        }
        giveUpDrops(above: agreed, into: &effects)
        resets += 1
        effects.append(.deliver(.reset))
        mark = nil
        live = nil
        liveEpoch = nil
        remoteLast = .zero
        buffer.removeAll()
        holeFetch = nil
        catchUps = CatchUps(outstandingBytes: catchUps.outstandingBytes)
        for request in loads.removeAll() { effects.append(.loaded(request: request, nil)) }
        stopped = [:]
        applied = .zero
        // A number above what both histories have in common means nothing in this one.
        followFrom = followFrom.map { min($0, agreed.next) }
        for subject in hosting.subjects { hosting[subject]?.phase = .wanted }
    }

    mutating func dismissed(_ bye: Bye, at now: Duration, into effects: inout [ReplicaEffect]) {
        switch bye.code {
        case .rejoin:
            // Several may be on their way, one for each message that the node sent meanwhile.
            guard phase == .joined else { return }
            greet(at: now, into: &effects)
        case .forgotten:
            guard awaited(bye.request) != nil else { return }
            guard !isKeyed else {
                loseKeyedSession(into: &effects)
                return
            }
            effects.append(.event(.sessionForgotten))
            forgetSession(into: &effects)
            session = nil
            nonce = Nonce(high: nonce.high &+ 1, low: nonce.low)
            greet(at: now, into: &effects)
        case .leaving, .superseded:
            // Another term may begin soon; hellos are repeated until one is answered.
            lose(at: now, into: &effects)
        case .notServing:
            // This bye answers no hello: the welcome follows once the sequencer serves.
            lose(at: now, into: &effects)
            effects.append(.event(.notServing(message: bye.message)))
        case .nameTaken, .keyTaken, .tableFull:
            guard awaited(bye.request) != nil else { return }
            end(.refused(bye.code, message: bye.message), into: &effects)
        case .notAllowed:
            guard awaited(bye.request) != nil else { return }
            guard session != nil else {
                end(.refused(bye.code, message: bye.message), into: &effects)
                return
            }
            // A running node that lost its rights may get them back.
            (isDisconnected, hasLostMessages) = (true, true)
            effects.append(.event(.notAllowed(message: bye.message)))
        case .version, .unsupported, .malformed:
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

    /// Ends the node, with an outcome for every action: those that have none get an unknown one.
    mutating func end(_ reason: ReplicaEnd, into effects: inout [ReplicaEffect]) {
        forgetSession(into: &effects)
        phase = .ended
        effects.append(.end(reason))
    }

    // MARK: Time

    /// When ``ReplicaInput/tick`` is due, on the monotonic clock; nil if nothing is awaited.
    public var nextDeadline: Duration? {
        mutating get {
            switch phase {
            case .idle, .ended: return nil
            case .greeting(let greeting): return greeting.nextHelloAt
            case .joined: break
            }
            var deadline = progressDue
            deadline = min(deadline, isProbed ? probeEnd : probeDue)
            if let silentSince { deadline = min(deadline, silentSince + settings.feedSilenceMax) }
            if isAnswerDue { deadline = min(deadline, owedSince + settings.answerPatience) }
            if let until = submissions.pausedUntil { deadline = min(deadline, until) }
            if let fetch = holeFetch { deadline = min(deadline, fetch.deadline) }
            if let due = catchUps.nextDeadline { deadline = min(deadline, due) }
            if let due = waitDeadline { deadline = min(deadline, due) }
            if let due = hearingDue { deadline = min(deadline, due) }
            if let due = loads.nextDeadline { deadline = min(deadline, due) }
            return deadline
        }
    }

    /// Whether the sequencer owes this node an answer.
    package var isAnswerDue: Bool {
        mutating get { submissions.isAwaiting || isConfirmationDue || hosting.isAsking }
    }

    mutating func passTime(at now: Duration, into effects: inout [ReplicaEffect]) {
        switch phase {
        case .idle, .ended: return
        case .greeting(let greeting):
            if now >= greeting.nextHelloAt { greetAgain(greeting, at: now, into: &effects) }
            return
        case .joined: break
        }
        let isFeedSilent = silentSince.map { now >= $0 + settings.feedSilenceMax } ?? false
        if isFeedSilent, let silentSince, heardAt > silentSince + settings.feedSilenceMax / 4 {
            // The sequencer has answered meanwhile, so only the feed is cut off. Its socket connects again by itself.
            feed = .proving(since: now)
            disconnect(into: &effects)
            effects.append(.event(.feedSilent))
        } else if isFeedSilent || isProbed && now >= probeEnd {
            // The sequencer may be stopped, or cut off, while its connection stays open.
            effects.append(.connect(to: nil))
            lose(at: now, into: &effects)
            return
        }
        if !isProbed, now >= probeDue { probe(at: now, into: &effects) }
        if isAnswerDue, now >= owedSince + settings.answerPatience {
            // The session may be gone, or a message lost. A hello finds out, and repeats what is
            // due.
            owedSince = now
            greet(at: now, into: &effects)
            return
        }
        pump(at: now, into: &effects)
        retryFetches(at: now, into: &effects)
        askOverdue(at: now, into: &effects)
        askForLast(at: now, into: &effects)
        repeatLoads(at: now, into: &effects)
        if now >= progressDue {
            sendProgress(at: now, settled: submissions.reported, into: &effects)
        }
    }

    /// Since when the feed owes this node a message; nil if no feed is wanted.
    private var silentSince: Duration? {
        switch feed {
        case .unwanted: nil
        case .proving(let since), .following(let since): since
        }
    }
}
