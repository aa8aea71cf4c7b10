import Conflux
import ConfluxProtocol
import ConfluxVocabulary
import ConfluxZeroMQ
import Dispatch
import Foundation

/// What drives an ``Applier``: a thread of its own, or the link's where that is sooner done. It decides
/// nothing.
///
/// To wake this thread takes longer than to apply some actions. So the link's thread applies by itself what is
/// little, where nobody applies just then (``beginAside()``). What it runs there is the user's code, and may
/// take long in spite of everything: then this thread relieves the link's, until that comes back.
// Sendable: whoever has `role` drives the applier, and has what is not atomic; other threads only post.
final class ApplyThread: @unchecked Sendable {
    private let jobs: Mailbox<ApplyJob>
    private let applier: Applier
    private let scope: Scope
    private let progress: SharedProgress
    private let meter: NodeMeter
    private let role = NSLock()
    private var batch: [ApplyJob] = []
    private var isStopped = false
    /// When it was published last how things are.
    private var publishedAt = Duration.zero
    /// How often the link's thread must let this one apply, since it took long itself.
    private var waivers = 0
    /// Drives the link while its thread is held up, and says how long this one may sleep. *Invariant*: set
    /// before the threads start.
    var relieve: () -> Duration? = { nil }

    /// How long the link's thread may apply without having to let this one apply for a while.
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
        // One state is encoded or decoded at a time, beside what is applied.
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

    /// Has the calling thread apply, if nobody does and it has not taken long lately. ``applyAside()`` must
    /// follow.
    func beginAside() -> Bool {
        guard role.try() else { return false }
        guard waivers == 0, !isStopped else {
            waivers = max(0, waivers - 1)
            role.unlock()
            // The one that was woken for a job found this thread at it.
            if jobs.isAnnounced { jobs.wake() }
            return false
        }
        return true
    }

    /// Applies what waits.
    func applyAside() {
        let begun = Moment.now.monotonic
        scope.run { _ = applyAll() }
        if Moment.now.monotonic - begun > Self.shortMax { waivers = Self.waiversMax }
        role.unlock()
        // What came meanwhile found this thread at it.
        if jobs.isAnnounced { jobs.wake() }
    }

    // MARK: Under the lock

    /// - Returns: Whether there was something.
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
            // More slices may follow at once: threads that carry receipts run in between.
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

    /// What was posted behind the end ends, too.
    private func finish(_ rest: ArraySlice<ApplyJob>) {
        isStopped = true
        jobs.close()
        var late: [ApplyJob] = []
        jobs.drain(into: &late)
        applier.finish(dropping: rest + late)
    }
}
