import Conflux
import ConfluxProtocol
import ConfluxVocabulary

extension Outbox {
    /// A batch: the open one, or one that takes no more actions.
    package struct Gathered {
        package var builder: BatchBuilder
        package let block: OutcomeBlock
        package var isAtomic = false
        /// When its first action was dispatched, on the monotonic clock. *Use*: metrics alone.
        var begunAt: Duration?
        /// The bytes of its payloads, and of all that a batch of its own takes. *Use*: they count towards the outbox's
        /// bound.
        var payloadBytes = 0
        /// The indices of actions that were withdrawn before they got counters.
        package var withdrawn: Set<Int> = []
        /// The targets of its actions, in order.
        package internal(set) var spans: [SubmittedBatch.Span] = []
        /// The row of the last action.
        var lastRow: BatchRow?
        /// How many counters it uses up without an action. *Invariant*: 0 unless the builder is empty.
        package var skippedCount: UInt32 = 0

        /// How many counters it uses.
        package var count: Int { builder.count + Int(skippedCount) }
    }

    /// The target of a route's actions, and its row in the open batch. The row is looked up once a
    /// batch, so that no action compares targets.
    // Sendable: all mutable state is guarded by the outbox's condition.
    package final class Destination: @unchecked Sendable {
        @exclusivity(unchecked) var target: BatchTarget
        @exclusivity(unchecked) var row: BatchRow?
        /// The number of the batch that the row belongs to.
        @exclusivity(unchecked) var batchNumber: UInt64 = 0

        package init(_ target: BatchTarget) {
            self.target = target
        }

        /// The destination of one action with a condition. Called under the lock.
        func conditional(on version: StoreVersion) -> Destination {
            var target = target
            target.unchangedSince = version
            return Destination(target)
        }
    }
}

extension Outbox.Gathered {
    /// About how many bytes a batch of its own takes besides what it encodes.
    private static var overheadBytes: Int { 1_024 }

    /// The batch of a transaction; nil if it is too large.
    ///
    /// - Parameters:
    ///   - actions: The target of each action, with its condition, and its encoding.
    ///   - others: The conditions on stores that no action changes.
    ///   - block: Where the outcomes will be.
    ///   - limits: The limits of a batch.
    init?(
        _ actions: [(target: BatchTarget, payload: [UInt8])], on others: [BatchTarget],
        _ block: OutcomeBlock, _ limits: WireLimits
    ) {
        self.init(builder: BatchBuilder(limits: limits), block: block, isAtomic: true)
        begunAt = Moment.now.monotonic
        let own = (actions.map(\.target) + others).compactMap { row in
            if case .state(let state) = row.target { state } else { nil }
        }
        for (target, payload) in actions {
            guard payload.withUnsafeBytes({ builder.appendIfFits(target: target, payload: $0) })
            else { return nil }
            let others = target.isEvent ? own : []
            spans.append(SubmittedBatch.Span(target: target.target, count: 1, others: others))
        }
        for row in others where builder.row(for: row) == nil { return nil }
        payloadBytes = builder.byteCount + Self.overheadBytes
    }
}
