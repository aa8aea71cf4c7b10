import Conflux
import ConfluxProtocol
import ConfluxVocabulary
import ConfluxZeroMQ
import Dispatch
import Foundation

/// Drives an ``Applier``: on a thread of its own, or on the link's thread where that is faster. It
/// decides nothing.
///
/// Waking this thread takes longer than applying a few actions. So the link's thread applies small
/// amounts of work itself if nobody else is applying (``beginAside()``). This runs user code, which
/// may still take long. Then this thread takes over the link's work, until the link's thread comes
/// back.
// Sendable: whoever holds `role` drives the applier and owns what is not atomic. Other threads only
// post.
final class ApplyThread: @unchecked Sendable {
    private let jobs: Mailbox<ApplyJob>
    private let applier: Applier
    private let scope: Scope
    private let progress: SharedProgress
    private let meter: NodeMeter
    private let role = NSLock()
    private var batch: [ApplyJob] = []
    private var isStopped = false
    /// When the metrics were last published.
    private var publishedAt = Duration.zero
    /// How many more times the link's thread must leave the applying to this thread, because it
    /// took too long itself.
    private var waivers = 0
    /// Drives the link while the link's thread is held up, and returns how long this thread may
    /// sleep. *Invariant*: set before the threads start.
    var relieve: () -> Duration? = { nil }

    /// How long the link's thread may apply at once. If it takes longer, it must leave the applying
    /// to this thread for a while.
    private static let shortMax = Duration.microseconds(500)
    private static let waiversMax = 100

    init(
        jobs: Mailbox<ApplyJob>, link: LinkPort, scope: Scope, progress: SharedProgress,
        refusalBytesMax: Int,
        announce: @escaping @Sendable (NodeEvent) -> Void, journal: CrashJournal?,
        shelf: EncodingShelf, meter: NodeMeter,
        tap: (@Sendable (Commit) -> Void)?
    ) {
        self.jobs = jobs
        self.scope = scope
        self.progress = progress
        self.meter = meter
        // One state is encoded or decoded at a time, in parallel with applying.
        let queue = DispatchQueue(label: "conflux-digest", qos: .utility)
        applier = Applier(
            refusalBytesMax: refusalBytesMax, tell: { link.post(.machine($0)) },
            post: { jobs.post($0) }, clock: { Moment.now.monotonic },
            announce: announce, journal: journal, shelf: shelf,
            background: { queue.async(execute: $0) }, tap: tap, meter: meter)
    }

    /// Works until it is told to stop.
    func run() {
        while true {
            if role.try() {
                let hasWorked = applyAll()
                publish()
                let isStopped = isStopped
                role.unlock()
                if isStopped { return }
                if hasWorked { continue }
            }
            jobs.awaitCall(timeout: relieve() ?? NodeMeter.publishInterval)
        }
    }

    // MARK: On the link's thread

    /// Lets the calling thread apply, if nobody else does and it has not taken too long lately. If
    /// this returns true, you must call ``applyAside()`` next.
    func beginAside() -> Bool {
        guard role.try() else { return false }
        guard waivers == 0, !isStopped else {
            waivers = max(0, waivers - 1)
            role.unlock()
            // This thread may have been woken for a job just now, and found the role taken.
            if jobs.isAnnounced { jobs.wake() }
            return false
        }
        return true
    }

    /// Applies the jobs that wait.
    func applyAside() {
        let begun = Moment.now.monotonic
        scope.run { _ = applyAll() }
        if Moment.now.monotonic - begun > Self.shortMax { waivers = Self.waiversMax }
        role.unlock()
        // This thread may have been woken for a job meanwhile, and found the role taken.
        if jobs.isAnnounced { jobs.wake() }
    }

    // MARK: Under the lock

    /// - Returns: Whether there was a job.
    private func applyAll() -> Bool {
        jobs.drain(into: &batch)
        for (index, job) in batch.enumerated() {
            if case .stop = job {
                finish(batch[(index + 1)...])
                break
            }
            meter.jobBegins(at: Moment.now.monotonic)
            applier.perform(job)
            meter.jobEnds()
            progress.update(from: applier)
            // More slices may follow at once: let the threads that carry receipts run in between.
            if case .goOn = job { NamedThread.yield() }
        }
        return !batch.isEmpty
    }

    private func publish() {
        let now = Moment.now.monotonic
        guard now - publishedAt >= NodeMeter.publishInterval else { return }
        publishedAt = now
        meter.publish(applier)
    }

    /// Stops, and ends everything that was posted after the stop.
    private func finish(_ rest: ArraySlice<ApplyJob>) {
        isStopped = true
        jobs.close()
        var late: [ApplyJob] = []
        jobs.drain(into: &late)
        applier.finish(dropping: rest + late)
    }
}
