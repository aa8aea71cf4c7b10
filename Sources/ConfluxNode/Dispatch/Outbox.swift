import Conflux
import ConfluxProtocol
import ConfluxVocabulary
import Foundation
import Synchronization

/// Holds dispatched actions until the link takes them. Here alone, single actions become batches.
///
/// An action is appended to the open batch under a short lock. The thread that owns the sockets takes
/// the batch when it is ready for it. So the load decides how large batches are, and a lone action
/// does not wait. The outbox is bounded in bytes: see ``NodeSettings/OutboxPolicy``.
// Sendable: all mutable state is guarded by `condition`.
package final class Outbox: @unchecked Sendable {
    /// Lets handles withdraw actions: they hold a block, and the block holds this.
    // Sendable: it is written once, before it is shared.
    private final class Route: WithdrawalRoute, @unchecked Sendable {
        weak var outbox: Outbox?
        let address: String

        init(to address: String) { self.address = address }

        func withdraw(_ index: Int, of block: OutcomeBlock) {
            outbox?.withdraw(index, of: block)
        }
    }

    /// A batch with this many bytes takes no more actions. For a larger one, the system would provide new memory each
    /// time, page by page, which took a fifth of a stream's processor time. Below a power of two, at which the batch's buffer
    /// doubles.
    private static let fullBatchBytes = 255 << 10

    private let condition = NSCondition()
    private let route: Route
    /// Called without a lock to withdraw an action that the link has taken already.
    private let withdrawSent: @Sendable (_ index: Int, OutcomeBlock) -> Void
    private let bytesMax: Int
    private let policy: NodeSettings.OutboxPolicy
    let limits: WireLimits
    /// The node's present incarnation; zero before the first one.
    let incarnation = Atomic<UInt64>(0)
    /// Called without a lock when the outbox is no longer empty.
    private let wake: @Sendable () -> Void

    // Unchecked exclusivity, here and in an destination: the lock guards all of it, and no access lasts while a function with
    // another access is called.

    /// Full batches, oldest first. Those before the head were taken.
    @exclusivity(unchecked) private var sealed: [Gathered?] = []
    @exclusivity(unchecked) private var head = 0
    @exclusivity(unchecked) private var open: Gathered
    /// The number of the open batch. *Invariant*: rises with each new open batch.
    @exclusivity(unchecked) private var openNumber: UInt64 = 1
    /// The payload bytes of all batches. *Invariant*: at most `bytesMax`, or one payload if that is
    /// larger; at most twice `bytesMax` if threads dispatch that must not wait.
    @exclusivity(unchecked) private var byteCount = 0
    @exclusivity(unchecked) private var isClosed = false
    /// Whether actions gather, so that nobody is woken for the first one.
    @exclusivity(unchecked) private var isGathering = false
    /// The tasks that wait for room.
    private var roomWaiters: [OneShot<NodeError?>] = []

    /// Makes an empty outbox.
    ///
    /// - Parameters:
    ///   - address: Where the sequencer listens, for messages.
    ///   - bytesMax: How many bytes of actions may wait.
    ///   - policy: What happens to an action for which there is no room.
    ///   - limits: The limits of a batch.
    ///   - wake: Called without a lock when the outbox is no longer empty.
    ///   - withdrawSent: Called without a lock to withdraw an action that the link has taken already.
    package init(
        to address: String = "its address", bytesMax: Int, policy: NodeSettings.OutboxPolicy,
        limits: WireLimits = .standard,
        wake: @escaping @Sendable () -> Void,
        withdrawSent: @escaping @Sendable (_ index: Int, OutcomeBlock) -> Void = { _, _ in }
    ) {
        self.bytesMax = bytesMax
        self.policy = policy
        self.limits = limits
        self.wake = wake
        self.withdrawSent = withdrawSent
        route = Route(to: address)
        open = Gathered(builder: BatchBuilder(limits: limits), block: OutcomeBlock(route: route))
        route.outbox = self
    }

    /// Appends an action.
    ///
    /// - Parameters:
    ///   - destination: The target and the coding.
    ///   - payload: The encoded action, which is copied.
    ///   - mayWait: Whether this thread may wait for room. The node's own threads must not wait, and
    ///     neither must a thread that dispatches of others depend on.
    ///   - version: The condition of the action; nil if it has none.
    /// - Returns: A handle of the outcome.
    package func submit(
        _ destination: Destination, _ payload: UnsafeRawBufferPointer, mayWait: Bool,
        ifUnchangedSince version: StoreVersion? = nil
    ) -> DispatchHandle {
        guard payload.count <= limits.payloadBytesMax else {
            return DispatchHandle(.failed(.payloadTooLarge(payload.count, limits.payloadBytesMax)))
        }
        condition.lock()
        if let failure = waitForRoom(bytes: payload.count, mayWait: mayWait) {
            condition.unlock()
            return DispatchHandle(.failed(failure))
        }
        let wasEmpty = isVacant && !isGathering
        let index = append(version.map { destination.conditional(on: $0) } ?? destination, payload)
        let block = open.block
        condition.unlock()
        if wasEmpty { wake() }
        return DispatchHandle(block: block, index: index)
    }

    /// Appends actions as a batch of their own, which is taken as a whole or not at all.
    ///
    /// - Parameters:
    ///   - actions: The target of each action, with its condition, and its encoding. Not empty.
    ///   - others: The conditions on stores that no action changes.
    ///   - mayWait: As for a single action.
    ///   - needsRoom: Whether the bound of the outbox counts. Of what needs no room, there is little.
    /// - Returns: A handle for each action.
    package func submit(
        _ actions: [(target: BatchTarget, payload: [UInt8])], on others: [BatchTarget],
        mayWait: Bool, needsRoom: Bool = true
    ) -> [DispatchHandle] {
        let block = OutcomeBlock(route: route)
        let batch = Gathered(actions, on: others, block, limits)
        let failure = condition.withLock { () -> DispatchError? in
            guard let batch else { return .tooLargeTogether(limits) }
            if !needsRoom {
                guard !isClosed else { return .nodeClosed }
            } else if let failure = waitForRoom(bytes: batch.payloadBytes, mayWait: mayWait) {
                return failure
            }
            seal()
            sealed.append(batch)
            byteCount += batch.payloadBytes
            return nil
        }
        if failure == nil { wake() }
        return actions.indices.map {
            failure.map { DispatchHandle(.failed($0)) } ?? DispatchHandle(block: block, index: $0)
        }
    }

    /// Waits until there is room for more bytes, if the thread may wait and this is the policy. Called under the lock.
    ///
    /// - Returns: Why nothing can be appended; nil if it can.
    private func waitForRoom(bytes: Int, mayWait: Bool) -> DispatchError? {
        while byteCount + bytes > bytesMax, byteCount > 0, !isClosed {
            guard policy == .wait else { return .outboxFull(bytesMax) }
            // A few threads run all tasks. If one of them waited here, the task that empties the outbox, or gives up, might
            // wait for it. Tasks wait in `waitForRoom()`. Threads that must not wait have as much room again.
            if mayWait, !Self.isInTask, !NodeThread.isCurrent {
                condition.wait()
            } else {
                if byteCount + bytes <= 2 * bytesMax { break }
                return .outboxFull(bytesMax)
            }
        }
        return isClosed ? .nodeClosed : nil
    }

    /// See ``NodeCore/gather(_:)``.
    func gather(_ body: () -> Void) {
        condition.withLock { isGathering = true }
        body()
        let mustWake = condition.withLock {
            isGathering = false
            return !isVacant
        }
        if mustWake { wake() }
    }

    private static var isInTask: Bool { withUnsafeCurrentTask { $0 != nil } }

    /// Waits until the outbox has room, or is closed.
    ///
    /// - Parameter limit: How long to wait; nil for any time.
    /// - Throws: That the time is over, or that the waiting task was cancelled.
    func waitForRoom(within limit: Duration? = nil) async throws(NodeError) {
        let begun = Moment.now.monotonic
        while let turn = turnToWait() {
            let left = limit.map { $0 - (Moment.now.monotonic - begun) }
            if let error = await turn.receive(
                onCancel: .cancelled, timeout: left,
                onTimeout: limit.map { .noRoom(within: $0, route.address) })
            {
                condition.withLock { roomWaiters.removeAll { $0 === turn } }
                throw error
            }
        }
    }

    /// - Returns: What gets the notice that there is room; nil if there is room, or never will be any.
    private func turnToWait() -> OneShot<NodeError?>? {
        condition.lock()
        defer { condition.unlock() }
        guard byteCount >= bytesMax, !isClosed else { return nil }
        let turn = OneShot<NodeError?>()
        roomWaiters.append(turn)
        return turn
    }

    private func tell(_ waiters: [OneShot<NodeError?>]) {
        for waiter in waiters { waiter.send(nil) }
    }

    /// Called under the lock.
    private func takeRoomWaiters() -> [OneShot<NodeError?>] {
        guard !roomWaiters.isEmpty, isClosed || byteCount < bytesMax else { return [] }
        return exchange(&roomWaiters, with: [])
    }

    /// Uses up counters without actions, after everything that was submitted before.
    func skip(_ count: UInt32) {
        condition.lock()
        let wasEmpty = isVacant
        if !isClosed {
            seal()
            // Neighbours are merged, so that a file of empty lines takes no memory for each line.
            if let last = sealed.last??.skippedCount, last > 0,
                Int(last + count) <= limits.entriesPerBatchMax
            {
                sealed[sealed.count - 1]?.skippedCount += count
            } else {
                let gathered = Gathered(
                    builder: BatchBuilder(limits: limits), block: OutcomeBlock(),
                    skippedCount: count)
                sealed.append(gathered)
            }
        }
        condition.unlock()
        if wasEmpty { wake() }
    }

    /// Ends the open batch. Actions that are submitted from now on go into another one.
    func endBatch() { condition.withLock { seal() } }

    /// Called under the lock.
    private func seal() {
        guard !open.builder.isEmpty else { return }
        sealed.append(open)
        beginBatch()
    }

    /// Called under the lock.
    private var isVacant: Bool { head == sealed.count && open.builder.isEmpty }

    /// Withdraws an action: at once if it is still here, otherwise by the link, which has it.
    private func withdraw(_ index: Int, of block: OutcomeBlock) {
        condition.lock()
        let isHere: Bool
        if open.block === block {
            open.withdrawn.insert(index)
            isHere = true
        } else if let position = sealed.firstIndex(where: { $0?.block === block }) {
            sealed[position]?.withdrawn.insert(index)
            isHere = true
        } else {
            isHere = false
        }
        condition.unlock()
        // It has no counter yet, so no other process knows of it. Its place will be void.
        if isHere {
            block.reserve(through: index + 1)
            block.settle(from: index, with: .failed(.withdrawn))
        } else {
            withdrawSent(index, block)
        }
    }

    /// Called under the lock.
    private func append(_ destination: Destination, _ payload: UnsafeRawBufferPointer) -> Int {
        byteCount += payload.count
        if !appendIfFits(destination, payload) {
            seal()
            open.builder.append(target: destination.target, payload: payload)
        }
        let present = row(of: destination)
        if present != nil, present == open.lastRow {
            open.spans[open.spans.count - 1].count += 1
        } else {
            open.spans.append(SubmittedBatch.Span(target: destination.target.target, count: 1))
            open.lastRow = present
        }
        if open.begunAt == nil { open.begunAt = Moment.now.monotonic }
        open.payloadBytes += payload.count
        return open.builder.count - 1
    }

    /// Called under the lock.
    private func appendIfFits(_ destination: Destination, _ payload: UnsafeRawBufferPointer) -> Bool
    {
        guard open.builder.byteCount < Self.fullBatchBytes else { return false }
        return row(of: destination).map { open.builder.appendIfFits(row: $0, payload: payload) }
            ?? false
    }

    /// The row in the open batch; nil if the batch's table is full. Called under the lock.
    private func row(of destination: Destination) -> BatchRow? {
        if destination.batchNumber != openNumber {
            destination.row = open.builder.row(for: destination.target)
            destination.batchNumber = openNumber
        }
        return destination.row
    }

    /// Called under the lock.
    private func beginBatch() {
        open = Gathered(builder: BatchBuilder(limits: limits), block: OutcomeBlock(route: route))
        openNumber += 1
    }

    /// Sets the life of the store that later actions are meant for.
    func mean(_ life: SequenceNumber, by destination: Destination) {
        condition.lock()
        destination.target.life = life
        destination.batchNumber = 0
        condition.unlock()
    }

    /// What the actions of a destination concern now.
    func target(of destination: Destination) -> BatchTarget {
        condition.withLock { destination.target }
    }

    /// Takes the oldest batch, if it may be submitted.
    ///
    /// - Parameter isAllowed: Returns whether a batch of this many bytes may be submitted.
    /// - Returns: The batch; nil if there is none, or if it may not be submitted yet.
    package func take(if isAllowed: (_ bytes: Int) -> Bool) -> Gathered? {
        condition.lock()
        let next = (head < sealed.count ? sealed[head] : nil) ?? open
        guard next.count > 0, isAllowed(next.builder.byteCount) else {
            condition.unlock()
            return nil
        }
        if head == sealed.count {
            beginBatch()
            byteCount = 0
        } else {
            sealed[head] = nil
            head += 1
            if head * 2 >= sealed.count {
                sealed.removeFirst(head)
                head = 0
            }
            byteCount -= next.payloadBytes
        }
        if policy == .wait { condition.broadcast() }
        let waiters = takeRoomWaiters()
        condition.unlock()
        next.block.reserve(through: next.count)
        tell(waiters)
        return next
    }

    /// How many bytes of actions wait here, and how many may wait.
    var bound: Bound {
        condition.lock()
        defer { condition.unlock() }
        return Bound("outboxBytesMax", byteCount, of: bytesMax)
    }

    package var isEmpty: Bool { condition.withLock { isVacant } }

    /// Whether it takes no more actions.
    var isClosedForActions: Bool { condition.withLock { isClosed } }

    /// Takes no more actions from now on.
    func close() {
        condition.lock()
        isClosed = true
        condition.broadcast()
        let waiters = takeRoomWaiters()
        condition.unlock()
        tell(waiters)
    }

    /// Closes the outbox and takes the batches that will never be submitted.
    package func takeRest() -> [Gathered] {
        close()
        condition.lock()
        defer { condition.unlock() }
        var rest = sealed.compactMap { $0 }
        if !open.builder.isEmpty { rest.append(open) }
        (sealed, head) = ([], 0)
        beginBatch()
        byteCount = 0
        for gathered in rest { gathered.block.reserve(through: gathered.count) }
        return rest
    }
}
