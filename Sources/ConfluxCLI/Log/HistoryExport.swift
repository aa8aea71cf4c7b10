import ConfluxNode
import ConfluxProtocol
import ConfluxVocabulary
import ConfluxWorker
import Synchronization

/// Writes the delivered commits of a range to a history, on the thread that passes them. So a slow disk slows that
/// thread, and nothing accumulates.
// Sendable: the mutex guards the writer, too.
final class HistoryExport: Sendable {
    /// What was exported.
    struct Figures: Sendable {
        var actions: UInt64 = 0
        var first = SequenceNumber.zero
        var last = SequenceNumber.zero
        var stores = 0
    }

    private struct Content: Sendable {
        var writer: HistoryWriter?
        var range: HistoryRange?
        var figures = Figures()
        /// Whether a store of the export lives somewhere in the range.
        var hasStores = false
        /// The stores that live at the last entry, and their lives.
        var lives: [StoreName: SequenceNumber] = [:]
        var checks: Set<SnapshotPlace> = []
    }

    private let target: Target?
    /// Ends with the last entry.
    let reading = EntryReading()
    private let state = Mutex(Content())

    init(_ target: Target?) { self.target = target }

    private func includes(_ store: StoreName) -> Bool { target.map { $0.concerns(store) } ?? true }

    /// Begins the file.
    func begin(_ range: HistoryRange, log: LogID, in path: String) throws(CommandFailure) {
        try changing { (state) throws(HistoryError) in
            let writer = try HistoryWriter(path)
            try writer.write(
                .head(log: log, from: range.from, through: range.last, target: target))
            state.writer = writer
            state.range = range
            state.figures.stores = range.starts.count
            state.hasStores = !range.starts.isEmpty
            for start in range.starts { state.lives[start.store] = start.life }
        }
    }

    /// The stores that live at the last entry.
    var stores: [StoreName] { state.withLock { $0.lives.keys.sorted() } }

    /// Whether this snapshot was not written yet, and its store was in the range.
    func isNew(_ place: SnapshotPlace) -> Bool {
        state.withLock { $0.checks.insert(place).inserted }
    }

    func write(_ section: HistorySection) throws(CommandFailure) {
        try changing { (state) throws(HistoryError) in try state.writer?.write(section) }
    }

    /// Removes what was written. The node's threads may keep this object for a while.
    func abandon() { state.withLock { $0.writer = nil } }

    /// Ends the file.
    ///
    /// - Throws: ``CommandFailure`` if it can't be written; and if it has no store, since a replay of it would find no
    ///   difference, whatever the code does.
    func complete() throws(CommandFailure) -> Figures {
        if let range = state.withLock({ $0.hasStores ? nil : $0.range }) {
            throw CommandFailure(
                .notFound, code: "nothingThere",
                """
                No store\(target.map { " of \($0)" } ?? "") lives in the entries \(range.from) to \(range.last), so \
                there is nothing to replay, and no file. conflux status shows which stores there are.
                """)
        }
        return try changing { (state) throws(HistoryError) in
            try state.writer?.complete()
            return state.figures
        }
    }

    private func changing<Value: Sendable>(
        _ body: (inout Content) throws(HistoryError) -> Value
    ) throws(CommandFailure) -> Value {
        let result = state.withLock { state in
            Result { () throws(HistoryError) in try body(&state) }
        }
        return try failing { () throws(HistoryError) in try result.get() }
    }

    /// Writes a commit.
    func take(_ commit: Commit) {
        reading.take {
            let isLast = state.withLock { state -> Result<Bool, CommandFailure> in
                guard let range = state.range, commit.last >= range.first else {
                    return .success(false)
                }
                return Result { () throws(CommandFailure) in
                    try add(commit, range, &state)
                    return commit.last >= range.last
                }
            }
            switch isLast {
            case .success(true): reading.end()
            case .success(false): break
            case .failure(let failure): reading.end(failure)
            }
        }
    }

    private func add(
        _ commit: Commit, _ range: HistoryRange, _ state: inout Content
    ) throws(CommandFailure) {
        let due = state.figures.last == .zero ? range.first : state.figures.last.next
        // Only the first commit may begin earlier.
        guard commit.first <= due, commit.first == due || state.figures.last == .zero else {
            throw CommandFailure(
                .logFailed, code: "discarded",
                "The log has discarded entry \(due) meanwhile. Run the command again.")
        }
        if state.figures.last == .zero { state.figures.first = commit.first }
        state.figures.last = commit.last
        var sequence = commit.first
        for block in commit.blocks {
            switch block {
            case .event(.created(let store, _, _), _) where includes(store):
                state.lives[store] = sequence
                state.hasStores = true
            case .event(.dropped(let store, let life), _) where includes(store):
                guard state.lives[store] == life else {
                    throw CommandFailure(
                        .notFound, code: "noSnapshot",
                        """
                        \(store) was dropped with entry \(sequence), and the log has no snapshot of it any \
                        more. Give --from \(sequence.next) or later, or leave the store out with --target.
                        """)
                }
                state.lives[store] = nil
            case .event: break
            case .batch(_, let batch):
                state.figures.actions += try check(batch, at: sequence)
            }
            sequence = sequence.advanced(by: UInt64(block.count))
        }
        try failing { () throws(HistoryError) in try state.writer?.write(.commit(commit)) }
    }

    /// A payload that this key may not observe is empty.
    ///
    /// - Returns: How many of the actions are for the stores of the export.
    private func check(_ batch: Batch, at first: SequenceNumber) throws(CommandFailure) -> UInt64 {
        // No store takes what sets and ends timers, and a key may observe all stores of the export without seeing it.
        let rows = batch.targets.map { row in
            row.target != .timers && target.map { row.target.touches($0) } ?? true
        }
        var count: UInt64 = 0
        var sequence = first
        try batch.forEachEntry { (row, payload) throws(CommandFailure) in
            if payload.isEmpty, rows[row] {
                throw CommandFailure(
                    .notPermitted, code: "notAllowed",
                    """
                    This key may not observe entry \(sequence), for \(batch.targets[row].target). Use a key \
                    that may, or leave it out with --target.
                    """)
            }
            if rows[row] { count += 1 }
            sequence = sequence.next
        }
        return count
    }
}

extension HistoryError: CommandError {
    /// The failure for a history that can't be written.
    package var failure: CommandFailure {
        CommandFailure(
            code == .unwritable ? .logFailed : .failed, code: code.rawValue, message)
    }
}
