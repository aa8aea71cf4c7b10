import Conflux
import ConfluxLog
import ConfluxProtocol
import ConfluxVocabulary

/// One history: the contents of the log, and what every store must be according to it.
///
/// There is one branch at first, and another one each time that the log loses its end. Processes that have
/// not noticed are still on a former branch.
final class Branch {
    struct Fact {
        var commit: Int
        /// nil for one of the log's own entries.
        var record: DispatchRecord?
        /// The stores that it concerned, and the life of each.
        var concerned: [StoreName: SequenceNumber] = [:]
    }

    let log: LogID
    private(set) var commits: [(logged: LoggedCommit, commit: Commit)] = []
    /// By number: entry 1 is at index 0.
    private(set) var facts: [Fact] = []
    /// The lives of each store, ascending. *Invariant*: only the last life may be without an end.
    private(set) var lives: [StoreName: [StoreHistory]] = [:]
    /// The number of each action.
    private var places: [ObjectIdentifier: SequenceNumber] = [:]
    /// The present nodes according to the log, and their names (rule 10).
    private var present: [Incarnation: Name?] = [:]
    private var names: [Incarnation: Name?] = [:]
    private var nonces: [Incarnation: Nonce] = [:]
    private var forgotten: Set<Incarnation> = []
    /// The index of the last action of each process.
    private var lastIndexes: [Int: Int] = [:]
    /// The timers and the leases.
    private(set) var requests = RequestTruth()
    /// How often a store was dropped for which there was a timer.
    private(set) var droppedTimers = 0
    private let states: [Name: SimulatedState]

    /// A confirmed state at a number.
    private let savedState: SavedState

    typealias SavedState = (
        _ store: StoreName, _ life: SequenceNumber, _ sequence: SequenceNumber
    ) -> (bytes: Bytes, version: UInt32)?

    /// Whether a newer program may judge a store's entries again.
    private let replays: Replays

    init(
        log: LogID, states: [Name: SimulatedState], savedState: @escaping SavedState,
        replays: Replays = Replays()
    ) {
        self.replays = replays
        self.savedState = savedState
        self.log = log
        self.states = states
    }

    var last: SequenceNumber { commits.last?.commit.last ?? .zero }

    func fact(_ sequence: SequenceNumber) -> Fact? {
        let index = Int(sequence.rawValue) - 1
        return facts.indices.contains(index) ? facts[index] : nil
    }

    func place(of record: DispatchRecord) -> SequenceNumber? {
        places[ObjectIdentifier(record)]
    }

    func commit(endingAt last: SequenceNumber) -> Commit? {
        guard let fact = fact(last), commits[fact.commit].commit.last == last else { return nil }
        return commits[fact.commit].commit
    }

    /// Whether it has exactly this commit.
    func has(_ logged: LoggedCommit) -> Bool {
        fact(logged.last).map { commits[$0.commit].logged == logged } ?? false
    }

    func commit(containing sequence: SequenceNumber) -> Commit? {
        fact(sequence).map { commits[$0.commit].commit }
    }

    /// One life of a store; nil if the log has no life with that number.
    func history(of store: StoreName, life: SequenceNumber) -> StoreHistory? {
        lives[store]?.last { $0.life == life }
    }

    /// The last entry up to a number that concerns a store; nil if the store did not exist then.
    func lastChange(of store: StoreName, through sequence: SequenceNumber) -> SequenceNumber? {
        lives[store]?.last { $0.life <= sequence }?.lastChange(through: sequence)
    }

    /// The index of the present life in ``lives``.
    private func present(_ store: StoreName) -> Int? {
        guard let histories = lives[store], let last = histories.last, last.end == nil else {
            return nil
        }
        return histories.count - 1
    }

    /// Whether a replica that has reached an entry may have refused it, or may not have refused it.
    func mayHave(_ sequence: SequenceNumber, refused: Bool) -> Bool {
        fact(sequence)?.concerned.contains { store, life in
            history(of: store, life: life)?.mayHave(sequence, refused: refused) == true
        } ?? false
    }

    /// Takes a commit that was appended, and checks it (P1, P3, P4, time).
    ///
    /// - Parameters:
    ///   - logged: The commit.
    ///   - isPutBack: Whether a copy of the log brought it back. Outcomes that were reported while the log
    ///     lacked these actions were true at that time.
    ///   - now: The time by the monotonic clock of the sequencer; nil if it is not known, or a copy of the log brought the
    ///     commit back.
    ///   - recordOf: The record of the action with that number and key.
    /// - Throws: The promise that the commit violates.
    func append(
        _ logged: LoggedCommit, isPutBack: Bool = false, at now: Duration? = nil,
        recordOf: (SequenceNumber, DispatchRecord.Key) -> DispatchRecord?
    ) throws(Violation) {
        let commit: Commit
        do {
            commit = try Commit.decode(body: logged.bytes)
        } catch {
            throw Violation("order", "an unreadable commit was logged: \(error)")
        }
        try checkPlace(of: commit, logged)
        commits.append((logged, commit))
        var sequence = commit.first
        var concerned: [StoreName: SequenceNumber] = [:]
        for block in commit.blocks {
            switch block {
            case .event(let event, _):
                facts.append(Fact(commit: commits.count - 1))
                try take(event, at: sequence)
                sequence = sequence.next
            case .batch(let incarnation, let batch):
                try take(
                    batch, of: incarnation, at: &sequence, in: commit, now, isPutBack: isPutBack,
                    &concerned, recordOf)
            }
        }
        for (name, sequence) in concerned {
            // The life may have ended in this commit; its last entry counts all the same.
            lives[name]?.last { $0.life < sequence }?.endCommit(at: sequence)
        }
    }

