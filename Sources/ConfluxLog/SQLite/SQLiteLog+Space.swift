import CSQLite
import ConfluxVocabulary

/// How much of its bound the log uses.
extension SQLiteLog {
    /// How much of the bound the files use. Before a claim, only the database is counted.
    public var space: LogSpace {
        LogSpace(
            usedBytes: UInt64(database.fileBytes + entryBytes), of: UInt64(limitBytes))
    }

    /// How many bytes of the entries' files are in use.
    private var entryBytes: Int { files?.entries.usedBytes ?? 0 }

    /// Notes how large the database is after a change.
    func measure(_ files: Files) throws(DatabaseFailure) {
        database = try files.statements.truncation.size()
    }

    /// How many bytes of the database's file may be free before each change gives some back. Free bytes are used
    /// again, so a few are worth keeping.
    private var freeBytesMax: Int { max(1 << 20, limitBytes / 16) }

    /// Whether the database's file has so many free bytes that they count against the bound in vain.
    var hasFreeBytes: Bool { database.freeBytes > freeBytesMax }

    /// Fails if the bound has no room for more bytes.
    ///
    /// - Parameters:
    ///   - bytes: How many bytes are added.
    ///   - reusing: Whether they are added to the database, where they use free bytes first.
    /// - Throws: `SQLITE_FULL`.
    func requireRoom(_ bytes: Int, reusing: Bool = false) throws(DatabaseFailure) {
        let used = database.fileBytes + entryBytes - (reusing ? database.freeBytes : 0)
        guard used + bytes > limitBytes else { return }
        throw DatabaseFailure(
            code: SQLITE_FULL, words: "the log may take \(limitBytes) bytes")
    }
}
