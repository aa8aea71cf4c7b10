import ConfluxLog
import ConfluxProtocol
import ConfluxThreads
import ConfluxVocabulary
import ConfluxZeroMQ

/// The jobs that read the log, done one after the other.
package enum ReaderJob: Sendable {
    /// Uses this reader from now on: a term has begun.
    case begin(Handover<any LogReader>)
    case read(ReadJob)
    /// Gathers what is to be kept aside. The log's owner saves it.
    case gather(AsideRun)
    case close

    /// Uses this reader from now on.
    package static func reading(through reader: any LogReader) -> ReaderJob {
        .begin(Handover(reader))
    }
}

/// Reads the log for nodes, beside the ``LogWorker`` that owns it, so that no append waits for a reader. If
/// something can't be read, only the node that asked is told: only the owner's errors end a term.
///
/// Confined to its driver: a thread (``ReadThread``), or a simulation.
package final class ReadWorker {
    /// nil before the first term.
    private var reader: (any LogReader)?
    private var cache = SnapshotCache()
    private let answer: (SequencerInput) -> Void
    private let save: (AsideRun) -> Void

    /// Makes a worker that has no reader yet.
    ///
    /// - Parameters:
    ///   - answer: Gets the outcome of each job, before the next one begins.
    ///   - save: Gets a pass that has gathered everything to be kept aside.
    package init(
        answer: @escaping (SequencerInput) -> Void, save: @escaping (AsideRun) -> Void = { _ in }
    ) {
        self.answer = answer
        self.save = save
    }

    /// Does one job, however long it takes.
    ///
    /// - Returns: The rest of the job, to be done after the jobs that wait; nil if it is finished.
    @discardableResult
    package func work(_ job: ReaderJob) -> ReaderJob? {
        switch job {
        case .begin(let reader):
            self.reader?.close()
            self.reader = reader.value
            cache = SnapshotCache()
        case .read(let job): answer(.read(job, read(job)))
        case .gather(let run):
            guard let reader else { break }
            guard run.gather(from: reader) else { return .gather(run) }
            save(run)
        case .close:
            reader?.close()
            reader = nil
        }
        return nil
    }

    private func read(_ job: ReadJob) -> ReadOutcome {
        switch job.subject {
        case .commits(let from, let last):
            commits(from: from, through: last, limitBytes: Int(job.limitBytes))
        case .snapshot(let place, let offset):
            part(of: place, at: offset, limitBytes: Int(job.limitBytes))
        }
    }

    private func commits(
        from first: SequenceNumber, through last: SequenceNumber, limitBytes: Int
    ) -> ReadOutcome {
        do throws(LogError) {
            guard let reader else { return .failed }
            let commits = try reader.read(from: first, through: last, limitBytes: limitBytes)
            return .commits(commits.map(\.bytes))
        } catch {
            // The error may be temporary: the node asks again.
            guard error.code == .damaged, let numbers = error.numbers else { return .failed }
            let damage = Damage(
                first: numbers.lowerBound, last: max(numbers.upperBound, first),
                message: error.message)
            return .commits([], damage: damage)
        }
    }

    private func part(
        of place: SnapshotPlace, at offset: UInt64, limitBytes: Int
    ) -> ReadOutcome {
        let key = SavedSnapshot.Key(place)
        do throws(LogError) {
            guard let reader, let snapshot = try reader.snapshot(of: key),
                offset < snapshot.byteCount
            else { return .snapshot(.none(of: place)) }
            func part(_ bytes: Bytes) -> ReadOutcome {
                .snapshot(
                    SnapshotChunk(
                        place: place, offset: offset, byteCount: snapshot.byteCount,
                        bytes: bytes.prefix(limitBytes)))
            }
            if let bytes = cache.part(of: snapshot, at: offset) { return part(bytes) }
            guard
                let bytes = try reader.readSnapshot(of: key, from: offset, limitBytes: limitBytes)
            else { return .snapshot(.none(of: place)) }
            cache.keep(bytes, of: snapshot, at: offset)
            return part(bytes)
        } catch {
            return .snapshot(.none(of: place), failure: error.message)
        }
    }
}

/// A job and the epoch of its term. Jobs of other terms are dropped.
struct ReadTask: Sendable {
    var epoch: Epoch
    var job: ReaderJob
}

/// The thread that drives a ``ReadWorker`` and decides nothing.
final class ReadThread {
    /// An input for the machine of one term.
    struct Answer: Sendable {
        var epoch: Epoch
        var input: SequencerInput
    }

    private let tasks: Mailbox<ReadTask>
    private let answer: @Sendable (Answer) -> Void
    private let save: @Sendable (AsideRun, Epoch) -> Void
    private let pace: ReadPace
    /// Never signalled: waiting for it is a pause.
    private let never = Latch()
    private var epoch = Epoch.none

    /// Makes the thread's work.
    ///
    /// - Parameters:
    ///   - tasks: The tasks to do.
    ///   - pace: How fast to read.
    ///   - answer: Gets the outcome of each task.
    ///   - save: Gets what is to be kept aside, and the term's epoch.
    init(
        tasks: Mailbox<ReadTask>, pace: ReadPace, answer: @escaping @Sendable (Answer) -> Void,
        save: @escaping @Sendable (AsideRun, Epoch) -> Void
    ) {
        self.tasks = tasks
        self.pace = pace
        self.answer = answer
        self.save = save
    }

    /// Works until it gets the job to close.
    func run() {
        var byteCount = 0
        let worker = ReadWorker(
            answer: { [unowned self] in
                byteCount += $0.readByteCount
                answer(Answer(epoch: epoch, input: $0))
            },
            save: { [unowned self] in save($0, epoch) })
        var batch: [ReadTask] = []
        while true {
            tasks.wait(into: &batch)
            for task in batch {
                switch task.job {
                case .begin, .close: epoch = task.epoch
                default: guard task.epoch == epoch else { continue }
                }
                // The rest runs after the tasks that were posted meanwhile. By then its term may
                // be over.
                if let rest = worker.work(task.job) {
                    tasks.post(ReadTask(epoch: epoch, job: rest))
                }
                if case .close = task.job { return }
                let pause = pace.pause(after: byteCount, at: Moment.now.monotonic)
                if pause > .zero { never.wait(for: pause) }
                byteCount = 0
            }
        }
    }
}
