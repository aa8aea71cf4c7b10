import ConfluxLog
import ConfluxProtocol
import ConfluxVocabulary
import ConfluxZeroMQ
import Synchronization

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

/// When a tenure has last shown that it works. Any thread may note it.
final class TenureSigns: Sendable {
    private let confirmed = Atomic<Int64>(0)
    private let turned = Atomic<Int64>(0)

    /// When the log has last shown that no newer claim exists.
    var confirmedAt: Duration { .nanoseconds(confirmed.load(ordering: .relaxed)) }
    /// When the thread that serves has last had a turn.
    var turnedAt: Duration { .nanoseconds(turned.load(ordering: .relaxed)) }

    func confirm(at now: Duration) {
        confirmed.store(Int64(now / .nanoseconds(1)), ordering: .relaxed)
    }
    func turn(at now: Duration) { turned.store(Int64(now / .nanoseconds(1)), ordering: .relaxed) }
}

/// Says a few times a second that a tenure serves, on a thread of its own, since no append may delay it: rule 47.
///
/// Where neither that nor an append has succeeded for a while, others take this one for gone, and may have the tenure:
/// so it is given up. That only spares nodes a sequencer that can't commit anything; what fences is the log.
final class HeraldThread {
    /// How often it is said.
    private static let pause = Duration.milliseconds(250)
    /// The pause behind a failure.
    private static let failurePause = Duration.milliseconds(50)
    /// How long the log may confirm nothing. While etcd chooses a leader, two seconds by its defaults, nobody can claim
    /// the log either.
    private static let doubtMax = Duration.milliseconds(2_500)
    /// How long the thread that serves may have no turn; it has one each second. Whoever hangs is silent, and others
    /// take over.
    private static let hangMax = Duration.seconds(3)

    private struct Tenure {
        let herald: any TenureHerald
        var word: ServingWord
        /// When the last saying that succeeded had begun.
        var saidAt: Duration
        /// When it is said next.
        var dueAt: Duration
    }

    private let jobs: Mailbox<HeraldJob>
    private let address: String
    private let signs: TenureSigns
    private let tell: @Sendable (HeraldNews, Epoch) -> Void
    private var tenure: Tenure?
    private var batch: [HeraldJob] = []

    init(
        jobs: Mailbox<HeraldJob>, address: String, signs: TenureSigns,
        tell: @escaping @Sendable (HeraldNews, Epoch) -> Void
    ) {
        self.jobs = jobs
        self.address = address
        self.signs = signs
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
        tenure.dueAt = begun + Self.pause
        defer { self.tenure = tenure }
        guard begun - signs.turnedAt <= Self.hangMax else { return }
        tenure.word.renewal += 1
        do throws(LogError) {
            let standbys = try tenure.herald.say(tenure.word)
            tenure.saidAt = begun
            tell(.standbys(standbys), tenure.word.epoch)
        } catch {
            let now = Moment.now.monotonic
            tenure.dueAt = now + Self.failurePause
            let end: SequencerEnd
            if error.code == .superseded {
                end = .superseded
            } else if now - max(tenure.saidAt, signs.confirmedAt) >= Self.doubtMax {
                end = .logFailed(error.message, summary: error.code.summary)
            } else {
                return
            }
            // It is told until the tenure is over: at first nobody may know of that yet.
            tenure.dueAt = now + Self.pause
            tell(.deposed(end), tenure.word.epoch)
        }
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
    let address: String
    let signs: TenureSigns
    fileprivate let thread: NamedThread

    /// What the log's worker has of it.
    func sharing(hint: @escaping @Sendable () -> Void) -> LogSharing {
        LogSharing(
            address: address,
            claimed: { [jobs] in jobs.post(.begin(Handover($0), $1)) },
            confirmed: { [signs] in signs.confirm(at: Moment.now.monotonic) }, hint: hint)
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
        let signs = TenureSigns()
        let thread = try NamedThread("conflux-herald", stackBytes: 1 << 20) {
            HeraldThread(jobs: jobs, address: address, signs: signs) {
                answers.post(.news($0, $1))
            }.run()
        }
        return Heralds(jobs: jobs, address: address, signs: signs, thread: thread)
    }
}
