import ConfluxVocabulary

/// Sessions: how they are found, begun and taken up again. Rule 8 is implemented here.
extension SequencerMachine {
    /// The peer that speaks: the session that the connection's last welcome named, and no other
    /// (rule 33). A message for another term or session refers to counters and a history that
    /// this one does not have. For such a message the result is nil, and the node is told to say
    /// hello.
    mutating func peer(
        _ speaker: Speaker, on connection: ConnectionID, at now: Duration
    ) -> ConnectionTable.Peer? {
        guard let peer = connections[connection], speaker.epoch == term.epoch,
            speaker.session == peer.session
        else { return nil }
        if case .member(let incarnation) = peer { sessions.hear(incarnation, at: now) }
        return peer
    }

    /// A hello arrived.
    mutating func greeted(
        with hello: Hello, by speaker: Speaker, from connection: ConnectionID, at now: Moment,
        into effects: inout [SequencerEffect]
    ) {
        if repeats(hello, from: connection, at: now.monotonic, into: &effects) { return }
        // A node may have read entries by way of a sequencer that is superseded itself. So its
        // history may be of a newer term than any that it was welcomed by.
        var known = speaker.epoch
        var isAhead = false
        if let mark = hello.history, mark.log == term.log {
            known = max(known, mark.epoch)
            // It may be an entry of this term that the log has, and has not confirmed here.
            isAhead = mark.epoch == term.epoch && mark.sequence > term.last
        }
        guard known > term.epoch || isAhead else {
            if hasRoom(for: hello, from: connection) {
                self.hello(hello, from: connection, at: now, into: &effects)
            }
            return
        }
        // Only a confirmation that begins after the hello may answer it.
        if hasRoom(for: hello, from: connection) { confirmations.add(hello, from: connection) }
        challenge(by: known, into: &effects)
    }

    /// Answers a repeated hello whose answer had not arrived. It gets the same answer, and changes
    /// nothing. The node may have changed what it hosts since the first copy.
    ///
    /// - Returns: Whether it was a repeated hello.
    private mutating func repeats(
        _ hello: Hello, from connection: ConnectionID, at now: Duration,
        into effects: inout [SequencerEffect]
    ) -> Bool {
        guard case .member(let incarnation)? = connections[connection],
            sessions[incarnation]?.isTakenUp(by: hello) == true
        else { return false }
        sessions.hear(incarnation, at: now)
        answer(hello, of: incarnation, on: connection, into: &effects)
        return true
    }

    /// Finds the session of a hello that may be answered now, or begins one.
    mutating func hello(
        _ hello: Hello, from connection: ConnectionID, at now: Moment,
        into effects: inout [SequencerEffect]
    ) {
        // The first copy may have waited for the log's confirmation, and this copy after it.
        if repeats(hello, from: connection, at: now.monotonic, into: &effects) { return }
        if hello.role != .member {
            observe(hello, from: connection, at: now, into: &effects)
            return
        }
        // A hello that finds no room gets no answer, and the node repeats it.
        guard pipeline.hasRoom(bytes: 0) else { return }
        let session: Session
        if let token = hello.session {
            // Log, incarnation and nonce find the session. If one of them differs, the session is
            // forgotten.
            guard token.log == term.log, let found = sessions[token.incarnation],
                found.nonce == hello.nonce
            else {
                let text = "the session is not remembered; join again"
                refuse(hello, .forgotten, text, to: connection, into: &effects)
                return
            }
            session = found
        } else {
            guard joining[hello.nonce] == nil,
                let found = sessions.incarnation(of: hello.nonce).flatMap({ sessions[$0] })
            else {
                begin(hello, from: connection, at: now, into: &effects)
                return
            }
            session = found
        }
        // A node is told that its session is forgotten only once the log has the entry, since a
        // crash may undo it. And what its process said before the last hello that took it up is out
        // of date.
        guard !session.isEnding, !session.isPast(hello) else { return }
        // If the hello names no session, its welcome was lost.
        takeUp(session, hello, from: connection, at: now, into: &effects)
    }

    /// Begins a session, once its name is free. If its entry is on its way to the log already, its
    /// last hello is the one that is answered.
    private mutating func begin(
        _ hello: Hello, from connection: ConnectionID, at now: Moment,
        into effects: inout [SequencerEffect]
    ) {
        if joining[hello.nonce] != nil {
            joining.take(hello, from: connection)
        } else if isFree(hello, from: connection, at: now, into: &effects) {
            join(hello, from: connection, into: &effects)
        }
    }

