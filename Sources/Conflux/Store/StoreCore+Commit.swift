import ConfluxVocabulary
import Synchronization

/// What a store does in its lane. Called by the thread that serves it.
extension StoreCore {
    /// The job to commit an action.
    func job(_ action: S.Action) -> LaneJob {
        // Actions may be committed on another thread: that is the contract of `State.Action`.
        nonisolated(unsafe) let action = action
        return .work { [self] isOpen in
            if isOpen { _ = commit(action) }
        }
    }

    /// The job to commit an action and to report how it ended.
    func job(_ action: S.Action, _ tally: Tally, order: Int = 0) -> LaneJob {
        // Actions may be committed on another thread: that is the contract of `State.Action`.
        nonisolated(unsafe) let action = action
        return .work { [self] isOpen in
            guard isOpen else { return tally.report(.failed(.storeClosed(S.self)), order: order) }
            FlowLock.holding(tally.ticket?.lock) {
                tally.report(commitTracked(action, tally.ticket), order: order)
            }
        }
    }

    /// The job to look at the state; at nil if the store was released before.
    func look(_ body: @escaping @Sendable (S?, SequenceNumber) -> Void) -> LaneJob {
        .work { [self] isOpen in body(isOpen ? state.takeUnretainedValue() : nil, position) }
    }

    /// Commits a run, unless the store was released.
    func perform(
        _ run: OrderedRun<S>, through: StoreVersion,
        _ completion: @Sendable (RunReport) -> Void
    ) {
        if isReleased.load(ordering: .relaxed) { return completion(.closed) }
        completion(commit(run, through: through))
        run.finish()
    }

    /// Commits an action under the next number of the store's own count.
    ///
    /// - Returns: Why the action was refused, if it was.
    @inline(__always)
    func commit(_ action: S.Action) -> (any Error)? {
        let number = nextNumber()
        do {
            try perform(action) {
                ActionContext(sequence: number, timestamp: now, origin: nil, seed: seed)
            }
            return nil
        } catch {
            return error
        }
    }

    func commitTracked(_ action: S.Action, _ ticket: DispatchTicket?) -> Outcome {
        let context = ActionContext(
            sequence: nextNumber(), timestamp: now, origin: nil, seed: seed)
        let receipt = Receipt(
            log: nil, epoch: .none, sequence: context.sequence, timestamp: context.timestamp)
        do {
            try perform(action, ticket) { context }
            return .committed(receipt)
        } catch {
            return .failed(.refused(error, receipt: receipt))
        }
    }

    @inline(__always)
    private func perform(
        _ action: S.Action, _ ticket: DispatchTicket? = nil, context: () -> ActionContext
    ) throws {
        if isConcerned || scope.middleware.observesAllCommits {
            return try performWatched(action, ticket, context())
        }
        try state._withUnsafeGuaranteedRef { state in
            try commitment(action, state, context)
        }
    }

    @inline(never)
    private func performWatched(
        _ action: S.Action, _ ticket: DispatchTicket?, _ context: ActionContext
    ) throws {
        try state._withUnsafeGuaranteedRef { state in
            try scope.middleware.watch(action, of: self, ticket, context, in: state) {
                try commitment(action, state, { context })
            }
        }
    }

    /// The contexts of the next actions, which the caller then counts by ``count(_:)``. Called in
    /// the lane.
    func contexts(count: Int, at timestamp: Timestamp) -> [ActionContext] {
        let last = self.count.load(ordering: .relaxed)
        return (0..<UInt64(count)).map { index in
            ActionContext(
                sequence: SequenceNumber(last + 1 + index), timestamp: timestamp, origin: nil,
                seed: seed)
        }
    }

    /// Counts actions that were committed. Called in the lane.
    func count(_ actions: Int) {
        count.store(count.load(ordering: .relaxed) + UInt64(actions), ordering: .relaxed)
    }

    /// The time of actions that no log has ordered: the system's, unless a test gives another one.
    @inline(__always)
    package var now: Timestamp {
        let given = givenTime.load(ordering: .relaxed)
        return given == .min ? WallClock.now : Timestamp(given)
    }

    @inline(__always)
    private func nextNumber() -> SequenceNumber {
        let number = count.load(ordering: .relaxed) + 1
        count.store(number, ordering: .relaxed)
        return SequenceNumber(number)
    }

    /// Commits what a log has ordered, and passes over what the store has already.
    private func commit(_ run: OrderedRun<S>, through: StoreVersion) -> RunReport {
        var report = RunReport()
        var last = position
        let (mark, follower) = (commitMark, follower)
        follower?.willBeginRun(run.count, run.payloadBytes)
        run.takeEach { index, action, context in
            if isReleased.load(ordering: .relaxed) {
                report.isClosed = true
                return false
            }
            report.completed = index + 1
            guard context.sequence > last else { return true }
            mark?.begin(context.sequence)
            var refusal: (any Error)?
            do {
                try perform(action) { context }
            } catch {
                report.refusals.append(RunReport.Refusal(index: index, error: error))
                refusal = error
            }
            if let follower {
                state._withUnsafeGuaranteedRef {
                    follower.didCommit(action, context, refusal, $0)
                }
            }
            last = context.sequence
            return true
        }
        follower?.didEndRun()
        if !report.isClosed { last = max(last, through.sequence) }
        mark?.end(at: last)
        note(last, through.epoch)
        return report
    }

    /// Notes how far the store is. The epoch stays the same if it is not known.
    func note(_ last: SequenceNumber, _ epoch: Epoch) {
        lastOrdered.store(last.rawValue, ordering: .releasing)
        if epoch != .none { lastEpoch.store(epoch.rawValue, ordering: .releasing) }
    }
}
