import ConfluxLog
import ConfluxProtocol
import ConfluxSequencer
import ConfluxVocabulary
import Synchronization

/// What a simulated sequencer has besides where several may serve one log. The thread that serves keeps the same.
struct SimulatedStandby {
    /// Its place, which is filled again after a crash.
    let slot: Int
    var course: StandbyCourse
    /// Whether it stands by, and looks at the log.
    var isStandingBy = false
    /// When the last look began.
    var lookBegunAt = Duration.zero
    /// What says that its tenure serves.
    var herald: SimulatedHerald?
    /// The job of the log's thread whose request is under way, or whose answer is.
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

    /// Where nodes reach the sequencer in a place.
    static func address(of slot: Int) -> String { "tcp://10.0.0.\(slot + 1):7400" }

    /// Where its feed is.
    static func feed(of slot: Int) -> String { "tcp://10.0.0.\(slot + 1):7401" }
}

/// What came of a job of the log's thread, on its way to who waits for it.
struct LogWorkDone {
    var tenure: UInt64
    var inputs: [SequencerInput]
    var rest: LogJob?
    var looks: [LogLook]
}

/// What came of looking at the log, until it is handed over.
final class LogLooks: Sendable {
    private let looks = Mutex<[LogLook]>([])

    func add(_ look: LogLook) { looks.withLock { $0.append(look) } }

    func takeAll() -> [LogLook] {
        looks.withLock { looks in
            defer { looks = [] }
            return looks
        }
    }
}

/// What the thread that says who serves has.
struct SimulatedHerald {
    let herald: any TenureHerald
    var course: HeraldCourse
    /// What came of the saying whose answer is under way.
    var answer: (begun: Duration, result: Result<[StandbyWord], LogError>)?
}
