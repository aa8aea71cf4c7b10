import Conflux
import ConfluxProtocol
import ConfluxVocabulary
import ConfluxZeroMQ
import Foundation
import Synchronization

/// What application threads dispatched and the link has not taken yet: the one place where single
/// actions become batches.
///
/// An action is appended to the open batch under a short lock; the thread that owns the sockets
/// takes the batch when it comes around. So batches are as large as the load makes them, and a
/// lone action waits for nothing. Bounded in bytes: see ``NodeSettings/OutboxPolicy``.
// Sendable: everything that changes is guarded by `condition`.
package final class Outbox: @unchecked Sendable {
    /// A batch that no action is added to any more, or the open one.
    package struct Filling {
        package var builder: BatchBuilder
        package let block: OutcomeBlock
        package var isAtomic = false
        /// When its first action was dispatched, monotonic. *Use*: metrics alone.
        fileprivate(set) var begunAt: Duration?
        /// The bytes of its payloads. *Use*: its part of the outbox's bound.
        var payloadBytes = 0
        /// The places of actions that were withdrawn before they had counters.
        package var withdrawn = RangeSet<Int>()
        /// What its actions concern, in their order.
        package fileprivate(set) var spans: [SubmittedBatch.Span] = []
        /// The row of the last one.
        fileprivate var lastRow: BatchRow?
        /// How many counters it takes for nothing. *Invariant*: 0 unless the builder is empty.
        package var skippedCount: UInt32 = 0

        /// How many counters it takes.
        package var count: Int { builder.count + Int(skippedCount) }
    }

    /// What a route's actions concern, and the row that they have in the open batch: found once a
    /// batch, so that no action compares targets.
    // Sendable: everything that changes is guarded by the outbox's condition.
    package final class Aim: @unchecked Sendable {
        @exclusivity(unchecked) fileprivate var target: BatchTarget
        @exclusivity(unchecked) fileprivate var row: BatchRow?
        /// Of which batch the row is.
        @exclusivity(unchecked) fileprivate var batchNumber: UInt64 = 0

        package init(_ target: BatchTarget) {
            self.target = target
        }
    }

    /// Has the outcomes' handles reach the outbox, which holds their blocks.
    // Sendable: written once, before anybody else has it.
    private final class Route: WithdrawalRoute, @unchecked Sendable {
        weak var outbox: Outbox?

        func withdraw(_ index: Int, of block: OutcomeBlock) {
            outbox?.withdraw(index, of: block)
        }
    }

    /// A batch that has so many bytes takes no further actions: the memory of larger ones the system provides anew
    /// each time, page by page (measured: a fifth of a stream's processor time).
    private static let fullBatchBytes = 256 << 10

    private let condition = NSCondition()
    private let route = Route()
    /// Called for actions that are to be withdrawn and were taken already, holding no lock.
    private let withdrawSent: @Sendable (_ index: Int, OutcomeBlock) -> Void
    private let bytesMax: Int
    private let policy: NodeSettings.OutboxPolicy
    let limits: WireLimits
    /// Called when the outbox was empty and is not any more, holding no lock.
    private let wake: @Sendable () -> Void

    // Unchecked exclusivity, here and in an aim: whoever has the lock has all of it, and no access lasts while
    // another function is called that has one.

    /// Full batches, oldest first.
    @exclusivity(unchecked) private var sealed: [Filling] = []
    @exclusivity(unchecked) private var open: Filling
    /// Tells the open batch from those before. *Invariant*: rises with each new open batch.
    @exclusivity(unchecked) private var openNumber: UInt64 = 1
    /// The bytes of all of them. *Invariant*: at most `bytesMax` and one payload more; twice as much of
    /// what is dispatched where nobody may wait.
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
    ///   - aim: What it concerns, and how it is encoded.
    ///   - payload: The encoded action, which is copied.
    ///   - mayWait: Whether this thread may wait for room. The node's own threads must not, nor any
    ///     that dispatches of others depend on.
    /// - Returns: What its outcome can be waited for by.
    package func submit(
        _ aim: Aim, _ payload: UnsafeRawBufferPointer, mayWait: Bool
    ) -> DispatchHandle {
        guard payload.count <= limits.payloadBytesMax else {
            return DispatchHandle(.failed(.payloadTooLarge(payload.count, limits.payloadBytesMax)))
        }
        condition.lock()
        while byteCount + payload.count > bytesMax, byteCount > 0, !isClosed {
            if policy == .wait {
                // A few threads run all tasks: none of them may wait here, or whatever empties the
                // outbox, or gives up, would wait for them. Tasks wait in `waitForRoom()`. Whatever
                // must not wait here has as much room again.
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
    /// - Returns: Whether there is room, or an end of it: false when the task was cancelled.
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

    /// - Returns: What is told when there is room; nil when there is some, or never will be.
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

    /// Takes counters for nothing, behind what was submitted before.
    func skip(_ count: UInt32) {
        condition.lock()
        let wasEmpty = isVacant
        if !isClosed {
            seal()
            // Neighbours become one, so that a file of empty lines takes no memory for each.
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

    /// Ends the open batch: what is submitted from now on is in another one.
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

    /// Withdraws an action: at once, if it is still here; else whoever has it is told.
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
        // It has no counter yet: nobody but this node has heard of it, and it will be void.
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

    /// The row in the open batch; nil if its table is full. Called under the lock.
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

    /// Later actions mean this life of their store.
    func mean(_ life: SequenceNumber, by aim: Aim) {
        condition.lock()
        aim.target.life = life
        aim.batchNumber = 0
        condition.unlock()
    }

    /// Takes the oldest batch, if it may be submitted.
    ///
    /// - Parameter isAllowed: Whether a batch of so many bytes may be submitted.
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

    /// How many bytes of actions wait here, and how many may.
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

    /// Takes what will never be submitted.
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