    private func checkPlace(of commit: Commit, _ logged: LoggedCommit) throws(Violation) {
        let former = commits.last?.commit
        try require(
            commit.first == logged.first && commit.last == logged.last
                && commit.epoch == logged.epoch && commit.log == log && commit.first == last.next
                && (commit.predecessor == former?.epoch ?? .none), "P1",
            "commit \(commit.first) does not follow \(last)")
        if let former, commit.timestamp < former.timestamp {
            throw Violation(
                "order",
                "time went back at \(commit.first): from \(former.timestamp) to "
                    + "\(commit.timestamp)")
        }
    }

    private func take(
        _ event: LogEvent, at sequence: SequenceNumber
    ) throws(Violation) {
        switch event {
        case .created(let name, let version, let initial):
            guard let state = states[name.state] else { return }
            try require(
                present(name) == nil, "order", "\(name) was created twice, again at \(sequence)")
            guard
                let history = StoreHistory(
                    name, life: sequence, version: version, initial: initial,
                    seed: ActionContext.seed(log: log, store: name), state: state)
            else {
                throw Violation("order", "\(name) was created with version \(version)")
            }
            lives[name, default: []].append(history)
        case .dropped(let name, let life):
            guard let index = present(name), lives[name]?[index].life == life else {
                throw Violation(
                    "order",
                    "\(sequence) ends life \(life) of \(name), which is not its present one")
            }
            lives[name]?[index].end = sequence
            if requests.dropped(life) { droppedTimers += 1 }
        case .joined(let nonce, let name, let rejoining, _):
            let incarnation = rejoining == .none ? Incarnation(sequence.rawValue) : rejoining
            if let name, let other = present.first(where: { $0.value == name })?.key,
                other != incarnation
            {
                throw Violation(
                    "order", "\(incarnation) joined as \(name) while \(other) had that name")
            }
            present[incarnation] = name
            names[incarnation] = name
            nonces[incarnation] = nonce
        case .left(let incarnation):
            present[incarnation] = nil
            requests.left(incarnation)
        case .forgotten(let incarnation):
            present[incarnation] = nil
            requests.left(incarnation)
            forgotten.insert(incarnation)
        case .claim, .visited, .handles, .forked: break
        case .upgraded(let name, let life, let version, let base, let digest):
            try upgrade(name, life: life, to: version, from: base, digest, at: sequence)
        case .frozen(let name, let life, _):
            guard let history = presentLife(name), history.life == life else { return }
            history.isFrozen = true
            history.note(word: sequence)
        case .thawed(let name, let life):
            guard let history = presentLife(name), history.life == life else { return }
            history.isFrozen = false
            history.note(word: sequence)
        case .digestPoint(let name, let life):
            guard let history = presentLife(name), history.life == life, !history.isFrozen else {
                throw Violation("order", "\(sequence) digests \(name), which is frozen or over")
            }
            history.note(point: sequence)
        case .skipped(let skipped, let target):
            for name in lives.keys.sorted() where target.concerns(name) {
                guard let history = presentLife(name), history.life < skipped else { continue }
                history.skip(skipped, at: sequence)
            }
        }
    }

    /// The present life of a store.
    func presentLife(_ store: StoreName) -> StoreHistory? {
        present(store).flatMap { lives[store]?[$0] }
    }

    /// The present lives of all stores, by name.
    var presentLives: [StoreHistory] { lives.keys.sorted().compactMap { presentLife($0) } }

