import ConfluxLog
import ConfluxProtocol
import ConfluxVocabulary
import ConfluxZeroMQ

/// What the thread that owns the log works on, one after the other.
enum LogJob: Sendable {
    case claim(Nonce)
    case read(from: SequenceNumber)
    case append(Append)
    case fetch(FetchJob)
    case confirm
    case close
}

/// The thread that owns the log. It never sees the network, so that a slow disk delays nobody's
/// beat; it meets the sequencer's thread in bounded queues alone.
final class LogThread {
    private let log: any ActionLog
    private let jobs: Mailbox<LogJob>
    /// Answers, as inputs of the machine.
    private let answer: @Sendable (SequencerInput) -> Void
    /// The epoch of the present claim, which every append goes by.
    private var epoch = Epoch.none
    /// The last number in the log.
    private var last = SequenceNumber.zero

    /// How many bytes of commits are read at once when the state is rebuilt.
    private static let rebuildBytes = 8 << 20
    /// How often an append whose outcome is not known is repeated, with the very same bytes.
    private static let attemptsMax = 5

    init(
        log: any ActionLog, jobs: Mailbox<LogJob>,
        answer: @escaping @Sendable (SequencerInput) -> Void
    ) {
        self.log = log
        self.jobs = jobs
        self.answer = answer
    }

    func run() {
        var batch: [LogJob] = []
        while true {
            jobs.wait(into: &batch)
            for job in batch {
                if case .close = job {
                    log.close()
                    return
                }
                do throws(LogError) {
                    try perform(job)
                } catch {
                    answer(.logFailed(Self.end(error)))
                }
            }
        }
    }

    private func perform(_ job: LogJob) throws(LogError) {
        switch job {
        case .claim(let nonce):
            let claim = try log.claim()
            epoch = claim.epoch
            last = claim.last
            answer(
                .claimed(
                    log: log.id, epoch: claim.epoch, last: claim.last, floor: log.floor,
                    nonce: nonce))
        case .read(let from):
            answer(.logRead(try read(from: from, limitBytes: Self.rebuildBytes)))
        case .append(let append):
            try self.append(append)
            last = append.last
            answer(.appended)
        case .fetch(let job):
            answer(.fetchRead(job, try read(from: job.from, limitBytes: Int(job.limitBytes))))
        case .confirm:
            try log.confirm()
            answer(.tenureConfirmed)
        case .close: break
        }
    }

    private func read(
        from sequence: SequenceNumber, limitBytes: Int
    ) throws(LogError) -> [Bytes] {
        sequence > last ? [] : try log.read(from: sequence, limitBytes: limitBytes).map(\.bytes)
    }

    /// An append whose outcome is not known is repeated with identical bytes under the same
    /// numbers, until it is known (rule 3).
    private func append(_ append: Append) throws(LogError) {
        let commit = LoggedCommit(
            first: append.first, last: append.last, epoch: epoch,
            bytes: append.frame.dropFirst(Frame.size))
        var attempts = 0
        while true {
            do {
                try log.append(commit, expecting: last, forced: append.isForced)
                return
            } catch  where error.code == .unknownOutcome {
                attempts += 1
                guard attempts < Self.attemptsMax else { throw error }
            }
        }
    }

    private static func end(_ error: LogError) -> SequencerEnd {
        switch error.code {
        case .superseded: .superseded
        case .damaged: .logDamaged(error.message)
        default: .logFailed(error.message)
        }
    }
}
