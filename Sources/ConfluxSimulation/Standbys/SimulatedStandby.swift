import ConfluxLog
import ConfluxProtocol
import ConfluxSequencer
import ConfluxVocabulary
import Synchronization

/// What a simulated sequencer needs if several may serve one log. It mirrors the serving thread's state.
struct SimulatedStandby {
    /// Its slot, in which another process starts after a crash.
    let slot: Int
    var course: StandbyCourse
    /// Whether it stands by and looks at the log.
    var isStandingBy = false
    /// When the last look began.
    var lookBegunAt = Duration.zero
    /// The epoch of its last claim that succeeded.
    var claimed = Epoch.none
    /// The heartbeat of its term.
    var heartbeat: SimulatedHeartbeat?
    /// The job of the log's thread whose request or answer is under way.
    var call = LogCall.none

    /// What the log's thread waits for.
    enum LogCall {
        case none
        case asked
        case answered(LogWorkDone)
    }

    init(slot: Int, lot: Double) {
        self.slot = slot
        course = StandbyCourse(address: Self.address(of: slot), lot: lot)
    }

    /// Where nodes reach the sequencer in a slot.
    static func address(of slot: Int) -> String { "tcp://10.0.0.\(slot + 1):7400" }

    /// The address of its feed.
    static func feed(of slot: Int) -> String { "tcp://10.0.0.\(slot + 1):7401" }
}

/// The outcome of a job of the log's thread, on its way to the receiver.
struct LogWorkDone {
    var term: UInt64
    var inputs: [SequencerInput]
    var rest: LogJob?
    var looks: [LogLook]
}

/// The outcomes of looks at the log, until they are handed over.
final class LogLooks: Sendable {
    private let looks = Mutex<[LogLook]>([])

    func add(_ look: LogLook) { looks.withLock { $0.append(look) } }

    func takeAll() -> [LogLook] {
        looks.withLock { exchange(&$0, with: []) }
    }
}

/// The state of the heartbeat thread.
struct SimulatedHeartbeat {
    let heartbeat: any TermHeartbeat
    var course: HeartbeatCourse
    /// The outcome of the call whose answer is under way.
    var answer: (begun: Duration, result: Result<[StandbyWord], LogError>)?
}
