import ConfluxProtocol
import ConfluxVocabulary
import ConfluxWorker
import Synchronization

/// The newest commits that the node was given, and how many actions each target has received. Safe on any thread.
///
/// The thread that applies fills it, so it does little for each commit: nobody may be reading.
final class CommitRing: Sendable {
    /// The most commits that are kept. *At the bound* the oldest is discarded: whoever reads entries is told how many
    /// were left out.
    static let commitsMax = 512
    /// The most bytes of their actions. *At the bound* the oldest commits are discarded.
    static let bytesMax = 8 << 20
    /// The most targets whose actions are counted, each by itself. *At the bound* further ones are not.
    static let targetsMax = 10_000

    private struct Content {
        /// A circle: the oldest commit is at `start`.
        var commits: [(commit: Commit, byteCount: Int)?] = Array(
            repeating: nil, count: CommitRing.commitsMax)
        var start = 0
        var count = 0
        var byteCount = 0
        var counts: [Target: UInt64] = [:]
        var total: UInt64 = 0
        /// The newest entry that was counted, and its epoch.
        var highest = (epoch: Epoch.none, sequence: SequenceNumber.zero)

        mutating func removeOldest() {
            byteCount -= commits[start]?.byteCount ?? 0
            commits[start] = nil
            start = (start + 1) % CommitRing.commitsMax
            count -= 1
        }
    }

    private let content = Mutex(Content())

    func note(_ commit: Commit) {
        let (counts, byteCount) = Self.weigh(commit)
        content.withLock { content in
            // A store that catches up is given entries that others were given before.
            let isNew =
                commit.epoch > content.highest.epoch || commit.last > content.highest.sequence
            if isNew {
                content.highest = (commit.epoch, commit.last)
                content.total += UInt64(commit.count)
            }
            for (target, count) in counts where isNew {
                guard content.counts[target] != nil || content.counts.count < Self.targetsMax
                else { continue }
                content.counts[target, default: 0] += count
            }
            while content.count > 0,
                content.count == Self.commitsMax || content.byteCount + byteCount > Self.bytesMax
            { content.removeOldest() }
            guard byteCount <= Self.bytesMax else { return }
            content.commits[(content.start + content.count) % Self.commitsMax] = (
                commit, byteCount
            )
            content.count += 1
            content.byteCount += byteCount
        }
    }

    private static func weigh(_ commit: Commit) -> (counts: [(Target, UInt64)], byteCount: Int) {
        var counts: [(Target, UInt64)] = []
        var byteCount = 0
        for case .batch(_, let batch) in commit.blocks {
            byteCount += batch.encoded.count
            if batch.targets.count == 1 {
                counts.append((batch.targets[0].target, UInt64(batch.count)))
            } else {
                for entry in batch.parsedEntries {
                    counts.append((batch.targets[entry.target].target, 1))
                }
            }
        }
        return (counts, byteCount)
    }

    /// The commits with entries behind a number, oldest first. After the log has lost its end, numbers go back: then all
    /// that are kept.
    func commits(behind number: SequenceNumber) -> [Commit] {
        content.withLock { content in
            let all = (0..<content.count).compactMap { index in
                content.commits[(content.start + index) % Self.commitsMax]?.commit
            }
            guard let newest = all.last, newest.last >= number else { return all }
            return all.filter { $0.last > number }
        }
    }

    /// How many entries the node was given, and how many actions each target received.
    var counts: (total: UInt64, targets: [Target: UInt64]) {
        content.withLock { ($0.total, $0.counts) }
    }
}
