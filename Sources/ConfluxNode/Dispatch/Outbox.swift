import Conflux
import ConfluxProtocol
import ConfluxVocabulary
import ConfluxZeroMQ
import Dispatch
import Synchronization

/// Holds dispatched actions until the link takes them.
///
/// An action is appended to the open batch under a short lock. The thread that owns the sockets takes
/// the batch when it is ready for it. So the load decides how large batches are, and a lone action
/// does not wait. The outbox is bounded in bytes: see ``NodeSettings/OutboxPolicy``.
package final class Outbox: Sendable {
    /// A batch: the open one, or one that takes no more actions.
    package struct Filling {
        package var builder: BatchBuilder
        package let block: OutcomeBlock
        package var isAtomic = false
        /// When its first action was dispatched, on the monotonic clock. *Use*: metrics alone.
        var begunAt: Duration?
        /// The bytes of its payloads. *Use*: they count towards the outbox's bound.
        var payloadBytes = 0
        /// The indices of actions that were withdrawn before they got counters.
        package var withdrawn = RangeSet<Int>()
        /// The targets of its actions, in order.
        package var spans: [SubmittedBatch.Span] = []
        /// The row of the last action.
        var lastRow: BatchRow?
        /// How many counters it uses up without an action. *Invariant*: 0 unless the builder is empty.
        package var skippedCount: UInt32 = 0

        /// How many counters it uses.
        package var count: Int { builder.count + Int(skippedCount) }
    }

    /// The target of a route's actions, and its row in the open batch. The row is looked up once a
    /// batch, so that no action compares targets.
    // Sendable: all mutable state is guarded by the outbox's lock.
    package final class Aim: @unchecked Sendable {
        // Unchecked exclusivity: no access lasts while a function with another access is called.
        @exclusivity(unchecked) var target: BatchTarget
        @exclusivity(unchecked) var row: BatchRow?
        /// The number of the batch that the row belongs to.
        @exclusivity(unchecked) var batchNumber: UInt64 = 0

        package init(_ target: BatchTarget) {
            self.target = target
        }
    }

    /// Lets handles withdraw actions: they hold a block, and the block holds this.
    // Sendable: it is written once, before it is shared.
    private final class Route: WithdrawalRoute, @unchecked Sendable {
        weak var outbox: Outbox?

        func withdraw(_ index: Int, of block: OutcomeBlock) {
            outbox?.withdraw(index, of: block)
        }
    }

    /// Someone who waits for room.
    private enum Waiter {
        case task(OneShot<Bool>)
        case thread(DispatchSemaphore)

        func notify() {
            switch self {
            case .task(let turn): turn.send(true)
            case .thread(let turn): turn.signal()
            }
        }
    }

    private struct Contents {
        var batches: OutboxBatches
        var isClosed = false
        var waiters: [Waiter] = []

        /// Those who have to be told that there is room, or that there never will be any.
        mutating func takeWaiters(_ bytesMax: Int) -> [Waiter] {
            guard !waiters.isEmpty, isClosed || batches.byteCount < bytesMax else { return [] }
            defer { waiters = [] }
            return waiters
        }
    }

    /// What became of an action.
    private enum Placement {
        /// - Parameter isFirst: Whether the outbox was empty before.
        case placed(OutcomeBlock, index: Int, isFirst: Bool)
        case full
        case closed
    }

    /// *Invariant*: the bytes of all batches are at most `bytesMax`, or one payload if that is larger; at most
    /// twice `bytesMax` if threads dispatch that must not wait.
    private let contents: Mutex<Contents>
    /// Called without a lock to withdraw an action that the link has taken already.
    private let withdrawSent: @Sendable (_ index: Int, OutcomeBlock) -> Void
    private let bytesMax: Int
    private let policy: NodeSettings.OutboxPolicy
    let limits: WireLimits
    /// Called without a lock when the outbox is no longer empty.
    private let wake: @Sendable () -> Void

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
        let route = Route()
        contents = Mutex(Contents(batches: OutboxBatches(limits: limits, route: route)))
        route.outbox = self
    }

    /// Appends an action.
    ///
    /// - Parameters:
    ///   - aim: The target and the coding.
    ///   - payload: The encoded action, which is copied.
    ///   - mayWait: Whether this thread may wait for room. The node's own threads must not wait, and
    ///     neither must a thread that dispatches of others depend on.
    /// - Returns: A handle of the outcome.
    package func submit(
        _ aim: Aim, _ payload: UnsafeRawBufferPointer, mayWait: Bool
    ) -> DispatchHandle {
        guard payload.count <= limits.payloadBytesMax else {
            return DispatchHandle(.failed(.payloadTooLarge(payload.count, limits.payloadBytesMax)))
        }
        let placement = place(aim, payload, within: bytesMax)
        if case .full = placement {
            return finish(placeInFull(aim, payload, mayWait: mayWait))
        }
        return finish(placement)
    }

    /// Appends an action whose payload is an array.
    package func submit(_ aim: Aim, _ payload: [UInt8], mayWait: Bool) -> DispatchHandle {
        payload.withUnsafeBytes { submit(aim, $0, mayWait: mayWait) }
    }

    @inline(__always)
    private func place(
        _ aim: Aim, _ payload: UnsafeRawBufferPointer, within bytesMax: Int
    ) -> Placement {
        // Only read.
        nonisolated(unsafe) let payload = payload
        return contents.withLock { contents in
            guard !contents.isClosed else { return .closed }
            let byteCount = contents.batches.byteCount
            guard byteCount == 0 || byteCount + payload.count <= bytesMax else { return .full }
            let isFirst = contents.batches.isEmpty
            let (block, index) = contents.batches.append(aim, payload)
            return .placed(block, index: index, isFirst: isFirst)
        }
    }

    @inline(__always)
    private func finish(_ placement: Placement) -> DispatchHandle {
        switch placement {
        case .placed(let block, let index, let isFirst):
            if isFirst { wake() }
            return DispatchHandle(block: block, index: index)
        case .full: return DispatchHandle(.failed(.outboxFull(bytesMax)))
        case .closed: return DispatchHandle(.failed(.nodeClosed))
        }
    }

    /// Appends an action to an outbox that was full.
    @inline(never)
    private func placeInFull(
        _ aim: Aim, _ payload: UnsafeRawBufferPointer, mayWait: Bool
    ) -> Placement {
        guard policy == .wait else { return .full }
        // A few threads run all tasks. If one of them waited here, the task that empties the outbox, or gives up,
        // might wait for it. Tasks wait in `waitForRoom()`. Threads that must not wait here have as much room again.
        guard mayWait, !Self.isInTask, !NodeThread.isCurrent else {
            return place(aim, payload, within: 2 * bytesMax)
        }
        while true {
            let placement = place(aim, payload, within: bytesMax)
            guard case .full = placement else { return placement }
            let turn = DispatchSemaphore(value: 0)
            if wait(.thread(turn), toAdd: payload.count) { turn.wait() }
        }
    }

    private static var isInTask: Bool { withUnsafeCurrentTask { $0 != nil } }

    /// Waits until the outbox has room, or is closed, or the waiting task is cancelled.
    ///
    /// - Returns: false if the task was cancelled, otherwise true.
    func waitForRoom() async -> Bool {
        while true {
            let turn = OneShot<Bool>()
            guard wait(.task(turn), toAdd: 1) else { return true }
            guard await turn.receive(onCancel: false) else {
                forget(turn)
                return false
            }
        }
    }

    /// Adds a waiter, unless there is room for so many bytes, or never will be any.
    ///
    /// - Returns: Whether it was added.
    private func wait(_ waiter: Waiter, toAdd bytes: Int) -> Bool {
        contents.withLock { contents in
            let byteCount = contents.batches.byteCount
            guard !contents.isClosed, byteCount > 0, byteCount + bytes > bytesMax else {
                return false
            }
            contents.waiters.append(waiter)
            return true
        }
    }

    private func forget(_ turn: OneShot<Bool>) {
        contents.withLock { contents in
            contents.waiters.removeAll {
                if case .task(let other) = $0 { other === turn } else { false }
            }
        }
    }

    /// Uses up counters without actions, after everything that was submitted before.
    func skip(_ count: UInt32) {
        let wasEmpty = contents.withLock { contents in
            let wasEmpty = contents.batches.isEmpty
            if !contents.isClosed { contents.batches.skip(count) }
            return wasEmpty
        }
        if wasEmpty { wake() }
    }

    /// Ends the open batch. Actions that are submitted from now on go into another one.
    func endBatch() {
        contents.withLock { $0.batches.seal() }
    }

    /// Withdraws an action: at once if it is still here, otherwise by the link, which has it.
    private func withdraw(_ index: Int, of block: OutcomeBlock) {
        // It has no counter yet, so no other process knows of it. Its place will be void.
        if contents.withLock({ $0.batches.withdraw(index, of: block) }) {
            block.reserve(through: index + 1)
            block.settle(from: index, with: .failed(.withdrawn))
        } else {
            withdrawSent(index, block)
        }
    }

    /// Sets the life of the store that later actions are meant for.
    func mean(_ life: SequenceNumber, by aim: Aim) {
        contents.withLock { _ in
            aim.target.life = life
            aim.batchNumber = 0
        }
    }

    /// Takes the oldest batch, if it may be submitted.
    ///
    /// - Parameter isAllowed: Returns whether a batch of this many bytes may be submitted.
    /// - Returns: The batch; nil if there is none, or if it may not be submitted yet.
    package func take(if isAllowed: (_ bytes: Int) -> Bool) -> Filling? {
        // Called by this thread alone.
        nonisolated(unsafe) let isAllowed = isAllowed
        let (next, waiters) = contents.withLock { contents in
            let next = contents.batches.take(if: isAllowed)
            return (next, contents.takeWaiters(bytesMax))
        }
        if let next { next.block.reserve(through: next.count) }
        for waiter in waiters { waiter.notify() }
        return next
    }

    /// How many bytes of actions wait here, and how many may wait.
    var bound: Bound {
        Bound("outboxBytesMax", contents.withLock { $0.batches.byteCount }, of: bytesMax)
    }

    package var isEmpty: Bool { contents.withLock { $0.batches.isEmpty } }

    /// Whether it takes no more actions.
    var isClosedForActions: Bool { contents.withLock { $0.isClosed } }

    /// Takes no more actions from now on.
    func close() {
        let waiters = contents.withLock { contents in
            contents.isClosed = true
            return contents.takeWaiters(bytesMax)
        }
        for waiter in waiters { waiter.notify() }
    }

    /// Closes the outbox and takes the batches that will never be submitted.
    package func takeRest() -> [Filling] {
        close()
        let rest = contents.withLock { $0.batches.takeAll() }
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
