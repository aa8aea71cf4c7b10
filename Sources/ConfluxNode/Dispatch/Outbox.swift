import Conflux
import ConfluxProtocol
import ConfluxVocabulary
import ConfluxZeroMQ
import Foundation
import Synchronization

/// The actions that application threads have dispatched and the link has not taken yet. It is the
/// one place where single actions become batches.
///
/// An action is appended to the open batch under a short lock. The thread that owns the sockets
/// takes the batch when it comes around. So the load determines how large batches are, and a single
/// action does not wait. Bounded in bytes: see ``NodeSettings/OutboxPolicy``.
// Sendable: everything that changes is guarded by `condition`.
package final class Outbox: @unchecked Sendable {
    /// A batch to which no action is added any more, or the open batch.
    package struct Filling {
        package var builder: BatchBuilder
        package let block: OutcomeBlock
        package var isAtomic = false
        /// When its first action was dispatched, by the monotonic clock. *Use*: only metrics.
        fileprivate(set) var begunAt: Duration?
        /// The bytes of its payloads. *Use*: its share of the outbox's bound.
        var payloadBytes = 0
        /// The indexes of actions that were withdrawn before they got counters.
        package var withdrawn = RangeSet<Int>()
        /// What its actions concern, in the order of the actions.
        package fileprivate(set) var spans: [SubmittedBatch.Span] = []
        /// The row of the last action.
        fileprivate var lastRow: BatchRow?
        /// How many counters it skips. *Invariant*: 0 unless the builder is empty.
        package var skippedCount: UInt32 = 0

        /// How many counters it uses up.
        package var count: Int { builder.count + Int(skippedCount) }
    }

    /// What a route's actions concern, and their row in the open batch. The row is looked up once
    /// per batch, so that no action compares targets.
    // Sendable: everything that changes is guarded by the outbox's condition.
    package final class Aim: @unchecked Sendable {
        @exclusivity(unchecked) fileprivate var target: BatchTarget
        @exclusivity(unchecked) fileprivate var row: BatchRow?
        /// The number of the batch that the row belongs to.
        @exclusivity(unchecked) fileprivate var batchNumber: UInt64 = 0

        package init(_ target: BatchTarget) {
            self.target = target
        }
    }

    /// Takes withdrawals from the handles of outcomes to the outbox, which holds their blocks.
    // Sendable: written once, before anything else has a reference to it.
    private final class Route: WithdrawalRoute, @unchecked Sendable {
        weak var outbox: Outbox?

        func withdraw(_ index: Int, of block: OutcomeBlock) {
            outbox?.withdraw(index, of: block)
        }
    }

    /// A batch of this many bytes takes no further actions. For larger batches, the system provides
    /// memory anew each time, page by page (measured: a fifth of a stream's processor time).
    private static let fullBatchBytes = 256 << 10

    private let condition = NSCondition()
    private let route = Route()
    /// Called to withdraw an action that was already taken; no lock is held.
    private let withdrawSent: @Sendable (_ index: Int, OutcomeBlock) -> Void
    private let bytesMax: Int
    private let policy: NodeSettings.OutboxPolicy
    let limits: WireLimits
    /// Called when the outbox was empty and no longer is; no lock is held.
    private let wake: @Sendable () -> Void

    // Unchecked exclusivity, here and in an aim: whoever holds the lock has exclusive access to all
    // of it, and no access lasts while another function that has one is called.

    /// Full batches, oldest first.
    @exclusivity(unchecked) private var sealed: [Filling] = []
    @exclusivity(unchecked) private var open: Filling
    /// Distinguishes the open batch from earlier ones. *Invariant*: rises with each new open batch.
    @exclusivity(unchecked) private var openNumber: UInt64 = 1
    /// The payload bytes of all batches. *Invariant*: at most `bytesMax`, or one payload if that is
    /// larger; at most twice `bytesMax` with dispatches that must not wait.
    @exclusivity(unchecked) private var byteCount = 0
    @exclusivity(unchecked) private var isClosed = false
    /// Tasks that wait for room.
    private var roomWaiters: [OneShot<Bool>] = []

    package init(
        bytesMax: Int, policy: NodeSettings.OutboxPolicy, limits: WireLimits = .standard,
        wake: @escaping @Sendable () -> Void,
        withdrawSent: @escaping @Sendable (_ index: Int, OutcomeBlock) -> Void = { _, _ in }
    ) {
        self.bytesMax = bytesMax
        self.policy = policy
        self.limits = limits
        self.wake = wake
        self.withdrawSent = withdrawSent
        open = Filling(builder: BatchBuilder(limits: limits), block: OutcomeBlock(route: route))
        route.outbox = self
    }

    /// Appends an action.
    ///
    /// - Parameters:
    ///   - aim: What the action concerns, and how it is encoded.
    ///   - payload: The encoded action, which is copied.
    ///   - mayWait: Whether this thread may wait for room. The node's own threads must not wait,
    ///     and neither must a thread that other dispatches depend on.
    /// - Returns: The handle to wait for the outcome.
    package func submit(
        _ aim: Aim, _ payload: UnsafeRawBufferPointer, mayWait: Bool
    ) -> DispatchHandle {
        guard payload.count <= limits.payloadBytesMax else {
            return DispatchHandle(.failed(.payloadTooLarge(payload.count, limits.payloadBytesMax)))
        }
        condition.lock()
        while byteCount + payload.count > bytesMax, byteCount > 0, !isClosed {
            if policy == .wait {
                // A few threads run all tasks, so none of them may wait here: whatever empties the
                // outbox, or gives up, would have to wait for them. Tasks wait in `waitForRoom()`.
                // A dispatch that must not wait here may use as much room again.
                if mayWait, !Self.isInTask, !NodeThread.isCurrent {
                    condition.wait()
                    continue
                }
                if byteCount + payload.count <= 2 * bytesMax { break }
            }
            condition.unlock()
            return DispatchHandle(.failed(.outboxFull(bytesMax)))
        }
        guard !isClosed else {
            condition.unlock()
            return DispatchHandle(.failed(.nodeClosed))
        }
        let wasEmpty = isVacant
        let index = append(aim, payload)
        let block = open.block
        condition.unlock()
        if wasEmpty { wake() }
        return DispatchHandle(block: block, index: index)
    }

    /// Appends an action whose payload is an array.
    package func submit(_ aim: Aim, _ payload: [UInt8], mayWait: Bool) -> DispatchHandle {
        payload.withUnsafeBytes { submit(aim, $0, mayWait: mayWait) }
    }

    private static var isInTask: Bool { withUnsafeCurrentTask { $0 != nil } }

    /// Waits until the outbox has room, or is closed, or the waiting task is cancelled.
    ///
    /// - Returns: Whether there is room or the outbox is closed; false if the task was cancelled.
    func waitForRoom() async -> Bool {
        while let turn = turnToWait() {
            guard await turn.receive(onCancel: false) else {
                forget(turn)
                return false
            }
        }
        return true
    }

    private func forget(_ turn: OneShot<Bool>) {
        condition.lock()
        roomWaiters.removeAll { $0 === turn }
        condition.unlock()
    }

    /// - Returns: What tells of room; nil if there is room, or never will be.
    private func turnToWait() -> OneShot<Bool>? {
        condition.lock()
        defer { condition.unlock() }
        guard byteCount >= bytesMax, !isClosed else { return nil }
        let turn = OneShot<Bool>()
        roomWaiters.append(turn)
        return turn
    }

    /// Called holding no lock.
    private func tell(_ waiters: [OneShot<Bool>]) {
        for waiter in waiters { waiter.send(true) }
    }

    /// Called under the lock.
    private func takeRoomWaiters() -> [OneShot<Bool>] {
        guard !roomWaiters.isEmpty, isClosed || byteCount < bytesMax else { return [] }
        defer { roomWaiters = [] }
        return roomWaiters
    }

    /// Uses up counters without actions, after everything that was submitted before.
    func skip(_ count: UInt32) {
        condition.lock()
        let wasEmpty = isVacant
        if !isClosed {
            seal()
            // Neighbouring skips are merged, so that a file of empty lines does not take memory for
            // each line.
            if let last = sealed.last?.skippedCount, last > 0,
                Int(last + count) <= limits.entriesPerBatchMax
            {
                sealed[sealed.count - 1].skippedCount += count
            } else {
                let filling = Filling(
                    builder: BatchBuilder(limits: limits), block: OutcomeBlock(),
                    skippedCount: count)
                sealed.append(filling)
            }
        }
        condition.unlock()
        if wasEmpty { wake() }
    }

    /// Ends the open batch: later actions go into another one.
    func endBatch() {
        condition.lock()
        seal()
        condition.unlock()
    }

    /// Called under the lock.
    private func seal() {
        guard !open.builder.isEmpty else { return }
        sealed.append(open)
        beginBatch()
    }

    /// Called under the lock.
    private var isVacant: Bool { sealed.isEmpty && open.builder.isEmpty }

    /// Withdraws an action: at once if it is still here, otherwise through `withdrawSent`.
    private func withdraw(_ index: Int, of block: OutcomeBlock) {
        condition.lock()
        let isHere: Bool
        let span = index..<index + 1
        if open.block === block {
            open.withdrawn.insert(contentsOf: span)
            isHere = true
        } else if let position = sealed.firstIndex(where: { $0.block === block }) {
            sealed[position].withdrawn.insert(contentsOf: span)
            isHere = true
        } else {
            isHere = false
        }
        condition.unlock()
        // The action has no counter yet. Nobody outside this node knows of it, and it becomes void.
        if isHere {
            block.reserve(through: index + 1)
            block.settle(from: index, with: .failed(.withdrawn))
        } else {
            withdrawSent(index, block)
        }
    }

    /// Called under the lock.
    private func append(_ aim: Aim, _ payload: UnsafeRawBufferPointer) -> Int {
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
        return open.builder.count - 1
    }

    /// Called under the lock.
    private func appendIfFits(_ aim: Aim, _ payload: UnsafeRawBufferPointer) -> Bool {
        guard open.builder.byteCount < Self.fullBatchBytes else { return false }
        return row(of: aim).map { open.builder.appendIfFits(row: $0, payload: payload) } ?? false
    }

    /// The row in the open batch; nil if the batch's table is full. Called under the lock.
    private func row(of aim: Aim) -> BatchRow? {
        if aim.batchNumber != openNumber {
            aim.row = open.builder.row(for: aim.target)
            aim.batchNumber = openNumber
        }
        return aim.row
    }

    /// Called under the lock.
    private func beginBatch() {
        open = Filling(builder: BatchBuilder(limits: limits), block: OutcomeBlock(route: route))
        openNumber += 1
    }

    /// Makes later actions name this life of their store.
    func mean(_ life: SequenceNumber, by aim: Aim) {
        condition.lock()
        aim.target.life = life
        aim.batchNumber = 0
        condition.unlock()
    }

    /// Takes the oldest batch, if it may be submitted.
    ///
    /// - Parameter isAllowed: Whether a batch of this many bytes may be submitted.
    /// - Returns: The batch; nil if there is none, or it may not be submitted yet.
    package func take(if isAllowed: (_ bytes: Int) -> Bool) -> Filling? {
        condition.lock()
        let next = sealed.first ?? open
        guard next.count > 0, isAllowed(next.builder.byteCount) else {
            condition.unlock()
            return nil
        }
        if sealed.isEmpty {
            beginBatch()
            byteCount = 0
        } else {
            sealed.removeFirst()
            byteCount -= next.payloadBytes
        }
        if policy == .wait { condition.broadcast() }
        let waiters = takeRoomWaiters()
        condition.unlock()
        next.block.reserve(through: next.count)
        tell(waiters)
        return next
    }

    /// How many bytes of actions wait here, and the most that may.
    var bound: Bound {
        condition.lock()
        defer { condition.unlock() }
        return Bound("outboxBytesMax", byteCount, of: bytesMax)
    }

    package var isEmpty: Bool {
        condition.lock()
        defer { condition.unlock() }
        return isVacant
    }

    /// Whether it takes no further actions.
    var isClosedForActions: Bool {
        condition.lock()
        defer { condition.unlock() }
        return isClosed
    }

    /// Takes no further actions.
    func close() {
        condition.lock()
        isClosed = true
        condition.broadcast()
        let waiters = takeRoomWaiters()
        condition.unlock()
        tell(waiters)
    }

    /// Closes the outbox, and takes everything that will never be submitted.
    package func takeRest() -> [Filling] {
        close()
        condition.lock()
        defer { condition.unlock() }
        var rest = sealed
        if !open.builder.isEmpty { rest.append(open) }
        sealed = []
        beginBatch()
        byteCount = 0
        for filling in rest { filling.block.reserve(through: filling.count) }
        return rest
    }
}

extension DispatchError {
    static func payloadTooLarge(_ bytes: Int, _ limit: Int) -> DispatchError {
        DispatchError(
            code: .invalidAction,
            message: """
                The encoded action has \(bytes) bytes and the limit is \(limit). Make it smaller, \
                or raise the limit of the sequencer and of the node.
                """)
    }

    static func outboxFull(_ bytes: Int) -> DispatchError {
        DispatchError(
            code: .outboxFull,
            message: """
                The node has \(bytes) bytes of actions that the sequencer has not taken yet, so \
                the action was not sent. In a task, await Node.waitForRoom() and dispatch it again; \
                on a thread of your own, let dispatches wait (NodeSettings.outboxPolicy).
                """)
    }

    static let nodeClosed = DispatchError(
        code: .notConnected,
        message: "The node is closed, so the action was not sent. Connect a node and try again.")
}
