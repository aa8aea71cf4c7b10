import Conflux
import ConfluxProtocol
import ConfluxVocabulary
import ConfluxZeroMQ
import Dispatch

/// The thread that drives an ``Applier``: it decides nothing.
// Sendable: confined to the thread; other threads only post.
final class ApplyThread: @unchecked Sendable {
    private let jobs: Mailbox<ApplyJob>
    private let applier: Applier
    private let progress: SharedProgress
    private let meter: NodeMeter
    /// When it was published last how things are.
    private var publishedAt = Duration.zero

    init(
        jobs: Mailbox<ApplyJob>, link: LinkPort, progress: SharedProgress, refusalBytesMax: Int,
        announce: @escaping @Sendable (NodeEvent) -> Void, journal: CrashJournal?,
        shelf: EncodingShelf, meter: NodeMeter,
        tap: (@Sendable (Commit) -> Void)?
    ) {
        self.jobs = jobs
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
        var batch: [ApplyJob] = []
        while true {
            jobs.wait(into: &batch, timeout: NodeMeter.publishInterval)
            for (index, job) in batch.enumerated() {
                if case .stop = job {
                    finish(batch[(index + 1)...])
                    return
                }
                meter.jobBegins(at: Moment.now.monotonic)
                applier.perform(job)
                meter.jobEnds()
                progress.update(from: applier)
                // More slices may follow at once: threads that carry receipts run in between.
                if case .goOn = job { NamedThread.yield() }
            }
            publish()
        }
    }

    private func publish() {
        let now = Moment.now.monotonic
        guard now - publishedAt >= NodeMeter.publishInterval else { return }
        publishedAt = now
        meter.publish(applier)
    }

    /// What was posted behind the end ends, too.
    private func finish(_ rest: ArraySlice<ApplyJob>) {
        jobs.close()
        var late: [ApplyJob] = []
        jobs.drain(into: &late)
        applier.finish(dropping: rest + late)
    }
}
