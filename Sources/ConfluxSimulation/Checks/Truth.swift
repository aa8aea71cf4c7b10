import Conflux
import ConfluxLog
import ConfluxProtocol
import ConfluxVocabulary

/// A store that a node hosts, and its life.
struct HostedLife {
    var store: StoreName
    var life: SequenceNumber
}

/// The truth: every history that the log had, and everything that was dispatched. Everything that a process
/// says or does is checked against it.
final class Truth {
    /// The histories whose end the log lost, oldest first.
    private(set) var former: [Branch] = []
    private(set) var branch: Branch
    private let states: [Name: SimulatedState]
    private(set) var records: [DispatchRecord.Key: DispatchRecord] = [:]
    let snapshots: SnapshotTruth
    /// The highest position of any replica of each store, in the present history.
    private var reached: [StoreName: SequenceNumber] = [:]

    /// What is known about upgrades.
    let replays = Replays()

    init(log: LogID, states: [Name: SimulatedState]) {
        self.states = states
        let replays = replays
        let snapshots = SnapshotTruth()
        self.snapshots = snapshots
        branch = Branch(
            log: log, states: states, savedState: snapshots.state,
            replays: replays)
    }

    // MARK: The log

    func appended(_ logged: LoggedCommit, at now: Duration? = nil) throws(Violation) {
        try branch.append(logged, at: now) { records[$1] }
    }

    /// Begins another history with what is left after the log has lost its end, or all of it
    /// together with its id.
    func lost(keeping commits: [LoggedCommit], of log: LogID) throws(Violation) {
        former.append(branch)
        let replays = replays
        let next = Branch(
            log: log, states: states, savedState: snapshots.state,
            replays: replays)
        for commit in commits {
            // A history that is lost by now may have given the same keys to other actions.
            let origin = former.last { $0.has(commit) }
            try next.append(commit, isPutBack: true) { sequence, _ in
                origin?.fact(sequence)?.record
            }
        }
        snapshots.restate(in: next)
        branch = next
        reached = [:]
        try checkTokens()
    }

    /// Notes that a replica has reached a number.
    func reach(_ sequence: SequenceNumber, in store: StoreName) {
        reached[store] = max(reached[store] ?? .zero, sequence)
    }

    /// Whether some replica that has reached an entry may have refused it, or may not have refused it.
    func mayHave(_ sequence: SequenceNumber, refused: Bool) -> Bool {
        branch.fact(sequence)?.concerned.contains { store, life in
            reached[store].map { $0 >= sequence } == true
                && branch.history(of: store, life: life)?.mayHave(sequence, refused: refused)
                    == true
        } ?? false
    }

    var branches: [Branch] { [branch] + former.reversed() }

    /// The last entry up to a receipt's that concerns a life of a store, in the history that contains the
    /// receipt's entry.
    func lastChange(
        of store: StoreName, _ life: SequenceNumber, through receipt: Receipt
    ) -> SequenceNumber? {
        branch.log == receipt.log
            ? branch.history(of: store, life: life)?.lastChange(through: receipt.sequence) : nil
    }

    // MARK: Submissions

    /// A process submits actions: from now on each has its key, and keeps it.
    func submitted(
        _ batch: Batch, of session: DispatchRecord.Session
    ) throws(Violation) {
        var counter = batch.firstCounter
        for entry in batch.parsedEntries {
            let key = DispatchRecord.Key(session: session, counter: counter)
            guard let record = records[key] else {
                throw Violation(
                    "P3", "\(session.incarnation) submits \(counter), which nobody dispatched")
            }
            let row = batch.targets[entry.target]
            let target = row.target
            if let payload = record.payload {
                if payload[...] != entry.payload || record.target != target
                    || record.condition?.version != row.unchangedSince
                {
                    throw Violation("P3", "\(record.text) was submitted again otherwise")
                }
            } else {
                record.payload = Array(entry.payload)
                record.target = target
            }
            counter += 1
        }
    }

