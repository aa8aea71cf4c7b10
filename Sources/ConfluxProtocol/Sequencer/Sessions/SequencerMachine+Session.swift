import ConfluxVocabulary

/// Sessions: how one is found, begun and taken up again. The one place of rule 8.
extension SequencerMachine {
    /// A hello whose `joined` entry is not in the log yet.
    struct PendingJoin: Sendable {
        /// The last one of its process.
        var hello: Hello
        var connection: ConnectionID
        /// What the entry says, whatever later hellos do.
        let name: Name?
        let isKeyed: Bool
    }

    mutating func hello(
        _ hello: Hello, from connection: ConnectionID, at now: Moment,
        into effects: inout [SequencerEffect]
    ) {
        if hello.role == .observer {
            observe(hello, from: connection, at: now, into: &effects)
            return
        }
        // A hello that finds no room is left unanswered: it is said again.
        guard pipeline.hasRoom(bytes: 0) else { return }
        if let token = hello.session {
            // Log, incarnation and nonce find the session; where one differs it is forgotten.
            guard token.log == tenure.log, let session = sessions[token.incarnation],
                session.nonce == hello.nonce
            else {
                let text = "the session is not remembered; join anew"
                effects.append(
                    .send(.bye(Bye(code: .forgotten, message: text)), to: connection))
                return
            }
            // That it is forgotten is said once the log has it: a crash may take it back.
            guard !session.isEnding else { return }
            takeUp(session, hello, from: connection, at: now, into: &effects)
        } else if joining[hello.nonce] != nil {
            joining[hello.nonce]?.hello = hello
            joining[hello.nonce]?.connection = connection
        } else if let incarnation = sessions.incarnation(of: hello.nonce),
            let session = sessions[incarnation]
        {
            guard !session.isEnding else { return }
            guard !session.isKeyed, session.ledger.lastCounter > 0 else {
                // The welcome was lost on its way: the same process asks again.
                takeUp(session, hello, from: connection, at: now, into: &effects)
                return
            }
            // Who has dispatched knows its session, and this hello does not. Where the session is
            // reached, the hello was on its way for long, and its process has said another since.
            guard session.connection == nil else { return }
            // Else the process was told that it is forgotten, by a log that has lost that since:
            // its counters begin anew, and must not find the old.
            endPresence(of: incarnation, at: now.monotonic, into: &effects)
            forget(incarnation)
            guard isFree(hello, from: connection, at: now, into: &effects) else { return }
            join(hello, from: connection, into: &effects)
        } else {
            guard isFree(hello, from: connection, at: now, into: &effects) else { return }
            join(hello, from: connection, into: &effects)
        }
    }

    private mutating func observe(
        _ hello: Hello, from connection: ConnectionID, at now: Moment,
        into effects: inout [SequencerEffect]
    ) {
        guard
            connections[connection] == .observer
                || connections.observerCount < settings.observersMax
        else {
            let text = "the sequencer has as many observers as it may; try again later"
            effects.append(.send(.bye(Bye(code: .tableFull, message: text)), to: connection))
            return
        }
        release(connection, at: now.monotonic)
        connections.insert(connection, as: .observer, at: now.monotonic)
        effects.append(
            .send(
                .welcome(welcome(hello, connection, incarnation: .none, ledger: nil)),
                to: connection))
    }

    private mutating func takeUp(
        _ session: Session, _ hello: Hello, from connection: ConnectionID, at now: Moment,
        into effects: inout [SequencerEffect]
    ) {
        // A session has the name that its first hello said, whatever a later one says.
        var hello = hello
        hello.name = session.name
        // Another process with this key may hold it (rule 11).
        guard isFree(session, for: hello, from: connection, at: now, into: &effects) else {
            return
        }
        guard session.presence == .left else {
            bind(session.incarnation, hello, to: connection, at: now.monotonic, into: &effects)
            return
        }
        // Its entry is on its way: the last hello is the one that is answered.
        guard joining[hello.nonce] == nil else {
            joining[hello.nonce]?.hello = hello
            joining[hello.nonce]?.connection = connection
            return
        }
        // A node that left is present again by an entry; until then its name may be another's.
        guard isFree(hello, from: connection, at: now, into: &effects) else { return }
        joining[hello.nonce] = PendingJoin(
            hello: hello, connection: connection, name: session.name, isKeyed: session.isKeyed)
        pipeline.admit(
            .joined(
                nonce: hello.nonce, name: session.name, rejoining: session.incarnation,
                isKeyed: session.isKeyed),
            then: .rejoined(session.incarnation))
    }