    /// Answers a hello that gets no session.
    func refuse(
        _ hello: Hello, _ code: ByeCode, _ message: String, to connection: ConnectionID,
        into effects: inout [SequencerEffect]
    ) {
        let bye = Bye(code: code, message: message, answering: hello.request)
        effects.append(.send(.bye(bye), to: connection))
    }

    private mutating func observe(
        _ hello: Hello, from connection: ConnectionID, at now: Moment,
        into effects: inout [SequencerEffect]
    ) {
        let sharer = hello.sharer(on: connection)
        guard
            connections[connection] == .observer
                || connections.observers.hasRoom(for: sharer, of: settings.observersMax)
        else {
            let text = "as many observers as one client may have are connected; try again later"
            refuse(hello, .tableFull, text, to: connection, into: &effects)
            return
        }
        release(connection, at: now.monotonic, into: &effects)
        connections.insert(connection, as: .observer, of: sharer)
        effects.append(
            .send(
                .welcome(welcome(hello, incarnation: .none, ledger: nil)), to: connection))
    }

    private mutating func takeUp(
        _ session: Session, _ hello: Hello, from connection: ConnectionID, at now: Moment,
        into effects: inout [SequencerEffect]
    ) {
        // A session keeps the name of its first hello, whatever later ones say.
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
        // Its entry is on its way. The last hello is the one that is answered.
        guard joining[hello.nonce] == nil else {
            joining.take(hello, from: connection)
            return
        }
        // A node that left is present again by an entry. Until then, another node may have its
        // name.
        guard isFree(hello, from: connection, at: now, into: &effects) else { return }
        sessions.markReturning(session.incarnation)
        joining.add(
            PendingJoin(
                hello: hello, connection: connection, name: session.name,
                isKeyed: session.isKeyed))
        pipeline.admit(
            .joined(
                nonce: hello.nonce, name: session.name, rejoining: session.incarnation,
                isKeyed: session.isKeyed),
            by: session.owner, then: .rejoined(session.incarnation))
    }

    mutating func join(
        _ hello: Hello, from connection: ConnectionID, into effects: inout [SequencerEffect]
    ) {
        if let text = makeRoom(for: hello) {
            refuse(hello, .tableFull, text, to: connection, into: &effects)
            return
        }
        sessions.reserve(for: hello.owner?.name)
        let isKeyed = hello.process != nil
        joining.add(
            PendingJoin(
                hello: hello, connection: connection, name: hello.name, isKeyed: isKeyed))
        pipeline.admit(
            .joined(nonce: hello.nonce, name: hello.name, rejoining: .none, isKeyed: isKeyed),
            by: hello.owner?.name, then: .joined(hello.nonce))
    }

    /// Forgets the session that left first if there is no room for another one. If the key has as
    /// many sessions as it may, a session of the same key is forgotten.
    ///
    /// - Returns: Why there is no room; nil if there is.
    private mutating func makeRoom(for hello: Hello) -> String? {
        if let owner = hello.owner {
            let most = owner.sessionsMax.map { Int($0) } ?? settings.sessionsPerKeyMax
            while sessions.count(of: owner.name) >= most {
                guard let oldest = sessions.longestAway(of: owner.name) else {
                    return """
                        the key \(owner.name) has \(most) sessions, which is its limit, and all \
                        of them are present: end one of its processes, or raise its sessions-max \
                        in the sequencer's file of authorised keys
                        """
                }
                forget(oldest)
            }
        }
        guard sessions.lastingCount + joining.count >= settings.sessionsMax else {
            return nil
        }
        guard let oldest = sessions.longestAway else {
            return "the sequencer has reached its limit of sessions; try again later"
        }
        forget(oldest)
        return nil
    }

    /// Ends a session by an entry. Until the entry is in the log, a node that asks for the session
    /// gets no answer, and asks again.
    mutating func forget(_ incarnation: Incarnation) {
        let entry = pipeline.admit(.forgotten(incarnation), then: .forgotten(incarnation))
        leases.end(claimsOf: incarnation, at: entry)
        sessions.end(incarnation)
    }

