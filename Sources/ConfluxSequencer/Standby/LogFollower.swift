import ConfluxLog
import ConfluxProtocol
import ConfluxVocabulary

/// Folds what others append to a log, so that taking over reads little (rule 20).
struct LogFollower {
    /// What was folded; nil before, and while it is read on.
    private var known: KnownFold?
    private var recovery: LogRecovery?
    /// How many bytes of commits were read behind the checkpoint.
    private(set) var byteCount = 0
    /// How many bytes that has.
    private(set) var checkpointSize = 0
    /// How often it was said that this one stands by; when it was last, and to whom.
    private var renewal: UInt64 = 0
    private var saidAt: Duration?
    private var epoch = Epoch.none
    /// Whether what the one that serves says is watched.
    var isWatching = false
    /// How many bytes of commits are read before the log is looked at again.
    private static let stepBytes = 1 << 20
    /// How often it is said.
    private static let sayingPause = Duration.seconds(1)

    /// Up to where the log is folded.
    var last: SequenceNumber { known?.fold.last ?? recovery?.fold.last ?? .zero }

    /// What to continue from; the follower begins anew behind it.
    mutating func take() -> KnownFold? {
        recovery = nil
        return known.take()
    }

    /// Takes a step: up to the end that was found, or so far as some bytes go.
    ///
    /// - Returns: Whether that end is reached.
    /// - Throws: What the log does; `damaged` where it does not continue from what was folded. The next step begins anew.
    mutating func advance(
        to view: SharedLogView, of log: any ActionLog
    ) throws(LogError) -> Bool {
        // Whoever put the log back to an earlier copy lost what was folded.
        if last > view.last { (known, recovery) = (nil, nil) }
        var step =
            recovery.take()
            ?? LogRecovery(
                log: log.id, through: view.last, in: nil, floor: view.floor,
                goingOnFrom: known.take())
        switch step.demand {
        case .checkpoint(let last):
            let answer = try CheckpointAnswer { () throws(LogError) in
                try log.checkpoint(through: last)
            }
            if case .found(_, let bytes) = answer { checkpointSize = bytes.count }
            byteCount = 0
            step.take(answer)
        case .entries(let first):
            let commits = try log.read(from: first, limitBytes: Self.stepBytes)
            // Where it was to continue has been given up meanwhile: a newer checkpoint stands for it.
            if let found = commits.first, found.first > first { return false }
            byteCount += commits.reduce(0) { $0 + $1.bytes.count }
            do throws(RecoveryFailure) {
                try step.take(commits.map(\.bytes))
            } catch {
                throw LogError(.damaged, error.message)
            }
        case .nothing: break
        }
        guard step.demand == .nothing else {
            recovery = step
            return false
        }
        known = KnownFold(fold: step.fold, checkpoint: step.checkpoint)
        return true
    }

    /// What is to be said of this one, if it is time: at once to whoever has begun to serve.
    mutating func word(of address: String, since epoch: Epoch, at now: Duration) -> StandbyWord? {
        if let saidAt, epoch == self.epoch, now - saidAt < Self.sayingPause {
            return nil
        }
        self.epoch = epoch
        renewal += 1
        return StandbyWord(address: address, last: last, renewal: renewal)
    }

    /// It was said.
    mutating func said(at now: Duration) { saidAt = now }

    /// Whether it ever was.
    var hasSaid: Bool { saidAt != nil }
}

/// How far a log that another sequencer appends to was read.
package struct FollowedLog: Sendable {
    /// Up to where it is folded.
    package var last: SequenceNumber
    /// Whether that is the end that was found.
    package var isWarm: Bool
}

/// What came of looking at a log that another sequencer appends to.
package enum LogLook: Sendable {
    /// What was found, before it is read; or why it could not be looked at.
    case looked(Result<SharedLogView, LogError>)
    /// How far it was read; nil if nothing was to be read.
    case read(Result<FollowedLog?, LogError>)
}

/// What a worker has besides where several sequencers may serve its log.
package struct LogSharing {
    /// Where nodes reach this one.
    let address: String
    /// Given what says that a tenure serves, as soon as the log is claimed.
    let claimed: (any TenureHerald, Epoch) -> Void
    /// Called when the log has shown that no newer claim exists.
    let confirmed: () -> Void
    /// Called, on any thread, when the one that serves may have said something.
    let hint: @Sendable () -> Void

    package init(
        address: String, claimed: @escaping (any TenureHerald, Epoch) -> Void,
        confirmed: @escaping () -> Void, hint: @escaping @Sendable () -> Void
    ) {
        self.address = address
        self.claimed = claimed
        self.confirmed = confirmed
        self.hint = hint
    }
}

/// A log that another sequencer appends to.
extension LogWorker {
    /// Looks at the log and folds what is new; says that this one stands by, now and then.
    ///
    /// - Parameters:
    ///   - reopening: Whether to open the log anew first.
    ///   - isYielding: Whether to read nothing, and only look.
    ///   - tell: Told what was found, before that is read, and how far it was read.
    func follow(reopening: Bool, isYielding: Bool, _ tell: (LogLook) -> Void) {
        let view: SharedLogView
        do throws(LogError) {
            view = try look(reopening: reopening)
        } catch {
            return tell(.looked(.failure(error)))
        }
        tell(.looked(.success(view)))
        guard !isYielding else { return tell(.read(.success(nil))) }
        tell(
            .read(
                Result { () throws(LogError) in
                    let isWarm = try follower.advance(to: view, of: log)
                    // Whoever can't take over at once says nothing.
                    if isWarm { sayStandingBy(since: view.epoch) }
                    return FollowedLog(last: follower.last, isWarm: isWarm)
                }))
    }

    private func look(reopening: Bool) throws(LogError) -> SharedLogView {
        endTenure()
        if reopening {
            try openAnew()
            follower.isWatching = false
        }
        let (shared, sharing) = try sharedLog()
        if !follower.isWatching {
            shared.watchServing(sharing.hint)
            follower.isWatching = true
        }
        return try shared.look()
    }

    /// It is a hint: where it can't be said, it is said with the next look.
    private func sayStandingBy(since epoch: Epoch) {
        guard let (shared, sharing) = try? sharedLog(),
            let word = follower.word(of: sharing.address, since: epoch, at: clock())
        else { return }
        if (try? shared.standBy(word)) != nil { follower.said(at: clock()) }
    }

    /// Claims the log, unless somebody else has since this epoch.
    func takeOver(_ nonce: Nonce, after former: Epoch) throws(LogError) {
        let (shared, sharing) = try sharedLog()
        let claim = try shared.claim(
            raisingEpochBy: Self.epochStep(nonce), after: former, as: sharing.address,
            sharing.claimed)
        let (byteCount, checkpointSize) = (follower.byteCount, follower.checkpointSize)
        let known = follower.take()
        follower = LogFollower()
        if let known {
            goOn(from: known.checkpoint, byteCount: byteCount, checkpointSize: checkpointSize)
        }
        try begin(claim, nonce, knowing: known)
    }

    /// Says that this one stands by no more, so that nobody hands over to it, and closes the log.
    func close() {
        if follower.hasSaid, let (shared, sharing) = try? sharedLog() {
            // If that fails, others forget it after some seconds.
            try? shared.standDown(sharing.address)
        }
        log.close()
    }

    private func sharedLog() throws(LogError) -> (any SharedActionLog, LogSharing) {
        guard let shared = log as? any SharedActionLog, let sharing else {
            throw LogError(.failed, "This log can't have standbys: only a log on etcd can.")
        }
        return (shared, sharing)
    }
}
