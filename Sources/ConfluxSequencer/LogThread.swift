import ConfluxLog
import ConfluxProtocol
import ConfluxVocabulary
import ConfluxZeroMQ
import Synchronization

/// What owns the log: it drives a ``LogWorker`` and decides nothing. It never sees the network, and meets the
/// sequencer's thread in bounded queues.
///
/// It has a thread of its own. But waking that, and being woken by it, takes longer than to append to a log in
/// memory, and a good part of a sync. So the sequencer's thread may append by itself (``append(_:)``). Where
/// that takes long, this thread serves in its stead: see ``Lead``.
///
/// *Invariant*: jobs are done in the order in which they were posted. So nobody appends beside the queue
/// while a job waits in it, or is being done.
// Sendable: everything that changes is guarded by `role`: whoever has it does the jobs.
final class LogThread: @unchecked Sendable {
    /// What the machine of one tenure is told. Answers of the tenure before, which were on their way
    /// when it failed, are told by their number.
    struct Answer: Sendable {
        var tenure: UInt64
        var input: SequencerInput
    }

    private let jobs: Mailbox<LogJob>
    private let meter: SequencerMeter
    private let answer: @Sendable (Answer) -> Void
    private let role = Mutex(())
    private var worker: LogWorker?
    /// Which tenure of this process the jobs are of: 1, 2 … Where several sequencers may serve, 1 is none.
    private var tenure: UInt64 = 1
    private var batch: [LogJob] = []
    private var isClosed = false
    /// Serves while the thread that serves appends, and says how long this one may sleep. *Invariant*: set
    /// before the threads start.
    var relieve: () -> Duration? = { nil }

    /// Makes the thread's work.
    ///
    /// - Parameters:
    ///   - jobs: The jobs.
    ///   - meter: Told how long it takes.
    ///   - answer: Given what came of it.
    ///   - makeWorker: Makes what does it, and answers by the function that it is given.
    init(
        jobs: Mailbox<LogJob>, meter: SequencerMeter,
        answer: @escaping @Sendable (Answer) -> Void,
        makeWorker: (@escaping (SequencerInput) -> Void) -> LogWorker
    ) {
        self.jobs = jobs
        self.meter = meter
        self.answer = answer
        worker = makeWorker { [unowned self] input in
            self.answer(Answer(tenure: tenure, input: input))
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

    /// Does an append on the thread that calls, if nothing else is to be done to the log.
    ///
    /// - Parameter append: The append.
    /// - Returns: Whether it is done, and answered; if not, it must be posted.
    func append(_ append: Append) -> Bool {
        let isDone = role.withLockIfAvailable { _ in
            guard jobs.count == 0, worker != nil, !isClosed else { return false }
            work(.append(append))
            return true
        }
        // What came meanwhile found the log's own thread without the role.
        if jobs.isAnnounced { jobs.wake() }
        return isDone ?? false
    }

    // MARK: Under the role

    /// - Returns: Whether there was something.
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
        case .renew, .takeOver: tenure += 1
        default: break
        }
        let isAppend = if case .append = job { true } else { false }
        meter.logJobBegins(at: Moment.now.monotonic)
        let rest = worker?.work(job)
        meter.logJobEnds(at: Moment.now.monotonic, isAppend: isAppend)
        // Behind what was asked meanwhile; by then its tenure may be over.
        if let rest { jobs.post(rest) }
    }
}
