import ConfluxLog
import ConfluxProtocol
import ConfluxVocabulary
import ConfluxZeroMQ

/// The thread that owns the log: it drives a ``LogWorker`` and decides nothing. It never sees the
/// network, and meets the sequencer's thread in bounded queues alone.
final class LogThread {
    /// What the machine of one tenure is told. Answers of the tenure before, which were on their way
    /// when it failed, are told by their number.
    struct Answer: Sendable {
        var tenure: UInt64
        var input: SequencerInput
    }

    private let jobs: Mailbox<LogJob>
    private let makeWorker: (@escaping (SequencerInput) -> Void) -> LogWorker
    private let meter: SequencerMeter
    private let answer: @Sendable (Answer) -> Void
    /// Which tenure of this process the jobs are of: 1, 2 …
    private var tenure: UInt64 = 1

    /// Makes the thread's work.
    ///
    /// - Parameters:
    ///   - jobs: What is to be done.
    ///   - meter: Told how long it takes.
    ///   - answer: Given what came of it.
    ///   - makeWorker: Makes what does it, and answers by the function that it is given.
    init(
        jobs: Mailbox<LogJob>, meter: SequencerMeter, answer: @escaping @Sendable (Answer) -> Void,
        makeWorker: @escaping (@escaping (SequencerInput) -> Void) -> LogWorker
    ) {
        self.jobs = jobs
        self.meter = meter
        self.answer = answer
        self.makeWorker = makeWorker
    }

    /// Works until the log is closed.
    func run() {
        let worker = makeWorker { [unowned self] input in
            answer(Answer(tenure: tenure, input: input))
        }
        var batch: [LogJob] = []
        while true {
            jobs.wait(into: &batch)
            for job in batch {
                if case .renew = job { tenure += 1 }
                meter.logJobBegins(at: Moment.now.monotonic)
                let rest = worker.work(job)
                let isAppend = if case .append = job { true } else { false }
                meter.logJobEnds(at: Moment.now.monotonic, isAppend: isAppend)
                // Behind what was asked meanwhile; by then its tenure may be over.
                if let rest { jobs.post(rest) }
                if case .close = job { return }
            }
        }
    }
}
