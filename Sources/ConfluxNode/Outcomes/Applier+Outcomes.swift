import Conflux
import ConfluxProtocol
import ConfluxVocabulary

/// Gives the outcomes of this node's actions, once the stores here that they concern have reached their
/// numbers (P5, P6).
extension Applier {
    /// How many known outcomes wait for stores. *Use*: bounds what may be dispatched.
    package var waitingOutcomeCount: Int { outcomes.waitingCount }
    /// How many of this node's actions have been given their outcome.
    package var toldCount: UInt64 { outcomes.toldCount }

    func settle(_ outcome: ActionOutcome) {
        let parts = outcomes.cut(outcome).map { part in
            PendingOutcome(
                block: part.block, index: part.index, count: part.count,
                outcome: self.outcome(outcome.status, behind: part.counter - outcome.firstCounter),
                target: part.target, others: part.others, begunAt: part.begunAt)
        }
        for part in parts { hold(part, behindOthers: true) }
        boundWaiting()
    }

    /// The progress of everything here that an entry with this target may concern.
    func stores(concernedBy target: Target, besides others: [Name] = []) -> [StoreProgress]? {
        switch target {
        case .store(let store): states[store.state]?.progresses(concernedBy: target)
        case .state(let state): states[state]?.progresses(concernedBy: target)
        // Who sends an event does not know yet which states the sequencer will name.
        case .event(let event, []):
            states.values.filter {
                $0.runner?.handles(event) == true && !others.contains($0.name)
            }.flatMap(\.progresses)
        case .event(_, let names): names.flatMap { states[$0]?.progresses ?? [] }
        }
    }

    private func outcome(_ status: ActionOutcome.Status, behind distance: UInt64) -> Outcome {
        switch status {
        case .committed(let log, let first, let epoch, let timestamp):
            .committed(
                Receipt(
                    log: log, epoch: epoch, sequence: first.advanced(by: distance),
                    timestamp: timestamp))
        case .rejected(.withdrawn, _): .failed(.withdrawn)
        case .rejected(.leaseLost, let message):
            .failed(
                DispatchError(
                    code: .leaseLost,
                    message:
                        "The action was not taken: \(message). See with conflux leases who holds it.",
                    reason: RejectionReason(code: .leaseLost, message: message)))
        case .rejected(let code, let message):
            .failed(
                DispatchError(
                    code: .rejected,
                    message: "The sequencer rejected the action (\(code)): \(message)",
                    reason: RejectionReason(code: code, message: message)))
        case .conflict(let version, let message):
            .failed(
                DispatchError(code: .conflict, message: "\(message).", version: version))
        case .unknown: .failed(.outcomeUnknown)
        }
    }

    /// Holds an outcome until its stores have reached it. It is given at once if there is nothing to wait for.
    ///
    /// - Parameters:
    ///   - outcome: The outcome.
    ///   - behindOthers: Whether it waits for its turn if other outcomes wait. For one store, outcomes are given in
    ///     the order of their counters.
    private func hold(_ outcome: PendingOutcome, behindOthers: Bool) {
        let last = outcome.last
        let stores =
            outcome.target.flatMap { self.stores(concernedBy: $0, besides: outcome.others) } ?? []
        for store in stores
        where behindOthers && store.isAwaited || !store.hasReached(last, delivered) {
            outcome.openCount += 1
            wait(.outcome(outcome), at: last, store)
        }
        if outcome.openCount == 0 {
            tell(outcome, stores)
        } else if !outcome.isWaiting {
            outcomes.waitingCount += 1
            outcome.isWaiting = true
        }
    }

    /// Notes that a store has reached an outcome, or that it is no longer waited for. After the last store, the outcome
    /// depends on the stores that are here then: one that was opened meanwhile counts, and one that is gone does not.
    func reached(_ outcome: PendingOutcome) {
        outcome.openCount -= 1
        if outcome.openCount == 0 { hold(outcome, behindOthers: false) }
    }

