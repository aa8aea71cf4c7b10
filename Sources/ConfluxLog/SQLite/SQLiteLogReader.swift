import ConfluxVocabulary

/// Reads the log on disk through a read-only connection of its own. Reads and appends don't wait for each
/// other.
final class SQLiteLogReader: LogReader {
    private struct Connection {
        let statements: SQLiteReadStatements
        let commits: EntryReader
        let database: Database
    }

    /// nil once closed.
    private var connection: Connection?

    /// - Parameters:
    ///   - path: The database.
    ///   - entries: The files of its entries.
    ///   - settings: How long to wait, and the VFS.
    /// - Throws: `failed`, `unusableFolder`.
    init(
        path: String, entries: EntryFiles, settings: SQLiteLogSettings
    ) throws(LogError) {
        connection = try SQLiteFormat.reading("Opening \(path) for reading") {
            () throws(DatabaseFailure) in
            let database = try Database(path: path, vfs: settings.vfs, access: .read)
            database.setBusyTimeout(settings.busyTimeout)
            return Connection(
                statements: try SQLiteReadStatements(database),
                commits: EntryReader(entries, list: try SQLiteEntryFileStatements(database).list),
                database: database)
        }
    }

    func read(
        from: SequenceNumber, through last: SequenceNumber, limitBytes: Int
    ) throws(LogError) -> [LoggedCommit] {
        try readChained(from: from, through: last, limitBytes: limitBytes).map(\.commit)
    }

    func readChained(
        from: SequenceNumber, through last: SequenceNumber, limitBytes: Int
    ) throws(LogError) -> [ChainedCommit] {
        guard let connection else { throw .closed }
        guard from <= last else { return [] }
        var floor = try connection.statements.currentFloor()
        while true {
            let from = max(from, floor)
            guard from <= last else { return [] }
            do throws(LogError) {
                return try connection.commits.read(
                    from: from, through: last, limitBytes: limitBytes)
            } catch {
                // Perhaps the entries were discarded meanwhile.
                let risen = try connection.statements.currentFloor()
                guard risen > floor else { throw error }
                floor = risen
            }
        }
    }

    /// The log's current `meta` row.
    func meta(in folder: String) throws(LogError) -> SQLiteMeta {
        guard let connection else { throw .closed }
        return try SQLiteMeta(connection.database, in: folder)
    }

    func checkpoint(through last: SequenceNumber) throws(LogError) -> SavedCheckpoint? {
        guard let connection else { throw .closed }
        return try connection.statements.checkpoint(through: last)
    }

    func readSnapshot(
        of key: SavedSnapshot.Key, from offset: UInt64, limitBytes: Int
    ) throws(LogError) -> Bytes? {
        guard let connection else { throw .closed }
        return try connection.statements.snapshots.read(key, from: offset, limitBytes: limitBytes)
    }

    func snapshot(of key: SavedSnapshot.Key) throws(LogError) -> SavedSnapshot? {
        guard let connection else { throw .closed }
        return try connection.statements.snapshots.snapshot(of: key)
    }

    func snapshots(through last: SequenceNumber) throws(LogError) -> [SavedSnapshot] {
        guard let connection else { throw .closed }
        return try connection.statements.snapshots.listed(through: last)
    }

    /// Writes the log, as it is at one moment, into an empty file.
    func vacuum(into path: String) throws(LogError) {
        guard let connection else { throw .closed }
        try SQLiteFormat.reading("Copying the log to \(path)") { () throws(DatabaseFailure) in
            let quoted = path.split(separator: "'", omittingEmptySubsequences: false)
                .joined(separator: "''")
            // The copy of a log that was begun before logs could shrink is one that can. The setting only
            // affects the copy, not the log that is read.
            if try connection.database.number("PRAGMA auto_vacuum") == 0 {
                try connection.database.execute("PRAGMA auto_vacuum = INCREMENTAL")
            }
            try connection.database.execute("VACUUM INTO '\(quoted)'")
        }
    }

    func close() {
        connection = nil
    }
}
