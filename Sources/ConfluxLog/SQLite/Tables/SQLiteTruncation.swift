import ConfluxVocabulary

/// The statements that raise the floor and free space, prepared once.
struct SQLiteTruncationStatements {
    private let database: Database
    private let raise: Statement
    private let pages: Statement
    private let freePages: Statement
    private let pageBytes: Int
    /// Whether the file can shrink. A file of a version that could not truncate can't.
    private let shrinks: Bool

    init(_ database: Database) throws(DatabaseFailure) {
        self.database = database
        // Before the beginning of the chain there is no hash to begin with.
        raise = try database.prepare(
            """
            UPDATE meta SET floor = ?1, reached = max(reached, ?2), chained = max(chained, ?1),
                base = CASE WHEN ?1 <= chained THEN base ELSE ?3 END
            WHERE \(SQLiteMeta.isIntact())
            """)
        pages = try database.prepare("PRAGMA page_count")
        freePages = try database.prepare("PRAGMA freelist_count")
        pageBytes = try database.pageBytes()
        // 2 is INCREMENTAL.
        shrinks = try database.number("PRAGMA auto_vacuum") == 2
    }

    /// Saves a new floor and the hash before it.
    ///
    /// - Parameters:
    ///   - floor: The new floor.
    ///   - hash: The hash of the commit before it; nil if that is lost, or has none.
    ///   - last: Where the log ends.
    /// - Throws: SQLite's failure.
    func raise(
        to floor: SequenceNumber, behind hash: ChainHash?, endingAt last: SequenceNumber
    ) throws(DatabaseFailure) {
        raise.bind(Int64(clamping: floor.rawValue), at: 1)
        raise.bind(Int64(clamping: last.rawValue), at: 2)
        try (hash?.bytes ?? []).withUnsafeBufferPointer { bytes throws(DatabaseFailure) in
            raise.bind(UnsafeRawBufferPointer(bytes), at: 3)
            try raise.run()
        }
    }

    /// How large the file is, and how many bytes of it are free, so that they can be given back.
    func size() throws(DatabaseFailure) -> (fileBytes: Int, freeBytes: Int) {
        defer {
            pages.reset()
            freePages.reset()
        }
        guard try pages.step(), try freePages.step() else { return (0, 0) }
        let free = Int(freePages.integer(0)) * pageBytes
        let all = Int(pages.integer(0)) * pageBytes
        // What can't be given back is used again.
        return shrinks ? (all, free) : (all - free, 0)
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
