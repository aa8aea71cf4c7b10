import ConfluxLog
import ConfluxProtocol
import ConfluxVocabulary
import ConfluxZeroMQ
import Synchronization

/// A job for the heartbeat thread.
enum HeartbeatJob: Sendable {
    /// A term has begun.
    case begin(Handover<any TermHeartbeat>, Epoch)
    /// The term is over. The standby with this address is to take over; without an address, any standby
    /// may.
    case leave(successor: String?)
    /// The term ended in another way: the thread says nothing more about it.
    case fall
    case close
}

/// A finding of the heartbeat thread.
enum HeartbeatNews: Sendable {
    /// The sequencers that stand by.
    case standbys([StandbyWord])
    /// The term is over, or can no longer be confirmed.
    case deposed(SequencerEnd)
}

/// The newest term of this process, and when it last showed that it works. Any thread may update it.
final class TermSigns: Sendable {
    private let epoch = Atomic<UInt64>(0)
    private let confirmed = Atomic<Int64>(0)
    private let turned = Atomic<Int64>(0)

    /// The epoch of the last claim of this process that succeeded, even if its term never began.
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

/// Says a few times a second that a term serves (rule 47). It has a thread of its own, so that appends
/// can't delay it. ``HeartbeatCourse`` decides when, and for how long.
final class HeartbeatThread {
    private struct Term {
        let heartbeat: any TermHeartbeat
        var course: HeartbeatCourse
    }

    private let jobs: Mailbox<HeartbeatJob>
    private let address: String
    private let signs: TermSigns
    private let tell: @Sendable (HeartbeatNews, Epoch) -> Void
    private var term: Term?
    private var batch: [HeartbeatJob] = []

    init(
        jobs: Mailbox<HeartbeatJob>, address: String, signs: TermSigns,
        tell: @escaping @Sendable (HeartbeatNews, Epoch) -> Void
    ) {
        self.jobs = jobs
        self.address = address
        self.signs = signs
        self.tell = tell
    }

    /// Works until it is closed.
    func run() {
        while true {
            let timeout = term.map { max(.zero, $0.course.dueAt - Moment.now.monotonic) }
            jobs.wait(into: &batch, timeout: timeout)
            for job in batch {
                switch job {
                case .begin(let heartbeat, let epoch): begin(heartbeat.value, epoch)
                case .leave(let successor): leave(to: successor)
                case .fall: term = nil
                case .close: return
                }
            }
            if let term, Moment.now.monotonic >= term.course.dueAt { say() }
        }
    }

    private func begin(_ heartbeat: any TermHeartbeat, _ epoch: Epoch) {
        term = Term(
            heartbeat: heartbeat,
            course: HeartbeatCourse(of: epoch, at: address, begun: Moment.now.monotonic))
    }

    private func say() {
        let begun = Moment.now.monotonic
        guard let heartbeat = term?.heartbeat,
            let word = term?.course.say(at: begun, turned: signs.turnedAt)
        else { return }
        do throws(LogError) {
            let standbys = try heartbeat.say(word)
            term?.course.said(since: begun)
            tell(.standbys(standbys), word.epoch)
        } catch {
            let end = term?.course.failed(
                error, at: Moment.now.monotonic, confirmed: signs.confirmedAt)
            if let end { tell(.deposed(end), word.epoch) }
        }
    }

    /// Says that the term is over, which is faster than waiting for others to notice. If the word can't be
    /// written, they notice by themselves.
    private func leave(to successor: String?) {
        guard var term else { return }
        self.term = nil
        _ = try? term.heartbeat.say(term.course.leave(to: successor))
    }
}

/// The running thread, and the mailbox of its jobs.
struct Heartbeats: Sendable {
    let jobs: Mailbox<HeartbeatJob>
    let address: String
    let signs: TermSigns
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

    /// Stops the thread after it has done its jobs. It also ends a term that nothing else has ended.
    func stop() {
        jobs.post(.leave(successor: nil))
        jobs.post(.close)
        thread.join()
    }
}

extension HeartbeatThread {
    /// The most jobs that wait. Never reached: there are two for each term.
    private static let jobsMax = 1_024

    /// Starts the thread, if several sequencers may serve.
    ///
    /// - Returns: The thread; nil if it is not needed.
    static func start(
        if isShared: Bool, at address: String, _ answers: Mailbox<ServingInput>
    ) throws(ZeroMQError) -> Heartbeats? {
        guard isShared else { return nil }
        let jobs = Mailbox<HeartbeatJob>(capacity: jobsMax, waker: try Waker())
        let signs = TermSigns()
        let thread = try NamedThread("conflux-heartbeat", stackBytes: 1 << 20) {
            HeartbeatThread(jobs: jobs, address: address, signs: signs) {
                answers.post(.news($0, $1))
            }.run()
        }
        return Heartbeats(jobs: jobs, address: address, signs: signs, thread: thread)
    }
}
