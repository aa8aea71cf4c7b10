import ConfluxVocabulary

/// Presence and unique names: the one place of rule 10. Keys are held as names are (rule 11).
extension SequencerMachine {
    /// What one node has at a time.
    enum Held: Sendable, Hashable, Comparable {
        case name(Name)
        /// The key of this session.
        case key(Incarnation)
    }

    /// A node wants what a present node, or another process, holds. The holder is asked; when it does
    /// not answer in time, it has left.
    struct Inquiry: Sendable {
        var holder: Incarnation
        var newcomer: Hello
        var connection: ConnectionID
        /// When the holder was asked last.
        var askedAt: Duration
        var deadline: Duration
    }

    /// The number of the question whether a holder is there. Its answer is told from
    /// others by its body.
    private static let aliveQuestion: UInt64 = 0

    /// Whether the name of a hello is free. When it is not, the holder is asked: only its answer
    /// refuses a newcomer, and only the one that spoke last. Who gets no answer asks again.
    mutating func isFree(
        _ hello: Hello, from connection: ConnectionID, at now: Moment,
        into effects: inout [SequencerEffect]
    ) -> Bool {
        guard let name = hello.name else { return true }
        // Another's entry is on its way to the log; whether that one is still there, its session will
        // tell who asks again.
        let isAwaited = joining.contains { $0.value.name == name && $0.key != hello.nonce }
        guard !isAwaited else { return false }
        guard let holder = sessions.holder(of: name) else {
            // Who held it when it was asked has left by itself.
            inquiries[.name(name)] = nil
            return true
        }
        if sessions[holder]?.nonce == hello.nonce { return true }
        inquire(
            about: .name(name), heldBy: holder, for: hello, connection, at: now.monotonic,
            into: &effects)
        return false
    }

    /// Whether a keyed session may be this process's. When another one holds it, that one is asked,
    /// or the newcomer refused.
    ///
    /// A process that takes over does so by a `joined` entry behind everything that was admitted
    /// for its predecessor, which nothing more is heard of. So the last counter of its welcome
    /// changes no more: what is in the log up to it is durable, and the rest of it was rejected.
    mutating func isFree(
        _ session: Session, for hello: Hello, from connection: ConnectionID, at now: Moment,
        into effects: inout [SequencerEffect]
    ) -> Bool {
        guard session.presence == .live else {
            // Who held it when it was asked has left by itself.
            inquiries[.key(session.incarnation)] = nil
            return true
        }
        guard session.process != hello.process else { return true }
        // The log doesn't say which process held it: one that had it before is believed.
        if session.process == nil, session.connection == nil, hello.session != nil { return true }
        inquire(
            about: .key(session.incarnation), heldBy: session.incarnation, for: hello, connection,
            at: now.monotonic, into: &effects)
        return false
    }

    /// Begins an inquiry, or continues with one: of its newcomers the last that spoke is there; one
    /// that came before it may be gone, too.
    ///
    /// One question may be lost, and a live holder must not lose what it has by that. Newcomers say
    /// hello again while they wait: then the holder is asked again, some times a second at most.
    private mutating func inquire(
        about held: Held, heldBy holder: Incarnation, for newcomer: Hello,
        _ connection: ConnectionID, at now: Duration, into effects: inout [SequencerEffect]
    ) {
        var inquiry = Inquiry(
            holder: holder, newcomer: newcomer, connection: connection, askedAt: now,
            deadline: now + settings.nameInquiryMax)
        defer { inquiries[held] = inquiry }
        if let former = inquiries[held], former.holder == holder {
            inquiry.deadline = former.deadline
            if now < former.askedAt + settings.nameInquiryMax / 8 {
                inquiry.askedAt = former.askedAt
                return
            }
        }
        guard let reached = sessions[holder]?.connection else { return }
        let question = Question(
            number: Self.aliveQuestion, patience: settings.nameInquiryMax, body: .alive)
        effects.append(.send(.question(question), to: reached))
    }

    /// The holder is there after all: newcomers are refused.
    mutating func resolveInquiries(
        heldBy incarnation: Incarnation, into effects: inout [SequencerEffect]
    ) {
        let name = sessions[incarnation]?.name
        for held in [Held.key(incarnation), name.map { .name($0) }].compactMap(\.self) {
            guard let inquiry = inquiries[held], inquiry.holder == incarnation else { continue }
            inquiries[held] = nil
            refuse(
                inquiry.newcomer, held.takenCode, held.takenText, to: inquiry.connection,
                into: &effects)
        }
    }