    mutating func join(
        _ hello: Hello, from connection: ConnectionID, into effects: inout [SequencerEffect]
    ) {
        guard makeRoom() else {
            let text = "the sequencer remembers as many sessions as it may; try again later"
            effects.append(.send(.bye(Bye(code: .tableFull, message: text)), to: connection))
            return
        }
        let isKeyed = hello.process != nil
        joining[hello.nonce] = PendingJoin(
            hello: hello, connection: connection, name: hello.name, isKeyed: isKeyed)
        pipeline.admit(
            .joined(nonce: hello.nonce, name: hello.name, rejoining: .none, isKeyed: isKeyed),
            then: .joined(hello.nonce))
    }

    /// Forgets the session that left first, when there is no room for another one.
    private mutating func makeRoom() -> Bool {
        guard sessions.lastingCount + joining.count >= settings.sessionsMax else { return true }
        let oldest = sessions.longestAway { joining[$0] != nil }
        guard let oldest else { return false }
        forget(oldest)
        return true
    }

    /// Ends a session by an entry. Until that is in the log, whoever asks for the session is left
    /// without an answer, and asks again.
    mutating func forget(_ incarnation: Incarnation) {
        pipeline.admit(
            .forgotten(incarnation), then: .forgotten(incarnation))
        sessions.end(incarnation)
    }

    /// The `joined` entry is in the log: its number is the incarnation.
    mutating func joined(
        _ nonce: Nonce, at sequence: SequenceNumber, now: Duration,
        into effects: inout [SequencerEffect]
    ) {
        guard let pending = joining.removeValue(forKey: nonce) else {
            preconditionFailure("a session began without a hello; \(nonce)")
        }
        let incarnation = Incarnation(sequence.rawValue)
        sessions.insert(
            Session(
                incarnation: incarnation, nonce: nonce, name: pending.name,
                isKeyed: pending.isKeyed, quietSince: now))
        effects.append(.note(.joined(incarnation, name: pending.name)))
        bind(incarnation, pending.hello, to: pending.connection, at: now, into: &effects)
    }

    mutating func rejoined(
        _ incarnation: Incarnation, now: Duration, into effects: inout [SequencerEffect]
    ) {
        guard let nonce = sessions[incarnation]?.nonce,
            let pending = joining.removeValue(forKey: nonce)
        else { return }
        sessions.revive(incarnation, at: now)
        effects.append(.note(.joined(incarnation, name: pending.name)))
        bind(incarnation, pending.hello, to: pending.connection, at: now, into: &effects)
    }

    /// The session is reached by this connection from now on, and by no other.
    private mutating func bind(
        _ incarnation: Incarnation, _ hello: Hello, to connection: ConnectionID,
        at now: Duration, into effects: inout [SequencerEffect]
    ) {
        if let former = sessions[incarnation]?.connection, former != connection {
            connections.remove(former)
        }
        release(connection, at: now)
        connections.insert(connection, as: .member(incarnation), at: now)
        sessions[incarnation]?.connection = connection
        sessions[incarnation]?.process = hello.process
        sessions[incarnation]?.quietSince = now
        restateHosting(hello, of: incarnation)
        resolveInquiry(heldBy: incarnation, into: &effects)
        let welcome = welcome(
            hello, connection, incarnation: incarnation, ledger: sessions[incarnation]?.ledger)
        if let mark = hello.history, welcome.agreed < mark.sequence,
            // It says it again before it believes it.
            sessions[incarnation]?.lostThrough != mark.sequence
        {
            sessions[incarnation]?.lostThrough = mark.sequence
            effects.append(
                .note(
                    .historyLost(hello.name, from: welcome.agreed.next, through: mark.sequence)))
        }
        effects.append(.send(.welcome(welcome), to: connection))
        // Outcomes that were lost on their way do not come by themselves (rule 9).
        if let ledger = sessions[incarnation]?.ledger {
            send(ledger.unsettled, to: connection, into: &effects)
        }
    }

    /// A connection speaks for whom its last hello named: what is said to the session before is not
    /// for the ears of this one.
    private mutating func release(_ connection: ConnectionID, at now: Duration) {
        guard case .member(let former) = connections[connection],
            sessions[former]?.connection == connection
        else { return }
        sessions[former]?.connection = nil
        sessions[former]?.quietSince = now
    }

    private mutating func welcome(
        _ hello: Hello, _ connection: ConnectionID, incarnation: Incarnation, ledger: OutcomeLedger?
    ) -> Welcome {
        Welcome(
            log: tenure.log, claim: tenure.nonce, incarnation: incarnation, last: tenure.last,
            floor: tenure.floor,
            agreed: hello.history.map { tenure.agreement(with: $0) } ?? .zero,
            refuted: doubts.takeRefuted(connection),
            settled: ledger?.settled ?? 0, lastCounter: ledger?.lastCounter ?? 0,
            feed: settings.feed, limits: settings.limits)
    }
}