    /// Checks an upgrade: all replicas of the newer version must descend from one snapshot (rule 17).
    private func upgrade(
        _ name: StoreName, life: SequenceNumber, to version: UInt32, from base: SequenceNumber,
        _ digest: Digest?, at sequence: SequenceNumber
    ) throws(Violation) {
        guard let history = presentLife(name), history.life == life else { return }
        try require(
            version > history.version, "order",
            "\(sequence) takes \(name) back to version \(version)")
        if let entry = history.entries.last?.context.sequence, entry > base,
            !replays.lives.contains(life)
        {
            throw Violation(
                "P2",
                "\(sequence) raises \(name) to version \(version) from \(base) on, and version "
                    + "\(history.version) has judged \(entry)")
        }
        history.note(word: sequence)
        if base == life {
            history.begin(
                history.initial.bytes, of: history.createdVersion, at: life, as: version)
        } else if let saved = savedState(name, life, base) {
            history.begin(saved.bytes, of: saved.version, at: base, as: version)
        } else {
            throw Violation(
                "order", "\(sequence) migrates \(name) from \(base), where no snapshot is confirmed"
            )
        }
        guard history.isRight(digest ?? Digest(of: []), of: version, at: base) else {
            // Only programs that differ were there.
            if let digest, replays.differing.contains(digest) { replays.isMisled = true }
            throw Violation(
                "P2",
                "\(sequence) says that \(name) at \(base) is \(digest.map { "\($0)" } ?? "unknown") in "
                    + "version \(version), and it is not")
        }
        history.upgrade(to: version, from: base, at: sequence)
    }

    /// Whether a session began here and was not forgotten since.
    func remembers(_ incarnation: Incarnation) -> Bool {
        names[incarnation] != nil && !forgotten.contains(incarnation)
    }

    private func take(
        _ batch: Batch, of incarnation: Incarnation, at sequence: inout SequenceNumber,
        in commit: Commit, _ now: Duration?, isPutBack: Bool,
        _ concerned: inout [StoreName: SequenceNumber],
        _ recordOf: (SequenceNumber, DispatchRecord.Key) -> DispatchRecord?
    ) throws(Violation) {
        var counter = batch.firstCounter
        if incarnation == .none {
            try requests.takeFiring(
                batch, at: RequestTruth.Place(sequence: sequence, commit: commit, now: now))
        }
        for entry in batch.parsedEntries {
            let row = batch.targets[entry.target]
            let place = RequestTruth.Place(sequence: sequence, commit: commit, now: now)
            let key = DispatchRecord.Key(
                session: DispatchRecord.Session(
                    log: log, incarnation: incarnation,
                    nonce: nonces[incarnation] ?? .none),
                counter: counter)
            let record = incarnation == .none ? nil : recordOf(sequence, key)
            try require(
                record != nil || incarnation == .none, "P3",
                "\(sequence) holds action \(counter) of \(incarnation), which nobody "
                    + "submitted under that session")
            if let record {
                try check(record, entry.payload, row.target, at: sequence)
                if !isPutBack { try check(new: record, batch, at: sequence, in: commit) }
            }
            try requests.checkLocks(
                on: row.target, at: place, of: incarnation, under: record?.lease)
            if row.target == .timers {
                try requests.takeTimer(entry.payload, at: place) {
                    presentLife($0)?.life
                }
            } else if row.target == .leases {
                try requests.takeLease(entry.payload, at: place, of: incarnation)
            }
            var fact = Fact(commit: commits.count - 1, record: record)
            let context = (commit.timestamp, Origin(incarnation: incarnation, counter: counter))
            try checkLife(of: row, at: sequence)
            for name in lives.keys.sorted() where row.target.concerns(name) {
                guard let history = presentLife(name), !history.isFrozen else { continue }
                try history.apply(
                    StoreHistory.Entry(
                        payload: entry.payload, coding: row.coding,
                        schemaVersion: row.schemaVersion,
                        context: ActionContext(
                            sequence: sequence, timestamp: context.0, origin: context.1,
                            seed: history.seed)))
                fact.concerned[name] = history.life
                concerned[name] = sequence
            }
            facts.append(fact)
            sequence = sequence.next
            counter += 1
        }
    }

    /// Checks that no action for one life of a store reaches another life (rule 16).
    private func checkLife(of row: BatchTarget, at sequence: SequenceNumber) throws(Violation) {
        guard case .store(let name) = row.target, states[name.state] != nil else { return }
        let life = present(name).flatMap { lives[name]?[$0].life }
        guard let life, row.life == .zero || row.life == life else {
            throw Violation(
                "order",
                "\(sequence) is for life \(row.life) of \(name), which is not its present one")
        }
        if presentLife(name)?.isFrozen == true {
            throw Violation("order", "\(sequence) is for \(name), which is frozen")
        }
    }

    private func check(
        _ record: DispatchRecord, _ payload: Bytes, _ target: Target,
        at sequence: SequenceNumber
    ) throws(Violation) {
        if let former = places.updateValue(sequence, forKey: ObjectIdentifier(record)) {
            throw Violation("P3", "\(record.text) stands at \(former) and again at \(sequence)")
        }
        try require(
            !record.isBad, "order",
            "\(sequence) has a target, or a schema version, that nobody ever had")
        if record.payload.map({ $0[...] != payload }) ?? true || record.target != target {
            throw Violation("P3", "\(sequence) is not what \(record.text) submitted")
        }
        if let index = lastIndexes[record.process], index >= record.index {
            throw Violation("P4", "\(record.text) stands at \(sequence), behind action \(index)")
        }
        lastIndexes[record.process] = record.index
    }
}
