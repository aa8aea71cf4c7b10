import Conflux
import ConfluxVocabulary
import Synchronization

extension Node {
    /// Reads stores, decides, and changes stores: all of it at one place in the log, or nothing.
    ///
    /// ```swift
    /// try await node.transaction { tx in
    ///     guard try tx.read(hall).isFree(seat) else { throw Taken(seat) }
    ///     try tx.dispatch(.book(seat, for: guest), to: hall)
    ///     try tx.dispatch(.charge(20), to: account)
    /// }
    /// ```
    ///
    /// Your function runs between two entries: all stores that it reads are at one place in the log's order. Its actions go
    /// to the sequencer together with the versions of the stores that it has read or changed. If none of these has changed,
    /// the actions are ordered, next to each other. Otherwise the function runs again, a bounded number of times. If it
    /// throws, nothing is sent. If it only reads, nothing is sent either.
    ///
    /// In each process that hosts several of the changed stores, observers see all of the changes or none, if there are
    /// at most 1,024 actions.
    ///
    /// The function runs while no entries are applied, so it must not wait. It runs on the calling thread or on the node's
    /// own, and may run several times: do nothing in it that can't be repeated. Interceptors of middleware don't see its actions.
    ///
    /// - Parameters:
    ///   - attempts: How often it is tried if stores change meanwhile. Attempts in which a store here has yet to apply what
    ///     the others have don't count.
    ///   - patience: How long to wait in all.
    ///   - body: Reads and dispatches by what it is given.
    /// - Returns: What the function returned, and the receipt of its last action, which this node's stores have applied; no
    ///   receipt if there is no action.
    /// - Throws: What the function throws. A `DispatchError`: `conflict` when the stores changed during each attempt,
    ///   `refused` when a model refuses an action, `withdrawn` when the time is over and nothing was ordered,
    ///   `timedOut` when it is over and nobody knows that yet, or, with a receipt, when stores here have not applied it yet;
    ///   `outcomeUnknown`, `effectUnknown`, `rejected`, `invalidAction`, `outboxFull`, `storeStopped`, `cancelled`. A
    ///   ``NodeError``: `notHosted`, `timedOut` before anything was sent, `cancelled`, `unanswered`, `closed`.
    @discardableResult
    public func transaction<Value: Sendable>(
        attempts: Int = 16, patience: Duration = .seconds(10),
        _ body: @escaping @Sendable (NodeTransaction) throws -> Value
    ) async throws -> (value: Value, receipt: Receipt?) {
        let deadline = Moment.now.monotonic + patience
        var failure = DispatchError.tornTransaction
        var (pauses, conflicts) = (0, 0)
        while true {
            if pauses > 0 {
                // Until then, what made it fail has been applied here.
                let pauseMax = Duration.milliseconds(1 << min(pauses, 6))
                try await NodeCore.pause(for: pauseMax * Double.random(in: 0...1))
                if Moment.now.monotonic > deadline { throw failure }
            }
            pauses += 1
            switch try await core.attempt(body, patience: deadline - Moment.now.monotonic) {
            // The stores have not applied the same yet. That says nothing of the next attempt.
            case .torn: break
            case .failed(let error): throw error
            case .done(let value, let handles):
                do {
                    return (value, try await core.receipt(of: handles, before: deadline))
                } catch let error as DispatchError where error.code == .conflict {
                    failure = error
                    conflicts += 1
                    if conflicts >= attempts { throw failure }
                }
            }
        }
    }