    /// The `joined` entry is in the log. Its number is the incarnation.
    mutating func joined(
        _ nonce: Nonce, at sequence: SequenceNumber, now: Duration,
        into effects: inout [SequencerEffect]
    ) {
        guard let pending = joining.removeValue(forKey: nonce) else {
            preconditionFailure("a session began without a hello; \(nonce)")
        }
        let incarnation = Incarnation(sequence.rawValue)
        let owner = pending.hello.owner?.name
        sessions.endReservation(for: owner)
        sessions.insert(
            Session(
                incarnation: incarnation, nonce: nonce, name: pending.name,
                owner: owner, isKeyed: pending.isKeyed, quietSince: now))
        effects.append(.note(.joined(incarnation, name: pending.name, owner: owner)))
        // Its process has gone before it had a welcome. So it has dispatched nothing, and nobody can continue it.
        if pending.isCutOff, !pending.isKeyed { return forget(incarnation) }
        bind(incarnation, pending.hello, to: pending.connection, at: now, into: &effects)
    }

    mutating func rejoined(
        _ incarnation: Incarnation, now: Duration, into effects: inout [SequencerEffect]
    ) {
        guard let nonce = sessions[incarnation]?.nonce,
            let pending = joining.removeValue(forKey: nonce)
        else { return }
        sessions.revive(incarnation, at: now)
        effects.append(
            .note(.joined(incarnation, name: pending.name, owner: pending.hello.owner?.name)))
        bind(incarnation, pending.hello, to: pending.connection, at: now, into: &effects)
    }

    /// The session is reached by this connection from now on, and by no other.
    private mutating func bind(
        _ incarnation: Incarnation, _ hello: Hello, to connection: ConnectionID,
        at now: Duration, into effects: inout [SequencerEffect]
    ) {
        if connections[connection] != .member(incarnation) {
            release(connection, at: now, into: &effects)
        }
        connections.insert(
            connection, as: .member(incarnation), of: hello.sharer(on: connection))
        let former = sessions.takeUp(incarnation, by: hello, on: connection, at: now)
        if let former { connections.remove(former) }
        restateHosting(hello, of: incarnation)
        resolveInquiries(heldBy: incarnation, into: &effects)
        if let mark = hello.history {
            let agreed = term.agreement(with: mark)
            if agreed < mark.sequence {
                effects.append(
                    .note(.historyLost(hello.name, from: agreed.next, through: mark.sequence)))
            }
        }
        answer(hello, of: incarnation, on: connection, into: &effects)
        restateRises(of: incarnation, at: now, into: &effects)
    }

    /// Sends the welcome, and after it what may have been lost and is not repeated otherwise:
    /// outcomes (rule 9), and questions for the node.
    private func answer(
        _ hello: Hello, of incarnation: Incarnation, on connection: ConnectionID,
        into effects: inout [SequencerEffect]
    ) {
        guard let ledger = sessions[incarnation]?.ledger else { return }
        effects.append(
            .send(
                .welcome(welcome(hello, incarnation: incarnation, ledger: ledger)),
                to: connection))
        send(ledger.unsettled, to: connection, into: &effects)
        questions.askAgain(incarnation, on: connection, into: &effects)
    }

    /// A connection speaks for the session that its last hello named. The session before has left,
    /// as by a bye.
    private mutating func release(
        _ connection: ConnectionID, at now: Duration, into effects: inout [SequencerEffect]
    ) {
        guard case .member(let former) = connections[connection] else { return }
        leave(former, on: connection, at: now, into: &effects)
    }

    private func welcome(
        _ hello: Hello, incarnation: Incarnation, ledger: OutcomeLedger?
    ) -> Welcome {
        Welcome(
            request: hello.request, log: term.log, claim: term.nonce,
            incarnation: incarnation, last: term.last, floor: term.floor,
            agreed: hello.history.map { term.agreement(with: $0) } ?? .zero,
            settled: ledger?.settled ?? 0, lastCounter: ledger?.lastCounter ?? 0,
            feed: settings.feed, limits: settings.limits)
    }
}

extension Hello {
    /// Whether the same process has said another hello since.
    func isBefore(_ other: Hello) -> Bool {
        nonce == other.nonce && process == other.process && request < other.request
    }
}
