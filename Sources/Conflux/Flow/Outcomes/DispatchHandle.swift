import ConfluxVocabulary

/// A dispatched action or a running operation. Wait for its outcome with this handle.
///
/// A handle is a value: copy it, send it to other tasks, wait on it as often as you like, or drop
/// it. The action proceeds in any case.
public struct DispatchHandle: Sendable {
    private enum Place {
        /// The outcome is known.
        case settled(Outcome)
        /// The outcome will be in a block that other handles share.
        case open(OutcomeBlock, Int)
    }

    private let place: Place

    /// Makes the handle of an action that has ended.
    package init(_ outcome: Outcome) {
        place = .settled(outcome)
    }

    /// Makes the handle of an action that has a place in a block.
    package init(block: OutcomeBlock, index: Int) {
        place = .open(block, index)
    }

    /// Waits until the action is ordered, durable, and applied by this process's stores.
    ///
    /// A receipt proves the action's place in the log. If no store here is concerned, it says nothing about the
    /// action's effect, since only processes that host the store know whether its check refused the action: ask for the
    /// ``effect(within:)`` then.
    ///
    /// Without a node: until the store has applied it. Cancelling the waiting task ends the wait
    /// and not the dispatch.
    ///
    /// ```swift
    /// let handle = stock.dispatch(.take(amount: 5))
    /// do {
    ///     try await handle.receipt(within: .seconds(2))
    /// } catch where error.code == .timedOut {
    ///     // Nobody knows yet. Try to take it back, for another second.
    ///     try await handle.withdraw(within: .seconds(1))
    /// }
    /// ```
    ///
    /// - Parameter limit: How long to wait; nil to wait as long as it takes. The end of the time ends the
    ///   wait and not the dispatch.
    /// - Returns: The proof of commitment; without a node, the store's own count of its actions,
    ///   and no log.
    /// - Throws: A ``DispatchError`` when the action was not applied, when that can't be known, or
    ///   when the waiting task was cancelled; `timedOut` after `limit`. The action of a whole state is
    ///   refused only if every store of it here refused it.
    @discardableResult
    public func receipt(within limit: Duration? = nil) async throws(DispatchError) -> Receipt {
        try await outcome(within: limit).get()
    }

    /// Waits until a store has applied the action, here or in another process, and throws if it did not.
    ///
    /// If a store here is concerned, this is the same as ``receipt(within:)``, and costs no message. Otherwise the node
    /// asks the processes that host the store, and the first one that applied or refused the action decides. Of one
    /// store, every process says the same. Of the action of a whole state, other stores may have done otherwise.
    ///
    /// ```swift
    /// let orders = try node.actions(of: Orders.self)  // this node hosts nothing
    /// do {
    ///     try await orders.dispatch(.place(order)).effect(within: .seconds(2))
    /// } catch where error.code == .refused {
    ///     print("refused: \(error.reason.map { "\($0)" } ?? "")")
    /// }
    /// ```
    ///
    /// Cancelling the waiting task ends the wait and not the dispatch.
    ///
    /// - Parameter limit: How long to wait; nil to wait as long as it takes.
    /// - Returns: The action's receipt.
    /// - Throws: A ``DispatchError`` as ``receipt(within:)`` does. In addition, with the receipt: `refused`, whose reason is
    ///   only a text if another process refused the action; `storeStopped` if no process has applied it, since the store
    ///   stopped in each; `concernedNobody` if no store took it; `effectUnknown` if no process can tell, for example because
    ///   nobody hosts the store; `timedOut` after `limit`.
    @discardableResult
    public func effect(within limit: Duration? = nil) async throws(DispatchError) -> Receipt {
        let begun = ContinuousClock.now
        let outcome = await outcome(within: limit)
        guard case .ordered(let receipt, let inquiry) = outcome else { return try outcome.get() }
        return try await inquiry(receipt, limit.map { $0 - begun.duration(to: .now) })
    }

    /// Withdraws the action, unless it is ordered already. This ends the action, and not only the
    /// wait for it.
    ///
    /// If this returns nil, the action is never ordered, whatever breaks; ``receipt(within:)`` then throws
    /// ``DispatchError/Code/withdrawn``. Without a node nothing can be withdrawn, and this waits
    /// for the receipt. Actions that were dispatched in one atomic batch are withdrawn together.
    /// Cancelling the waiting task ends the wait and not the withdrawal. You may call it several
    /// times, and on any thread.
    ///
    /// Only the sequencer can confirm the withdrawal of an action that was sent. If it does not answer, for
    /// example because it is stopped, this waits for it, or for another sequencer.
    ///
    /// - Parameter limit: How long to wait for that; nil to wait as long as it takes. The withdrawal
    ///   continues after it.
    /// - Returns: nil when the action was withdrawn; the receipt when it was ordered before.
    /// - Throws: A ``DispatchError`` as ``receipt(within:)`` does, except `withdrawn`. After `timedOut` nobody
    ///   knows yet whether the action was ordered before it was withdrawn.
    @discardableResult
    public func withdraw(within limit: Duration? = nil) async throws(DispatchError) -> Receipt? {
        requestWithdrawal()
        do {
            return try await receipt(within: limit)
        } catch {
            if error.code == .withdrawn { return nil }
            guard error.code == .timedOut, let limit, case .open(let block, _) = place,
                let address = block.address
            else { throw error }
            throw .withdrawalTimedOut(after: limit, awaiting: address)
        }
    }

    /// Requests the action's withdrawal, and waits for nothing.
    package func requestWithdrawal() {
        if case .open(let block, let index) = place { block.withdraw(at: index) }
    }

    private func outcome(within limit: Duration?) async -> Outcome {
        switch place {
        case .settled(let outcome): outcome
        case .open(let block, let index): await block.wait(for: index, within: limit)
        }
    }

    /// Names the action, so that any process can ask later what became of it: see `Node.outcome(of:within:)`.
    ///
    /// It is nil as long as the action was not sent, since no sequencer can have it: a node sends as soon as it is
    /// connected and has room. Without a node it stays nil, and so does that of an action that was dispatched with a
    /// ``DispatchMode``, to the stores of a scope, or behind a lock or other actions.
    public var token: DispatchToken? {
        if case .open(let block, let index) = place { block.token(at: index) } else { nil }
    }

    /// Whether it has ended, in any way.
    public var hasEnded: Bool { outcome != nil }

    /// Waits until it has ended, in any way. Cancelling the waiting task doesn't end the wait.
    ///
    /// - Parameter limit: How long to wait; nil to wait as long as it takes.
    /// - Returns: Whether it has ended.
    @discardableResult
    public func end(within limit: Duration? = nil) async -> Bool {
        // Another task is not cancelled with this one.
        _ = await Task.detached { await outcome(within: limit) }.value
        return hasEnded
    }

    /// Calls a function once when the action has ended; at once, if it has.
    package func whenEnded(_ body: @escaping @Sendable (Outcome) -> Void) {
        switch place {
        case .settled(let outcome): body(outcome)
        case .open(let block, let index): block.whenEnded(at: index, body)
        }
    }

    /// How the action ended; nil if it has not ended.
    package var outcome: Outcome? {
        switch place {
        case .settled(let outcome): outcome
        case .open(let block, let index): block.outcome(at: index)
        }
    }
}