    /// A bye. With everything settled the session is forgotten, unless it is keyed; else only its
    /// presence ends.
    mutating func leave(
        _ incarnation: Incarnation, on connection: ConnectionID, at now: Duration,
        into effects: inout [SequencerEffect]
    ) {
        connections.remove(connection)
        guard let session = sessions[incarnation] else { return }
        endPresence(of: incarnation, at: now, into: &effects)
        if session.ledger.isAnnounced, !session.isKeyed {
            effects.append(.note(.left(incarnation, name: session.name)))
            forget(incarnation)
        } else {
            admitLeft(incarnation)
        }
    }

    /// Ends a node's presence here; the entry follows.
    mutating func endPresence(
        of incarnation: Incarnation, at now: Duration, into effects: inout [SequencerEffect]
    ) {
        directory.endHosting(by: incarnation)
        if let connection = sessions[incarnation]?.connection { connections.remove(connection) }
        sessions.leave(incarnation, at: now)
        for (answer, asker) in questions.lose(incarnation) {
            reply(answer, to: asker, into: &effects)
        }
    }

    private mutating func admitLeft(_ incarnation: Incarnation) {
        pipeline.admit(
            .left(incarnation), then: .left(incarnation))
    }

    /// Everything that becomes due by the clock.
    mutating func passTime(at now: Moment, into effects: inout [SequencerEffect]) {
        let instant = now.monotonic
        for held in inquiries.keys.sorted() {
            guard let inquiry = inquiries[held], inquiry.deadline <= instant else { continue }
            inquiries[held] = nil
            replaceHolder(inquiry, at: now, into: &effects)
        }
        for (answer, asker) in questions.expire(at: instant) {
            reply(answer, to: asker, into: &effects)
        }
        reviewAdmission(at: instant, into: &effects)
        decideDue(at: now, into: &effects)
        passUploads(at: now, into: &effects)
        if instant >= floorReviewAt { reviewFloor(at: now, into: &effects) }
        if instant >= sweepAt { sweep(at: instant, into: &effects) }
        if instant >= publishedAt + settings.beatInterval {
            publishedAt = instant
            effects.append(.publishBeat(tenure.beat))
        }
    }

    /// A holder did not answer in time: what it held is free.
    private mutating func replaceHolder(
        _ inquiry: Inquiry, at now: Moment, into effects: inout [SequencerEffect]
    ) {
        // It may have left by itself meanwhile.
        if sessions[inquiry.holder]?.presence == .live {
            endPresence(of: inquiry.holder, at: now.monotonic, into: &effects)
            admitLeft(inquiry.holder)
        }
        // So that the newcomer's hello takes its ordinary way.
        hello(inquiry.newcomer, from: inquiry.connection, at: now, into: &effects)
    }

    private func keptFor(_ session: Session) -> Duration {
        session.isKeyed ? settings.keyedSessionsKeptFor : settings.forgetAfter
    }

    /// Who was silent for too long has left; who was away for too long is forgotten.
    private mutating func sweep(at now: Duration, into effects: inout [SequencerEffect]) {
        sweepAt = now + settings.silenceMax / 4
        reviewDamage(at: now)
        for incarnation in sessions.incarnations {
            guard let session = sessions[incarnation], !session.isEnding else { continue }
            switch session.presence {
            case .live where now - session.quietSince > settings.silenceMax:
                endPresence(of: incarnation, at: now, into: &effects)
                admitLeft(incarnation)
            case .left
            where now - session.quietSince > keptFor(session) && !session.isReturning:
                forget(incarnation)
            case .live, .left, .visit: break
            }
        }
    }

    /// A connection has ended: an observer has gone with it. A member may come back by another one; if
    /// it does not, it leaves by its silence.
    mutating func disconnected(_ connection: ConnectionID) {
        if connections[connection] == .observer { connections.remove(connection) }
        questions.abandon(askedBy: connection)
        confirmations.forgetHello(from: connection)
        credit.end(connection)
    }
}

extension SequencerMachine.Held {
    /// What a newcomer is told where the holder is there.
    fileprivate var takenCode: ByeCode {
        switch self {
        case .name: .nameTaken
        case .key: .keyTaken
        }
    }

    fileprivate var takenText: String {
        switch self {
        case .name(let name):
            "a live node is named \(name); give this one another name, or stop the other"
        case .key:
            "a live process has this key; wait until it has ended, stop it, or take another key"
        }
    }
}
