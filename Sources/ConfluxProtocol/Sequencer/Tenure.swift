import ConfluxVocabulary

/// One sequencer's time over the log, and what it knows of the times before: rules 1 and 2.
struct Tenure: Sendable {
    /// One claim of the log's history.
    struct Claim: Sendable, Equatable {
        var epoch: Epoch
        var nonce: Nonce
        /// The number of the claim's entry: the tenure's first.
        var first: SequenceNumber
    }

    /// How many claims of the past are remembered. A node whose history ends before them reloads.
    static let claimsMax = 4_096

    var log = LogID.none
    var epoch = Epoch.none
    /// The nonce of the present claim.
    var nonce = Nonce.none
    /// The last committed number. *Invariant*: never falls.
    var last = SequenceNumber.zero
    /// The epoch of the commit that ends with `last`. *Use*: the next commit's predecessor.
    var lastEpoch = Epoch.none
    /// The lowest number that the log still holds.
    var floor = SequenceNumber(1)
    /// The timestamp of the last commit. *Invariant*: never falls, across tenures too (rule 15).
    var lastTimestamp = Timestamp(0)
    /// The claims of the log, ascending.
    private(set) var claims: [Claim] = []

    var beat: Beat { Beat(log: log, last: last, floor: floor) }

    mutating func remember(_ claim: Claim) {
        claims.append(claim)
        if claims.count > Self.claimsMax { claims.removeFirst() }
    }

    /// A timestamp that is not below any before it.
    mutating func stamp(_ wall: Timestamp) -> Timestamp {
        lastTimestamp = max(lastTimestamp, wall)
        return lastTimestamp
    }

    /// The highest number up to which a history is this log's (rule 2).
    ///
    /// A log that lost its tail gives the lost numbers again in a later epoch; one that lost its
    /// end to a restored backup may even give the same epoch again, so the claim's nonce counts.
    func agreement(with mark: HistoryMark) -> SequenceNumber {
        guard mark.log == log else { return .zero }
        guard let index = claims.lastIndex(where: { $0.epoch <= mark.epoch }) else {
            // Older than what is remembered of claims, or of no tenure of this log.
            return claims.first.map { min($0.first, mark.sequence) } ?? .zero
        }
        let claim = claims[index]
        let end =
            index + 1 < claims.count
            ? SequenceNumber(claims[index + 1].first.rawValue - 1) : last
        guard claim.epoch == mark.epoch,
            mark.claim == .none || claim.nonce == mark.claim
        else { return min(SequenceNumber(claim.first.rawValue - 1), mark.sequence) }
        return min(end, mark.sequence)
    }
}

extension SequencerMachine {
    mutating func claimed(
        _ log: LogID, _ epoch: Epoch, through last: SequenceNumber, floor: SequenceNumber,
        nonce: Nonce, at now: Moment, into effects: inout [SequencerEffect]
    ) {
        guard phase == .unclaimed else { preconditionFailure("claimed twice; \(phase)") }
        tenure.log = log
        tenure.epoch = epoch
        tenure.nonce = nonce
        tenure.floor = floor
        phase = .reading
        if last == .zero {
            claim(at: now, into: &effects)
        } else {
            effects.append(.readLog(from: floor))
        }
    }

    /// Rebuilds all that the sequencer decides by from the log, commit by commit.
    mutating func rebuild(
        from bodies: [Bytes], at now: Moment, into effects: inout [SequencerEffect]
    ) {
        guard phase == .reading else { preconditionFailure("the log was read in \(phase)") }
        guard !bodies.isEmpty else {
            claim(at: now, into: &effects)
            return
        }
        for body in bodies {
            do {
                try recover(Commit.decode(body: body), at: now)
            } catch {
                let next = tenure.last.next
                end(
                    .logDamaged("the commit at \(next) is not readable: \(error)"), into: &effects)
                return
            }
        }
        effects.append(.readLog(from: tenure.last.next))
    }