    /// Reads several stores at one place in the log's order.
    ///
    /// ```swift
    /// let total = try await node.read(checking, savings) { $0.balance + $1.balance }
    /// ```
    ///
    /// - Parameters:
    ///   - stores: Stores that the node hosts.
    ///   - patience: How long to wait for stores that have not applied everything yet that the others have.
    ///   - body: Gets the models. It runs while no entries are applied, so it must not wait.
    /// - Returns: What the function returned.
    /// - Throws: What the function throws; ``NodeError`` or `DispatchError` as ``transaction(attempts:patience:_:)``.
    public func read<each M: Model, Value: Sendable>(
        _ stores: repeat ModelStore<each M>, patience: Duration = .seconds(10),
        _ body: @escaping @Sendable (repeat each M) throws -> Value
    ) async throws -> Value {
        try await transaction(patience: patience) { transaction in
            try body(repeat try transaction.read(each stores))
        }.value
    }
}

extension NodeCore {
    /// Runs the function of a transaction once, where entries are applied.
    fileprivate func attempt<Value: Sendable>(
        _ body: @escaping @Sendable (NodeTransaction) throws -> Value, patience: Duration
    ) async throws(NodeError) -> NodeTransaction.Attempt<Value> {
        guard jobs.count < max(1, settings.jobsMax) else {
            let text = "the node has too much to apply to begin a transaction; try again later"
            throw NodeError(code: .unanswered, message: text)
        }
        let deadline = Moment.now.monotonic + patience
        let atOnce = scope.run {
            sender.look { applier in
                NodeTransaction.attempt(
                    on: applier, outbox,
                    givenUp: {
                        Task.isCancelled
                            ? .cancelled
                            : Moment.now.monotonic > deadline ? .late(patience) : nil
                    }, body)
            }
        }
        if let atOnce { return atOnce }
        typealias Result = Swift.Result<NodeTransaction.Attempt<Value>, NodeError>
        let (outcome, sent) = (OneShot<Result>(), OneShot<Result>())
        // Either the function's actions are sent, or the caller has given up: whoever takes it decides.
        let isTaken = Mutex(false)
        @Sendable func take() -> Bool {
            isTaken.withLock { isTaken in
                defer { isTaken = true }
                return !isTaken
            }
        }
        let isPosted = jobs.post(
            .look { [outbox] applier in
                guard let applier else { return outcome.send(.failure(.closed)) }
                let attempt = NodeTransaction.attempt(
                    on: applier, outbox, givenUp: { take() ? nil : .cancelled }, body)
                outcome.send(.success(attempt))
                sent.send(.success(attempt))
            })
        guard isPosted == .accepted else { throw .closed }
        let result = await outcome.receive(
            onCancel: .failure(.cancelled), timeout: max(.zero, patience),
            onTimeout: .failure(.late(patience)))
        if case .failure = result, !take() {
            return try await sent.receive(onCancel: .failure(.cancelled)).get()
        }
        return try result.get()
    }

    /// Waits until a transaction is applied here.
    ///
    /// - Returns: The receipt of its last action; nil if it has none.
    fileprivate func receipt(
        of handles: [DispatchHandle], before deadline: Duration
    ) async throws -> Receipt? {
        var last: Receipt?
        for handle in handles {
            last = try await receipt(of: handle, behind: last, before: deadline)
        }
        return last
    }

    private func receipt(
        of handle: DispatchHandle, behind former: Receipt?, before deadline: Duration
    ) async throws(DispatchError) -> Receipt {
        let failure: DispatchError
        do throws(DispatchError) {
            return try await handle.receipt(within: max(.zero, deadline - Moment.now.monotonic))
        } catch {
            failure = error
        }
        switch failure.code {
        case .timedOut:
            // It stands or falls with the former one.
            if let former { throw .notAppliedInTime(former) }
            guard let receipt = try await handle.withdraw(within: .milliseconds(50)) else {
                throw .withdrawn
            }
            return receipt
        case .refused: throw .refusedInPart(failure)
        default: throw failure
        }
    }
}

extension NodeError {
    fileprivate static func late(_ patience: Duration) -> NodeError {
        NodeError(
            code: .timedOut,
            message: """
                The node had no time for the transaction within \(patience), and nothing was sent. Wait longer; if it lasts, \
                look at the functions that run where entries are applied: does one of them wait?
                """)
    }
}
