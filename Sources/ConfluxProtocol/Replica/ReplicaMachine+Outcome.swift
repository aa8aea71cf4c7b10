import ConfluxVocabulary

/// Submission and outcomes: every action gets one outcome, in the order of counters.
extension ReplicaMachine {
    /// Sends every batch that is due.
    mutating func pump(at now: Duration, into effects: inout [ReplicaEffect]) {
        guard phase == .joined else { return }
        while let batch = submissions.next(at: now) {
            effects.append(.send(.submit(batch)))
        }
    }

    /// Withdraws actions (rule 12). Void batches for actions that the sequencer may have already
    /// are sent at once. If it has judged such an action, it answers with the first outcome;
    /// otherwise it judges the action as withdrawn.
    mutating func withdraw(
        _ counters: RangeSet<UInt64>, at now: Duration, into effects: inout [ReplicaEffect]
    ) {
        let urgent = submissions.withdraw(counters)
        guard phase == .joined else { return }
        for batch in urgent { effects.append(.send(.submit(batch))) }
        pump(at: now, into: &effects)
    }

    /// A batch was discarded: it is sent again after a pause, with everything behind it.
    mutating func discarded(
        _ expected: Expected, at now: Duration, into effects: inout [ReplicaEffect]
    ) {
        if let message = expected.message { effects.append(.event(.heldUp(message: message))) }
        var pauseMax = settings.resubmitPause
        if let limits { pauseMax = limits.beatInterval * 4 }
        submissions.rewind(
            to: expected.counter, isFull: expected.reason == .full, at: now,
            first: settings.resubmitPause, most: pauseMax)
    }

    /// An outcome is known. Outcomes are taken in the order of the counters: one that arrives ahead
    /// of others, as the feed may bring it, arrives again after them.
    ///
    /// The sequencer tells runs as it has them. They may be cut differently from the batches here,
    /// above all if a former process with the same session key submitted them. So a part of a run
    /// may be known here already, and another part may not be dispatched yet.
    mutating func learn(_ told: ActionOutcome, into effects: inout [ReplicaEffect]) {
        let wanted = submissions.settled + 1..<submissions.nextCounter
        guard let outcome = told.part(in: wanted),
            submissions.settle(from: outcome.firstCounter, count: outcome.count)
        else { return }
        if case .committed(let log, let first, let epoch, _) = outcome.status {
            let last = first.advanced(by: UInt64(outcome.count) - 1)
            remember(log, last, of: epoch)
            hear(of: last, into: &effects)
        }
        effects.append(.deliver(.settle(outcome)))
    }

    /// Keeps the highest number that the node knows to be in the log: it applied it, passed over it, or has a receipt
    /// for it, or the sequencer answered it up to that number (rule 2).
    ///
    /// The mark names the present term, also for an entry of an earlier one: what the log held in this term it
    /// must still hold in a later one, and only this term's claim is known. An entry of a later term comes by way
    /// of a superseded sequencer that does not know that term: then the mark names that term, and no claim.
    mutating func remember(_ log: LogID, _ sequence: SequenceNumber, of entryEpoch: Epoch) {
        guard mark.map({ $0.log != log || $0.sequence < sequence }) ?? true else { return }
        let isLater = entryEpoch > epoch
        mark = HistoryMark(
            log: log, sequence: sequence, epoch: isLater ? entryEpoch : epoch,
            claim: isLater ? .none : welcome?.claim ?? .none)
    }
}

extension ActionOutcome {
    /// The part of this outcome that begins with the lowest of these counters; nil if it does not
    /// have that counter.
    fileprivate func part(in counters: Range<UInt64>) -> ActionOutcome? {
        let end = min(firstCounter + UInt64(count), counters.upperBound)
        guard firstCounter <= counters.lowerBound, counters.lowerBound < end else { return nil }
        var part = self
        part.firstCounter = counters.lowerBound
        part.count = UInt32(end - counters.lowerBound)
        if case .committed(let log, let sequence, let epoch, let timestamp) = status {
            let first = sequence.advanced(by: counters.lowerBound - firstCounter)
            part.status = .committed(log, first, epoch, timestamp)
        }
        return part
    }
}