    func place(_ record: DispatchRecord, at key: DispatchRecord.Key) throws(Violation) {
        // Only a log that lost its end may use an incarnation again.
        if let other = records[key],
            branch.place(of: other) != nil
                || (other.process == record.process && other.session == record.session)
        {
            throw Violation("P3", "\(record.text) has the counter of \(other.text)")
        }
        record.key = key
        records[key] = record
    }

    // MARK: Messages

    /// The sequencer publishes a commit: it must be in the log (P2).
    func published(_ commit: Commit, durableThrough: SequenceNumber) throws(Violation) {
        let known = branch.commit(endingAt: commit.last)
        try require(
            commit.log == branch.log && known?.epoch == commit.epoch && known?.first == commit.first
                && commit.last <= durableThrough, "P2",
            "commit \(commit.first) was published and is not durable")
    }

    /// The sequencer says where the log ends: nothing up to there may be lost any more (P2).
    func claimed(_ last: SequenceNumber, durableThrough: SequenceNumber) throws(Violation) {
        try require(
            last <= durableThrough, "P2", "\(last) was said to be the last, and is not durable")
    }

    /// The sequencer gives receipts: the actions must be in the log (P2).
    func receipted(_ run: Receipts.Run, durableThrough: SequenceNumber) throws(Violation) {
        for offset in 0..<UInt64(run.count) {
            let sequence = run.firstSequence.advanced(by: offset)
            let key = branch.fact(sequence)?.record?.key
            guard sequence <= durableThrough, let key, key.counter == run.firstCounter + offset
            else {
                throw Violation(
                    "P2", "a receipt was given for \(sequence), which is not durable or another's")
            }
        }
    }

    /// The sequencer welcomes a node: its session must be in the log (rule 8).
    func welcomed(
        _ incarnation: Incarnation, durableThrough: SequenceNumber
    ) throws(Violation) {
        guard incarnation != .none else { return }
        try require(
            branch.remembers(incarnation) && incarnation.rawValue <= durableThrough.rawValue,
            "order", "\(incarnation) was welcomed and has no durable session")
    }

    /// The sequencer says that a session is forgotten: that must be true (rules 8 and 10).
    func forgot(_ incarnation: Incarnation, of log: LogID) throws(Violation) {
        if branch.log == log, former.isEmpty, branch.remembers(incarnation) {
            throw Violation("P5", "\(incarnation) was told to be forgotten, and is not")
        }
    }

    // MARK: Nodes

    /// A node delivers a commit: a log must have had it.
    func delivered(_ commit: Commit) throws(Violation) {
        let isKnown = branches.contains { branch in
            branch.log == commit.log && branch.commit(endingAt: commit.last) == commit
        }
        try require(isKnown, "P1", "commit \(commit.first) was applied and never logged")
    }

    /// Checks that a replica has the state that its store must have at its position (P1). If `isCurrentOnly`,
    /// only the present history counts, not one that was lost.
    func check(
        _ store: StoreName, life: SequenceNumber, at position: SequenceNumber, _ digest: Digest,
        version: UInt32, on node: String, isInside: Bool = false, isCurrentOnly: Bool = false
    ) throws(Violation) {
        let candidates = isCurrentOnly ? [branch] : branches
        let isRight = candidates.contains { branch in
            guard let history = branch.history(of: store, life: life) else { return false }
            return position <= branch.last && !(isCurrentOnly && history.end != nil)
                && (history.isRight(digest, of: version, at: position)
                    || isInside && history.isRight(digest, of: version, inside: position))
        }
        try require(
            isRight, "P1", "\(store) on \(node) differs from the log at \(position), life \(life)")
    }

