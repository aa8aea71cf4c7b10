import ConfluxLog
import ConfluxProtocol
import ConfluxVocabulary

/// What a sequencer that stands by does next: it waits, looks at the log, or takes over (rule 47).
///
///     due ──▶ look ──▶ what was found ──▶ how far it was read ──▶ due again, at once behind a hint
///      └── a look has found that it is time ──▶ take over
package struct StandbyCourse: Sendable {
    /// What is done next.
    package enum Step: Equatable, Sendable {
        /// Nothing, for so long.
        case wait(Duration)
        /// The log is looked at; it is opened anew before, or nothing of it is read.
        case look(reopening: Bool, yielding: Bool)
    }

    /// When the log is looked at.
    private enum Look {
        /// Then in any case, and sooner behind a hint.
        case due(at: Duration)
        /// It is being looked at, and again at once behind a hint.
        case underWay(isHinted: Bool)
    }

    /// Whether the log is read.
    private enum Reading {
        case always
        /// Not before: this one has handed over, and its nodes wait to be told that the successor serves.
        case yielding(until: Duration)
        /// Not before: what was read is damaged, and is read again behind a pause.
        case damaged(until: Duration, pause: Duration)

        func isHeldBack(at now: Duration) -> Bool {
            switch self {
            case .always: false
            case .yielding(let end), .damaged(let end, _): now < end
            }
        }
    }

    /// How long one that has handed over waits for its successor before it reads the log.
    private static let yieldMax = Duration.milliseconds(500)
    /// How often the log is looked at, if no hint comes before.
    package static let lookPause = Duration.milliseconds(250)
    /// The pause where it could not be looked at.
    private static let failurePause = Duration.milliseconds(500)
    /// The pauses before a log that is damaged is read again: somebody may restore it, or a checkpoint behind the damage
    /// may come.
    private static let damagePause = Duration.seconds(1)...Duration.seconds(60)

    /// What is known of the one that serves.
    package private(set) var candidacy: Candidacy
    /// Whether a claim can follow at once: the log was followed to its end, or is damaged, which a claim finds as well.
    private(set) var isReady = false
    /// Up to where the log was followed.
    private(set) var last = SequenceNumber.zero
    private var look = Look.due(at: .zero)
    private var reading = Reading.always
    /// Whether the log has failed since it was opened.
    private var hasFailed = false
    /// Whom nodes were told of last.
    private var told: String?

    /// - Parameters:
    ///   - address: Where nodes reach this one.
    ///   - lot: From 0 to below 1, at random.
    package init(address: String, lot: Double) {
        candidacy = Candidacy(address: address, lot: lot)
    }

    /// It begins to stand by.
    package mutating func begin() {
        forget()
        hint()
    }

    /// What was read, or was damaged, counts no more.
    private mutating func forget() {
        isReady = false
        if case .damaged = reading { reading = .always }
    }

    /// The one that serves may have said something.
    package mutating func hint() {
        switch look {
        case .due: look = .due(at: .zero)
        case .underWay: look = .underWay(isHinted: true)
        }
    }

    /// It has handed over.
    package mutating func yield(at now: Duration) {
        reading = .yielding(until: now + Self.yieldMax)
    }

    /// The log has failed: it is opened anew before it is looked at.
    package mutating func logFailed() { hasFailed = true }

    /// What is done next, where it does not take over. A look that it names is under way from now on.
    package mutating func next(at now: Duration) -> Step {
        guard case .due(var due) = look else { return .wait(Self.lookPause) }
        if isReady, let tryAt = candidacy.tryAt { due = min(due, tryAt) }
        guard now >= due || candidacy.needsLook(at: now) else { return .wait(due - now) }
        defer {
            look = .underWay(isHinted: false)
            hasFailed = false
        }
        return .look(reopening: hasFailed, yielding: reading.isHeldBack(at: now))
    }

    /// The log was looked at, or read.
    ///
    /// - Parameters:
    ///   - found: What came of it.
    ///   - begun: When the look began.
    ///   - now: When it is heard.
    /// - Returns: What was wrong.
    package mutating func heard(
        _ found: LogLook, since begun: Duration, at now: Duration
    ) -> LogError? {
        switch found {
        case .looked(.success(let view)):
            // If it is read now, nodes need not wait for that.
            candidacy.saw(view, since: begun, at: now)
            if case .yielding = reading, candidacy.server(at: now) != nil { reading = .always }
            return nil
        case .read(.success(let read)):
            if let read {
                isReady = read.isWarm
                last = read.last
                reading = .always
            }
            endLook(nextAt: read?.isWarm == false ? now : now + Self.lookPause)
            return nil
        case .read(.failure(let error)) where error.code == .damaged:
            isReady = true
            var pause = Self.damagePause.lowerBound
            if case .damaged(_, let former) = reading {
                pause = min(former * 2, Self.damagePause.upperBound)
            }
            reading = .damaged(until: now + pause, pause: pause)
            endLook(nextAt: now + Self.lookPause)
            return error
        case .looked(.failure(let error)), .read(.failure(let error)):
            candidacy.failed(at: now)
            forget()
            hasFailed = true
            endLook(nextAt: now + Self.failurePause)
            return error
        }
    }

    private mutating func endLook(nextAt due: Duration) {
        guard case .underWay(let isHinted) = look else { return }
        look = .due(at: isHinted ? .zero : due)
    }

    /// Takes over, if it is time.
    ///
    /// - Returns: The epoch behind which the log is to be claimed; nil if it is not time.
    package mutating func takeOver(at now: Duration) -> Epoch? {
        guard isReady, case .due = look, let view = candidacy.view, candidacy.isDue(at: now) else {
            return nil
        }
        told = nil
        return view.epoch
    }

    /// Where nodes that wait here are to be sent, since another sequencer serves by now.
    ///
    /// - Returns: Where; nil if it is not known, or was told already.
    package mutating func newServer(at now: Duration) -> String? {
        let server = candidacy.server(at: now)
        guard server != told else { return nil }
        told = server
        return server
    }
}
