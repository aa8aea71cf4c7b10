import ConfluxNode
import ConfluxProtocol
import ConfluxWorker
import Synchronization

/// Prints the entries of commits, in the order of the commits, on the thread that passes them. So a
/// slow reader of the output slows that thread, and nothing accumulates.
final class EntryPrinter: Sendable {
    private struct Content {
        var first = SequenceNumber.zero
        /// nil to continue without an end.
        var last: SequenceNumber?
        /// The names of the keys of the sessions that it remembers.
        var owners: [Incarnation: Name] = [:]
        /// The last of them that began with a `visited` entry of a former program.
        var visit: Incarnation?
        /// The last number that was passed.
        var passed = SequenceNumber.zero
    }

    /// Take each line, and end each commit that is followed.
    private let add: @Sendable ([UInt8]) -> Void
    private let flush: @Sendable () -> Void
    /// Tells that the history has changed: the entries from a number on are passed again.
    private let tellChange: @Sendable (SequenceNumber) -> Void
    private let isJSON: Bool
    private let look: Appearance
    private let target: Target?
    /// Older entries are not printed.
    private let since: Timestamp?
    private let state = Mutex(Content())
    /// Ends with the printing. The time that the reader of the output takes does not count.
    let reading = EntryReading()
    private let printed = Atomic(false)

    /// Whether an entry was printed.
    var hasPrinted: Bool { printed.load(ordering: .relaxed) }

    init(
        _ output: StandardOutput, isJSON: Bool, target: Target?, since: Timestamp? = nil,
        tellChange: @escaping @Sendable (SequenceNumber) -> Void = { _ in }
    ) {
        look = output.appearance
        add = { isJSON ? output.add(json: $0) : output.add($0) }
        flush = { output.flush() }
        self.tellChange = tellChange
        self.isJSON = isJSON
        self.target = target
        self.since = since
    }

    /// Passes every entry, as a line for people, to a function.
    init(_ add: @escaping @Sendable ([UInt8]) -> Void) {
        self.add = add
        flush = {}
        tellChange = { _ in }
        look = .plain
        isJSON = false
        target = nil
        since = nil
    }

    /// Sets which entries are printed.
    ///
    /// - Parameters:
    ///   - first: The first of them.
    ///   - last: The last of them; nil for no end.
    ///   - owners: The keys of the sessions that have entries there. It learns the keys of sessions that join there
    ///     by itself.
    func begin(
        from first: SequenceNumber, through last: SequenceNumber?, owners: [Incarnation: Name]
    ) {
        state.withLock { state in
            state.first = first
            state.last = last
            state.owners.merge(owners) { _, new in new }
        }
    }

    /// Whether any of these entries is to be printed.
    func wants(_ first: SequenceNumber, _ last: SequenceNumber) -> Bool {
        state.withLock { state in
            state.last.map { first <= $0 } ?? true && state.first <= last
        }
    }

    /// Prints the wanted entries of a commit.
    func take(_ commit: Commit) { reading.take { print(commit) } }

    private func print(_ commit: Commit) {
        let (first, last, passed) = state.withLock { state in
            defer { state.passed = commit.last }
            return (state.first, state.last, state.passed)
        }
        // Commits come in order. Only a node whose history was lost begins again.
        if commit.first <= passed { tellChange(commit.first) }
        let wanted = first...max(first, last ?? commit.last)
        let isNew = since.map { $0 <= commit.timestamp } ?? true
        commit.forEachEntry { sequence, entry in
            let owner = learn(entry, at: sequence)
            guard isNew, wanted.contains(sequence), EntryText.concerns(target, entry) else {
                return
            }
            printed.store(true, ordering: .relaxed)
            add(
                EntryText.line(
                    entry, by: owner, at: sequence, in: commit, isJSON: isJSON, look))
        }
        if let last {
            if commit.last >= last { reading.end() }
        } else {
            flush()
        }
    }

    /// Learns the key of a session that an entry begins.
    ///
    /// - Returns: The key that caused the entry.
    private func learn(_ entry: LogEntry, at sequence: SequenceNumber) -> Name? {
        state.withLock { state in
            switch entry {
            case .action(_, _, let origin): return state.owners[origin.incarnation]
            case .event(.joined(_, _, .none, _), let owner):
                state.owners[Incarnation(sequence.rawValue)] = owner
                return owner
            // Its session had no end in the log, and mostly one action, which follows.
            case .event(.visited, let owner):
                if let former = state.visit { state.owners[former] = nil }
                state.visit = Incarnation(sequence.rawValue)
                state.owners[Incarnation(sequence.rawValue)] = owner
                return owner
            case .event(.forgotten(let incarnation), let owner):
                state.owners[incarnation] = nil
                return owner
            case .event(_, let owner): return owner
            }
        }
    }
}
