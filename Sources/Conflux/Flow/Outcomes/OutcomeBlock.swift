import ConfluxVocabulary
import Synchronization

/// Asks a process that hosts the store what it did with an action that is in the log: see
/// ``DispatchHandle/effect(within:)``.
package typealias EffectInquiry =
    @Sendable (Receipt, _ limit: Duration?) async throws(DispatchError) -> Receipt

/// How a dispatch ended.
package enum Outcome: Sendable {
    /// In the log, and applied here.
    case committed(Receipt)
    /// In the log, and for no store here: other processes know what it did. Indirect: a handle should be small.
    indirect case ordered(Receipt, EffectInquiry)
    /// Anything else. Indirect: errors are rare, and a handle should be small.
    indirect case failed(DispatchError)

    /// The outcome of the entry that is `distance` places later in the same run.
    func advanced(by distance: Int) -> Outcome {
        guard distance > 0 else { return self }
        return switch self {
        case .committed(let first): .committed(first.advanced(by: UInt64(distance)))
        case .ordered(let first, let inquiry):
            .ordered(first.advanced(by: UInt64(distance)), inquiry)
        case .failed: self
        }
    }

    func get() throws(DispatchError) -> Receipt {
        switch self {
        case .committed(let receipt), .ordered(let receipt, _): return receipt
        case .failed(let error): throw error
        }
    }

    /// The action's receipt, if it is in the log and this process knows of no failure.
    package var receipt: Receipt? { try? get() }
}

extension Receipt {
    /// The receipt of the entry that is `distance` places later in the same commit.
    package func advanced(by distance: UInt64) -> Receipt {
        Receipt(
            log: log, epoch: epoch, sequence: sequence.advanced(by: distance), timestamp: timestamp)
    }
}

/// Withdraws actions: a node that has sent them, or is still to send them.
package protocol WithdrawalRoute: AnyObject, Sendable {
    /// The address of the sequencer, or of several that share a log, for messages.
    var address: String { get }

    /// Requests an action's withdrawal, unless it is ordered already. Its outcome says which; the
    /// call waits for nothing.
    ///
    /// - Parameters:
    ///   - index: The action's index in the block.
    ///   - block: The block in which its outcome will be.
    func withdraw(_ index: Int, of block: OutcomeBlock)
}

