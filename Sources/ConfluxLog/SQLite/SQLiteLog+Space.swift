import CSQLite
import ConfluxSystem
import ConfluxVocabulary

/// How much of its bound the log uses.
extension SQLiteLog {
    /// How much of the bound the files use. Before a claim, the entries are not counted.
    public var space: LogSpace {
        LogSpace(
            usedBytes: UInt64(database.fileBytes + database.aheadBytes + entryBytes),
            of: UInt64(limitBytes))
    }

    /// How many bytes are free on the file system of the log's folder.
    public var freeBytes: UInt64? {
        files.flatMap { FileSystem(of: $0.folder.databasePath).freeBytes }
    }

    /// How many bytes of the entries' files are in use.
    private var entryBytes: Int { files?.entries.usedBytes ?? 0 }

    /// Notes how large the database is after a change.
    func measure(_ files: Files) throws(DatabaseFailure) {
        database = try Self.size(files.statements.truncation, files.database)
        // While others read, the file grows. It is emptied at the first change after that.
        let usual = SQLiteFormat.writeAheadFileBytes(settings.writeAheadBytes(under: limitBytes))
        guard database.aheadBytes > usual else { return }
        files.database.setBusyTimeout(.zero)
        files.database.emptyWriteAheadFile()
        files.database.setBusyTimeout(settings.busyTimeout)
        database = try Self.size(files.statements.truncation, files.database)
    }

    /// No more than this is small.
    private static let smallBytes = 16 << 10

    /// How large the database and its write-ahead log are.
    static func size(
        _ statements: SQLiteTruncationStatements, _ database: Database
    ) throws(DatabaseFailure) -> DatabaseSize {
        let (fileBytes, freeBytes) = try statements.size()
        return DatabaseSize(
            fileBytes: fileBytes, freeBytes: freeBytes,
            aheadBytes: try database.writeAheadBytes())
    }

    /// How many bytes of the database's file may be free before each change gives some back. Free bytes are used
    /// again, so a few are worth keeping.
    private var freeBytesMax: Int { max(1 << 20, limitBytes / 16) }

    /// Whether the database's file has so many free bytes that they count against the bound in vain.
    var hasFreeBytes: Bool { database.freeBytes > freeBytesMax }

    /// Fails if the bound has no room for more bytes. Its last part is for what is small, such as the sequencer's own
    /// entries: otherwise a term in a full log could end nothing that fills it.
    ///
    /// - Parameters:
    ///   - bytes: How many bytes are added.
    ///   - toDatabase: Whether they are added to the database. There they use free bytes first, and are in the
    ///     write-ahead log, too.
    /// - Throws: `SQLITE_FULL`.
    func requireRoom(_ bytes: Int, toDatabase: Bool = false) throws(DatabaseFailure) {
        var used = database.fileBytes + database.aheadBytes + entryBytes
        if toDatabase { used += bytes - database.freeBytes }
        let most = bytes > Self.smallBytes ? limitBytes - limitBytes / 32 : limitBytes
        guard used + bytes > most else { return }
        throw DatabaseFailure(
            code: SQLITE_FULL, words: "the log may take \(limitBytes) bytes")
    }
}

/// How many bytes a log's database has.
struct DatabaseSize {
    /// The file's.
    var fileBytes = 0
    /// Those of them that are free.
    var freeBytes = 0
    /// Those of its write-ahead log.
    var aheadBytes = 0
}
