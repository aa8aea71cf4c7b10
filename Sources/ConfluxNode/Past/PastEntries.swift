import ConfluxProtocol
import ConfluxVocabulary

/// Actions for a store that are in the log, with what the store made of them.
package struct PastEntries: Sendable {
    /// One action.
    package struct Entry: Sendable {
        package let sequence: SequenceNumber
        package let timestamp: Timestamp
        package let origin: Origin
        /// The key that dispatched it, as far as it is known.
        package let principal: Name?
        /// The action in canonical JSON; nil if this program can't decode it.
        package let action: [UInt8]?
        /// Why it had no effect; nil if it had one.
        package let refusal: String?
    }

    /// Which entries are wanted.
    package enum Selection: Sendable {
        /// The first ones behind a number, up to the log's last one.
        case after(SequenceNumber, limit: Int, last: SequenceNumber)
        /// The last ones up to a number.
        case through(SequenceNumber, limit: Int)

        /// The last number that counts.
        var last: SequenceNumber {
            switch self {
            case .after(_, _, let last), .through(let last, _): last
            }
        }
    }

    /// The most bytes of actions in one answer. *At the bound* there are fewer: one at least.
    package static let bytesMax = 8 << 20

    /// In the order of the log.
    package let entries: [Entry]
    /// The lowest number at which the state can be shown.
    package let floor: SequenceNumber
    /// The log's last number.
    package let newest: SequenceNumber
}

extension PastEntries {
    /// The entries of a run, as they come.
    struct Gathered {
        private struct Raw {
            var sequence: SequenceNumber
            var timestamp: Timestamp
            var origin: Origin
            var row: BatchTarget
            var payload: [UInt8]
            var refusal: String?
        }

        private let selection: Selection
        /// Those before ``head`` were dropped.
        private var raws: [Raw] = []
        private var head = 0
        private var byteCount = 0
        private var isFrozen = false
        private var hasEnded = false
        /// The keys of the sessions that joined in what was read.
        private var owners: [Incarnation: Name] = [:]

        init(_ selection: Selection) { self.selection = selection }

        /// Whether no further entry is wanted.
        var isComplete: Bool { hasEnded }

        var count: Int { raws.count - head }

        private var limit: Int {
            switch selection {
            case .after(_, let limit, _), .through(_, let limit): limit
            }
        }

        private var isFull: Bool { count >= limit || (count > 0 && byteCount >= bytesMax) }

        mutating func add(
            _ part: Commit, of store: StoreName, life: SequenceNumber,
            _ refusals: [HistoryRecord.Refusal]
        ) {
            let reasons = Dictionary(refusals.map { ($0.sequence, $0.reason) }) { $1 }
            var sequence = part.first
            for block in part.blocks {
                switch block {
                case .event(.joined(_, _, .none, _), let owner):
                    owners[Incarnation(sequence.rawValue)] = owner
                case .event(.frozen(store, life, _), _): isFrozen = true
                case .event(.thawed(store, life), _): isFrozen = false
                case .event: break
                case .batch(let incarnation, let batch):
                    let rows = batch.targets.map { $0.target.concerns(store) }
                    guard rows.contains(true), !isFrozen else { break }
                    var number = sequence
                    var origin = Origin(incarnation: incarnation, counter: batch.firstCounter)
                    batch.forEachEntry { row, payload in
                        if rows[row], number > life {
                            take(
                                Raw(
                                    sequence: number, timestamp: part.timestamp, origin: origin,
                                    row: batch.targets[row], payload: [], refusal: reasons[number]),
                                payload)
                        }
                        number = number.next
                        origin = Origin(incarnation: incarnation, counter: origin.counter + 1)
                    }
                }
                sequence = sequence.advanced(by: UInt64(block.count))
            }
            if part.last >= selection.last { hasEnded = true }
        }

        private mutating func take(_ raw: Raw, _ payload: Bytes) {
            var raw = raw
            switch selection {
            case .after(let after, _, _):
                guard raw.sequence > after, !hasEnded else { return }
                if isFull {
                    hasEnded = true
                    return
                }
            case .through(let last, _):
                guard raw.sequence <= last else { return }
            }
            raw.payload = Array(payload)
            byteCount += payload.count
            raws.append(raw)
            guard case .through = selection else { return }
            while count > limit || (count > 1 && byteCount > bytesMax) {
                byteCount -= raws[head].payload.count
                raws[head].payload = []
                head += 1
            }
            guard head > 1_024, head * 2 > raws.count else { return }
            raws.removeFirst(head)
            head = 0
        }

        /// The entries, decoded.
        func entries(
            _ state: ReplayedState, keysOf sessions: [Incarnation: Name]
        ) -> [Entry] {
            raws[head...].compactMap { raw in
                var action: [UInt8]?
                do {
                    action = try state.json(raw.payload[...], raw.row)
                    // An event that the state does not handle is none of its actions.
                    if action == nil { return nil }
                } catch {
                    // What can't be decoded was refused, with the reason.
                    action = nil
                }
                return Entry(
                    sequence: raw.sequence, timestamp: raw.timestamp, origin: raw.origin,
                    principal: owners[raw.origin.incarnation] ?? sessions[raw.origin.incarnation],
                    action: action, refusal: raw.refusal)
            }
        }
    }
}
