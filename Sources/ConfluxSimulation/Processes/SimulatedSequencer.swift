import ConfluxLog
import ConfluxProtocol
import ConfluxSequencer
import ConfluxVocabulary

/// A sequencer's process: the production machine, and the production worker on a simulated log.
final class SimulatedSequencer {
    let process: Int
    var machine: SequencerMachine
    private let settings: SequencerSettings
    let worker: LogWorker
    let reads: ReadWorker
    /// Whether the newer of two checkpoints can't be read.
    let isNewestDamaged: Bool
    /// The worker's answers, until the machine gets them.
    let answers: Answers
    /// The outcomes of looks at a shared log.
    let looks = LogLooks()
    /// The jobs of the log's thread, oldest first; `logFreeAt` is when the last one will be done.
    var logJobs: [LogJob] = []
    var logFreeAt = Duration.zero
    /// The jobs of the reading thread, likewise.
    var readJobs: [(epoch: Epoch, job: ReaderJob)] = []
    var readFreeAt = Duration.zero
    /// The frame with which the feed welcomes subscribers, once a term has served.
    var welcome: [UInt8]?
    /// Whether the term has begun. Before that, frames wait in the sockets.
    var isServing = false
    /// How many frames of each connection wait.
    var waiting: [UInt64: Int] = [:]
    var isDrainScheduled = false
    var tickAt: Duration?
    var isPaused = false
    /// The events that came while it was paused.
    var deferred: [ClusterEvent] = []
    /// The error of its wall clock.
    var clockOffset: Int64
    /// Its monotonic clock.
    let clock: DriftingClock
    /// What it needs if several sequencers may serve one log.
    var standby: SimulatedStandby?

    /// Filled by the worker while it works.
    final class Answers {
        var inputs: [SequencerInput] = []
        /// A checkpoint that is due.
        var due: CheckpointJob?
        /// The reader of a term that begins.
        var reader: (epoch: Epoch, reader: any LogReader)?
        /// The gathered entries that are to be kept aside.
        var gathered: AsideRun?
        /// The heartbeat of a term.
        var heartbeat: (epoch: Epoch, heartbeat: any TermHeartbeat)?
        /// When the log last showed that no newer claim exists.
        var confirmedAt = Duration.zero
    }

    /// Decide which answers count, and whose jobs the worker does.
    var gate = TermGate()
    private var workedTerm: UInt64 = 1

    init(
        process: Int, settings: SequencerSettings, log: any ActionLog, checkpointBytes: Int,
        clockOffset: Int64, clock: DriftingClock = .exact, isNewestDamaged: Bool = false,
        now: @escaping () -> Duration = { .zero },
        reopen: @escaping (any ActionLog) throws(LogError) -> any ActionLog = { $0 }
    ) {
        self.process = process
        self.settings = settings
        machine = SequencerMachine(settings: settings)
        let answers = Answers()
        self.answers = answers
        self.isNewestDamaged = isNewestDamaged
        self.clock = clock
        worker = LogWorker(
            log: log,
            checkpoints: CheckpointSchedule(intervalBytes: checkpointBytes) { due in
                if case .success(let job) = due { answers.due = job }
            }, begin: { answers.reader = ($1, $0) },
            sharing: LogSharing(
                address: settings.address, claimed: { answers.heartbeat = ($1, $0) },
                confirmed: { answers.confirmedAt = now() }, hint: {}),
            reopen: reopen, clock: now, answer: { answers.inputs.append($0) })
        reads = ReadWorker(
            answer: { answers.inputs.append($0) }, save: { answers.gathered = $0 })
        self.clockOffset = clockOffset
    }

    /// The machine's next deadline.
    var nextDeadline: Duration? { machine.nextDeadline }

    /// Whether the first of the log's jobs is under way.
    var isLogAsked: Bool {
        guard let standby else { return true }
        return if case .asked = standby.call { true } else { false }
    }

    /// Begins another term on the same sockets, since the log has failed.
    func beginAnew() {
        machine = SequencerMachine(settings: settings)
        isServing = false
    }

    /// Does the next job of the log.
    ///
    /// - Returns: The job's term, its outcome, and the rest of the job.
    func work() -> LogWorkDone {
        let job = logJobs.removeFirst()
        switch job {
        case .renew, .takeOver: workedTerm += 1
        default: break
        }
        let rest = worker.work(job)
        defer { answers.inputs = [] }
        return LogWorkDone(
            term: workedTerm, inputs: answers.inputs, rest: rest, looks: looks.takeAll())
    }

    /// Does the next job of the reading thread.
    ///
    /// - Returns: Like `work()`.
    func read() -> (inputs: [SequencerInput], rest: ReaderJob?) {
        let (epoch, job) = readJobs.removeFirst()
        if case .begin = job {} else { guard epoch == machine.epoch else { return ([], nil) } }
        let rest = reads.work(job)
        defer { answers.inputs = [] }
        return (answers.inputs, rest)
    }
}
