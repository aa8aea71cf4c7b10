import ConfluxProtocol
import ConfluxVocabulary
import Synchronization

/// In which tenure each entry was ordered, as far as this node was given the entries. Epochs rise with the numbers, so
/// everything between two entries of one epoch is of that epoch.
///
/// Safe on any thread.
final class EpochTable: Sendable {
    private struct Content {
        var log: LogID?
        var spans: [Epoch: ClosedRange<SequenceNumber>] = [:]
    }

    /// How many epochs are remembered: the newest ones.
    static let countMax = 64

    private let content = Mutex(Content())

    func note(_ commit: Commit) {
        content.withLock { content in
            if content.log != commit.log { content = Content(log: commit.log) }
            let span = content.spans[commit.epoch]
            content.spans[commit.epoch] =
                min(
                    span?.lowerBound ?? commit.first, commit.first)...max(
                    span?.upperBound ?? commit.last, commit.last)
            guard content.spans.count > Self.countMax, let oldest = content.spans.keys.min() else {
                return
            }
            content.spans[oldest] = nil
        }
    }

    /// The log's id, once an entry has come.
    var log: LogID? { content.withLock { $0.log } }

    /// The epoch of an entry; nil if it is not known.
    func epoch(of sequence: SequenceNumber) -> Epoch? {
        content.withLock { content in
            content.spans.first { $0.value.contains(sequence) }?.key
        }
    }
}
