import Conflux
import ConfluxProtocol

/// Outcomes of what this node dispatched, told once what stands before them is applied (P5, P6).
extension Applier {
    func settle(_ outcome: ActionOutcome) {
        var counter = outcome.firstCounter
        let end = outcome.firstCounter + UInt64(outcome.count)
        while counter < end, let batch = submitted.first {
            let stop = min(end, batch.lastCounter + 1)
            if counter < stop {
                settle(
                    batch, from: Int(counter - batch.firstCounter),
                    count: Int(stop - counter), outcome, at: counter)
                counter = stop
            }
            if stop > batch.lastCounter { submitted.removeFirst() }
        }
        if submitted.isEmpty {
            ownFailures.removeAll()
            ownEffects.removeAll()
        } else if case .committed(_, let first, _, _) = outcome.fate {
            ownFailures.told(first.advanced(by: UInt64(outcome.count) - 1))
        }
    }

    private func settle(
        _ batch: Submitted, from index: Int, count: Int, _ outcome: ActionOutcome,
        at counter: UInt64
    ) {
        let block = batch.block
        switch outcome.fate {
        case .committed(let log, let first, let epoch, let timestamp):
            let start = first.advanced(by: counter - outcome.firstCounter)
            func receipt(_ offset: Int) -> Receipt {
                Receipt(
                    log: log, epoch: epoch, sequence: start.advanced(by: UInt64(offset)),
                    timestamp: timestamp)
            }
            if !ownFailures.isEmpty {
                for offset in 0..<count {
                    let receipt = receipt(offset)
                    if let failure = ownFailures.take(receipt.sequence) {
                        block.settle(from: index + offset, with: .failed(failure.error(receipt)))
                    }
                }
            }
            if isEffectInDoubt(of: batch, at: start) {
                for offset in 0..<count where !ownEffects.contains(receipt(offset).sequence) {
                    let error = DispatchError.effectUnknown(receipt(offset))
                    block.settle(from: index + offset, with: .failed(error))
                }
            }
            block.settle(from: index, count: count, with: .committed(receipt(0)))
        case .rejected(.withdrawn, _):
            block.settle(from: index, count: count, with: .failed(.withdrawn))
        case .rejected(let code, let message):
            block.settle(
                from: index, count: count,
                with: .failed(
                    DispatchError(
                        code: .rejected,
                        message: "The sequencer rejected the action (\(code)): \(message)",
                        reason: RejectionReason(code: code, message: message))))
        case .unknown:
            block.settle(from: index, count: count, with: .failed(.outcomeUnknown))
        }
    }

    /// Whether a snapshot may have jumped over entries from this one on, so that nobody here knows
    /// which of them were refused.
    private func isEffectInDoubt(of batch: Submitted, at sequence: SequenceNumber) -> Bool {
        batch.targets.contains { target in
            guard let applier = applier(of: target) else { return false }
            switch target {
            case .store(let store):
                return applier.hosted(store).map { $0.restoredAt >= sequence } ?? false
            case .state:
                return applier.restoredAt >= sequence
                    || (applier.isBridged && ownEffects.passedOver >= sequence)
            case .event: return false
            }
        }
    }
}
