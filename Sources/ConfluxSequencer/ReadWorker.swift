import ConfluxLog
import ConfluxProtocol
import ConfluxThreads
import ConfluxVocabulary
import ConfluxZeroMQ

/// What is read of the log for others, one after the other.
package enum ReaderJob: Sendable {
    /// Read through this from now on: a tenure has begun.
    case begin(Handover<any LogReader>)
    case read(ReadJob)
    /// Finds what is to be kept aside; whoever owns the log saves it.
    case gather(AsideRun)
    case close

    /// Reads through this from now on.
    package static func reading(through reader: any LogReader) -> ReaderJob {
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
            // For a reason that may pass: who asked asks again.
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

/// A job, and the tenure that it is of. What another tenure asked for is not done.
struct ReadTask: Sendable {
    var epoch: Epoch
    var job: ReaderJob
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
    private let pace: ReadPace
    /// Nobody signals it: what waits for it pauses.
    private let never = Latch()
    private var epoch = Epoch.none

    /// Makes the thread's work.
    ///
    /// - Parameters:
    ///   - tasks: The jobs.
    ///   - pace: How fast to read.
    ///   - answer: Given what came of it.
    ///   - save: Given what is to be kept aside, and the tenure.
    init(
        tasks: Mailbox<ReadTask>, pace: ReadPace, answer: @escaping @Sendable (Answer) -> Void,
        save: @escaping @Sendable (AsideRun, Epoch) -> Void
    ) {
        self.tasks = tasks
        self.pace = pace
        self.answer = answer
        self.save = save
    }

    /// Works until it is told to close.
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
                // Behind what was asked meanwhile; by then its tenure may be over.
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
