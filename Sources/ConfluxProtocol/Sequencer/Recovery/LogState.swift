import ConfluxVocabulary

/// Everything that a sequencer bases its decisions on, as derived from the log up to one number
/// (rule 20).
///
/// The state of a log is a pure function of its commits, applied in order. A sequencer that starts
/// replays what the log holds. A checkpoint is an encoded state at one number, so that the next start
/// reads only the entries after it. So the encoding (`LogState+Wire`) must contain all of it. What is
/// measured anew in each term (silence, connections, hosting) is not part of it.
package struct LogState: Sendable, Equatable {
    /// The log that is replayed.
    package private(set) var log: LogID
    /// The number of the last entry that is replayed. *Invariant*: a commit ends there, or it is
    /// zero.
    package var last = SequenceNumber.zero
    /// The epoch of the commit that ends there. *Use*: the next commit names it.
    package internal(set) var lastEpoch = Epoch.none
    /// The timestamp of that commit. *Invariant*: never decreases (rule 15).
    package internal(set) var lastTimestamp = Timestamp(0)
    var claims = ClaimTable()
    /// *Use*: to find which entries are too old to keep.
    var marks = LogMarks()
    /// *Invariant*: every outcome in them is committed and announced.
    var sessions = SessionTable()
    /// *Invariant*: nobody bridges or hosts anything, and every store has its first state as its
    /// base. Snapshots are not part of it: they are kept beside the log.
    var directory = StoreDirectory()
    var leases = LeaseTable()
    /// *Invariant*: of each timer it is known when it fires next.
    var timers = TimerTable()

    /// Makes the state of a log from which nothing has been read.
    package init(log: LogID) {
        self.log = log
    }

    /// The same state of another log, which has the same entries.
    package func of(_ log: LogID) -> LogState {
        var other = self
        other.log = log
        return other
    }

    /// The stores that live, and their lives.
    package var lives: [(store: StoreName, life: SequenceNumber)] {
        directory.lives.lives.map { ($0.key, $0.value.record.life) }.sorted { $0.0 < $1.0 }
    }

    /// Adds the next commit.
    ///
    /// - Parameters:
    ///   - commit: The commit.
    ///   - byteCount: The size of its body.
    /// - Throws: ``LogInconsistency`` if the commit does not follow from the state of the log, so that no
    ///   sequencer can have written it. It is then unusable.
    package mutating func apply(
        _ commit: Commit, byteCount: Int
    ) throws(LogInconsistency) {
        guard commit.log == log, commit.predecessor == lastEpoch, commit.first == last.next,
            commit.epoch >= lastEpoch
        else { throw LogInconsistency(sequence: commit.first) }
        var sequence = commit.first
        // The session of a former program, which began with the batch that follows it.
        var former: (session: Incarnation, owner: Name?)?
        for block in commit.blocks {
            switch block {
            case .batch(let incarnation, let batch):
                let owner =
                    incarnation == former?.session
                    ? former?.owner : sessions[incarnation]?.owner
                directory.note(batch.loads(), by: owner, from: sequence)
                // A forgotten session has no ledger. Its actions are only history.
                let isAscending = sessions.change(incarnation) {
                    $0.recover(
                        first: batch.firstCounter, count: batch.count, settled: batch.settled,
                        at: sequence, epoch: commit.epoch, timestamp: commit.timestamp)
                }
                guard isAscending != false, take(batch, of: incarnation, by: owner, at: sequence)
                else { throw LogInconsistency(sequence: sequence) }
            case .event(.visited, let owner):
                former = (Incarnation(sequence.rawValue), owner)
            case .event(let event, let owner): apply(event, by: owner, at: sequence)
            }
            sequence = sequence.advanced(by: UInt64(block.count))
        }
        last = commit.last
        lastEpoch = commit.epoch
        lastTimestamp = max(lastTimestamp, commit.timestamp)
        timers.land(through: last, at: commit.timestamp)
        leases.land(through: last)
        marks.add(through: last, byteCount: byteCount, at: lastTimestamp)
    }

    private mutating func apply(
        _ event: LogEvent, by owner: Name?, at sequence: SequenceNumber
    ) {
        switch event {
        case .visited, .forked: break
        case .claim(let epoch, let nonce):
            claims.remember(ClaimTable.Claim(epoch: epoch, nonce: nonce, first: sequence))
        case .joined(let nonce, let name, let rejoining, let isKeyed):
            if rejoining == .none {
                sessions.insert(
                    Session(
                        incarnation: Incarnation(sequence.rawValue), nonce: nonce, name: name,
                        owner: owner, isKeyed: isKeyed, quietSince: .zero))
            } else {
                sessions.revive(rejoining, at: .zero)
            }
        case .left(let incarnation):
            sessions.leave(incarnation, at: .zero)
            leases.end(claimsOf: incarnation, at: sequence)
        case .forgotten(let incarnation):
            sessions.remove(incarnation)
            leases.end(claimsOf: incarnation, at: sequence)
        case .created, .dropped, .upgraded, .frozen, .thawed, .digestPoint, .skipped, .handles:
            if case .dropped(let name, let life) = event { timers.end(timersOf: name, life: life) }
            directory.note(event, by: owner, at: sequence)
        }
    }
}

/// The log holds something that no sequencer wrote.
package struct LogInconsistency: Error, CustomStringConvertible {
    var sequence: SequenceNumber

    package var description: String {
        "entry \(sequence) does not follow from the entries before it"
    }
}
