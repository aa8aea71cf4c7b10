import ConfluxLog
import ConfluxProtocol
import ConfluxVocabulary
import ConfluxZeroMQ
import Synchronization

/// When a checkpoint is due, and who is told.
package struct CheckpointSchedule {
    /// How many bytes of commits stand behind the newest checkpoint before the next one is due.
    package var intervalBytes: Int
    /// Told when one is due; with a failure when it can't be made.
    package var whenDue: (Result<CheckpointJob, LogError>) -> Void

    /// Makes a schedule.
    package init(
        intervalBytes: Int, whenDue: @escaping (Result<CheckpointJob, LogError>) -> Void
    ) {
        self.intervalBytes = intervalBytes
        self.whenDue = whenDue
    }

    /// No checkpoints.
    package static var never: CheckpointSchedule {
        CheckpointSchedule(intervalBytes: .max, whenDue: { _ in })
    }
}

/// A checkpoint that is to be made.
package struct CheckpointJob: Sendable {
    /// The log's id.
    package var log: LogID
    /// The lowest number that it holds.
    package var floor: SequenceNumber
    /// The number to make it at: the end of a commit.
    package var last: SequenceNumber
    /// Through which the log is read; whoever takes the job closes it.
    package var reader: Handover<any LogReader>

    /// Folds the log from its newest checkpoint on.
    ///
    /// - Parameter isStopped: Asked now and then; true ends the work.
    /// - Returns: The checkpoint; nil when it was stopped.
    /// - Throws: ``CheckpointFailure``.
    package func make(
        unless isStopped: () -> Bool = { false }
    ) throws(CheckpointFailure) -> SavedCheckpoint? {
        let reader = reader.value
        defer { reader.close() }
        var recovery = LogRecovery(log: log, through: last, in: nil, floor: floor)
        while !isStopped() {
            switch recovery.demand {
            case .checkpoint(let last):
                do throws(LogError) {
                    recovery.take(try CheckpointAnswer(reading: reader, through: last))
                } catch {
                    throw CheckpointFailure(message: error.message)
                }
            case .entries(let first):
                do {
                    let commits = try reader.read(
                        from: first, through: last, limitBytes: LogWorker.rebuildBytes)
                    try recovery.take(commits.map(\.bytes))
                } catch let error as LogError {
                    throw CheckpointFailure(message: error.message)
                } catch let error as RecoveryFailure {
                    throw CheckpointFailure(message: error.message)
                } catch {
                    throw CheckpointFailure(message: "\(error)")
                }
            case .nothing:
                let bytes = recovery.fold.encoded()
                guard bytes.count <= SavedCheckpoint.bytesMax else {
                    throw CheckpointFailure(
                        message: "it has \(bytes.count) bytes and the log takes "
                            + "\(SavedCheckpoint.bytesMax): starting reads more of the log")
                }
                return SavedCheckpoint(sequence: recovery.fold.last, bytes: bytes[...])
            }
        }
        return nil
    }
}

/// Why a checkpoint was not made. The log is whole without it.
package struct CheckpointFailure: Error {
    /// What happened.
    package var message: String
}

extension CheckpointAnswer {
    /// What a log, or a reader of it, says.
    ///
    /// - Throws: Why it says nothing now. A log that can't be reached may have the checkpoint: what it stands for may be
    ///   given up, so that nobody can do without it.
    init(reading reader: any LogReader, through last: SequenceNumber) throws(LogError) {
        try self.init { () throws(LogError) in try reader.checkpoint(through: last) }
    }

    init(_ read: () throws(LogError) -> SavedCheckpoint?) throws(LogError) {
        do throws(LogError) {
            self = try read().map { .found($0.sequence, $0.bytes) } ?? .none
        } catch {
            guard error.code == .damaged || error.code == .failed else { throw error }
            if error.code == .damaged, let sequence = error.numbers?.lowerBound {
                self = .damaged(sequence, error.message)
            } else {
                self = .unreadable(error.message)
            }
        }
    }
}

/// The thread that makes checkpoints, so that neither the sockets nor the appends wait for it: it
/// reads the log beside the thread that owns it, and has the result saved piece by piece between
/// the appends.
// Sendable: `thread` is set once, before anybody can stop it; the rest is Sendable.
final class CheckpointThread: Sendable {
    /// One may wait while one is made; a further one is dropped, and due again later.
    private let jobs: Mailbox<CheckpointJob>
    private let outcomes: Mailbox<PieceOutcome>
    private let log: Mailbox<LogJob>
    private let events: @Sendable (SequencerEvent) -> Void
    private let isStopped = Atomic(false)
    private let thread = Mutex<NamedThread?>(nil)

    private struct PieceOutcome: Sendable {
        var error: LogError?
    }

    init(
        log: Mailbox<LogJob>, events: @escaping @Sendable (SequencerEvent) -> Void
    ) throws(ZeroMQError) {
        self.log = log
        self.events = events
        jobs = Mailbox(capacity: 1, waker: try Waker())
        outcomes = Mailbox(capacity: 1, waker: try Waker())
    }

    /// Begins.
    func start() throws(ZeroMQError) {
        let started = try NamedThread("conflux-checkpt", stackBytes: 1 << 20) { self.run() }
        thread.withLock { $0 = started }
    }

    /// A schedule that has this thread make the checkpoints.
    func schedule(intervalBytes: Int) -> CheckpointSchedule {
        CheckpointSchedule(intervalBytes: intervalBytes) { due in
            switch due {
            case .success(let job): self.jobs.post(job)
            case .failure(let error): self.events(.checkpointFailed(message: error.message))
            }
        }
    }

    /// Ends the thread. What it was making is given up. The thread of the log must still work.
    func stop() {
        isStopped.store(true, ordering: .relaxed)
        jobs.close()
        thread.withLock { $0 }?.join()
    }

    private func run() {
        var due: [CheckpointJob] = []
        while jobs.wait(into: &due), !isStopped.load(ordering: .relaxed) {
            for job in due { perform(job) }
        }
    }

    private func perform(_ job: CheckpointJob) {
        do throws(CheckpointFailure) {
            let made = try job.make(unless: { isStopped.load(ordering: .relaxed) })
            guard let made else { return }
            for piece in made.pieces() {
                guard !isStopped.load(ordering: .relaxed) else { return }
                try save(piece)
            }
            events(.checkpointSaved(made.sequence, bytes: made.bytes.count))
        } catch {
            events(.checkpointFailed(message: error.message))
        }
    }

    private func save(_ piece: CheckpointPiece) throws(CheckpointFailure) {
        let outcomes = outcomes
        let posted = log.post(.save(piece, { outcomes.post(PieceOutcome(error: $0)) }))
        guard posted == .accepted else {
            throw CheckpointFailure(message: "the log has too much to do")
        }
        var answered: [PieceOutcome] = []
        while answered.isEmpty { outcomes.wait(into: &answered) }
        if let error = answered.first?.error { throw CheckpointFailure(message: error.message) }
    }
}
