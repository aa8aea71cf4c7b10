import ConfluxVocabulary

/// Presence and unique names: the one place of rule 10.
extension SequencerMachine {
    /// A node wants a name that a present node holds. The holder is asked; when it does not answer
    /// in time, it has left.
    struct NameInquiry: Sendable {
        var holder: Incarnation
        var newcomer: Hello
        var connection: ConnectionID
        var deadline: Duration
    }

    /// The number of the question whether the holder of a name is there. Its answer is told from
    /// others by its body.
    private static let aliveQuestion: UInt64 = 0

    /// Whether the name of a hello is free. When it is not, the holder is asked, or the newcomer
    /// refused.
    mutating func isFree(
        _ hello: Hello, from connection: ConnectionID, at now: Moment,
        into effects: inout [SequencerEffect]
    ) -> Bool {
        guard let name = hello.name else { return true }
        if let inquiry = nameInquiries[name] {
            if inquiry.newcomer.nonce == hello.nonce {
                nameInquiries[name]?.newcomer = hello
                nameInquiries[name]?.connection = connection
            } else {
                refuse(name, to: connection, into: &effects)
            }
            return false
        }
        if joining.values.contains(where: {
            $0.hello.name == name && $0.hello.nonce != hello.nonce
        }) {
            refuse(name, to: connection, into: &effects)
            return false
        }
        guard let holder = sessions.holder(of: name) else { return true }
        if sessions[holder]?.nonce == hello.nonce { return true }
        nameInquiries[name] = NameInquiry(
            holder: holder, newcomer: hello, connection: connection,
            deadline: now.monotonic + settings.nameInquiryMax)
        if let reached = sessions[holder]?.connection {
            let question = Question(
                number: Self.aliveQuestion, patience: settings.nameInquiryMax, body: .alive)
            effects.append(.send(.question(question), to: reached))
        }
        return false
    }

    private func refuse(
        _ name: Name, to connection: ConnectionID, into effects: inout [SequencerEffect]
    ) {
        let text = "a live node is named \(name); give this one another name, or stop the other"
        effects.append(.send(.bye(Bye(code: .nameTaken, message: text)), to: connection))
    }

    /// The holder of a name is there after all: the newcomer is refused.
    mutating func resolveInquiry(
        heldBy incarnation: Incarnation, into effects: inout [SequencerEffect]
    ) {
        guard let name = sessions[incarnation]?.name,
            let inquiry = nameInquiries[name], inquiry.holder == incarnation
        else { return }
        nameInquiries[name] = nil
        refuse(name, to: inquiry.connection, into: &effects)
    }

    /// A bye. With everything settled the session is forgotten; else only its presence ends.
    mutating func leave(
        _ incarnation: Incarnation, on connection: ConnectionID,
        into effects: inout [SequencerEffect]
    ) {
        connections.remove(connection)
        guard let ledger = sessions[incarnation]?.ledger else { return }
        endPresence(of: incarnation, into: &effects)
        if ledger.isAnnounced {
            effects.append(.note(.left(incarnation, name: sessions[incarnation]?.name)))
            forget(incarnation)
        } else {
            admitLeft(incarnation)
        }
    }

    /// Ends a node's presence here; the entry follows.
    private mutating func endPresence(
        of incarnation: Incarnation, into effects: inout [SequencerEffect]
    ) {
        endHosting(by: incarnation)
        if let connection = sessions[incarnation]?.connection { connections.remove(connection) }
        sessions[incarnation]?.connection = nil
        sessions[incarnation]?.presence = .left
        questions.lose(incarnation, into: &effects)
    }

    private mutating func admitLeft(_ incarnation: Incarnation) {
        pipeline.admit(
            .left(incarnation), then: .left(incarnation))
    }

    /// Everything that becomes due by the clock.
    mutating func passTime(at now: Moment, into effects: inout [SequencerEffect]) {
        let instant = now.monotonic
        for (name, inquiry) in nameInquiries.sorted(by: { $0.key < $1.key })
        where inquiry.deadline <= instant {
            nameInquiries[name] = nil
            // It may have left by itself meanwhile.
            if sessions[inquiry.holder]?.presence == .live {
                endPresence(of: inquiry.holder, into: &effects)
                sessions[inquiry.holder]?.quietSince = instant
                admitLeft(inquiry.holder)
            }
            // The name is free now, so that the newcomer's hello takes its ordinary way.
            hello(inquiry.newcomer, from: inquiry.connection, at: now, into: &effects)
        }
        questions.expire(at: instant, into: &effects)
        if instant >= sweepAt { sweep(at: instant, into: &effects) }
        if instant >= publishedAt + settings.beatInterval {
            publishedAt = instant
            effects.append(.publishBeat(tenure.beat))
        }
    }

    /// Who was silent for too long has left; who was away for too long is forgotten.
    private mutating func sweep(at now: Duration, into effects: inout [SequencerEffect]) {
        sweepAt = now + settings.silenceMax / 4
        for incarnation in sessions.incarnations {
            guard let session = sessions[incarnation] else { continue }
            let heard = session.connection.flatMap { connections.heardAt($0) }
            let quietSince = max(session.quietSince, heard ?? .zero)
            switch session.presence {
            case .live where now - quietSince > settings.silenceMax:
                endPresence(of: incarnation, into: &effects)
                sessions[incarnation]?.quietSince = now
                admitLeft(incarnation)
            case .left
            where now - quietSince > settings.forgetAfter && joining[session.nonce] == nil:
                forget(incarnation)
            case .live, .left: break
            }
        }
        for connection in connections.removeObservers(silentSince: now - settings.silenceMax) {
            questions.abandon(askedBy: connection)
        }
    }
}
