import Conflux
import ConfluxProtocol
import ConfluxVocabulary

/// The batches of an outbox: here alone, single actions become batches.
///
/// A value without a lock. The outbox's lock guards it, and the aims.
struct OutboxBatches {
    /// A batch with this many bytes takes no more actions. For a larger one, the system would provide new memory each
    /// time, page by page, which took a fifth of a stream's processor time.
    private static let fullBatchBytes = 256 << 10

    private let limits: WireLimits
    /// Withdraws the actions of a batch.
    private let route: any WithdrawalRoute
    /// Full batches, oldest first.
    private var sealed: [Outbox.Filling] = []
    private var open: Outbox.Filling
    /// The number of the open batch. *Invariant*: rises with each new open batch.
    private var openNumber: UInt64 = 1
    /// The payload bytes of all batches.
    private(set) var byteCount = 0

    init(limits: WireLimits, route: any WithdrawalRoute) {
        self.limits = limits
        self.route = route
        open = Outbox.Filling(
            builder: BatchBuilder(limits: limits), block: OutcomeBlock(route: route))
    }

    var isEmpty: Bool { sealed.isEmpty && open.builder.isEmpty }

    /// Appends an action to the open batch, or to a new one if it does not fit.
    ///
    /// - Returns: Where its outcome will be.
    @inline(__always)
    mutating func append(
        _ aim: Outbox.Aim, _ payload: UnsafeRawBufferPointer
    ) -> (block: OutcomeBlock, index: Int) {
        byteCount += payload.count
        if !appendIfFits(aim, payload) {
            seal()
            open.builder.append(target: aim.target, payload: payload)
        }
        let present = row(of: aim)
        if present != nil, present == open.lastRow {
            open.spans[open.spans.count - 1].count += 1
        } else {
            open.spans.append(SubmittedBatch.Span(target: aim.target.target, count: 1))
            open.lastRow = present
        }
        if open.begunAt == nil { open.begunAt = Moment.now.monotonic }
        open.payloadBytes += payload.count
        return (open.block, open.builder.count - 1)
    }

    @inline(__always)
    private mutating func appendIfFits(
        _ aim: Outbox.Aim, _ payload: UnsafeRawBufferPointer
    ) -> Bool {
        guard open.builder.byteCount < Self.fullBatchBytes else { return false }
        return row(of: aim).map { open.builder.appendIfFits(row: $0, payload: payload) } ?? false
    }

    /// The row in the open batch; nil if the batch's table is full.
    @inline(__always)
    private mutating func row(of aim: Outbox.Aim) -> BatchRow? {
        if aim.batchNumber != openNumber {
            aim.row = open.builder.row(for: aim.target)
            aim.batchNumber = openNumber
        }
        return aim.row
    }

    /// Ends the open batch. Later actions go into another one.
    mutating func seal() {
        guard !open.builder.isEmpty else { return }
        sealed.append(open)
        beginBatch()
    }

    private mutating func beginBatch() {
        open = Outbox.Filling(
            builder: BatchBuilder(limits: limits), block: OutcomeBlock(route: route))
        openNumber += 1
    }

    /// Uses up counters without actions, after everything that was appended before.
    mutating func skip(_ count: UInt32) {
        seal()
        // Neighbours are merged, so that a file of empty lines takes no memory for each line.
        if let last = sealed.last?.skippedCount, last > 0,
            Int(last + count) <= limits.entriesPerBatchMax
        {
            sealed[sealed.count - 1].skippedCount += count
        } else {
            let filling = Outbox.Filling(
                builder: BatchBuilder(limits: limits), block: OutcomeBlock(), skippedCount: count)
            sealed.append(filling)
        }
    }

    /// Takes an action out.
    ///
    /// - Returns: Whether it was here.
    mutating func withdraw(_ index: Int, of block: OutcomeBlock) -> Bool {
        let span = index..<index + 1
        if open.block === block {
            open.withdrawn.insert(contentsOf: span)
        } else if let position = sealed.firstIndex(where: { $0.block === block }) {
            sealed[position].withdrawn.insert(contentsOf: span)
        } else {
            return false
        }
        return true
    }

    /// Takes the oldest batch, if there is one and it is allowed.
    ///
    /// - Parameter isAllowed: Whether a batch of this many bytes may be taken.
    mutating func take(if isAllowed: (_ bytes: Int) -> Bool) -> Outbox.Filling? {
        let next = sealed.first ?? open
        guard next.count > 0, isAllowed(next.builder.byteCount) else { return nil }
        if sealed.isEmpty {
            beginBatch()
            byteCount = 0
        } else {
            sealed.removeFirst()
            byteCount -= next.payloadBytes
        }
        return next
    }

    /// Takes all batches, oldest first.
    mutating func takeAll() -> [Outbox.Filling] {
        seal()
        defer { (sealed, byteCount) = ([], 0) }
        return sealed
    }
}
