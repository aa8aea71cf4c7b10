import ConfluxLog
import ConfluxVocabulary

/// Decides what a standby does next: wait, look at the log, or take over (rule 47).
///
///     due ──▶ look ──▶ found ──▶ read ──▶ due again; after a hint, at once
///      └── a look has confirmed that it is time ──▶ take over
package struct StandbyCourse: Sendable {
    /// The next step.
    package enum Step: Equatable, Sendable {
        /// Wait for this long.
        case wait(Duration)
        /// Look at the log. If `reopening`, open it anew first; if `yielding`, read nothing.
        case look(reopening: Bool, yielding: Bool)
    }

    /// When to look at the log.
    private enum Look {
        /// At this time, or earlier after a hint.
        case due(at: Duration)
        /// A look is under way. If hinted, the next one follows at once.
        case underWay(isHinted: Bool)
    }

    /// When to read the log.
    private enum Reading {
        case always
        /// Not before this time: this sequencer has handed over, and its nodes wait to be told that the
        /// successor serves.
        case yielding(until: Duration)
        /// Not before this time: the log is damaged, and is read again after the pause.
        case damaged(until: Duration, pause: Duration)

        func isHeldBack(at now: Duration) -> Bool {
            switch self {
            case .always: false
            case .yielding(let end), .damaged(let end, _): now < end
            }
        }
    }

    /// How long a sequencer that has handed over waits for its successor before it reads the log.
    private static let yieldMax = Duration.milliseconds(500)
    /// How often to look at the log without a hint.
    package static let lookPause = Duration.milliseconds(250)
    /// The pause after a failed look.
    private static let failurePause = Duration.milliseconds(500)
    /// The pauses before a damaged log is read again: somebody may restore it, or a checkpoint beyond the
    /// damage may appear.
    private static let damagePause = Duration.seconds(1)...Duration.seconds(60)

    /// What is known about the serving sequencer.
    package private(set) var candidacy: Candidacy
    /// Whether a claim can follow at once: the log was followed to its end, or it is damaged, which the claim
    /// will find too.
    private(set) var isReady = false
    /// The number up to which the log was followed.
    private(set) var last = SequenceNumber.zero
    private var look = Look.due(at: .zero)
    private var reading = Reading.always
    /// Whether the log has failed since it was opened.
    private var hasFailed = false
    /// The address to which nodes were last redirected.
    private var told: String?

    /// - Parameters:
    ///   - address: Where nodes reach this sequencer.
    ///   - lot: A random number from 0 up to, but not including, 1.
    package init(address: String, lot: Double) {
        candidacy = Candidacy(address: address, lot: lot)
    }

    /// Begins to stand by.
    package mutating func begin() {
        forget()
        hint()
    }

    /// Forgets what was read, and that it was damaged.
    private mutating func forget() {
        isReady = false
        if case .damaged = reading { reading = .always }
    }

    /// Takes a hint: the serving sequencer may have written something.
    package mutating func hint() {
        switch look {
        case .due: look = .due(at: .zero)
        case .underWay: look = .underWay(isHinted: true)
        }
    }

    /// Notes that this sequencer has handed over.
    package mutating func yield(at now: Duration) {
        reading = .yielding(until: now + Self.yieldMax)
    }

    /// Notes that the log has failed in a term of this sequencer, or while it claimed one: the log is opened anew
    /// before the next look.
    ///
    /// - Parameter epoch: The epoch of its last claim that succeeded; ``Epoch/none`` if none did.
    package mutating func gaveUp(_ epoch: Epoch) {
        hasFailed = true
        candidacy.gaveUp(epoch)
    }

    /// The next step, if it is not time to take over. A look that it returns counts as under way from now on.
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

    /// Takes the outcome of looking at the log or reading it.
    ///
    /// - Parameters:
    ///   - found: The outcome.
    ///   - begun: When the look began.
    ///   - now: The time.
    /// - Returns: The error, if there was one.
    package mutating func heard(
        _ found: LogLook, since begun: Duration, at now: Duration
    ) -> LogError? {
        switch found {
        case .looked(.success(let view)):
            // Nodes need not wait while the log is read.
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
    /// - Returns: The epoch that the claim must follow; nil if it is not time.
    package mutating func takeOver(at now: Duration) -> Epoch? {
        guard isReady, case .due = look, let view = candidacy.view, candidacy.isDue(at: now) else {
            return nil
        }
        told = nil
        return view.epoch
    }

    /// Where to redirect the nodes that wait here, once another sequencer serves.
    ///
    /// - Returns: The address; nil if it is unknown or nodes were told already.
    package mutating func newServer(at now: Duration) -> String? {
        let server = candidacy.server(at: now)
        guard server != told else { return nil }
        told = server
        return server
    }
}
