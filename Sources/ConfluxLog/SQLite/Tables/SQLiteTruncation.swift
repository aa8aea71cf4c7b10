import ConfluxVocabulary

/// The statements that discard commits and free space, prepared once.
struct SQLiteTruncationStatements {
    /// How many bytes a row counts towards the limit of a step besides its own.
    private static let rowBytes = 64

    private let database: Database
    private let rows: Statement
    private let delete: Statement
    private let raise: Statement
    private let pages: Statement
    private let freePages: Statement
    private let pageBytes: Int
    /// Whether the file can shrink. A file of a version that could not truncate can't.
    private let shrinks: Bool

    init(_ database: Database) throws(DatabaseFailure) {
        self.database = database
        rows = try database.prepare("SELECT first, length(bytes) FROM commits ORDER BY first")
        delete = try database.prepare("DELETE FROM commits WHERE first < ?1")
        // Before the beginning of the chain there is no hash to begin with.
        raise = try database.prepare(
            """
            UPDATE meta SET floor = ?1, reached = \(SQLiteMeta.end), chained = max(chained, ?1),
                base = CASE WHEN ?1 <= chained THEN base ELSE coalesce((
                    SELECT chain FROM commits WHERE first < ?1 ORDER BY first DESC LIMIT 1), x'') END
            WHERE \(SQLiteMeta.isIntact())
            """)
        pages = try database.prepare("PRAGMA page_count")
        freePages = try database.prepare("PRAGMA freelist_count")
        pageBytes = try database.pageBytes()
        // 2 is INCREMENTAL.
        shrinks = try database.number("PRAGMA auto_vacuum") == 2
    }

    /// Discards commits whose entries are all below a number, at least one, and saves the new floor and the
    /// hash before it. Call it in a transaction.
    ///
    /// - Returns: The new floor; nil if there is nothing to discard.
    func truncate(
        below floor: SequenceNumber, limitBytes: Int
    ) throws(DatabaseFailure) -> SequenceNumber? {
        guard let first = try beginning(below: floor, limitBytes: limitBytes) else { return nil }
        raise.bind(first, at: 1)
        try raise.run()
        delete.bind(first, at: 1)
        try delete.run()
        return SequenceNumber(UInt64(bitPattern: first))
    }

    /// The first number of the oldest commit that stays. That commit exists, so the log has a beginning even
    /// if other rows are missing. The last commit always stays, since the next append is checked against it.
    private func beginning(
        below floor: SequenceNumber, limitBytes: Int
    ) throws(DatabaseFailure) -> Int64? {
        defer { rows.reset() }
        guard try rows.step() else { return nil }
        var bytes = 0
        var first: Int64?
        repeat {
            bytes += Int(rows.integer(1)) + Self.rowBytes
            // Rows before a commit that begins at or below the floor are entirely below the floor.
            guard try rows.step(), rows.integer(0) <= Int64(clamping: floor.rawValue) else { break }
            first = rows.integer(0)
        } while bytes < limitBytes
        return first
    }

    /// How many bytes of the file are in use.
    func usedBytes() throws(DatabaseFailure) -> Int {
        defer {
            pages.reset()
            freePages.reset()
        }
        guard try pages.step(), try freePages.step() else { return 0 }
        return Int(pages.integer(0) - freePages.integer(0)) * pageBytes
    }

    /// Gives some free space back to the file system, in a transaction of its own. The file becomes shorter
    /// when the write-ahead log is copied into it.
    ///
    /// - Returns: Whether there was no free space.
    func shrink(limitBytes: Int) throws(DatabaseFailure) -> Bool {
        guard shrinks, try database.number("PRAGMA freelist_count") > 0 else { return true }
        let pages = max(1, limitBytes / pageBytes)
        try database.execute("PRAGMA incremental_vacuum(\(pages))")
        return false
    }
}
