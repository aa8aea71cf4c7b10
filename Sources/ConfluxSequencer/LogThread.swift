import ConfluxProtocol
import ConfluxVocabulary
import ConfluxZeroMQ
import Synchronization

/// Owns the log: drives a ``LogWorker`` and decides nothing. It never touches the network, and exchanges
/// messages with the serving thread through bounded queues.
///
/// It has a thread of its own. But waking that thread and being woken by it takes longer than an append to a
/// log in memory, and a good part of the time of a sync. So the serving thread may append by itself
/// (``append(_:)``). If such an append takes long, this thread serves in its place: see ``Lead``.
///
/// *Invariant*: jobs run in the order in which they were posted. So nobody appends outside the queue while a
/// job waits or runs.
// Sendable: `role` guards everything mutable. Its holder runs the jobs.
final class LogThread: @unchecked Sendable {
    /// An input for the machine of one term. The term's number tells it from answers to a failed term,
    /// which may still be on the way.
    // A class, since an input is large, and an answer is copied on its way.
    final class Answer: Sendable {
        let term: UInt64
        let input: SequencerInput

        init(term: UInt64, input: SequencerInput) {
            self.term = term
            self.input = input
        }
    }

    private let jobs: Mailbox<LogJob>
    private let meter: SequencerMeter
    private let answer: @Sendable (Answer) -> Void
    private let role = Mutex(())
    private var worker: LogWorker?
    /// The number of the term in this process that the jobs belong to: 1, 2 … If several sequencers may
    /// serve, number 1 has no term.
    private var term: UInt64 = 1
    private var batch: [LogJob] = []
    private var isClosed = false
    /// Serves while the serving thread appends, and returns how long this thread may sleep. *Invariant*: set
    /// before the threads start.
    var relieve: () -> Duration? = { nil }

    /// Makes the thread's work.
    ///
    /// - Parameters:
    ///   - jobs: The jobs to do.
    ///   - meter: Measures how long each job takes.
    ///   - answer: Gets the outcome of each job.
    ///   - makeWorker: Makes the worker, which answers through the function that it is given.
    init(
        jobs: Mailbox<LogJob>, meter: SequencerMeter,
        answer: @escaping @Sendable (Answer) -> Void,
        makeWorker: (@escaping (SequencerInput) -> Void) -> LogWorker
    ) {
        self.jobs = jobs
        self.meter = meter
        self.answer = answer
        worker = makeWorker { [unowned self] input in
            self.answer(Answer(term: term, input: input))
        }
    }

    /// Works until the log is closed.
    func run() {
        while true {
            let hasWorked = role.withLockIfAvailable { _ in workAll() } ?? false
            if hasWorked { continue }
            if role.withLockIfAvailable({ _ in isClosed }) == true { break }
            jobs.awaitCall(timeout: relieve())
        }
        role.withLock { _ in worker = nil }
    }

    /// Appends on the calling thread, if no other job waits or runs.
    ///
    /// - Parameter append: The append.
    /// - Returns: Whether it is done and answered; if not, post it.
    func append(_ append: Append) -> Bool {
        let isDone = role.withLockIfAvailable { _ in
            guard jobs.count == 0, worker != nil, !isClosed else { return false }
            work(.append(append))
            return true
        }
        // Jobs posted meanwhile woke the log's thread, which could not take the role.
        if jobs.isAnnounced { jobs.wake() }
        return isDone ?? false
    }

    // MARK: Under the role

    /// - Returns: Whether there was anything to do.
    private func workAll() -> Bool {
        guard !isClosed else { return false }
        jobs.drain(into: &batch)
        for job in batch where !isClosed {
            work(job)
            if case .close = job { isClosed = true }
        }
        return !batch.isEmpty
    }

    private func work(_ job: LogJob) {
        switch job {
        case .renew, .takeOver: term += 1
        default: break
        }
        let isAppend = if case .append = job { true } else { false }
        meter.logJobBegins(at: Moment.now.monotonic)
        let rest = worker?.work(job)
        meter.logJobEnds(at: Moment.now.monotonic, isAppend: isAppend)
        // The rest runs after the jobs that were posted meanwhile. By then its term may be over.
        if let rest { jobs.post(rest) }
    }
}
