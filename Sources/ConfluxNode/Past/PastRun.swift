import Conflux
import ConfluxProtocol
import ConfluxVocabulary

/// The state that a store had at a number.
package struct PastState: Sendable {
    /// The store, and its life.
    package let store: StoreName
    let life: SequenceNumber
    /// The log.
    package let log: LogID
    /// The action that was left out.
    package let without: SequenceNumber?
    /// The entries that had no effect.
    let skipped: [SequenceNumber]
    /// The number that was asked for.
    package let at: SequenceNumber
    /// The number of the last entry of the store that is in the state.
    package let sequence: SequenceNumber
    /// The term of that entry; nil if the state is a snapshot's.
    package let epoch: Epoch?
    /// The schema version in force there.
    package let version: UInt32
    /// The state in canonical JSON, in the form of that version.
    package let json: [UInt8]
}

/// Makes the past of one store from what it began with and the entries of its log, with the code that applies entries
/// in a node (``Replayer``). The store is one of its own: no other store, observer or scope sees it.
///
/// Confined to whoever gives it the commits.
final class PastRun {
    /// What is wanted.
    struct Goal {
        var store: StoreName
        var life: SequenceNumber
        var log: LogID
        /// The numbers at which the state is wanted, ascending.
        var marks: [SequenceNumber]
        /// The action to leave out.
        var without: SequenceNumber?
        /// The entries that are wanted.
        var entries: PastEntries.Selection?

        /// The number after which nothing more is needed.
        var last: SequenceNumber { marks.last ?? entries?.last ?? .zero }
    }

    private let goal: Goal
    private let state: ReplayedState
    private let skipped: [SequenceNumber]
    private let replayer: Replayer
    private let rises: [HistoryRise]
    /// The first number that has to be read.
    let first: SequenceNumber
    private var next: SequenceNumber?
    private var rest: ArraySlice<SequenceNumber>
    private var epoch: Epoch?
    private var hasLeftOut = false

    /// The states at the goal's numbers, as far as they are made.
    private(set) var states: [PastState] = []
    /// The entries that were wanted.
    private(set) var entries: PastEntries.Gathered?
    /// A rise of the store's schema version that has to be known from its beginning on: the run has to begin anew.
    private(set) var missingRise: HistoryRise?

    /// - Parameters:
    ///   - goal: What is wanted.
    ///   - state: The store's state.
    ///   - start: What the store begins with; nil if its `created` entry is read.
    ///   - epoch: The term of the last entry in that, if it is known.
    ///   - first: The first number that has to be read.
    ///   - skipped: The entries that have no effect.
    ///   - rises: The rises that are known.
    /// - Throws: ``PastError`` if the store can't begin.
    init(
        _ goal: Goal, of state: ReplayedState, from start: HistoryStart?, _ epoch: Epoch?,
        first: SequenceNumber, skipping skipped: [SequenceNumber], _ rises: [HistoryRise]
    ) throws(PastError) {
        self.goal = goal
        self.state = state
        self.first = first
        self.rises = rises
        self.epoch = epoch
        self.skipped = skipped
        rest = goal.marks[...]
        entries = goal.entries.map { PastEntries.Gathered($0) }
        let outline = HistoryOutline(
            of: goal.store, in: goal.log, skipping: skipped + (goal.without.map { [$0] } ?? []),
            rises)
        replayer = Replayer(of: outline, [state.name: state])
        guard let start else { return }
        hasLeftOut = goal.without.map { $0 <= start.through } ?? false
        try check(start.version.version, at: start.snapshot.sequence)
        try failing { () throws(HistoryError) in try replayer.begin(start) }
        try show(through: start.through)
    }

    /// Whether nothing more is needed.
    var isDone: Bool {
        missingRise != nil || (rest.isEmpty && (entries?.isComplete ?? true))
    }

    /// Takes the next commit of the log.
    ///
    /// - Throws: ``PastError``.
    func take(_ commit: Commit) throws(PastError) {
        guard !isDone else { return }
        let due = next ?? first
        guard commit.log == goal.log, commit.first <= due, next == nil || commit.first == due
        else { throw .discarded(due) }
        guard commit.last >= due else { return }
        next = commit.last.next
        if let rise = unknownRise(in: commit) {
            guard !rises.contains(where: { $0.version == rise.version && $0.base == rise.base })
            else {
                throw .unreadableVersion(goal.store, rise.version.version, at: due, state.versions)
            }
            missingRise = rise
            return
        }
        let numbers = commit.first...commit.last
        let cuts = replayer.cuts(of: commit).union(
            ([goal.last] + rest).filter { numbers.contains($0) })
        for part in commit.cut(behind: cuts) where part.first <= goal.last && !isDone {
            try apply(part)
        }
    }

