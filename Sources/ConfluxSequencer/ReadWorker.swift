import ConfluxLog
import ConfluxProtocol
import ConfluxVocabulary
import ConfluxZeroMQ

/// What is read of the log for others, one after the other.
package enum ReadJob: Sendable {
    /// Read through this from now on: a tenure has begun.
    case begin(Handover<any LogReader>)
    case fetch(FetchJob)
    case load(LoadJob)
    /// Finds what is to be kept aside; whoever owns the log saves it.
    case gather(AsideRun)
    case close

    /// Reads through this from now on.
    package static func reading(through reader: any LogReader) -> ReadJob {
        .begin(Handover(reader))
    }
}

/// What reads the log for nodes, beside the ``LogWorker`` that owns it, so that no append waits for
/// a reader. What it can't read is said to who asked, and concerns nobody else: only the owner's
/// errors end a tenure.
///
/// Confined to whoever drives it: a thread (``ReadThread``), or a simulation.
package final class ReadWorker {
    /// nil before the first tenure.
    private var reader: (any LogReader)?
    private var cache = SnapshotCache()
    private let answer: (SequencerInput) -> Void
    private let save: (AsideRun) -> Void

    /// Makes one that has nothing to read yet.
    ///
    /// - Parameters:
    ///   - answer: Given what came of each job, before the next one.
    ///   - save: Given a pass that has found all that is to be kept aside.
    package init(
        answer: @escaping (SequencerInput) -> Void, save: @escaping (AsideRun) -> Void = { _ in }
    ) {
        self.answer = answer
        self.save = save
    }

    /// Does one job, however long it takes.
    ///
    /// - Returns: What is left of it, to be done once others had their turn.
    @discardableResult
    package func work(_ job: ReadJob) -> ReadJob? {
        switch job {
        case .begin(let reader):
            self.reader?.close()
            self.reader = reader.value
            cache = SnapshotCache()
        case .fetch(let job): answer(fetch(job))
        case .load(let job): answer(load(job))
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

    private func fetch(_ job: FetchJob) -> SequencerInput {
        do throws(LogError) {
            guard let reader else { return .fetchFailed(job) }
            let commits = try reader.read(
                from: job.from, through: job.last, limitBytes: Int(job.limitBytes))
            return .fetchRead(job, commits.map(\.bytes))
        } catch {
            // For a reason that may pass: who asked asks again.
            guard error.code == .damaged, let numbers = error.numbers else {
                return .fetchFailed(job)
            }
            return .fetchDamaged(
                job,
                Damage(
                    first: numbers.lowerBound, last: max(numbers.upperBound, job.from),
                    message: error.message))
        }
    }

    private func load(_ job: LoadJob) -> SequencerInput {
        let key = SavedSnapshot.Key(job.place)
        do throws(LogError) {
            guard let reader, let snapshot = try reader.snapshot(of: key),
                job.offset < snapshot.byteCount
            else { return .snapshotRead(job, .none(of: job.place)) }
            func chunk(_ bytes: Bytes) -> SequencerInput {
                .snapshotRead(
                    job,
                    SnapshotChunk(
                        place: job.place, offset: job.offset, byteCount: snapshot.byteCount,
                        bytes: bytes.prefix(Int(job.limitBytes))))
            }
            if let bytes = cache.part(of: snapshot, at: job.offset) { return chunk(bytes) }
            guard
                let bytes = try reader.readSnapshot(
                    of: key, from: job.offset, limitBytes: Int(job.limitBytes))
            else { return .snapshotRead(job, .none(of: job.place)) }
            cache.keep(bytes, of: snapshot, at: job.offset)
            return chunk(bytes)
        } catch {
            return .snapshotDamaged(job, error.message)
        }
    }
}

/// A job, and the tenure that it is of. What another tenure asked for is not done.
struct ReadTask: Sendable {
    var epoch: Epoch
    var job: ReadJob
}

/// The thread that drives a ``ReadWorker`` and decides nothing.
final class ReadThread {
    /// What the machine of one tenure is told.
    struct Answer: Sendable {
        var epoch: Epoch
        var input: SequencerInput
    }

    private let tasks: Mailbox<ReadTask>
    private let answer: @Sendable (Answer) -> Void
    private let save: @Sendable (AsideRun, Epoch) -> Void
    private var epoch = Epoch.none

    /// Makes the thread's work.
    ///
    /// - Parameters:
    ///   - tasks: What is to be done.
    ///   - answer: Given what came of it.
    ///   - save: Given what is to be kept aside, and the tenure.
    init(
        tasks: Mailbox<ReadTask>, answer: @escaping @Sendable (Answer) -> Void,
        save: @escaping @Sendable (AsideRun, Epoch) -> Void
    ) {
        self.tasks = tasks
        self.answer = answer
        self.save = save
    }

    /// Works until it is told to close.
    func run() {
        let worker = ReadWorker(
            answer: { [unowned self] in answer(Answer(epoch: epoch, input: $0)) },
            save: { [unowned self] in save($0, epoch) })
        var batch: [ReadTask] = []
        while true {
            tasks.wait(into: &batch)
            for task in batch {
                switch task.job {
                case .begin, .close: epoch = task.epoch
                default: guard task.epoch == epoch else { continue }
                }
                // Behind what was asked meanwhile; by then its tenure may be over.
                if let rest = worker.work(task.job) {
                    tasks.post(ReadTask(epoch: epoch, job: rest))
                }
                if case .close = task.job { return }
            }
        }
    }
}
