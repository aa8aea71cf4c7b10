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
    /// Whether the newest of two checkpoints can't be read.
    let isNewestDamaged: Bool
    /// What the worker answered, until it is handed to the machine.
    let answers: Answers
    /// What it found where it looked at a log of others.
    let looks = LogLooks()
    /// The jobs of the log's thread, oldest first; `logFreeAt` is when it has done the last one.
    var logJobs: [LogJob] = []
    var logFreeAt = Duration.zero
    /// The jobs of the thread that reads for others, likewise.
    var readJobs: [(epoch: Epoch, job: ReaderJob)] = []
    var readFreeAt = Duration.zero
    /// What the feed welcomes subscribers with, once a tenure was served.
    var welcome: [UInt8]?
    /// Whether the tenure has begun: before, frames wait in the sockets.
    var isServing = false
    /// How many frames of each connection wait there.
    var waiting: [UInt64: Int] = [:]
    var isDrainScheduled = false
    var tickAt: Duration?
    var isPaused = false
    /// What would have happened to it while it was paused.
    var deferred: [ClusterEvent] = []
    /// How far its wall clock is off.
    var clockOffset: Int64
    /// Its other clock.
    let clock: DriftingClock
    /// What it has besides where several may serve one log.
    var standby: SimulatedStandby?

    /// Filled by the worker while it works.
    final class Answers {
        var inputs: [SequencerInput] = []
        /// A checkpoint that is due.
        var due: CheckpointJob?
        /// A reader of a tenure that begins.
        var reader: (epoch: Epoch, reader: any LogReader)?
        /// What is to be kept aside, and is gathered.
        var gathered: AsideRun?
        /// What says that a tenure serves.
        var herald: (epoch: Epoch, herald: any TenureHerald)?
        /// When the log has last shown that no newer claim exists.
        var confirmedAt = Duration.zero
    }

    /// Which answers count, and of which tenure the worker does the jobs.
    var gate = TenureGate()
    private var workedTenure: UInt64 = 1

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
                address: settings.address, claimed: { answers.herald = ($1, $0) },
                confirmed: { answers.confirmedAt = now() }, hint: {}),
            reopen: reopen, clock: now, answer: { answers.inputs.append($0) })
        reads = ReadWorker(
            answer: { answers.inputs.append($0) }, save: { answers.gathered = $0 })
        self.clockOffset = clockOffset
    }

    /// When the machine wants to be told the time. Looked at in place: a copy of the whole machine
    /// would be made at each step otherwise.
    var nextDeadline: Duration? { Self.deadline(of: &machine) }

    private static func deadline(of machine: inout SequencerMachine) -> Duration? {
        machine.nextDeadline
    }

    /// Whether the first of the log's jobs is under way.
    var isLogAsked: Bool {
        guard let standby else { return true }
        return if case .asked = standby.call { true } else { false }
    }

    /// The log has failed: another tenure is to begin, on the same sockets.
    func beginAnew() {
        machine = SequencerMachine(settings: settings)
        isServing = false
    }

    /// Does the next job of the log.
    ///
    /// - Returns: The tenure that it is of, what came of it, and what is left of it.
    func work() -> LogWorkDone {
        let job = logJobs.removeFirst()
        switch job {
        case .renew, .takeOver: workedTenure += 1
        default: break
        }
        let rest = worker.work(job)
        defer { answers.inputs = [] }
        return LogWorkDone(
            tenure: workedTenure, inputs: answers.inputs, rest: rest, looks: looks.takeAll())
    }

    /// Does the next job of what is read for others.
    ///
    /// - Returns: As `work()`.
    func read() -> (inputs: [SequencerInput], rest: ReaderJob?) {
        let (epoch, job) = readJobs.removeFirst()
        if case .begin = job {} else { guard epoch == machine.epoch else { return ([], nil) } }
        let rest = reads.work(job)
        defer { answers.inputs = [] }
        return (answers.inputs, rest)
    }
}