    /// Gives an outcome that all stores here that it concerns have reached.
    private func tell(_ pending: PendingOutcome, _ stores: [StoreProgress]) {
        guard case .committed(let receipt) = pending.outcome else { return end(pending, stores) }
        // All at once: a program that only dispatches has a bridge without stores.
        guard stores.contains(where: { !$0.isAway(from: receipt.sequence) }) else {
            pending.block.settle(
                from: pending.index, count: pending.count, with: elsewhere(receipt, pending.target))
            return end(pending, stores)
        }
        let last = pending.last
        var others: [NodeMetrics.OutcomeKind: Int] = [:]
        // What one store has applied counts as applied, whatever the others did.
        if !stores.contains(where: { $0.isPlain(receipt.sequence, last) }) {
            for offset in 0..<pending.count {
                let receipt = receipt.advanced(by: UInt64(offset))
                let effect = stores.reduce(Effect.nobody) {
                    .merged($0, $1.effect(of: receipt.sequence))
                }
                let outcome: Outcome
                if let error = effect.error(receipt) {
                    others[error.kind, default: 0] += 1
                    outcome = .failed(error)
                } else if case .nobody = effect {
                    outcome = elsewhere(receipt, pending.target)
                } else {
                    continue
                }
                pending.block.settle(from: pending.index + offset, with: outcome)
            }
        }
        end(pending, stores, except: others)
    }

    /// The outcome of an action that is in the log and for no store here.
    private func elsewhere(_ receipt: Receipt, _ target: Target?) -> Outcome {
        guard let inquire, let target else { return .committed(receipt) }
        return .ordered(receipt) { receipt, limit throws(DispatchError) in
            try await inquire(receipt, target, limit)
        }
    }

    /// Gives an outcome whose stores will not reach it: the action is in the log, and its effect is unknown.
    func tellUnknown(_ pending: PendingOutcome) {
        guard pending.openCount > 0 else { return }
        pending.openCount = 0
        var others: [NodeMetrics.OutcomeKind: Int] = [:]
        if case .committed(let receipt) = pending.outcome {
            others[.effectUnknown] = pending.count
            for offset in 0..<pending.count {
                pending.block.settle(
                    from: pending.index + offset,
                    with: .failed(.effectUnknown(receipt.advanced(by: UInt64(offset)))))
            }
        }
        end(pending, pending.target.flatMap { stores(concernedBy: $0) } ?? [], except: others)
    }

    private func end(
        _ pending: PendingOutcome, _ stores: [StoreProgress],
        except others: [NodeMetrics.OutcomeKind: Int] = [:]
    ) {
        meter?.told(
            pending.count, pending.outcome.kind, except: others,
            after: pending.begunAt.map { clock() - $0 })
        if pending.isWaiting { outcomes.waitingCount -= 1 }
        outcomes.toldCount += UInt64(pending.count)
        pending.block.settle(from: pending.index, count: pending.count, with: pending.outcome)
        guard case .committed(let first) = pending.outcome else { return }
        let last = pending.last
        for store in stores { store.effects.forgetErrors(of: first.sequence...last) }
    }

    /// Ends the waits for stores that get nothing for now, so that they don't hold up other outcomes.
    private func boundWaiting() {
        guard outcomes.waitingCount > waitingOutcomesMax / 2 else { return }
        for store in awaited where store.phase == .parked {
            for outcome in store.takeOutcomes() { tellUnknown(outcome) }
        }
    }
}

extension Effect {
    /// The error that the dispatcher gets; nil if it gets only a receipt.
    fileprivate func error(_ receipt: Receipt) -> DispatchError? {
        switch self {
        case .applied, .nobody: nil
        case .refused(let message, let reason):
            .refused(reason ?? RefusalText(description: message), receipt: receipt)
        case .stopped(_, let message):
            DispatchError(code: .storeStopped, message: message, receipt: receipt)
        case .unknown: .effectUnknown(receipt)
        }
    }
}

extension Outcome {
    fileprivate var kind: NodeMetrics.OutcomeKind {
        switch self {
        case .committed, .ordered: .receipt
        case .failed(let error): error.kind
        }
    }
}

extension DispatchError {
    fileprivate var kind: NodeMetrics.OutcomeKind {
        switch code {
        case .refused: .refused
        case .withdrawn: .withdrawn
        case .storeStopped: .storeStopped
        case .outcomeUnknown: .outcomeUnknown
        case .effectUnknown: .effectUnknown
        default: .rejected
        }
    }
}

/// The reason of a refusal, if only its text is kept.
struct RefusalText: Error, CustomStringConvertible {
    let description: String
}