    private mutating func recover(_ commit: Commit, at now: Moment) throws(LogInconsistency) {
        guard commit.log == tenure.log, commit.predecessor == tenure.lastEpoch,
            commit.first == tenure.last.next, commit.epoch < tenure.epoch
        else { throw LogInconsistency(sequence: commit.first) }
        var sequence = commit.first
        for block in commit.blocks {
            switch block {
            case .batch(let incarnation, let batch):
                seeTargets(of: batch)
                // A session that was forgotten has no ledger; its actions are history only.
                if sessions[incarnation] != nil {
                    let isAscending =
                        sessions[incarnation]?.ledger.recover(
                            first: batch.firstCounter, count: batch.count, settled: batch.settled,
                            at: sequence, epoch: commit.epoch, timestamp: commit.timestamp)
                    guard isAscending == true else {
                        throw LogInconsistency(sequence: sequence)
                    }
                }
            case .event(let event):
                recover(event, at: sequence, now: now.monotonic)
            }
            sequence = sequence.advanced(by: UInt64(block.count))
        }
        tenure.last = commit.last
        tenure.lastEpoch = commit.epoch
        tenure.lastTimestamp = max(tenure.lastTimestamp, commit.timestamp)
    }

    /// A row of a table may have no entry, when its entries were rejected: only the others count.
    private mutating func seeTargets(of batch: Batch) {
        guard batch.targets.contains(where: { !directory.knows(target: $0.target) }) else { return }
        batch.forEachEntry { row, _ in directory.see(batch.targets[row].target) }
    }

    private mutating func recover(
        _ event: LogEvent, at sequence: SequenceNumber, now: Duration
    ) {
        switch event {
        case .claim(let epoch, let nonce):
            tenure.remember(Tenure.Claim(epoch: epoch, nonce: nonce, first: sequence))
        case .joined(let nonce, let name, let rejoining):
            if rejoining == .none {
                sessions.insert(
                    Session(
                        incarnation: Incarnation(sequence.rawValue), nonce: nonce, name: name,
                        quietSince: now))
            } else {
                sessions.revive(rejoining, at: now)
            }
        case .left(let incarnation):
            sessions[incarnation]?.presence = .left
        case .forgotten(let incarnation):
            sessions.remove(incarnation)
        case .created(let name, let schemaVersion, let initial):
            directory.insert(
                StoreDirectory.Store(
                    life: sequence, schemaVersion: schemaVersion, initial: initial), named: name)
        }
    }

    /// Begins the tenure: its first entry says whose it is, and is synced whatever the durability.
    private mutating func claim(at now: Moment, into effects: inout [SequencerEffect]) {
        phase = .claiming
        pipeline = CommitPipeline(
            log: tenure.log, epoch: tenure.epoch, predecessor: tenure.lastEpoch, last: tenure.last,
            settings: settings)
        let sequence = pipeline.admit(
            .claim(epoch: tenure.epoch, nonce: tenure.nonce), then: nil)
        tenure.remember(Tenure.Claim(epoch: tenure.epoch, nonce: tenure.nonce, first: sequence))
        guard
            let append = pipeline.launch(timestamp: tenure.stamp(now.wall), isForced: true)
        else { preconditionFailure("a claim was not launched") }
        effects.append(.append(append))
    }

    /// A node that speaks with a higher epoch has heard of a newer tenure: only the log knows.
    mutating func challenge(by epoch: Epoch, into effects: inout [SequencerEffect]) {
        guard epoch > tenure.epoch, !isConfirming else { return }
        isConfirming = true
        effects.append(.note(.challenged(by: epoch)))
        effects.append(.confirmTenure)
    }

    mutating func stop(at now: Moment, into effects: inout [SequencerEffect]) {
        guard phase == .serving, !pipeline.isEmpty else {
            sayBye(into: &effects)
            end(.stopped, into: &effects)
            return
        }
        phase = .stopping
        launch(at: now, into: &effects)
    }

    /// Tells every node that this tenure ends, so that none waits for a beat to notice.
    mutating func sayBye(into effects: inout [SequencerEffect]) {
        for connection in connections.all {
            let bye = Bye(code: .leaving, message: "the sequencer stops")
            effects.append(.send(.bye(bye), to: connection))
        }
    }

    mutating func end(_ reason: SequencerEnd, into effects: inout [SequencerEffect]) {
        phase = .ended
        effects.append(.end(reason))
    }
}

/// The log holds what no sequencer wrote.
struct LogInconsistency: Error, CustomStringConvertible {
    var sequence: SequenceNumber

    var description: String { "entry \(sequence) does not follow from the entries before it" }
}
