import ConfluxProtocol
import ConfluxVocabulary

/// Decides at which entries a recording notes the digests of states.
///
/// To encode a state costs time in proportion to its size. So a state is digested after a quarter as many bytes of
/// actions: a small one after each action, and a large one so rarely that the digests take no more than a few times as
/// long as the actions. Every state is digested before its life ends, and at the end of the history.
struct PointPlanner {
    /// What an action costs besides its payload, in bytes of a state that could be encoded meanwhile.
    private static let actionBytes = 64
    private static let sizeDivisor = 4

    private var sizes: [StoreName: Int] = [:]
    private var work: [StoreName: Int] = [:]

    /// Notes the size of a store's encoding.
    mutating func note(_ byteCount: Int, of store: StoreName) { sizes[store] = byteCount }

    /// The points in a commit.
    ///
    /// - Parameters:
    ///   - commit: The commit.
    ///   - isLast: Whether the history ends with it.
    ///   - stores: The stores that live before it and that a target concerns.
    /// - Returns: The points, ascending, without digests.
    mutating func points(
        in commit: Commit, isLast: Bool, concernedBy stores: (Target) -> [StoreName]
    ) -> [HistoryRecord.Point] {
        var points: [HistoryRecord.Point] = []
        func add(_ store: StoreName, _ sequence: SequenceNumber) {
            points.append(
                HistoryRecord.Point(sequence: sequence, store: store, version: 0, digest: 0))
            work[store] = nil
        }
        var sequence = commit.first
        for block in commit.blocks {
            switch block {
            case .event(.dropped(let store, _), _) where work[store] != nil:
                if sequence > commit.first { add(store, SequenceNumber(sequence.rawValue - 1)) }
                work[store] = nil
            case .event: break
            case .batch(_, let batch):
                let rows = batch.targets.map { stores($0.target) }
                var number = sequence
                batch.forEachEntry { row, payload in
                    for store in rows[row] {
                        work[store, default: 0] += payload.count + Self.actionBytes
                        if work[store, default: 0] >= (sizes[store] ?? 0) / Self.sizeDivisor {
                            add(store, number)
                        }
                    }
                    number = number.next
                }
            }
            sequence = sequence.advanced(by: UInt64(block.count))
        }
        if isLast { for store in work.keys.sorted() { add(store, commit.last) } }
        return points.sorted { ($0.sequence, $0.store) < ($1.sequence, $1.store) }
    }
}