/// The outcomes of consecutive actions, and those who wait for them.
///
/// A batch's handles share one block, so that a handle costs no allocation. Known outcomes are kept
/// as runs: consecutive actions that ended alike share one entry, and the first receipt determines
/// the others. Each action ends once; later reports about it are ignored. So a refusal that is
/// settled before the run around it stays as it is.
///
/// The block lives as long as a handle, or the code that settles it, needs it. Safe on any thread; no
/// lock is held while a continuation resumes.
package final class OutcomeBlock: Sendable {
    /// Consecutive indices that ended alike.
    private struct Run {
        var start: Int
        var end: Int
        /// The outcome of `start`; ``Outcome/advanced(by:)`` gives the others.
        var outcome: Outcome
    }

    private struct Waiter: Sendable {
        let id: UInt64
        /// Called once, holding no lock.
        let resume: @Sendable (Outcome) -> Void
    }

    private struct Ledger {
        /// How many actions have a place in the block.
        var count = 0
        /// Ordered by `start`, not overlapping.
        var runs: [Run] = []
        /// By index. *Use*: an action that ends looks only at its own waiters.
        var waiters: [Int: [Waiter]] = [:]
        var waiterCount: UInt64 = 0
        /// The token of the first action, once it has a counter.
        var firstToken: DispatchToken?

        func outcome(at index: Int) -> Outcome? {
            let position = runs.partitioningIndex { $0.end > index }
            guard position < runs.count, runs[position].start <= index else { return nil }
            return runs[position].outcome.advanced(by: index - runs[position].start)
        }

        /// Fills what is not yet settled between two indices.
        ///
        /// - Complexity: O(n) in the number of runs from there on, however many gaps the range fills.
        mutating func fill(from start: Int, to end: Int, with outcome: Outcome) {
            let first = runs.partitioningIndex { $0.end > start }
            var filled: [Run] = []
            var next = start
            var position = first
            while next < end {
                let known = position < runs.count ? runs[position] : nil
                let gapEnd = min(end, known?.start ?? end)
                if next < gapEnd {
                    filled.append(
                        Run(start: next, end: gapEnd, outcome: outcome.advanced(by: next - start)))
                }
                if let known, known.start < end {
                    filled.append(known)
                    position += 1
                }
                next = max(gapEnd, known?.end ?? end)
            }
            runs.replaceSubrange(first..<position, with: filled)
        }

        /// Takes out the waiters of the ended actions in an index range, each with its outcome.
        mutating func takeWaiters(
            from start: Int, to end: Int
        ) -> [(@Sendable (Outcome) -> Void, Outcome)] {
            guard !waiters.isEmpty else { return [] }
            // Ascending, so that waiters learn of the outcomes in the order of the actions.
            let indices =
                end - start <= waiters.count
                ? Array(start..<end) : waiters.keys.filter { $0 >= start && $0 < end }.sorted()
            var ready: [(@Sendable (Outcome) -> Void, Outcome)] = []
            for index in indices {
                guard let outcome = outcome(at: index), let waiting = waiters[index] else {
                    continue
                }
                waiters[index] = nil
                ready += waiting.map { ($0.resume, outcome) }
            }
            return ready
        }

        mutating func add(
            _ id: UInt64, for index: Int, _ resume: @escaping @Sendable (Outcome) -> Void
        ) {
            waiters[index, default: []].append(Waiter(id: id, resume: resume))
        }

        mutating func takeWaiter(_ id: UInt64, for index: Int) -> Waiter? {
            guard let position = waiters[index]?.firstIndex(where: { $0.id == id }) else {
                return nil
            }
            let waiter = waiters[index]?.remove(at: position)
            if waiters[index]?.isEmpty == true { waiters[index] = nil }
            return waiter
        }
    }

    private let ledger = Mutex(Ledger())
    private let route: (any WithdrawalRoute)?

    /// Makes a block without places.
    ///
    /// - Parameter route: What withdraws its actions; nil if nothing can.
    package init(route: (any WithdrawalRoute)? = nil) {
        self.route = route
    }

    /// The address of the sequencer that its actions go to; nil if no node sends them.
    var address: String? { route?.address }

    /// Requests an action's withdrawal, where that is possible.
    func withdraw(at index: Int) {
        if outcome(at: index) == nil { route?.withdraw(index, of: self) }
    }

    /// Says under which token its first action is sent. The others follow.
    package func identify(_ first: DispatchToken) { ledger.withLock { $0.firstToken = first } }

    /// The token of an action; nil if it has no counter yet.
    func token(at index: Int) -> DispatchToken? {
        ledger.withLock { $0.firstToken?.advanced(by: index) }
    }

    /// Adds a place for one more action.
    ///
    /// - Returns: The action's index: 0, 1, 2 …
    package func reserve() -> Int {
        ledger.withLock { ledger in
            defer { ledger.count += 1 }
            return ledger.count
        }
    }

    /// Adds places up to a total count. *Use*: by a caller that gives out the indices itself,
    /// before any action ends.
    package func reserve(through count: Int) {
        ledger.withLock { $0.count = max($0.count, count) }
    }

    /// Says how consecutive actions ended. Those that have ended already stay as they are.
    ///
    /// - Parameters:
    ///   - start: The first action's index.
    ///   - count: How many actions there are; all must have been reserved.
    ///   - outcome: The first action's outcome. If it is a receipt, the sequence numbers of the
    ///     following actions continue from it without gaps.
    package func settle(from start: Int, count: Int = 1, with outcome: Outcome) {
        let ready = ledger.withLock { ledger in
            precondition(
                start >= 0 && count >= 0 && start + count <= ledger.count,
                "settled \(start)..<\(start + count) of \(ledger.count) actions")
            ledger.fill(from: start, to: start + count, with: outcome)
            return ledger.takeWaiters(from: start, to: start + count)
        }
        for (resume, outcome) in ready { resume(outcome) }
    }

    /// How an action ended; nil if it has not ended.
    package func outcome(at index: Int) -> Outcome? {
        ledger.withLock { $0.outcome(at: index) }
    }

    /// Waits until an action has ended, the task is cancelled, or the time is over.
    ///
    /// - Parameters:
    ///   - index: The action's index.
    ///   - limit: The longest time to wait; nil for any time.
    /// - Returns: The outcome; `cancelled` or `timedOut` if it is not known.
    package func wait(for index: Int, within limit: Duration? = nil) async -> Outcome {
        if let known = outcome(at: index) { return known }
        let id = ledger.withLock { ledger in
            ledger.waiterCount += 1
            return ledger.waiterCount
        }
        var deadline: Deadline?
        defer { deadline?.forget() }
        return await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let known = ledger.withLock { ledger -> Outcome? in
                    if let known = ledger.outcome(at: index) { return known }
                    // Either this sees the cancellation, or `giveUp` sees the waiter.
                    if Task.isCancelled { return .failed(.cancelled) }
                    ledger.add(id, for: index) { continuation.resume(returning: $0) }
                    return nil
                }
                if let known { return continuation.resume(returning: known) }
                guard let limit else { return }
                deadline = limit.whenOver { [weak self, address] in
                    self?.giveUp(id, for: index, .timedOut(after: limit, awaiting: address))
                }
            }
        } onCancel: {
            giveUp(id, for: index, .cancelled)
        }
    }

    /// Calls a function once when an action has ended: on the thread that settles it, holding
    /// no lock; at once, if it has ended.
    func whenEnded(at index: Int, _ body: @escaping @Sendable (Outcome) -> Void) {
        let known = ledger.withLock { ledger -> Outcome? in
            if let known = ledger.outcome(at: index) { return known }
            ledger.waiterCount += 1
            ledger.add(ledger.waiterCount, for: index, body)
            return nil
        }
        if let known { body(known) }
    }

    private func giveUp(_ id: UInt64, for index: Int, _ error: DispatchError) {
        let waiter = ledger.withLock { $0.takeWaiter(id, for: index) }
        waiter?.resume(.failed(error))
    }
}
