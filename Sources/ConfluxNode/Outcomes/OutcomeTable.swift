import Conflux
import ConfluxProtocol
import ConfluxVocabulary

/// A submitted batch of this node's actions, and the block for their outcomes.
package struct SubmittedBatch: Sendable {
    /// Consecutive actions of a batch with one target.
    package struct Span: Sendable, Equatable {
        /// Their target.
        package var target: Target
        /// How many actions there are.
        package var count: Int
        /// The states that don't take the event, since they have rows of their own.
        package var others: [Name] = []
    }

    /// The first action's counter.
    package var firstCounter: UInt64
    /// How many counters it uses.
    package var count: Int
    /// Gets the outcomes.
    package var block: OutcomeBlock
    /// The targets of the actions, in order. Counters without an action have none.
    package var spans: [Span]
    /// When the first action was dispatched, on the monotonic clock. *Use*: metrics alone.
    var begunAt: Duration?

    /// Makes a batch.
    package init(
        firstCounter: UInt64, count: Int, block: OutcomeBlock, spans: [Span],
        begunAt: Duration? = nil
    ) {
        self.firstCounter = firstCounter
        self.count = count
        self.block = block
        self.spans = spans
        self.begunAt = begunAt
    }

    var end: UInt64 { firstCounter + UInt64(count) }
}

/// A known outcome of consecutive actions with one target. It waits for stores.
final class PendingOutcome {
    let block: OutcomeBlock
    let index: Int
    let count: Int
    /// The first action's outcome, before the stores' effects.
    let outcome: Outcome
    /// The target of the actions; nil if there is none.
    let target: Target?
    /// The states that don't take them, though the target concerns them.
    let others: [Name]
    /// When they were dispatched, if that was measured.
    let begunAt: Duration?
    /// How many stores it waits for.
    var openCount = 0
    /// Whether it counts as waiting.
    var isWaiting = false

    init(
        block: OutcomeBlock, index: Int, count: Int, outcome: Outcome, target: Target?,
        others: [Name] = [], begunAt: Duration?
    ) {
        self.others = others
        self.block = block
        self.index = index
        self.count = count
        self.outcome = outcome
        self.target = target
        self.begunAt = begunAt
    }

    /// The number that the stores must reach; zero if nothing is in the log.
    var last: SequenceNumber {
        guard case .committed(let first) = outcome else { return .zero }
        return first.sequence.advanced(by: UInt64(count) - 1)
    }
}

/// This node's actions whose outcomes have not been given yet.
package struct OutcomeTable {
    /// The batches in the order of counters. Those before `head` have all their outcomes.
    private var submitted: [SubmittedBatch] = []
    private var head = 0
    /// How many outcomes wait for stores.
    var waitingCount = 0
    /// How many actions have been given their outcome.
    var toldCount: UInt64 = 0

    /// How many outcomes may wait for stores. *At the bound* nothing more is taken out of the outbox. Above half of it,
    /// outcomes that wait for a parked store are given as `effectUnknown`.
    package static let waitingMax = 65_536

    /// Whether all actions of this node have been given their outcomes.
    var isEmpty: Bool { head == submitted.count && waitingCount == 0 }

    mutating func submit(_ batch: SubmittedBatch) { submitted.append(batch) }

    /// Consecutive actions of one batch with one target, or counters without actions.
    struct Part {
        let block: OutcomeBlock
        let index: Int
        let counter: UInt64
        let count: Int
        let target: Target?
        let others: [Name]
        let begunAt: Duration?
    }

    /// Cuts an outcome at the ends of batches and where targets change.
    mutating func cut(_ outcome: ActionOutcome) -> [Part] {
        var parts: [Part] = []
        let end = outcome.firstCounter + UInt64(outcome.count)
        while head < submitted.count, submitted[head].firstCounter < end {
            let batch = submitted[head]
            func add(
                from counter: UInt64, to stop: UInt64, _ target: Target?, _ others: [Name]
            ) {
                let first = max(counter, outcome.firstCounter)
                guard first < min(stop, end) else { return }
                parts.append(
                    Part(
                        block: batch.block, index: Int(first - batch.firstCounter), counter: first,
                        count: Int(min(stop, end) - first), target: target, others: others,
                        begunAt: batch.begunAt))
            }
            var counter = batch.firstCounter
            for span in batch.spans {
                add(from: counter, to: counter + UInt64(span.count), span.target, span.others)
                counter += UInt64(span.count)
            }
            add(from: counter, to: batch.end, nil, [])
            guard batch.end <= end else { break }
            head += 1
            if head > 32, head * 2 > submitted.count {
                submitted.removeFirst(head)
                head = 0
            }
        }
        return parts
    }

    /// Ends all actions without an outcome, since the node has ended. Their outcomes will never be known.
    mutating func endAll() {
        for batch in submitted[head...] {
            batch.block.settle(from: 0, count: batch.count, with: .failed(.outcomeUnknown))
        }
        submitted = []
        head = 0
    }
}
