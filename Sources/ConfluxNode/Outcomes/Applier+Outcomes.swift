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
            let doubtful = doubtfulThrough(batch)
            if doubtful >= start {
                for offset in 0..<count {
                    let receipt = receipt(offset)
                    guard receipt.sequence <= doubtful else { break }
                    if ownEffects.contains(receipt.sequence) { continue }
                    let error = DispatchError.effectUnknown(receipt)
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

    /// Up to which number a snapshot may have jumped over entries of a batch, so that nobody here
    /// knows which of them were refused; zero where none has.
    private func doubtfulThrough(_ batch: Submitted) -> SequenceNumber {
        batch.targets.lazy.map { target -> SequenceNumber in
            guard let applier = self.applier(of: target) else { return .zero }
            switch target {
            case .store(let store): return applier.hosted(store)?.restoredAt ?? .zero
            case .state:
                return max(
                    applier.restoredAt, applier.isBridged ? self.ownEffects.passedOver : .zero)
            case .event: return .zero
            }
        }.max() ?? .zero
    }
}
