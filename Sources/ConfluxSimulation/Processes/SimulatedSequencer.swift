import ConfluxLog
import ConfluxProtocol
import ConfluxSequencer

/// A sequencer's process: the production machine, and the production worker on a simulated log.
final class SimulatedSequencer {
    let process: Int
    var machine: SequencerMachine
    let worker: LogWorker
    /// What the worker answered, until it is handed to the machine.
    let answers: Answers
    /// The jobs of the log's thread, oldest first; `logFreeAt` is when it has done the last one.
    var logJobs: [LogJob] = []
    var logFreeAt = Duration.zero
    /// What the feed welcomes subscribers with, once the tenure is served.
    var welcome: [UInt8]?
    /// How many frames of each connection wait in the sockets until then.
    var waiting: [UInt64: Int] = [:]
    var isDrainScheduled = false
    var tickAt: Duration?
    var isPaused = false
    /// What would have happened to it while it was paused.
    var deferred: [ClusterEvent] = []
    /// How far its wall clock is off.
    var clockOffset: Int64

    /// Filled by the worker while it works.
    final class Answers {
        var inputs: [SequencerInput] = []
        /// A checkpoint that is due.
        var due: CheckpointJob?
    }

    /// How many bytes of commits stand behind a checkpoint before the next one is made: few, so
    /// that most tenures begin with one.
    private static let checkpointBytes = 4_096

    init(
        process: Int, settings: SequencerSettings, log: SimulatedLog, clockOffset: Int64
    ) {
        self.process = process
        machine = SequencerMachine(settings: settings)
        let answers = Answers()
        self.answers = answers
        worker = LogWorker(
            log: log,
            checkpoints: CheckpointSchedule(intervalBytes: Self.checkpointBytes) { due in
                if case .success(let job) = due { answers.due = job }
            }, answer: { answers.inputs.append($0) })
        self.clockOffset = clockOffset
    }
}
