import ConfluxNode
import ConfluxProtocol
import ConfluxVocabulary
import Synchronization

/// How many actions each target has received, of the commits that a node was given. Safe on any thread.
package final class ActionCounts: Sendable {
    /// The most targets whose actions are counted, each by itself. *At the bound* further ones are not.
    package static let targetsMax = 10_000

    private struct Content {
        var targets: [Target: UInt64] = [:]
        var total: UInt64 = 0
        /// The newest entry that was counted, and its epoch.
        var highest = (epoch: Epoch.none, sequence: SequenceNumber.zero)
    }

    private let content = Mutex(Content())

    package init() {}

    /// Counts a commit, unless it is one with which a store catches up: others were given it before.
    ///
    /// - Parameter commit: The commit.
    package func note(_ commit: Commit) {
        let counts = Self.counts(commit)
        content.withLock { content in
            guard commit.epoch > content.highest.epoch || commit.last > content.highest.sequence
            else { return }
            content.highest = (commit.epoch, commit.last)
            content.total += UInt64(commit.count)
            for (target, count) in counts {
                guard content.targets[target] != nil || content.targets.count < Self.targetsMax
                else { continue }
                content.targets[target, default: 0] += count
            }
        }
    }

    private static func counts(_ commit: Commit) -> [(Target, UInt64)] {
        var counts: [(Target, UInt64)] = []
        for case .batch(_, let batch) in commit.blocks {
            if batch.targets.count == 1 {
                counts.append((batch.targets[0].target, UInt64(batch.count)))
            } else {
                for entry in batch.parsedEntries {
                    counts.append((batch.targets[entry.target].target, 1))
                }
            }
        }
        return counts
    }

    /// How many entries there were, and how many actions for each target.
    package var present: (total: UInt64, targets: [Target: UInt64]) {
        content.withLock { ($0.total, $0.targets) }
    }
}
