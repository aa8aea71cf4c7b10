import Conflux
import ConfluxProtocol
import ConfluxZeroMQ
import Dispatch

/// The thread that drives an ``Applier``: it decides nothing.
// Sendable: confined to the thread; other threads only post.
final class ApplyThread: @unchecked Sendable {
    private let jobs: Mailbox<ApplyJob>
    private let applier: Applier
    private let progress: SharedProgress

    init(
        jobs: Mailbox<ApplyJob>, link: LinkPort, progress: SharedProgress, refusalBytesMax: Int,
        announce: @escaping @Sendable (NodeEvent) -> Void, journal: CrashJournal?,
        shelf: EncodingShelf,
        tap: (@Sendable (Commit) -> Void)?
    ) {
        self.jobs = jobs
        self.progress = progress
        // One state is encoded or decoded at a time, beside what is applied.
        let queue = DispatchQueue(label: "conflux-digest", qos: .utility)
        applier = Applier(
            refusalBytesMax: refusalBytesMax, tell: { link.post(.machine($0)) },
            post: { jobs.post($0) }, clock: { Moment.now.monotonic },
            announce: announce, journal: journal, shelf: shelf,
            background: { queue.async(execute: $0) }, tap: tap)
    }

    /// Works until it is told to stop.
    func run() {
        var batch: [ApplyJob] = []
        while true {
            jobs.wait(into: &batch)
            for (index, job) in batch.enumerated() {
                if case .stop = job {
                    finish(batch[(index + 1)...])
                    return
                }
                applier.perform(job)
                progress.update(from: applier)
            }
        }
    }

    /// What was posted behind the end ends, too.
    private func finish(_ rest: ArraySlice<ApplyJob>) {
        jobs.close()
        var late: [ApplyJob] = []
        jobs.drain(into: &late)
        applier.finish(dropping: rest + late)
    }
}
