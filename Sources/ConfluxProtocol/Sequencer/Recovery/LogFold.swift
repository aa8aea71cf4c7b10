import ConfluxVocabulary

/// All that a sequencer decides by, as the log says it up to one number: rule 20.
///
/// The fold of a log is a pure function of its commits, one after the other. A sequencer that
/// starts folds what the log holds; a checkpoint is a fold at one number, encoded, so that the
/// next start reads only the entries behind it. So whatever a fold holds must be in the encoding
/// (`LogFold+Wire`), and what is measured anew in each tenure (silence, connections, hosting) is
/// not in a fold.
package struct LogFold: Sendable, Equatable {
    /// The log that is folded.
    package let log: LogID
    /// The number of the last entry that is in it. *Invariant*: a commit ends there, or it is zero.
    package var last = SequenceNumber.zero
    /// The epoch of the commit that ends there. *Use*: the next commit names it.
    var lastEpoch = Epoch.none
    /// The timestamp of that commit. *Invariant*: never falls (rule 15).
    var lastTimestamp = Timestamp(0)
    var claims = ClaimTable()
    /// *Use*: what has become too old.
    var marks = LogMarks()
    /// *Invariant*: every outcome in them is committed and announced.
    var sessions = SessionTable()
    /// *Invariant*: nobody bridges or hosts anything, and openers begin with the states that stores
    /// were created with: what snapshots there are stands beside the log.
    var directory = StoreDirectory()

    /// The fold of a log of which nothing was read.
    package init(log: LogID) {
        self.log = log
    }

    /// Adds the next commit.
    ///
    /// - Parameters:
    ///   - commit: The commit.
    ///   - byteCount: The size of its body.
    /// - Throws: ``LogInconsistency`` where it does not follow from what is in the fold: no
    ///   sequencer wrote that. The fold is of no use then.
    package mutating func apply(
        _ commit: Commit, byteCount: Int
    ) throws(LogInconsistency) {
        guard commit.log == log, commit.predecessor == lastEpoch, commit.first == last.next,
            commit.epoch >= lastEpoch
        else { throw LogInconsistency(sequence: commit.first) }
        var sequence = commit.first
        for block in commit.blocks {
            switch block {
            case .batch(let incarnation, let batch):
                let end = sequence.advanced(by: UInt64(batch.count) - 1)
                directory.note(batch.loads(), through: end)
                // A session that was forgotten has no ledger; its actions are history only.
                let isAscending = sessions.change(incarnation) {
                    $0.recover(
                        first: batch.firstCounter, count: batch.count, settled: batch.settled,
                        at: sequence, epoch: commit.epoch, timestamp: commit.timestamp)
                }
                guard isAscending != false else { throw LogInconsistency(sequence: sequence) }
            case .event(let event, let owner): apply(event, by: owner, at: sequence)
            }
            sequence = sequence.advanced(by: UInt64(block.count))
        }
        last = commit.last
        lastEpoch = commit.epoch
        lastTimestamp = max(lastTimestamp, commit.timestamp)
        marks.add(through: last, byteCount: byteCount, at: lastTimestamp)
    }

    private mutating func apply(
        _ event: LogEvent, by owner: Name?, at sequence: SequenceNumber
    ) {
        switch event {
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
        case .visited(let nonce):
            sessions.begin(
                Session(visit: Incarnation(sequence.rawValue), nonce: nonce, owner: owner),
                keeping: VisitQueue.most)
        case .left(let incarnation):
            sessions.leave(incarnation, at: .zero)
        case .forgotten(let incarnation):
            sessions.remove(incarnation)
        case .created, .dropped, .upgraded, .frozen, .thawed, .digestPoint, .skipped:
            directory.note(event, at: sequence)
        }
    }
}

/// The log holds what no sequencer wrote.
package struct LogInconsistency: Error, CustomStringConvertible {
    var sequence: SequenceNumber

    package var description: String {
        "entry \(sequence) does not follow from the entries before it"
    }
}
