import ConfluxProtocol
import ConfluxVocabulary
import Synchronization

/// In which term each entry was ordered, as far as this node was given the entries. Epochs rise with the numbers, so
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
            // After a lost history, entries of a later epoch have numbers that former ones had.
            for (epoch, span) in content.spans where epoch < commit.epoch {
                guard span.upperBound >= commit.first else { continue }
                content.spans[epoch] =
                    span.lowerBound < commit.first
                    ? span.lowerBound...SequenceNumber(commit.first.rawValue - 1) : nil
            }
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

    /// The node follows a log, of which no entry may have come.
    func begin(_ log: LogID) {
        content.withLock { content in
            if content.log == nil { content.log = log }
        }
    }

    /// The log's id.
    var log: LogID? { content.withLock { $0.log } }

    /// The epoch of an entry; nil if it is not known.
    func epoch(of sequence: SequenceNumber) -> Epoch? {
        content.withLock { content in
            content.spans.first { $0.value.contains(sequence) }?.key
        }
    }
}
