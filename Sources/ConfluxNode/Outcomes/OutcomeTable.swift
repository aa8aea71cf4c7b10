import Conflux
import ConfluxProtocol
import ConfluxVocabulary

/// A batch of this node's actions that was submitted, and where their outcomes go.
package struct SubmittedBatch: Sendable {
    /// Consecutive actions of a batch with one target.
    package struct Span: Sendable, Equatable {
        /// What they concern.
        package var target: Target
        /// How many they are.
        package var count: Int

        /// Makes a span.
        package init(target: Target, count: Int) {
            self.target = target
            self.count = count
        }
    }

    /// The first action's counter.
    package var firstCounter: UInt64
    /// How many counters it takes.
    package var count: Int
    /// Where the outcomes go.
    package var block: OutcomeBlock
    /// What the actions concern, in their order. Counters that are for nothing have none.
    package var spans: [Span]
    /// When the first of them was dispatched, monotonic. *Use*: metrics alone.
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

/// An outcome that is known, of consecutive actions with one target, and waits for stores.
final class PendingOutcome {
    let block: OutcomeBlock
    let index: Int
    let count: Int
    /// The first action's outcome, as it is but for what stores make of it.
    let outcome: Outcome
    /// What the actions concern; nil for nothing.
    let target: Target?
    /// When they were dispatched, if that was measured.
    let begunAt: Duration?
    /// For how many stores it waits.
    var openCount = 0
    /// Whether it is counted among those that wait.
    var isWaiting = false

    init(
        block: OutcomeBlock, index: Int, count: Int, outcome: Outcome, target: Target?,
        begunAt: Duration?
    ) {
        self.block = block
        self.index = index
        self.count = count
        self.outcome = outcome
        self.target = target
        self.begunAt = begunAt
    }

    /// The number that the stores must reach; zero where nothing is in the log.
    var last: SequenceNumber {
        guard case .committed(let first) = outcome else { return .zero }
        return first.sequence.advanced(by: UInt64(count) - 1)
    }
}

/// This node's actions whose outcome is not told yet.
package struct OutcomeTable {
    /// In the order of counters; those before `head` have all of their outcomes.
    private var submitted: [SubmittedBatch] = []
    private var head = 0
    /// How many outcomes wait for stores.
    var waitingCount = 0
    /// How many actions were told their outcome.
    var toldCount: UInt64 = 0

    /// How many outcomes may wait for stores. *At the bound* nothing more is taken out of the outbox;
    /// at half of it those that wait for parked stores alone are told as `effectUnknown`.
    package static let waitingMax = 65_536

    /// Whether every action of this node was told its outcome.
    var isEmpty: Bool { head == submitted.count && waitingCount == 0 }

    mutating func submit(_ batch: SubmittedBatch) { submitted.append(batch) }

    /// Consecutive actions of one batch with one target, or for nothing.
    struct Part {
        let block: OutcomeBlock
        let index: Int
        let counter: UInt64
        let count: Int
        let target: Target?
        let begunAt: Duration?
    }

    /// Cuts an outcome where batches, and targets, change.
    mutating func cut(_ outcome: ActionOutcome) -> [Part] {
        var parts: [Part] = []
        let end = outcome.firstCounter + UInt64(outcome.count)
        while head < submitted.count, submitted[head].firstCounter < end {
            let batch = submitted[head]
            func add(from counter: UInt64, to stop: UInt64, _ target: Target?) {
                let first = max(counter, outcome.firstCounter)
                guard first < min(stop, end) else { return }
                parts.append(
                    Part(
                        block: batch.block, index: Int(first - batch.firstCounter), counter: first,
                        count: Int(min(stop, end) - first), target: target,
                        begunAt: batch.begunAt))
            }
            var counter = batch.firstCounter
            for span in batch.spans {
                add(from: counter, to: counter + UInt64(span.count), span.target)
                counter += UInt64(span.count)
            }
            add(from: counter, to: batch.end, nil)
            guard batch.end <= end else { break }
            head += 1
            if head > 32, head * 2 > submitted.count {
                submitted.removeFirst(head)
                head = 0
            }
        }
        return parts
    }

    /// The node has ended: what has no outcome will never have one that is known.
    mutating func endAll() {
        for batch in submitted[head...] {
            batch.block.settle(from: 0, count: batch.count, with: .failed(.outcomeUnknown))
        }
        submitted = []
        head = 0
    }
}
