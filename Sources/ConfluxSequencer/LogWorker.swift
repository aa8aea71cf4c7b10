import ConfluxLog
import ConfluxProtocol
import ConfluxVocabulary
import ConfluxZeroMQ

/// The jobs of the log's thread, which does them one after the other.
package enum LogJob: Sendable {
    case claim(Nonce)
    /// Looks at a log that another sequencer may append to, and replays the new entries. `reopening`: the log
    /// has failed, and is opened anew first. `yielding`: nothing is replayed.
    case follow(reopening: Bool, yielding: Bool, @Sendable (LogLook) -> Void)
    /// Claims the log, unless another sequencer has claimed it since this epoch.
    case takeOver(Nonce, after: Epoch)
    /// Opens the log anew, after it failed, and claims it.
    case renew(Nonce)
    case readCheckpoint(through: SequenceNumber)
    case read(from: SequenceNumber)
    case append(Append)
    case confirm
    /// Makes checkpoints at the log's end, so that what comes before can be discarded.
    case makeRoom
    /// Checks whether a newer claim exists, and how much room the log has. Answers only if something has
    /// changed.
    case review
    case readSnapshots
    case saveSnapshot(SnapshotPart)
    case removeSnapshots(StoreName)
    case truncate(below: SequenceNumber)
    /// Saves the entries that a pass has gathered.
    case keepAside(AsideRun)
    /// Saves a piece of a checkpoint. The outcome goes to the thread that made it, not to the machine.
    case save(CheckpointPiece, @Sendable (LogError?) -> Void)
    /// Says how much of the log's bound and of its disk is used now.
    case measure
    /// Calls a function, to show that the thread has come this far.
    case probe(@Sendable () -> Void)
    case close
    /// The rest of a job that belongs to the term with this epoch. It is dropped if that term is over.
    indirect case rest(LogJob, of: Epoch)
}

