import Conflux
import ConfluxProtocol
import ConfluxVocabulary
import ConfluxZeroMQ
import Dispatch
import Foundation

/// Runs an ``Applier``: on a thread of its own, or on the link's thread if that is faster. It makes no decisions.
///
/// To wake this thread takes longer than to apply a few actions. So the link's thread applies small jobs itself, if
/// nobody else is applying (``beginAside()``). It runs user code then, which may still take long. In that case, this
/// thread drives the link until the link's thread returns.
// Sendable: the thread that has `role` drives the applier, and owns what is not atomic. Other threads only post.
final class ApplyThread: @unchecked Sendable {
    private let jobs: Mailbox<ApplyJob>
    private let applier: Applier
    private let progress: SharedProgress
    private let meter: NodeMeter
    private let role = NSLock()
    private var batch: [ApplyJob] = []
    private var isStopped = false
    /// When the progress was last published.
    private var publishedAt = Duration.zero
    /// How often the link's thread must leave applying to this one, because it took long itself.
    private var waivers = 0
    /// Drives the link while its thread is held up, and returns how long this thread may sleep. *Invariant*: set
    /// before the threads start.
    var relieve: () -> Duration? = { nil }

    /// The longest time that the link's thread may apply before it must leave applying to this one for a while.
    private static let shortMax = Duration.microseconds(500)
    private static let waiversMax = 100
    /// How long a caller that wants to look waits for others to finish: as long as it takes to wake a thread.
    private static let lookWaitMax = Duration.microseconds(30)

    init(
        jobs: Mailbox<ApplyJob>, link: LinkPort, progress: SharedProgress,
        refusalBytesMax: Int,
        announce: @escaping @Sendable (NodeEvent) -> Void, journal: CrashJournal?,
        shelf: EncodingShelf, meter: NodeMeter,
        tap: (@Sendable (Commit) -> Void)?
    ) {
        self.jobs = jobs
        self.progress = progress
        self.meter = meter
        // One state is encoded or decoded at a time, while entries are applied.
        let queue = DispatchQueue(label: "conflux-digest", qos: .utility)
        // A migration may never end. Nothing waits for it, so each has a thread.
        let migrations = DispatchQueue(
            label: "conflux-migration", qos: .utility, attributes: .concurrent)
        applier = Applier(
            refusalBytesMax: refusalBytesMax, tell: { link.post(.machine($0)) },
            post: { jobs.post($0) }, clock: { Moment.now.monotonic },
            announce: announce, journal: journal, shelf: shelf,
            background: { queue.async(execute: $0) },
            apart: { migrations.async(execute: $0) },
            loads: MigrationLoads(
                run: { migrations.async(execute: $0) },
                after: { limit, body in limit.whenOver(body) }), tap: tap,
            meter: meter, inquire: link.effect(of:on:within:))
    }

    /// Works until the job to stop.
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

    /// Lets the calling thread apply, if nobody else is applying and it has not taken long lately. If this returns
    /// true, call ``applyAside()``.
    func beginAside() -> Bool {
        guard role.try() else { return false }
        guard waivers == 0, !isStopped else {
            waivers = max(0, waivers - 1)
            endAside()
            return false
        }
        return true
    }

    /// Applies the waiting jobs.
    func applyAside() {
        let begun = Moment.now.monotonic
        _ = applyAll()
        if Moment.now.monotonic - begun > Self.shortMax { waivers = Self.waiversMax }
        endAside()
    }

    // MARK: On a thread that calls

    /// Looks at the stores on the calling thread, if nothing is being applied and nothing waits for that. To wake this
    /// thread takes longer than most looks.
    ///
    /// - Returns: What the function returned; nil if this thread must call it.
    func lookAtOnce<Value>(_ body: (Applier) -> Value) -> Value? {
        // A caller that has just got a receipt finds the thread that gave it still at work, for some microseconds.
        let begun = Moment.now.monotonic
        while !role.try() {
            guard Moment.now.monotonic - begun < Self.lookWaitMax else { return nil }
            NamedThread.yield()
        }
        defer { endAside() }
        guard !isStopped, jobs.count == 0 else { return nil }
        meter.jobBegins(at: Moment.now.monotonic)
        defer { meter.jobEnds() }
        return body(applier)
    }

    private func endAside() {
        role.unlock()
        // Jobs that arrived meanwhile found another thread applying.
        if jobs.isAnnounced { jobs.wake() }
    }

    // MARK: Under the lock

    /// - Returns: Whether there were any jobs.
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
            // More slices may follow at once. Let threads that deliver receipts run in between.
            switch job {
            case .goOn, .enter: NamedThread.yield()
            default: break
            }
        }
        return !batch.isEmpty
    }

    private func publish() {
        let now = Moment.now.monotonic
        guard now - publishedAt >= NodeMeter.publishInterval else { return }
        publishedAt = now
        meter.publish(applier)
    }

    /// Ends the jobs that were posted after the last one.
    private func finish(_ rest: ArraySlice<ApplyJob>) {
        isStopped = true
        jobs.close()
        var late: [ApplyJob] = []
        jobs.drain(into: &late)
        applier.finish(dropping: rest + late)
    }
}
