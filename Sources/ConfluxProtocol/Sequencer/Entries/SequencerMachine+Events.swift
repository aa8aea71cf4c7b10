import ConfluxVocabulary

// Events for the stores of several states. The sequencer names the states when it orders an event, so that each reader of
// the log knows whom the entry concerns.

extension BatchTarget {
    /// Whether its entries are events for stores.
    package var isEvent: Bool {
        if case .event = target { !LogRequest.isFor(target) } else { false }
    }
}

extension StoreDirectory {
    /// A target with the states that handle its event.
    func naming(_ target: Target) -> Target {
        guard case .event(let event, []) = target else { return target }
        return .event(event, of: states.handlers[event] ?? [])
    }

    /// A batch whose events name the states that handle them. In an atomic batch these are not the states that have a row
    /// of their own: its sender has made their actions of the event, or has stopped it.
    func naming(_ batch: Batch) -> Batch {
        guard batch.targets.contains(where: { $0.isEvent }) else { return batch }
        var own: Set<Name> = []
        if batch.isAtomic {
            for case .state(let state) in batch.targets.lazy.map(\.target) { own.insert(state) }
        }
        var targets = batch.targets
        for row in targets.indices where targets[row].isEvent {
            guard case .event(let event, _) = targets[row].target else { continue }
            targets[row].target = .event(
                event, of: (states.handlers[event] ?? []).filter { !own.contains($0) })
        }
        return batch.with(targets, firstCounter: batch.firstCounter, settled: batch.settled)
    }
}

extension SequencerMachine {
    /// Why an event can't be admitted: nobody handles it, or its sender may not dispatch to a state that does.
    mutating func fault(ofEvent row: BatchTarget, for principal: Principal) -> Fault? {
        guard case .event(let event, let states) = row.target,
            directory.states.handlers[event] != nil
        else { return unknown(row.target) }
        let forbidden = states.first { !principal.rights.allow(.dispatch, .state($0)) }
        if let forbidden {
            let text = principal.denial(of: .dispatch, Target.state(forbidden))
            return Fault(
                code: .notAllowed, message: "\(forbidden) handles the event \(event), and \(text)")
        }
        return fault(of: row, upTo: 1)
    }
}
