import ConfluxLog
import ConfluxProtocol
import ConfluxVocabulary
import ConfluxZeroMQ
import Synchronization

/// A job for the herald thread.
enum HeraldJob: Sendable {
    /// A tenure has begun.
    case begin(Handover<any TenureHerald>, Epoch)
    /// The tenure is over. The standby with this address is to take over; without an address, any standby
    /// may.
    case leave(successor: String?)
    /// The tenure ended in another way: the thread says nothing more about it.
    case fall
    case close
}

/// A finding of the herald thread.
enum HeraldNews: Sendable {
    /// The sequencers that stand by.
    case standbys([StandbyWord])
    /// The tenure is over, or can no longer be confirmed.
    case deposed(SequencerEnd)
}

/// The newest tenure of this process, and when it last showed that it works. Any thread may update it.
final class TenureSigns: Sendable {
    private let epoch = Atomic<UInt64>(0)
    private let confirmed = Atomic<Int64>(0)
    private let turned = Atomic<Int64>(0)

    /// The epoch of the last claim of this process that succeeded, even if its tenure never began.
    var claimed: Epoch { Epoch(epoch.load(ordering: .relaxed)) }
    /// When the log last showed that no newer claim exists.
    var confirmedAt: Duration { .nanoseconds(confirmed.load(ordering: .relaxed)) }
    /// When the serving thread last had a turn.
    var turnedAt: Duration { .nanoseconds(turned.load(ordering: .relaxed)) }

    func claim(_ claimed: Epoch) { epoch.store(claimed.rawValue, ordering: .relaxed) }
    func confirm(at now: Duration) {
        confirmed.store(Int64(now / .nanoseconds(1)), ordering: .relaxed)
    }
    func turn(at now: Duration) { turned.store(Int64(now / .nanoseconds(1)), ordering: .relaxed) }
}

/// Says a few times a second that a tenure serves (rule 47). It has a thread of its own, so that appends
/// can't delay it. ``HeraldCourse`` decides when, and for how long.
final class HeraldThread {
    private struct Tenure {
        let herald: any TenureHerald
        var course: HeraldCourse
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
            let timeout = tenure.map { max(.zero, $0.course.dueAt - Moment.now.monotonic) }
            jobs.wait(into: &batch, timeout: timeout)
            for job in batch {
                switch job {
                case .begin(let herald, let epoch): begin(herald.value, epoch)
                case .leave(let successor): leave(to: successor)
                case .fall: tenure = nil
                case .close: return
                }
            }
            if let tenure, Moment.now.monotonic >= tenure.course.dueAt { say() }
        }
    }

    private func begin(_ herald: any TenureHerald, _ epoch: Epoch) {
        tenure = Tenure(
            herald: herald,
            course: HeraldCourse(of: epoch, at: address, begun: Moment.now.monotonic))
    }

    private func say() {
        let begun = Moment.now.monotonic
        guard let herald = tenure?.herald,
            let word = tenure?.course.say(at: begun, turned: signs.turnedAt)
        else { return }
        do throws(LogError) {
            let standbys = try herald.say(word)
            tenure?.course.said(since: begun)
            tell(.standbys(standbys), word.epoch)
        } catch {
            let end = tenure?.course.failed(
                error, at: Moment.now.monotonic, confirmed: signs.confirmedAt)
            if let end { tell(.deposed(end), word.epoch) }
        }
    }

    /// Says that the tenure is over, which is faster than waiting for others to notice. If the word can't be
    /// written, they notice by themselves.
    private func leave(to successor: String?) {
        guard var tenure else { return }
        self.tenure = nil
        _ = try? tenure.herald.say(tenure.course.leave(to: successor))
    }
}

/// The running thread, and the mailbox of its jobs.
struct Heralds: Sendable {
    let jobs: Mailbox<HeraldJob>
    let address: String
    let signs: TenureSigns
    fileprivate let thread: NamedThread

    /// The part that the log's worker needs.
    func sharing(hint: @escaping @Sendable () -> Void) -> LogSharing {
        LogSharing(
            address: address,
            claimed: { [jobs, signs] in
                signs.claim($1)
                jobs.post(.begin(Handover($0), $1))
            },
            confirmed: { [signs] in signs.confirm(at: Moment.now.monotonic) }, hint: hint)
    }

    /// Stops the thread after it has done its jobs. It also ends a tenure that nothing else has ended.
    func stop() {
        jobs.post(.leave(successor: nil))
        jobs.post(.close)
        thread.join()
    }
}

extension HeraldThread {
    /// The most jobs that wait. Never reached: there are two for each tenure.
    private static let jobsMax = 1_024

    /// Starts the thread, if several sequencers may serve.
    ///
    /// - Returns: The thread; nil if it is not needed.
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
