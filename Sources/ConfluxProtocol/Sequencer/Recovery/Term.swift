import ConfluxVocabulary

/// One sequencer's time over the log, and what it knows of earlier terms (rules 1 and 2).
struct Term: Sendable, Equatable {
    fileprivate(set) var log = LogID.none
    fileprivate(set) var epoch = Epoch.none
    /// The nonce of this term's claim.
    fileprivate(set) var nonce = Nonce.none
    /// The last committed number. *Invariant*: never decreases.
    fileprivate(set) var last = SequenceNumber.zero
    /// The epoch of the commit that ends with `last`. *Use*: the next commit's predecessor.
    fileprivate(set) var lastEpoch = Epoch.none
    /// The lowest number that the log still holds.
    fileprivate(set) var floor = SequenceNumber(1)
    /// Makes the timestamps of commits, which never decrease, not even from one term to the next.
    fileprivate(set) var clock = LogClock(after: Timestamp(0))
    /// The claims of the log.
    fileprivate(set) var claims = ClaimTable()
    /// They show which entries are too old to keep.
    fileprivate(set) var marks = LogMarks()

    var beat: Beat { Beat(log: log, last: last, floor: floor) }

    /// A commit of this term is in the log.
    mutating func land(through last: SequenceNumber, byteCount: Int, at timestamp: Timestamp) {
        self.last = last
        lastEpoch = epoch
        marks.add(through: last, byteCount: byteCount, at: timestamp)
    }

    /// The log discards everything below the floor.
    mutating func truncate(below floor: SequenceNumber) {
        self.floor = floor
        marks.forget(below: floor)
    }

    /// The highest number up to which a history agrees with this log (rule 2).
    func agreement(with mark: HistoryMark) -> SequenceNumber {
        mark.log == log ? claims.agreement(with: mark, endingAt: last) : .zero
    }
}

extension SequencerMachine {
    mutating func claimed(
        _ claim: ClaimedLog, _ known: KnownLogState?, at now: Moment,
        into effects: inout [SequencerEffect]
    ) {
        guard phase == .unclaimed else { preconditionFailure("claimed twice; \(phase)") }
        term.log = claim.log
        term.epoch = claim.epoch
        term.nonce = claim.nonce
        term.floor = claim.floor
        questions = QuestionTable(of: claim.nonce)
        phase = .reading
        recovery = LogRecovery(
            log: claim.log, through: claim.last, in: claim.lastEpoch, floor: claim.floor,
            goingOnFrom: known)
        recover(at: now, into: &effects)
    }

    mutating func checkpointRead(
        _ answer: CheckpointAnswer, at now: Moment, into effects: inout [SequencerEffect]
    ) {
        guard phase == .reading else { preconditionFailure("the log was read in \(phase)") }
        recovery?.take(answer)
        recover(at: now, into: &effects)
    }

    mutating func logRead(
        _ bodies: [Bytes], at now: Moment, into effects: inout [SequencerEffect]
    ) {
        guard phase == .reading else { preconditionFailure("the log was read in \(phase)") }
        do {
            try recovery?.take(bodies)
        } catch {
            doubt(error.message, into: &effects)
            return
        }
        recover(at: now, into: &effects)
    }

    /// Asks for what the recovery needs next. Once it needs no more, asks for the list of
    /// snapshots.
    private mutating func recover(at now: Moment, into effects: inout [SequencerEffect]) {
        guard let recovery else { return }
        switch recovery.demand {
        case .checkpoint(let last): effects.append(.readCheckpoint(through: last))
        case .entries(let first): effects.append(.readLog(from: first))
        case .nothing: effects.append(.readSnapshots)
        }
    }

    /// The log is not what a sequencer wrote. Or it is not any more: a newer term may have
    /// discarded what this one was about to read. The log is damaged only if it still confirms the
    /// term afterwards.
    private mutating func doubt(_ damage: String, into effects: inout [SequencerEffect]) {
        recovery = nil
        phase = .damaged(damage)
        confirm(into: &effects)
    }

    /// The snapshots beside the log are listed. Now everything is known, and the term appends its
    /// claim.
    mutating func snapshotsRead(
        _ snapshots: [SnapshotIndexEntry], _ damage: SnapshotIndexDamage?, at now: Moment,
        into effects: inout [SequencerEffect]
    ) {
        guard phase == .reading, let recovery else {
            preconditionFailure("snapshots were read in \(phase)")
        }
        adopt(recovery, into: &effects)
        guard phase == .reading else { return }
        for snapshot in snapshots.sorted(by: { $0.order < $1.order }) {
            // Entries that are kept aside continue from a snapshot, and that snapshot may be
            // missing.
            if snapshot.isAside, damage?.concerns(snapshot.place.store) == true { continue }
            adopt(snapshot)
        }
        if let damage { holdOff(damage, at: now.monotonic, into: &effects) }
        claim(at: now, into: &effects)
    }

