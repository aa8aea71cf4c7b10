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
    private struct Content {
        /// A circle: the oldest commit is at `start`.
        var commits: [(commit: Commit, byteCount: Int)?] = Array(
            repeating: nil, count: CommitRing.commitsMax)
        var start = 0
        var count = 0
        var byteCount = 0

        mutating func removeOldest() {
            byteCount -= commits[start]?.byteCount ?? 0
            commits[start] = nil
            start = (start + 1) % CommitRing.commitsMax
            count -= 1
        }
    }

    private let content = Mutex(Content())
    let counts = ActionCounts()

    func note(_ commit: Commit) {
        counts.note(commit)
        let byteCount = commit.blocks.reduce(0) { sum, block in
            guard case .batch(_, let batch) = block else { return sum }
            return sum + batch.encoded.count
        }
        content.withLock { content in
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
}
