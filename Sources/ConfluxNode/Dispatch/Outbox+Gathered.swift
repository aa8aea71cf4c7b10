import Conflux
import ConfluxProtocol

extension Outbox {
    /// A batch: the open one, or one that takes no more actions.
    package struct Gathered {
        package var builder: BatchBuilder
        package let block: OutcomeBlock
        package var isAtomic = false
        /// When its first action was dispatched, on the monotonic clock. *Use*: metrics alone.
        var begunAt: Duration?
        /// The bytes of its payloads. *Use*: they count towards the outbox's bound.
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
}
