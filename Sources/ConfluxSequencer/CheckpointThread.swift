import ConfluxLog
import ConfluxProtocol
import ConfluxVocabulary
import ConfluxZeroMQ
import Synchronization

/// Decides when a checkpoint is due, and who makes it.
package struct CheckpointSchedule {
    /// How many bytes of commits follow the newest checkpoint when the next one is due.
    package var intervalBytes: Int
    /// Called when a checkpoint is due, or with a failure if it can't be made.
    package var whenDue: (Result<CheckpointJob, LogError>) -> Void

    /// Makes a schedule.
    package init(
        intervalBytes: Int, whenDue: @escaping (Result<CheckpointJob, LogError>) -> Void
    ) {
        self.intervalBytes = intervalBytes
        self.whenDue = whenDue
    }

    /// A schedule that never makes a checkpoint.
    package static var never: CheckpointSchedule {
        CheckpointSchedule(intervalBytes: .max, whenDue: { _ in })
    }
}

/// A request to make a checkpoint.
package struct CheckpointJob: Sendable {
    /// The log's id.
    package var log: LogID
    /// The lowest number that the log holds.
    package var floor: SequenceNumber
    /// The number at which to make the checkpoint: the end of a commit.
    package var last: SequenceNumber
    /// The reader for the log. The receiver of the job must close it.
    package var reader: Handover<any LogReader>

    /// Makes the checkpoint: replays the log from its newest checkpoint on.
    ///
    /// - Parameter isStopped: Asked now and then; true ends the work.
    /// - Returns: The checkpoint; nil if it was stopped.
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
                let bytes = recovery.logState.encoded()
                guard bytes.count <= SavedCheckpoint.bytesMax else {
                    throw CheckpointFailure(
                        message: "it has \(bytes.count) bytes and the log takes "
                            + "\(SavedCheckpoint.bytesMax): starting reads more of the log")
                }
                return SavedCheckpoint(sequence: recovery.logState.last, bytes: bytes[...])
            }
        }
        return nil
    }
}

/// Why a checkpoint was not made. The log is complete without it.
package struct CheckpointFailure: Error {
    /// What happened.
    package var message: String
}

extension CheckpointAnswer {
    /// Reads the newest checkpoint of a log, through the log or one of its readers.
    ///
    /// - Throws: The error if the log can't be read now. The caller must not go on without an answer: the log
    ///   may have a checkpoint, and the entries that the checkpoint covers may be discarded.
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

/// The thread that makes checkpoints, so that neither sockets nor appends wait for them. It reads the log
/// through a reader of its own. The log's thread saves the result piece by piece between appends.
// Sendable: `thread` is set once, before anybody can stop it; the rest is Sendable.
final class CheckpointThread: Sendable {
    /// One job may wait while another runs. A further job is dropped, and becomes due again later.
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

    /// Starts the thread.
    func start() throws(ZeroMQError) {
        let started = try NamedThread("conflux-checkpt", stackBytes: 1 << 20) { self.run() }
        thread.withLock { $0 = started }
    }

    /// A schedule that makes checkpoints on this thread.
    func schedule(intervalBytes: Int) -> CheckpointSchedule {
        CheckpointSchedule(intervalBytes: intervalBytes) { due in
            switch due {
            case .success(let job): self.jobs.post(job)
            case .failure(let error): self.events(.checkpointFailed(message: error.message))
            }
        }
    }

    /// Stops the thread and drops the checkpoint under way. The log's thread must still be running.
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