    /// Continues from what was read from the log.
    private mutating func adopt(
        _ recovery: LogRecovery, into effects: inout [SequencerEffect]
    ) {
        self.recovery = nil
        guard recovery.logState.lastEpoch < term.epoch else {
            let text = "the log ends in epoch \(recovery.logState.lastEpoch), which is not over"
            doubt(text, into: &effects)
            return
        }
        for checkpoint in recovery.setAside {
            effects.append(.note(.checkpointSetAside(checkpoint.sequence, checkpoint.reason)))
        }
        if recovery.logState.last > .zero {
            effects.append(
                .note(.recovered(from: recovery.base ?? .zero, through: recovery.logState.last)))
        }
        term.last = recovery.logState.last
        term.lastEpoch = recovery.logState.lastEpoch
        term.clock = LogClock(after: recovery.logState.lastTimestamp)
        term.claims = recovery.logState.claims
        term.marks = recovery.logState.marks
        checkpoints = recovery.checkpoint.map { [$0] } ?? []
        sessions = recovery.logState.sessions
        timers = recovery.logState.timers
        leases = recovery.logState.leases
        directory = recovery.logState.directory
    }

    /// Begins the term. Its first entry is the claim, which is synced regardless of the
    /// durability setting.
    private mutating func claim(at now: Moment, into effects: inout [SequencerEffect]) {
        guard phase == .reading else { return }
        phase = .claiming
        pipeline = CommitPipeline(
            log: term.log, epoch: term.epoch, predecessor: term.lastEpoch, last: term.last,
            settings: settings)
        let sequence = pipeline.admit(
            .claim(epoch: term.epoch, nonce: term.nonce), then: nil)
        term.claims.remember(
            ClaimTable.Claim(epoch: term.epoch, nonce: term.nonce, first: sequence))
        guard
            let append = pipeline.launch(timestamp: stamp(at: now, into: &effects), isForced: true)
        else { preconditionFailure("a claim was not launched") }
        effects.append(.append(append))
    }

    /// The present time, not below any timestamp of the log.
    mutating func stamp(at now: Moment, into effects: inout [SequencerEffect]) -> Timestamp {
        term.clock.read(now) { effects.append(.note(.clock($0))) }
    }

    /// A node has heard of a newer term, or of an entry that was not committed here. Only the log knows whether
    /// there is a newer term.
    mutating func challenge(by epoch: Epoch, into effects: inout [SequencerEffect]) {
        guard !confirmations.isUnderWay else { return }
        if epoch > term.epoch { effects.append(.note(.challenged(by: epoch))) }
        confirm(into: &effects)
    }

    /// Asks the log whether this term is the newest, for everything that waits for the answer.
    mutating func confirm(into effects: inout [SequencerEffect]) {
        confirmations.begin()
        claimQuestions.beginConfirmation()
        effects.append(.confirmTerm)
    }

    /// No newer term had begun at some moment since the confirmation began.
    mutating func confirmed(at now: Moment, into effects: inout [SequencerEffect]) {
        let answered = confirmations.end()
        if case .damaged(let message) = phase {
            end(.logDamaged(message), into: &effects)
            return
        }
        // No receipt was given for a higher number, by this term or by a later one.
        for asker in answered.barriers { confirm(term.last, to: asker, into: &effects) }
        if phase == .serving {
            for (connection, hello) in answered.hellos {
                self.hello(hello, from: connection, at: now, into: &effects)
            }
        }
        if phase == .serving { answerClaims(into: &effects) }
        if confirmations.isDue, !confirmations.isUnderWay { confirm(into: &effects) }
    }

    mutating func stop(at now: Moment, into effects: inout [SequencerEffect]) {
        guard phase == .serving, !pipeline.isEmpty else {
            endInOrder(into: &effects)
            return
        }
        phase = .stopping
        launch(at: now, into: &effects)
    }

    /// Ends the term. Everything that was admitted has its outcome.
    mutating func endInOrder(into effects: inout [SequencerEffect]) {
        sayBye(.leaving, "the sequencer stops", into: &effects)
        end(successor.map { .handedOver(to: $0) } ?? .stopped, into: &effects)
    }

    /// Tells every node that this term ends, so that no node has to notice it by missing beats.
    mutating func sayBye(
        _ code: ByeCode, _ message: String, into effects: inout [SequencerEffect]
    ) {
        for connection in connections.all.sorted(by: { $0.rawValue < $1.rawValue }) {
            let bye = Bye(code: code, message: message)
            effects.append(.send(.bye(bye), to: connection))
        }
    }

    mutating func end(_ reason: SequencerEnd, into effects: inout [SequencerEffect]) {
        phase = .ended
        effects.append(.end(reason))
    }
}
