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
    /// How often it was said that this one stands by, and when last.
    private var renewal: UInt64 = 0
    private var saidAt: Duration?
    /// Whether what the one that serves says is watched.
    var isWatching = false
    /// How many bytes of commits are read before the log is looked at again.
    private static let stepBytes = 1 << 20
    /// How often it is said.
    private static let sayingPause = Duration.seconds(1)

    /// Up to where the log is folded.
    var last: SequenceNumber { known?.fold.last ?? recovery?.fold.last ?? .zero }

    /// What to go on from; the follower begins anew behind it.
    mutating func take() -> KnownFold? {
        recovery = nil
        return known.take()
    }

    /// Takes a step: up to the end that was found, or so far as some bytes go.
    ///
    /// - Returns: Whether that end is reached.
    /// - Throws: What the log does; `damaged` where it does not go on from what was folded. The next step begins anew.
    mutating func advance(
        to view: SharedLogView, of log: any ActionLog
    ) throws(LogError) -> Bool {
        // Whoever put the log back to an earlier copy lost what was folded.
        if last > view.last { self = LogFollower() }
        var step =
            recovery.take()
            ?? LogRecovery(
                log: log.id, through: view.last, in: nil, floor: view.floor,
                goingOnFrom: known.take())
        switch step.demand {
        case .checkpoint(let last):
            let answer = CheckpointAnswer { () throws(LogError) in
                try log.checkpoint(through: last)
            }
            if case .found(_, let bytes) = answer { checkpointSize = bytes.count }
            byteCount = 0
            step.take(answer)
        case .entries(let first):
            let bodies = try log.read(from: first, limitBytes: Self.stepBytes).map(\.bytes)
            byteCount += bodies.reduce(0) { $0 + $1.count }
            do throws(RecoveryFailure) {
                try step.take(bodies)
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

    /// What is to be said of this one, if it is time.
    mutating func word(of address: String, at now: Duration) -> StandbyWord? {
        if let saidAt, now - saidAt < Self.sayingPause { return nil }
        saidAt = now
        renewal += 1
        return StandbyWord(address: address, last: last, renewal: renewal)
    }
}

/// What came of looking at a log that another sequencer appends to.
package struct FollowedLog: Sendable {
    /// What was found.
    package var view: SharedLogView
    /// Up to where it is folded.
    package var last: SequenceNumber
    /// Whether that is its end.
    package var isWarm: Bool
    /// Whether it was read: at first it is told what was found, and then how far it was read.
    package var isOver: Bool
}

/// A log that another sequencer appends to.
extension LogWorker {
    /// Looks at the log and folds what is new; says that this one stands by, now and then.
    ///
    /// - Parameters:
    ///   - address: Where nodes reach this one.
    ///   - reopening: Whether to open the log anew first.
    ///   - isYielding: Whether to read nothing, and only look.
    ///   - tell: Told what was found, before that is read.
    /// - Returns: How far it was read.
    /// - Throws: What the log does.
    func follow(
        as address: String, reopening: Bool, isYielding: Bool, _ tell: (FollowedLog) -> Void
    ) throws(LogError) -> FollowedLog {
        if reopening {
            try openAnew()
            follower.isWatching = false
        }
        let shared = try sharedLog()
        if !follower.isWatching, let hint {
            shared.watchServing(hint)
            follower.isWatching = true
        }
        let view = try shared.look()
        let found = FollowedLog(view: view, last: follower.last, isWarm: false, isOver: false)
        tell(found)
        guard !isYielding else { return found }
        let isWarm = try follower.advance(to: view, of: log)
        // Whoever can't take over at once says nothing.
        if isWarm, let word = follower.word(of: address, at: clock()) { try shared.standBy(word) }
        return FollowedLog(view: view, last: follower.last, isWarm: isWarm, isOver: true)
    }

    /// Claims the log, unless somebody else has since this epoch.
    func takeOver(_ nonce: Nonce, after former: Epoch) throws(LogError) {
        let shared = try sharedLog()
        let claim = try shared.claim(raisingEpochBy: Self.epochStep(nonce), after: former)
        let (byteCount, checkpointSize) = (follower.byteCount, follower.checkpointSize)
        let known = follower.take()
        follower = LogFollower()
        if let herald { herald(try shared.makeHerald(), claim.epoch) }
        if let known {
            goOn(from: known.checkpoint, byteCount: byteCount, checkpointSize: checkpointSize)
        }
        try begin(claim, nonce, knowing: known)
    }

    private func sharedLog() throws(LogError) -> any SharedActionLog {
        guard let shared = log as? any SharedActionLog else {
            throw LogError(.failed, "This log is not for several sequencers.")
        }
        return shared
    }
}
