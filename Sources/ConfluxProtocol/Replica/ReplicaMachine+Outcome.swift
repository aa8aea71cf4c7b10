import ConfluxVocabulary

/// Submission and outcomes: every action gets one outcome, in order, after it is applied here.
extension ReplicaMachine {
    /// Sends what is due.
    mutating func pump(at now: Duration, into effects: inout [ReplicaEffect]) {
        guard phase == .joined else { return }
        while let batch = submissions.next(at: now) {
            effects.append(.send(.submit(batch)))
        }
    }

    /// An outcome that is known, and what it waits for.
    struct HeldOutcome: Sendable {
        var outcome: ActionOutcome
        /// The stores here that it concerns and that were being opened when it became known: their
        /// snapshot may be older than the action.
        var opening: Set<StoreName>
    }

    /// An outcome is known. Outcomes are taken in the order of the counters: one that comes
    /// ahead of others, as the feed may bring it, comes again behind them.
    mutating func learn(_ outcome: ActionOutcome, into effects: inout [ReplicaEffect]) {
        let concerned = opening.isEmpty ? [] : openingStores(concernedBy: outcome.firstCounter)
        guard submissions.settle(from: outcome.firstCounter, count: outcome.count) else { return }
        if case .committed(let log, let first, let epoch, _) = outcome.fate {
            remember(log, first.advanced(by: UInt64(outcome.count) - 1), epoch)
        }
        held.append(HeldOutcome(outcome: outcome, opening: concerned))
        releaseHeld(isForced: false, into: &effects)
    }

    private func openingStores(concernedBy counter: UInt64) -> Set<StoreName> {
        let targets = submissions.targets(of: counter)
        return opening.filter { store in
            targets.contains { $0.target == .store(store) || $0.target == .state(store.state) }
        }
    }

    /// Tells the outcomes of what this node's replicas have applied (P6).
    mutating func releaseHeld(isForced: Bool, into effects: inout [ReplicaEffect]) {
        var count = 0
        for entry in held {
            guard isForced || isReached(entry) else { break }
            effects.append(.deliver(.settle(entry.outcome)))
            count += 1
        }
        if count > 0 { held.removeFirst(count) }
    }

    private func isReached(_ entry: HeldOutcome) -> Bool {
        guard case .committed(_, let first, _, _) = entry.outcome.fate else { return true }
        guard entry.opening.isDisjoint(with: opening) else { return false }
        guard let live else { return true }
        let last = first.advanced(by: UInt64(entry.outcome.count) - 1)
        return last <= min(live, catchUp?.cursor ?? live)
    }

    /// Keeps the highest number that was applied or receipted (rule 2).
    mutating func remember(_ log: LogID, _ sequence: SequenceNumber, _ epoch: Epoch) {
        guard mark.map({ $0.log != log || $0.sequence < sequence }) ?? true else { return }
        let claim = epoch == self.epoch ? welcome?.claim ?? .none : Nonce.none
        mark = HistoryMark(log: log, sequence: sequence, epoch: epoch, claim: claim)
    }
}
