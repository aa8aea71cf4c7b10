import ConfluxLog
import ConfluxProtocol
import ConfluxVocabulary
import ConfluxZeroMQ

/// What the thread that owns the log works on, one after the other.
package enum LogJob: Sendable {
    case claim(Nonce)
    /// Looks at a log that another sequencer may append to, and folds what is new; opens it anew first, where it
    /// failed; folds nothing where it yields.
    case follow(reopening: Bool, yielding: Bool, @Sendable (LogLook) -> Void)
    /// Claims the log, unless somebody else has since this epoch.
    case takeOver(Nonce, after: Epoch)
    /// Opens the log anew, after it failed, and claims it.
    case renew(Nonce)
    case readCheckpoint(through: SequenceNumber)
    case read(from: SequenceNumber)
    case append(Append)
    case confirm
    /// Looks whether a newer claim exists, and how much room there is. Nobody is answered where all is well.
    case review
    case readSnapshots
    case saveSnapshot(SnapshotPart)
    case removeSnapshots(StoreName)
    case truncate(below: SequenceNumber)
    /// Saves what a pass has gathered.
    case keepAside(AsideRun)
    /// Saves a piece of a checkpoint; what comes of it goes to who made it, and not to the machine.
    case save(CheckpointPiece, @Sendable (LogError?) -> Void)
    /// Calls a function, to show that this much was done.
    case probe(@Sendable () -> Void)
    case close
    /// What is left of a job of the tenure with that epoch; nothing where that is over.
    indirect case rest(LogJob, of: Epoch)
}