/// Works on the log: turns the machine's requests into calls of an ``ActionLog``, and the results into inputs
/// of the machine. A thread of its own drives it (``LogThread``), so that a slow disk delays no beat. A
/// simulation drives it step by step.
///
/// Confined to its driver.
package final class LogWorker {
    var log: any ActionLog
    /// Opens the log anew. It gets the log that failed, and may return the same one.
    private let reopen: (any ActionLog) throws(LogError) -> any ActionLog
    /// Called, on any thread, if another sequencer may have claimed the log.
    private let doubt: (@Sendable () -> Void)?
    /// Sends answers, as inputs of the machine.
    let answer: (SequencerInput) -> Void
    /// The epoch of the present claim. Every append carries it.
    private var epoch = Epoch.none
    /// The last number in the log.
    private var last = SequenceNumber.zero
    /// How many bytes of commits follow the newest checkpoint, or the last request for one.
    private var uncoveredBytes = 0
    /// The size of the newest checkpoint.
    private var checkpointSize = 0
    /// The number of the newest checkpoint; nil if there is none.
    private var newestCheckpoint: SequenceNumber?
    /// The number of the checkpoint that was last asked for.
    private var wished = SequenceNumber.zero
    /// What the machine was last told about the log's space: it starts from ample room.
    private var space = LogWorker.noSpaceUsed
    private static let noSpaceUsed = LogSpace(usedBytes: 0, of: .max)
    /// How many bytes of the checkpoint that is being saved are saved.
    private var savedBytes = 0
    private let checkpoints: CheckpointSchedule
    /// Gets a reader for the log, before anybody learns of the term that the reader belongs to.
    private let begin: ((any LogReader, Epoch) -> Void)?
    /// What the worker needs if several sequencers may serve the log; nil otherwise.
    let sharing: LogSharing?
    /// A monotonic clock.
    let clock: () -> Duration
    /// The state of a log that another sequencer appends to.
    var follower = LogFollower()

    /// How many bytes of commits to read at once when the state is rebuilt. More would leave the processor's cache
    /// before they are replayed.
    static let rebuildBytes = 1 << 20
    /// How many bytes of commits to discard at once, so that no append waits long.
    static let truncateBytes = 1 << 20
    /// The largest step from one term's epoch to the next. The step is random.
    private static let epochStepMax: UInt64 = 1 << 20
    /// How often to repeat an append whose outcome is unknown, with identical bytes.
    private static let attemptsMax = 5
    /// The longest time to repeat it. If the engine itself has tried for longer, the append is not repeated:
    /// the term ends, and the next claim fences whatever is still under way.
    private static let repeatingMax = Duration.seconds(2)

    /// Makes a worker for a log that it has not claimed yet.
    ///
    /// - Parameters:
    ///   - log: The log. The worker owns it from now on.
    ///   - checkpoints: When a checkpoint is due, and who makes it. By default none is made.
    ///   - begin: Gets a reader for each term, which reads the log for others. By default no reader is
    ///     made.
    ///   - sharing: What the worker needs if several sequencers may serve the log.
    ///   - reopen: Opens the log anew after it failed. By default the same log is used again.
    ///   - doubt: Called, on any thread, if another sequencer may have claimed the log: then
    ///     ``LogJob/review`` is due.
    ///   - clock: A monotonic clock.
    ///   - answer: Gets the outcome of each job, before the next one begins.
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
    /// - Returns: The rest of the job, to be done after the jobs that wait; nil if it is finished.
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

    /// - Returns: Whether the job is finished.
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
            answer(.termConfirmed)
        case .makeRoom: makeRoom()
        case .review: try review()
        case .save(let piece, let done):
            let error = save(piece)
            done(error)
            // A change that may have happened, or may yet happen, ends the term.
            if let error, error.code == .unknownOutcome || error.code == .moved { throw error }
        case .measure: tellSpace()
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
                "Log \(log.id) is now where log \(former) was. Put the first one back, or start "
                    + "a sequencer with the other one.")
        }
    }

    private func claim(_ nonce: Nonce) throws(LogError) {
        try begin(try log.claim(raisingEpochBy: Self.epochStep(nonce)), nonce, knowing: nil)
    }

    /// The random step from one epoch to the next. If a log is restored and forks, the same epoch in both
    /// histories would fence nothing (rule 1).
    static func epochStep(_ nonce: Nonce) -> UInt64 { 1 + nonce.low % epochStepMax }

    /// Begins a term after the log is claimed.
    func begin(
        _ claim: LogClaim, _ nonce: Nonce, knowing known: KnownLogState?
    ) throws(LogError) {
        // Appended entries have receipts, so a log that ends before them must not be continued.
        guard claim.last >= last else {
            throw LogError(
                .damaged,
                "The log ends at \(claim.last), and entries up to \(last) were receipted. Restore it, "
                    + "or restart the sequencer to continue without them.")
        }
        epoch = claim.epoch
        last = claim.last
        space = Self.noSpaceUsed
        wished = .zero
        if let doubt { log.watchClaims(doubt) }
        if let begin { begin(try log.makeReader(), epoch) }
        answer(
            .claimed(
                ClaimedLog(
                    log: log.id, epoch: claim.epoch, last: claim.last,
                    lastEpoch: claim.lastEpoch, floor: log.floor, nonce: nonce),
                knowing: known))
    }

    /// Ends the former term. Nothing more is done for it.
    func endTerm() { epoch = .none }

    /// Takes over from the state of the log that was followed: what it read is not read again, and counts towards the next
    /// checkpoint.
    func goOn(from checkpoint: SequenceNumber?, byteCount: Int, checkpointSize: Int) {
        uncoveredBytes = byteCount
        self.checkpointSize = checkpointSize
        newestCheckpoint = checkpoint
    }

    /// Ignores other errors: the next job that needs the log meets them.
    private func review() throws(LogError) {
        do throws(LogError) {
            try log.confirm()
        } catch {
            if error.code == .superseded || error.code == .moved { throw error }
        }
    }

    private func readCheckpoint(
        through last: SequenceNumber
    ) throws(LogError) -> CheckpointAnswer {
        // The commits that are read from here on follow the checkpoint.
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
            }
            return nil
        } catch {
            return error
        }
    }

    /// Tells the machine how much room the log has.
    private func tellRoom() {
        guard epoch != .none, !log.space.isAlike(space) else { return }
        tellSpace()
    }

    private func tellSpace() {
        guard epoch != .none else { return }
        space = log.space
        space.freeBytes = log.freeBytes
        answer(.logSpace(space))
    }

    /// Asks for a checkpoint whatever the schedule, because the log has no room. Behind a checkpoint at the end, the log
    /// can discard only what comes before the checkpoint that is the newest one now. So one is made before the last
    /// commit first, and then the one at the end. Otherwise both could be too far apart.
    private func makeRoom() {
        let before = SequenceNumber(log.floor.rawValue - 1)
        let newest = max(newestCheckpoint ?? .zero, before)
        guard newest < last else { return }
        do throws(LogError) {
            let first = try log.read(from: last, limitBytes: 1).first?.first ?? last
            let former = SequenceNumber(first.rawValue - 1)
            // A checkpoint replaces those that are not before it.
            wishForCheckpoint(at: max(newest, wished) < former ? former : last)
        } catch {
            checkpoints.whenDue(.failure(error))
        }
    }

    /// Asks for a checkpoint if one is due. A checkpoint larger than the commits that it spares reading would
    /// cost more than it saves. So one is due when the commits exceed both the interval and the size of the
    /// last checkpoint.
    private func wishForCheckpoint() {
        // Before the log is full, two checkpoints are near its end.
        let intervalBytes =
            space.room == .ample
            ? checkpoints.intervalBytes
            : min(checkpoints.intervalBytes, Int(clamping: space.limitBytes / 32))
        if uncoveredBytes >= max(intervalBytes, checkpointSize) { wishForCheckpoint(at: last) }
    }

    private func wishForCheckpoint(at last: SequenceNumber) {
        uncoveredBytes = 0
        wished = last
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
            // A newer term may have discarded what is missing: then the log says that this one is
            // superseded.
            if error.code == .damaged { try log.confirm() }
            throw error
        }
    }

    /// Appends. An append whose outcome is unknown is repeated with identical bytes under the same numbers
    /// until the outcome is known (rule 3).
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
        // To open what is there now is up to people.
        case .moved: .logMoved(error.message)
        default: .logFailed(error.message, summary: error.code.summary)
        }
    }
}
