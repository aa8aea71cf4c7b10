import ConfluxLog
import ConfluxProtocol
import ConfluxVocabulary
import ConfluxZeroMQ

/// What the thread that says who serves is told.
enum HeraldJob: Sendable {
    /// A tenure has begun.
    case begin(Handover<any TenureHerald>, Epoch)
    /// It is over. The one with this address is to take over; without one whoever stands by may.
    case leave(successor: String?)
    /// It is over, in another way: nothing is said of it any more.
    case fall
    case close
}

/// What the thread that says who serves has found.
enum HeraldNews: Sendable {
    /// These stand by.
    case standbys([StandbyWord])
    /// The tenure is over, or nobody may know for how long it is not.
    case deposed(SequencerEnd)
}

/// Says a few times a second that a tenure serves, on a thread of its own, since no append may delay it: rule 47.
///
/// Where it can't be said for a while, others take this one for gone, and may have the tenure: so it is given up.
/// That only spares nodes a sequencer that can't commit anything; what fences is the log.
final class HeraldThread {
    /// How often it is said.
    private static let pause = Duration.milliseconds(250)
    /// The pause behind a failure.
    private static let failurePause = Duration.milliseconds(50)

    private struct Tenure {
        let herald: any TenureHerald
        var word: ServingWord
        /// When the last saying that succeeded had begun.
        var saidAt: Duration
        var dueAt: Duration
    }

    private let jobs: Mailbox<HeraldJob>
    private let address: String
    private let tell: @Sendable (HeraldNews, Epoch) -> Void
    private var tenure: Tenure?
    private var batch: [HeraldJob] = []

    init(
        jobs: Mailbox<HeraldJob>, address: String,
        tell: @escaping @Sendable (HeraldNews, Epoch) -> Void
    ) {
        self.jobs = jobs
        self.address = address
        self.tell = tell
    }

    /// Works until it is closed.
    func run() {
        while true {
            let timeout = tenure.map { max(.zero, $0.dueAt - Moment.now.monotonic) }
            jobs.wait(into: &batch, timeout: timeout)
            for job in batch {
                switch job {
                case .begin(let herald, let epoch): begin(herald.value, epoch)
                case .leave(let successor): leave(to: successor)
                case .fall: tenure = nil
                case .close: return
                }
            }
            if let tenure, Moment.now.monotonic >= tenure.dueAt { say() }
        }
    }

    private func begin(_ herald: any TenureHerald, _ epoch: Epoch) {
        let now = Moment.now.monotonic
        tenure = Tenure(
            herald: herald,
            word: ServingWord(epoch: epoch, address: address, renewal: 0, standing: .serving),
            saidAt: now, dueAt: now)
    }

    private func say() {
        guard var tenure else { return }
        let begun = Moment.now.monotonic
        tenure.word.renewal += 1
        do throws(LogError) {
            let standbys = try tenure.herald.say(tenure.word)
            tenure.saidAt = begun
            tenure.dueAt = begun + Self.pause
            tell(.standbys(standbys), tenure.word.epoch)
        } catch {
            let now = Moment.now.monotonic
            tenure.dueAt = now + Self.failurePause
            let end: SequencerEnd? =
                if error.code == .superseded {
                    .superseded
                } else if now - tenure.saidAt >= Candidacy.silenceMax {
                    .logFailed(error.message, summary: error.code.summary)
                } else {
                    nil
                }
            if let end {
                tell(.deposed(end), tenure.word.epoch)
                self.tenure = nil
                return
            }
        }
        self.tenure = tenure
    }

    /// Others need not find out by themselves. Where it can't be said they do.
    private func leave(to successor: String?) {
        guard var tenure else { return }
        self.tenure = nil
        tenure.word.renewal += 1
        tenure.word.standing = .left(successor: successor)
        _ = try? tenure.herald.say(tenure.word)
    }
}

/// The running thread, and where it is told.
struct Heralds: Sendable {
    let jobs: Mailbox<HeraldJob>
    private let thread: NamedThread

    fileprivate init(jobs: Mailbox<HeraldJob>, thread: NamedThread) {
        self.jobs = jobs
        self.thread = thread
    }

    /// Given what says that a tenure serves, when it begins.
    var begin: (any TenureHerald, Epoch) -> Void {
        { [jobs] herald, epoch in jobs.post(.begin(Handover(herald), epoch)) }
    }

    /// Ends the thread, once it has said what it was told to.
    func stop() {
        jobs.post(.close)
        thread.join()
    }
}

extension HeraldThread {
    /// The most jobs that wait. Never reached: there are two for each tenure.
    private static let jobsMax = 1_024

    /// Starts the thread, where several sequencers may serve.
    ///
    /// - Returns: The thread; nil where it is not needed.
    static func start(
        if isShared: Bool, at address: String, _ answers: Mailbox<ServingInput>
    ) throws(ZeroMQError) -> Heralds? {
        guard isShared else { return nil }
        let jobs = Mailbox<HeraldJob>(capacity: jobsMax, waker: try Waker())
        let thread = try NamedThread("conflux-herald", stackBytes: 1 << 20) {
            HeraldThread(jobs: jobs, address: address) { answers.post(.news($0, $1)) }.run()
        }
        return Heralds(jobs: jobs, thread: thread)
    }
}