/// What works on the log: the machine's wishes become calls of an ``ActionLog``, and what comes of
/// them inputs of the machine. A thread of its own drives it (``LogThread``), so that a slow disk
/// delays nobody's beat; a simulation drives it step by step.
///
/// Confined to whoever drives it.
package final class LogWorker {
    var log: any ActionLog
    /// Opens the log anew. It is given the one that failed, and may give it back.
    private let reopen: (any ActionLog) throws(LogError) -> any ActionLog
    /// Called, on any thread, when the log may have been claimed by somebody else.
    private let doubt: (@Sendable () -> Void)?
    /// Answers, as inputs of the machine.
    let answer: (SequencerInput) -> Void
    /// The epoch of the present claim, which every append goes by.
    private var epoch = Epoch.none
    /// The last number in the log.
    private var last = SequenceNumber.zero
    /// How many bytes of commits stand behind the newest checkpoint, or behind the last wish for one.
    private var uncoveredBytes = 0
    /// The size of the newest checkpoint.
    private var checkpointSize = 0
    /// The number of the newest checkpoint; nil if there is none.
    private var newestCheckpoint: SequenceNumber?
    /// Whether this tenure has appended something: from then on it is known which checkpoints there are.
    private var hasAppended = false
    /// What the machine was told of the log's room.
    private var isNearlyFull = false
    /// How much of the one that is being saved is there.
    private var savedBytes = 0
    private let checkpoints: CheckpointSchedule
    /// Given what reads the log for others, before anybody is told of the tenure that it is of.
    private let begin: ((any LogReader, Epoch) -> Void)?
    /// What it has where several sequencers may serve the log.
    let sharing: LogSharing?
    /// Tells the time, on a clock that only rises.
    let clock: () -> Duration
    /// What is known of a log that another sequencer appends to.
    var follower = LogFollower()

    /// How many bytes of commits are read at once when the state is rebuilt.
    static let rebuildBytes = 8 << 20
    /// How many bytes of commits are given up at once, so that no append waits long.
    static let truncateBytes = 1 << 20
    /// How many bytes of commits stand behind a checkpoint before the next one, of a log without room.
    private static let urgentBytes = 1 << 16
    /// By how much a tenure's epoch is above that of the one before it, at most: it is random.
    private static let epochStepMax: UInt64 = 1 << 20
    /// How often an append whose outcome is not known is repeated, with the very same bytes.
    private static let attemptsMax = 5
    /// For how long. An engine that tries longer by itself is not asked again: the tenure ends, and the next
    /// claim holds off what may be under way.
    private static let repeatingMax = Duration.seconds(2)

    /// Makes one for a log that nothing was claimed of.
    ///
    /// - Parameters:
    ///   - log: The log, which is this worker's from now on.
    ///   - checkpoints: When a checkpoint is due, and who makes it; nobody unless given.
    ///   - begin: Given a reader for each tenure, which reads for others beside this; none is made
    ///     unless given.
    ///   - sharing: What it has where several sequencers may serve the log.
    ///   - reopen: Opens the log anew after it failed; it continues as it is unless given.
    ///   - doubt: Called, on any thread, when the log may have been claimed by somebody else: then
    ///     ``LogJob/review`` is due.
    ///   - clock: Tells the time, on a clock that only rises.
    ///   - answer: Given what came of each job, before the next one.
    package init(
        log: any ActionLog, checkpoints: CheckpointSchedule = .never,
        begin: ((any LogReader, Epoch) -> Void)? = nil,
        sharing: LogSharing? = nil,
        reopen: @escaping (any ActionLog) throws(LogError) -> any ActionLog = { $0 },
        doubt: (@Sendable () -> Void)? = nil,
        clock: @escaping () -> Duration = { Moment.now.monotonic },
        answer: @escaping (SequencerInput) -> Void
    ) {
        self.log = log
        self.checkpoints = checkpoints
        self.begin = begin
        self.sharing = sharing
        self.reopen = reopen
        self.doubt = doubt
        self.clock = clock
        self.answer = answer
    }

    /// Does one job, however long it takes.
    ///
    /// - Returns: What is left of it, to be done once others had their turn.
    @discardableResult
    package func work(_ job: LogJob) -> LogJob? {
        if case .rest(let job, let epoch) = job { return epoch == self.epoch ? work(job) : nil }
        do throws(LogError) {
            let isDone = try perform(job)
            tellRoom()
            return isDone ? nil : .rest(job, of: epoch)
        } catch {
            answer(.logFailed(Self.end(error)))
            return nil
        }
    }

    /// - Returns: Whether it is done.
    private func perform(_ job: LogJob) throws(LogError) -> Bool {
        switch job {
        case .readSnapshots: try readSnapshots()
        case .saveSnapshot(let part): try save(part)
        case .removeSnapshots(let store): try log.removeSnapshots(of: store)
        case .truncate(let floor): return try truncate(below: floor)
        case .keepAside(let run): return try save(run)
        case .claim(let nonce): try claim(nonce)
        case .renew(let nonce):
            try openAnew()
            try claim(nonce)
        case .follow(let reopening, let isYielding, let tell):
            follow(reopening: reopening, isYielding: isYielding, tell)
        case .takeOver(let nonce, let former): try takeOver(nonce, after: former)
        case .readCheckpoint(let last):
            answer(.checkpointRead(try readCheckpoint(through: last)))
        case .read(let from):
            let bodies = try read(from: from, limitBytes: Self.rebuildBytes)
            uncoveredBytes += bodies.reduce(0) { $0 + $1.count }
            answer(.logRead(bodies))
        case .append(let append):
            try self.append(append)
            sharing?.confirmed()
            last = append.last
            answer(.appended)
            uncoveredBytes += append.commits.reduce(0) { $0 + $1.frame.count }
            wishForCheckpoint()
        case .confirm:
            try log.confirm()
            sharing?.confirmed()
            answer(.tenureConfirmed)
        case .review: try review()
        case .save(let piece, let done):
            let error = save(piece)
            done(error)
            // What may have happened, or may yet happen, ends with the tenure.
            if let error, error.code == .unknownOutcome { throw error }
        case .probe(let passed): passed()
        case .close: close()
        case .rest: preconditionFailure("the rest of a job is done as that job")
        }
        return true
    }

    func openAnew() throws(LogError) {
        let former = log.id
        log = try reopen(log)
        guard log.id == former else {
            throw LogError(
                .damaged,
                "Where log \(former) was there is log \(log.id) now. Put the first one back, or "
                    + "start a sequencer with the other one.")
        }
    }

    private func claim(_ nonce: Nonce) throws(LogError) {
        try begin(try log.claim(raisingEpochBy: Self.epochStep(nonce)), nonce, knowing: nil)
    }

    /// Fences that two histories of a log would both take for theirs hold nothing off (rule 1).
    static func epochStep(_ nonce: Nonce) -> UInt64 { 1 + nonce.low % epochStepMax }

    /// The log is claimed.
    func begin(
        _ claim: LogClaim, _ nonce: Nonce, knowing known: KnownFold?
    ) throws(LogError) {
        // What was appended was receipted: a log that ends before it is not gone on with here.
        guard claim.last >= last else {
            throw LogError(
                .damaged,
                "The log ends at \(claim.last), and entries up to \(last) were receipted. Restore it, "
                    + "or start the sequencer anew to go on without them.")
        }
        epoch = claim.epoch
        last = claim.last
        isNearlyFull = false
        hasAppended = false
        if let doubt { log.watchClaims(doubt) }
        if let begin { begin(try log.makeReader(), epoch) }
        answer(
            .claimed(
                ClaimedLog(
                    log: log.id, epoch: claim.epoch, last: claim.last,
                    lastEpoch: claim.lastEpoch, floor: log.floor, nonce: nonce),
                knowing: known))
    }

    /// A tenure of before is over, and nothing is done for it any more.
    func endTenure() { epoch = .none }

    /// What was followed is not read again, and counts for the next checkpoint.
    func goOn(from checkpoint: SequenceNumber?, byteCount: Int, checkpointSize: Int) {
        uncoveredBytes = byteCount
        self.checkpointSize = checkpointSize
        newestCheckpoint = checkpoint
    }

    /// What else may be wrong is met by who needs the log.
    private func review() throws(LogError) {
        do throws(LogError) {
            try log.confirm()
        } catch {
            if error.code == .superseded { throw error }
        }
    }

    private func readCheckpoint(
        through last: SequenceNumber
    ) throws(LogError) -> CheckpointAnswer {
        // What is read from here on stands behind it.
        uncoveredBytes = 0
        let answer = try CheckpointAnswer { () throws(LogError) in
            try log.checkpoint(through: last)
        }
        newestCheckpoint = nil
        if case .found(let sequence, let bytes) = answer {
            checkpointSize = bytes.count
            newestCheckpoint = sequence
        }
        return answer
    }

    private func save(_ piece: CheckpointPiece) -> LogError? {
        do throws(LogError) {
            try log.save(piece)
            savedBytes = piece.bytes.count + (piece.index == 0 ? 0 : savedBytes)
            if piece.isLast {
                checkpointSize = savedBytes
                newestCheckpoint = piece.sequence
                answer(.checkpointSaved(piece.sequence))
                wishForRoom()
            }
            return nil
        } catch {
            return error
        }
    }

    /// Tells whether the log has room. Where it has none, checkpoints are due, whatever the schedule:
    /// nothing is given up that stands behind the older of two.
    private func tellRoom() {
        guard epoch != .none, log.isNearlyFull != isNearlyFull else { return }
        isNearlyFull.toggle()
        answer(.logRoom(isNearlyFull: isNearlyFull))
        if hasAppended { wishForRoom() }
    }

    /// A log without a checkpoint gets one in its middle first, so that there are two without any
    /// further entry.
    private func wishForRoom() {
        guard isNearlyFull, newestCheckpoint ?? .zero < last else { return }
        if newestCheckpoint == nil {
            let middle = log.floor.advanced(by: (last.rawValue - log.floor.rawValue) / 2)
            do throws(LogError) {
                let first = try log.read(from: middle, limitBytes: 1).first
                wishForCheckpoint(at: first?.last ?? last)
            } catch {
                checkpoints.whenDue(.failure(error))
            }
        } else {
            wishForCheckpoint(at: last)
        }
    }

    /// A checkpoint larger than what it saves reading of would cost more than it is worth, so that
    /// one is due when both the setting and the size of the last one are reached.
    private func wishForCheckpoint() {
        guard uncoveredBytes >= max(checkpoints.intervalBytes, checkpointSize) else {
            if !hasAppended || uncoveredBytes >= Self.urgentBytes { wishForRoom() }
            hasAppended = true
            return
        }
        hasAppended = true
        wishForCheckpoint(at: last)
    }

    private func wishForCheckpoint(at last: SequenceNumber) {
        uncoveredBytes = 0
        do throws(LogError) {
            checkpoints.whenDue(
                .success(
                    CheckpointJob(
                        log: log.id, floor: log.floor, last: last,
                        reader: Handover(try log.makeReader()))))
        } catch {
            checkpoints.whenDue(.failure(error))
        }
    }

    private func read(
        from sequence: SequenceNumber, limitBytes: Int
    ) throws(LogError) -> [Bytes] {
        guard sequence <= last else { return [] }
        do throws(LogError) {
            return try log.read(from: sequence, limitBytes: limitBytes).map(\.bytes)
        } catch {
            // What is missing may have been given up by who superseded this tenure: then the log says so.
            if error.code == .damaged { try log.confirm() }
            throw error
        }
    }

    /// An append whose outcome is not known is repeated with identical bytes under the same
    /// numbers, until it is known (rule 3).
    private func append(_ append: Append) throws(LogError) {
        let commits = append.commits.map { commit in
            LoggedCommit(
                first: commit.first, last: commit.last, epoch: epoch,
                bytes: commit.frame.dropFirst(Frame.size))
        }
        var attempts = 0
        let begun = ContinuousClock.now
        while true {
            do {
                try log.append(commits, expecting: last, forced: append.isForced)
                return
            } catch  where error.code == .unknownOutcome {
                attempts += 1
                let isOver = ContinuousClock.now - begun >= Self.repeatingMax
                guard attempts < Self.attemptsMax, !isOver else { throw error }
            }
        }
    }

    private static func end(_ error: LogError) -> SequencerEnd {
        switch error.code {
        case .superseded: .superseded
        case .damaged: .logDamaged(error.message)
        default: .logFailed(error.message, summary: error.code.summary)
        }
    }
}
