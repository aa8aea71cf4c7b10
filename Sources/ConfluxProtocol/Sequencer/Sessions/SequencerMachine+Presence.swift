import ConfluxVocabulary

/// Presence and unique names. Rule 10 is implemented here. Session keys are held like names (rule
/// 11).
extension SequencerMachine {
    /// What only one node may hold at a time.
    enum Held: Sendable, Hashable, Comparable {
        case name(Name)
        /// The session key of this session.
        case key(Incarnation)
    }

    /// A newcomer wants what a present node, or another process, holds. The holder is asked. If it
    /// does not answer in time, it has left.
    struct Inquiry: Sendable {
        var holder: Incarnation
        var newcomer: Hello
        var connection: ConnectionID
        /// When the holder was last asked.
        var askedAt: Duration
        var deadline: Duration
    }

    /// The number of the question whether a holder is alive. Its answer is distinguished from
    /// others by its body.
    private static let aliveQuestion: UInt64 = 0

    /// Whether the name of a hello is free. If it is not, the holder is asked. Only the holder's
    /// answer refuses a newcomer, and only the newcomer that spoke last. Those that get no answer
    /// ask again.
    mutating func isFree(
        _ hello: Hello, from connection: ConnectionID, at now: Moment,
        into effects: inout [SequencerEffect]
    ) -> Bool {
        guard let name = hello.name else { return true }
        // Another newcomer's entry is on its way to the log. If this node asks again, that
        // newcomer's session is the holder, and is asked whether it is alive.
        guard !joining.awaits(name, except: hello.nonce) else { return false }
        guard let holder = sessions.holder(of: name) else {
            // The holder that was asked has left by itself.
            inquiries[.name(name)] = nil
            return true
        }
        if sessions[holder]?.nonce == hello.nonce { return true }
        inquire(
            about: .name(name), heldBy: holder, for: hello, connection, at: now.monotonic,
            into: &effects)
        return false
    }

    /// Whether this process may take up a keyed session. If another process holds the session, that
    /// one is asked, and if it answers, the newcomer is refused.
    ///
    /// A process takes over by a `joined` entry, which comes after everything that was admitted for
    /// its predecessor. Nothing more is heard of the predecessor. So the last counter in the new
    /// process's welcome is final: everything up to it that is in the log is durable, and the rest
    /// was rejected.
    mutating func isFree(
        _ session: Session, for hello: Hello, from connection: ConnectionID, at now: Moment,
        into effects: inout [SequencerEffect]
    ) -> Bool {
        guard session.presence == .live else {
            // The holder that was asked has left by itself.
            inquiries[.key(session.incarnation)] = nil
            return true
        }
        guard session.process != hello.process else { return true }
        // The log does not say which process held it. A process that names the session is believed
        // to have held it before.
        if session.process == nil, session.connection == nil, hello.session != nil { return true }
        inquire(
            about: .key(session.incarnation), heldBy: session.incarnation, for: hello, connection,
            at: now.monotonic, into: &effects)
        return false
    }

    /// Begins an inquiry, or continues one. Only the newcomer that spoke last is remembered, since
    /// earlier ones may be gone, too.
    ///
    /// A question may get lost, and a live holder must not lose what it holds because of that.
    /// Newcomers repeat their hello while they wait. Each time the holder is asked again, but only
    /// a few times a second.
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

    /// The holder is alive, so newcomers are refused.
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

    /// A bye. If everything is announced, and the session is not keyed, the session is forgotten.
    /// Otherwise only its presence ends.
    mutating func leave(
        _ incarnation: Incarnation, on connection: ConnectionID, at now: Duration,
        into effects: inout [SequencerEffect]
    ) {
        connections.remove(connection)
        guard let session = sessions[incarnation] else { return }
        for name in directory.lives.rising.sorted() {
            // It leaves in good order, so its migration has not failed.
            directory.change(name) { $0.rise?.askAgain(incarnation) }
        }
        endPresence(of: incarnation, at: now, into: &effects)
        if session.ledger.isAnnounced, !session.isKeyed {
            effects.append(.note(.left(incarnation, name: session.name)))
            forget(incarnation)
        } else {
            admitLeft(incarnation)
        }
    }

    /// Ends a node's presence here. The caller admits the entry.
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
        let entry = pipeline.admit(.left(incarnation), then: .left(incarnation))
        leases.end(claimsOf: incarnation, at: entry)
    }

    /// Does everything that is due by the clock.
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
        reviewRises(at: now, into: &effects)
        reviewDepartures(into: &effects)
        fireTimers(at: now, into: &effects)
        if instant >= floorReviewAt { reviewFloor(at: now, into: &effects) }
        if instant >= sweepAt { sweep(at: instant, into: &effects) }
        if instant >= publishedAt + settings.beatInterval {
            publishedAt = instant
            effects.append(.publishBeat(term.beat))
        }
    }

    /// A holder did not answer in time, so what it held is free.
    private mutating func replaceHolder(
        _ inquiry: Inquiry, at now: Moment, into effects: inout [SequencerEffect]
    ) {
        // It may have left by itself meanwhile.
        if sessions[inquiry.holder]?.presence == .live {
            endPresence(of: inquiry.holder, at: now.monotonic, into: &effects)
            admitLeft(inquiry.holder)
        }
        // The newcomer's hello is now handled like any other.
        hello(inquiry.newcomer, from: inquiry.connection, at: now, into: &effects)
    }

    private func keptFor(_ session: Session) -> Duration {
        session.isKeyed ? settings.keyedSessionsKeptFor : settings.forgetAfter
    }

    /// Nodes that were silent for too long have left. Sessions whose nodes were away for too long
    /// are forgotten.
    private mutating func sweep(at now: Duration, into effects: inout [SequencerEffect]) {
        // This process was stopped, and has not read yet what nodes have sent.
        if now - sweepAt > settings.silenceMax / 4 { sessions.measureSilence(from: now) }
        sweepAt = now + settings.silenceMax / 4
        reviewDamage(at: now)
        sourceFailures.keep { sessions[$0] != nil }
        for incarnation in sessions.incarnations {
            guard let session = sessions[incarnation], !session.isEnding else { continue }
            switch session.presence {
            case .live where now - session.quietSince > settings.silenceMax:
                endPresence(of: incarnation, at: now, into: &effects)
                admitLeft(incarnation)
            case .left
            where now - session.quietSince > keptFor(session) && !session.isReturning:
                forget(incarnation)
            case .live, .left: break
            }
        }
    }

    /// A connection has ended. An observer is gone with it. A member may come back on another
    /// connection; if it does not, it leaves by its silence.
    mutating func disconnected(_ connection: ConnectionID) {
        if connections[connection] == .observer { connections.remove(connection) }
        if case .member(let incarnation) = connections[connection],
            sessions[incarnation]?.connection == connection
        {
            sessions.cutOff(incarnation)
        }
        joining.cutOff(connection)
        questions.abandon(askedBy: connection)
        confirmations.forgetHello(from: connection)
    }
}

extension SequencerMachine.Held {
    /// The code for a newcomer if the holder is alive.
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
