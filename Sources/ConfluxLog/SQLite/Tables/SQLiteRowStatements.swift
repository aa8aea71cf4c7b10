import ConfluxVocabulary

/// The statements that read commits from a log in a former format, which has a row for each.
struct SQLiteRowStatements: CommitReader {
    let start: Statement
    let read: Statement
    /// The first number of the row after a number.
    let following: Statement

    /// - Parameters:
    ///   - database: The connection.
    ///   - version: The format of the file.
    /// - Throws: SQLite's failure to prepare them.
    init(_ database: Database, version: Int64) throws(DatabaseFailure) {
        start = try database.prepare(
            """
            SELECT coalesce((
                SELECT first FROM commits WHERE first <= max(?1, floor)
                ORDER BY first DESC LIMIT 1), 0), floor
            FROM (SELECT \(SQLiteMeta.floor(version)) AS floor)
            """)
        read = try database.prepare(
            """
            SELECT first, last, epoch, checksum, bytes, \(version > 3 ? "chain" : "NULL") FROM commits
            WHERE first >= ?1 ORDER BY first
            """)
        following = try database.prepare(
            "SELECT first FROM commits WHERE first > ?1 ORDER BY first LIMIT 1")
    }

    func read(
        from: SequenceNumber, through last: SequenceNumber, limitBytes: Int
    ) throws(LogError) -> [ChainedCommit] {
        try LogScan.read(self, from: from, through: last, limitBytes: limitBytes)
    }
}
