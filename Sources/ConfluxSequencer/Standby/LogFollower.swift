import ConfluxLog
import ConfluxProtocol
import ConfluxVocabulary

/// Replays what other sequencers append to a log, so that a takeover has little left to read (rule 20).
struct LogFollower {
    /// The state of the log so far; nil before the first, and while it is being continued.
    private var known: KnownLogState?
    private var recovery: LogRecovery?
    /// How many bytes of commits were read after the checkpoint.
    private(set) var byteCount = 0
    /// The checkpoint's size in bytes.
    private(set) var checkpointSize = 0
    /// How often this standby has announced itself; below, when it last did, and to which epoch.
    private var renewal: UInt64 = 0
    private var saidAt: Duration?
    private var epoch = Epoch.none
    /// Whether it watches what the serving sequencer says.
    var isWatching = false
    /// How many bytes of commits to read before looking at the log again.
    private static let stepBytes = 1 << 20
    /// How often the standby announces itself.
    private static let sayingPause = Duration.seconds(1)

    /// The number up to which the log is replayed.
    var last: SequenceNumber { known?.logState.last ?? recovery?.logState.last ?? .zero }

    /// Takes the state of the log, for a term to continue from. The follower starts over afterwards.
    mutating func take() -> KnownLogState? {
        recovery = nil
        return known.take()
    }

    /// Reads one step: up to the end that was found, but no more than `stepBytes`.
    ///
    /// - Returns: Whether that end is reached.
    /// - Throws: The log's errors; `damaged` if the log does not continue what was replayed. The next step
    ///   starts over.
    mutating func advance(
        to view: SharedLogView, of log: any ActionLog
    ) throws(LogError) -> Bool {
        // The log was restored to an earlier copy, and no longer holds what was replayed.
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
            // The entries to continue with were discarded meanwhile: a newer checkpoint covers them.
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
        known = KnownLogState(logState: step.logState, checkpoint: step.checkpoint)
        return true
    }

    /// The word with which this standby announces itself, if it is time: at once if a new sequencer has begun
    /// to serve.
    mutating func word(of address: String, since epoch: Epoch, at now: Duration) -> StandbyWord? {
        if let saidAt, epoch == self.epoch, now - saidAt < Self.sayingPause {
            return nil
        }
        self.epoch = epoch
        renewal += 1
        return StandbyWord(address: address, last: last, renewal: renewal)
    }

    /// Notes that the word was said.
    mutating func said(at now: Duration) { saidAt = now }

    /// Whether the word was ever said.
    var hasSaid: Bool { saidAt != nil }
}

/// How far a log that another sequencer appends to has been read.
package struct FollowedLog: Sendable {
    /// The number up to which it is replayed.
    package var last: SequenceNumber
    /// Whether that is the end that the look found.
    package var isWarm: Bool
}

/// The outcome of a look at a log that another sequencer appends to.
package enum LogLook: Sendable {
    /// What the look found, before anything is read; or why the log could not be looked at.
    case looked(Result<SharedLogView, LogError>)
    /// How far the log was read; nil if there was nothing to read.
    case read(Result<FollowedLog?, LogError>)
}

/// What a worker needs if several sequencers may serve its log.
package struct LogSharing {
    /// Where nodes reach this sequencer.
    let address: String
    /// Gets the heartbeat of a term, as soon as the log is claimed.
    let claimed: (any TermHeartbeat, Epoch) -> Void
    /// Called when the log has shown that no newer claim exists.
    let confirmed: () -> Void
    /// Called, on any thread, when the serving sequencer may have written something.
    let hint: @Sendable () -> Void

    package init(
        address: String, claimed: @escaping (any TermHeartbeat, Epoch) -> Void,
        confirmed: @escaping () -> Void, hint: @escaping @Sendable () -> Void
    ) {
        self.address = address
        self.claimed = claimed
        self.confirmed = confirmed
        self.hint = hint
    }
}

/// Follows a log that another sequencer appends to.
extension LogWorker {
    /// Looks at the log and replays the new entries. Now and then it announces that this sequencer stands by.
    ///
    /// - Parameters:
    ///   - reopening: Whether to open the log anew first.
    ///   - isYielding: Whether to look only, and read nothing.
    ///   - tell: Called with what the look found, before anything is read, and with how far the log was read.
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
                    // Only a standby that can take over at once announces itself.
                    if isWarm { sayStandingBy(since: view.epoch) }
                    return FollowedLog(last: follower.last, isWarm: isWarm)
                }))
    }

    private func look(reopening: Bool) throws(LogError) -> SharedLogView {
        endTerm()
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

    /// Announces this standby. That is only a hint: if it fails, it is repeated with the next look.
    private func sayStandingBy(since epoch: Epoch) {
        guard let (shared, sharing) = try? sharedLog(),
            let word = follower.word(of: sharing.address, since: epoch, at: clock())
        else { return }
        if (try? shared.standBy(word)) != nil { follower.said(at: clock()) }
    }

    /// Claims the log, unless another sequencer has claimed it since this epoch.
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

    /// Says that this sequencer no longer stands by, so that nobody hands over to it, and closes the log.
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