    private func apply(_ part: Commit) throws(PastError) {
        try look(at: part)
        let former = replayer.position(of: goal.store)
        var refusals: [HistoryRecord.Refusal] = []
        let stop = try failing { () throws(HistoryError) in try replayer.apply(part, &refusals) }
        if let stop = stop ?? replayer.rise(behind: part.last) {
            throw PastError(
                .stopped, "\(goal.store) can't be shown from \(stop.sequence) on: \(stop.message)")
        }
        guard part.last < goal.life || replayer.life(of: goal.store) == goal.life else {
            throw .unknownStore(goal.store)
        }
        if replayer.position(of: goal.store) != former { epoch = part.epoch }
        entries?.add(part, of: goal.store, life: goal.life, refusals)
        try show(through: part.last)
    }

    /// Shows the states at the numbers that are reached.
    private func show(through last: SequenceNumber) throws(PastError) {
        while let mark = rest.first, mark <= last {
            guard let position = replayer.position(of: goal.store),
                let version = replayer.version(of: goal.store)
            else { throw .unknownStore(goal.store) }
            if let without = goal.without, without <= mark, !hasLeftOut {
                throw .notAnAction(without, for: goal.store)
            }
            let json: [UInt8]
            do {
                json = try replayer.encoding(of: goal.store)
            } catch {
                throw PastError(
                    .stopped, "The state of \(goal.store) at \(mark) can't be encoded: \(error)")
            }
            rest.removeFirst()
            states.append(
                PastState(
                    store: goal.store, life: goal.life, log: goal.log, without: goal.without,
                    skipped: skipped, at: mark, sequence: position, epoch: epoch,
                    version: version, json: json))
        }
    }

    // MARK: What is in the way

    /// Checks what can be seen of entries before they are applied.
    private func look(at part: Commit) throws(PastError) {
        var sequence = part.first
        for block in part.blocks {
            switch block {
            case .event(.created(goal.store, let version, _), _) where sequence == goal.life:
                try check(version, at: sequence)
            case .event: break
            case .batch(_, let batch):
                let rows = batch.targets.map { $0.target.concerns(goal.store) }
                guard rows.contains(true) else { break }
                var number = sequence
                try batch.forEachEntry { (row, payload) throws(PastError) in
                    // A payload that the key may not observe is empty.
                    if payload.isEmpty, rows[row], number > goal.life {
                        throw .notAllowed(number, for: goal.store)
                    }
                    if number == goal.without, rows[row], number >= first { hasLeftOut = true }
                    number = number.next
                }
            }
            sequence = sequence.advanced(by: UInt64(block.count))
        }
    }

    private func unknownRise(in commit: Commit) -> HistoryRise? {
        var found: HistoryRise?
        commit.forEachEvent { event, sequence in
            guard case .upgraded(goal.store, goal.life, let version, let base, let digest) = event,
                sequence >= first, sequence <= goal.last, found == nil
            else { return }
            let rise = HistoryRise(
                store: goal.store, life: goal.life, base: base,
                // Without an action, what is migrated may be another state than the log's.
                version: goal.without == nil
                    ? VersionInForce(version, migrated: digest) : VersionInForce(version))
            let isKnown = rises.contains { $0.base == base && $0.version == rise.version }
            // From its base on, a known rise is in force.
            let present = replayer.version(of: goal.store) ?? 0
            if present < version, !isKnown || base < commit.first { found = rise }
        }
        return found
    }

    /// Checks that the code at hand judges by a version. A program that no longer does would judge by a later one.
    private func check(_ version: UInt32, at sequence: SequenceNumber) throws(PastError) {
        let known = state.versions
        guard version >= known.oldest, version <= known.newest else {
            throw .unreadableVersion(goal.store, version, at: sequence, known)
        }
    }

    private func failing<Value>(
        _ body: () throws(HistoryError) -> Value
    ) throws(PastError) -> Value {
        do throws(HistoryError) {
            return try body()
        } catch {
            throw PastError(
                error.code == .unreadableState ? .unreadableVersion : .stopped, error.message)
        }
    }
}