    /// Checks an outcome that a process was told (P2, P5).
    func told(
        _ record: DispatchRecord, _ outcome: Outcome, hosted: [HostedLife],
        gone: Set<StoreName> = [], isJumped: (Receipt) -> Bool, isStopped: Bool
    ) throws(Violation) {
        record.outcome = outcome
        switch outcome {
        case .committed(let receipt), .ordered(let receipt, _):
            try check(receipt, of: record)
            try checkEffect(at: receipt, of: record, hosted: hosted, gone: gone)
        case .failed(let error):
            if let receipt = error.receipt {
                try check(receipt, of: record)
                if error.code == .effectUnknown {
                    try require(
                        isJumped(receipt), "P5",
                        "\(record.text) was told that its effect at "
                            + "\(receipt.sequence) is unknown, and no snapshot jumped it")
                } else if error.code == .storeStopped {
                    try require(
                        isStopped, "P5",
                        "\(record.text) was told that its store stopped, and none did")
                } else {
                    try checkRefusal(at: receipt, of: record, hosted: hosted)
                }
            } else if error.code == .conflict, let condition = record.condition {
                // A version that is not above that of the condition is of another history.
                let conditions = record.transaction?.seen ?? [condition]
                guard let version = error.version,
                    conditions.contains(where: { version.sequence > $0.version.sequence })
                        || !former.isEmpty
                else {
                    throw Violation(
                        "P10",
                        "\(record.text) was told that \(condition.store) has changed since "
                            + "\(condition.version), and it has not")
                }
            } else if error.code == .withdrawn, !record.mayBeWithdrawn {
                throw Violation("P5", "\(record.text) was withdrawn, and nobody asked for it")
            } else if record.isExcluded, let found = branch.place(of: record) {
                throw Violation(
                    "P5",
                    "\(record.text) stands at \(found), and its process was told: "
                        + "\(error.message)")
            }
        }
    }

    private func check(_ receipt: Receipt, of record: DispatchRecord) throws(Violation) {
        let isTrue = branches.contains { branch in
            guard branch.log == receipt.log, let fact = branch.fact(receipt.sequence) else {
                return false
            }
            let commit = branch.commit(containing: receipt.sequence)
            return fact.record === record && commit?.epoch == receipt.epoch
                && commit?.timestamp == receipt.timestamp
        }
        try require(
            isTrue, "P5", "\(record.text) has a receipt for \(receipt.sequence), where it is not")
    }

    /// An action that every replica here refused must not be reported as done, unless a store that is gone
    /// may have accepted it.
    private func checkEffect(
        at receipt: Receipt, of record: DispatchRecord, hosted: [HostedLife], gone: Set<StoreName>
    ) throws(Violation) {
        let isWrong = branches.allSatisfy { branch in
            guard let fact = branch.fact(receipt.sequence), fact.record === record else {
                return true
            }
            guard gone.isDisjoint(with: fact.concerned.keys) else { return false }
            let here = hosted.filter { fact.concerned[$0.store] == $0.life }
            return !here.isEmpty
                && here.allSatisfy { hosted in
                    let history = branch.history(of: hosted.store, life: hosted.life)
                    return history?.mayHave(receipt.sequence, refused: true)
                        == true
                        && history?.mayHave(receipt.sequence, refused: false)
                            == false
                }
        }
        try require(
            !isWrong, "P5",
            "\(record.text) was told to be done at \(receipt.sequence), and was refused there")
    }

    /// An action that was reported as refused must have had no effect in any replica here, and must have been
    /// refused by some replica.
    private func checkRefusal(
        at receipt: Receipt, of record: DispatchRecord, hosted: [HostedLife]
    ) throws(Violation) {
        let isTrue = branches.contains { branch in
            guard let fact = branch.fact(receipt.sequence), fact.record === record,
                branch.mayHave(receipt.sequence, refused: true)
            else { return false }
            return hosted.allSatisfy { hosted in
                guard fact.concerned[hosted.store] == hosted.life,
                    let history = branch.history(of: hosted.store, life: hosted.life)
                else { return true }
                return history.mayHave(receipt.sequence, refused: true)
            }
        }
        try require(
            isTrue, "P5",
            "\(record.text) was told to be refused at \(receipt.sequence), and was not")
    }
}
