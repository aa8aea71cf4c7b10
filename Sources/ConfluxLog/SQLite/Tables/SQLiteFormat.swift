import CSQLite
import ConfluxVocabulary

#if canImport(Darwin)
    import Darwin
#else
    import Glibc
#endif

/// The format of a log's database: its tables, and how a file is recognised and set up.
enum SQLiteFormat {
    /// The version that this program reads and writes. No release wrote another one.
    static let version: Int64 = 6
    /// "CFLX": identifies the file as a log.
    static let applicationID: Int64 = 0x4346_4C58
    /// The size of the write-ahead log's file: a quarter more than the size at which it is copied, since the
    /// transaction that reaches that exceeds it.
    static func writeAheadFileBytes(_ aheadBytes: Int) -> Int { aheadBytes / 4 * 5 }
    /// SQLite's page size in a new file; an older file keeps its own (``Database/pageBytes()``). Measured
    /// with 4, 16 and 64 KiB: four producers reach 0.99, 1.11 and 1.08 million actions a second, and a single
    /// action in flight takes 407, 391 and 417 µs.
    private static let newPageBytes = 16_384

    /// Examines the file without changing it.
    ///
    /// - Returns: Whether it has a log; false if it is empty, so that a log can be made in it.
    /// - Throws: `notALog`, `newerFormat`, `olderFormat`, `damaged`.
    static func hasLog(_ database: Database, in folder: String) throws(LogError) -> Bool {
        let path = LogFolder.databasePath(in: folder)
        let (application, version, tables) = try reporting("Opening \(path)") {
            () throws(DatabaseFailure) in
            (
                try database.number("PRAGMA application_id"),
                try database.number("PRAGMA user_version"),
                try database.number("SELECT count(*) FROM sqlite_schema")
            )
        }
        if application == 0 && version == 0 && tables == 0 { return false }
        guard application == applicationID else {
            throw LogError(
                .notALog,
                "\(path) is a database of another program. Choose another folder.")
        }
        guard version <= self.version else {
            throw LogError(
                .newerFormat,
                "The log in \(folder) has format \(version); this program knows formats up to "
                    + "\(self.version). Run the version of the program that wrote it, or a newer "
                    + "one.")
        }
        // The header has no checksum, and a wrong version would mean that the log is read wrongly.
        let stated = try reporting("Opening \(path)") { () throws(DatabaseFailure) in
            try database.number("SELECT format FROM meta")
        }
        guard stated == version, version > 0 else {
            throw LogError(
                .damaged,
                "The log in \(folder) has format \(version) by its header and \(stated) by its "
                    + "table. Restore it from a backup.")
        }
        guard version == self.version else {
            throw LogError(
                .olderFormat,
                "The log in \(folder) has format \(version), from before the first release; this "
                    + "program reads format \(self.version) only. Begin a log in another folder.")
        }
        return true
    }

    /// Sets the connection up, and creates missing tables.
    ///
    /// - Parameters:
    ///   - database: The connection.
    ///   - hasLog: Whether it has a log, or is empty.
    ///   - origin: The origin of a new log.
    ///   - salt: The salt of a new log.
    ///   - aheadBytes: The size at which the write-ahead log is copied into the database.
    /// - Throws: SQLite's failure.
    static func prepare(
        _ database: Database, hasLog: Bool, origin: LogOrigin, salt: UInt64, aheadBytes: Int
    ) throws(DatabaseFailure) {
        // Neither can change once there is a table. The second one lets the file shrink.
        if !hasLog {
            try database.execute(
                "PRAGMA page_size = \(newPageBytes); PRAGMA auto_vacuum = INCREMENTAL")
        }
        // The two `fullfsync` settings matter on macOS only, where a plain fsync does not reach the disk.
        try database.execute(
            """
            PRAGMA journal_mode = WAL;
            PRAGMA synchronous = FULL;
            PRAGMA fullfsync = ON;
            PRAGMA checkpoint_fullfsync = ON;
            PRAGMA journal_size_limit = \(writeAheadFileBytes(aheadBytes));
            """)
        database.keepWriteAheadFile()
        let pageBytes = try database.pageBytes()
        database.setCheckpoint(pages: Int32(aheadBytes / pageBytes))
        try database.transaction { () throws(DatabaseFailure) in
            if !hasLog {
                try database.execute(
                    """
                    \(SQLiteMeta.table)
                    \(SQLiteSnapshots.tables)
                    \(SQLiteEntryFiles.table)
                    INSERT INTO meta (only, format, log, epoch)
                    VALUES (1, \(version), '\(origin.log)', 0);
                    UPDATE meta SET floor = \(origin.floor), reached = \(origin.floor.rawValue - 1),
                        salt = \(Int64(bitPattern: salt)), chained = \(origin.floor), base = x'\(origin.hash)';
                    PRAGMA application_id = \(applicationID);
                    PRAGMA user_version = \(version);
                    """)
            }
            try database.execute(SQLiteCheckpoints.table)
        }
    }

    /// Runs a function on the database, and turns its failure into a `LogError`.
    static func reporting<Result>(
        _ attempt: @autoclosure () -> String, _ body: () throws(DatabaseFailure) -> Result
    ) throws(LogError) -> Result {
        do { return try body() } catch { throw LogError(error, attempt()) }
    }

    /// Runs a function that changes no log, and turns its failure into a `LogError`.
    static func reading<Result>(
        _ attempt: @autoclosure () -> String, _ body: () throws(DatabaseFailure) -> Result
    ) throws(LogError) -> Result {
        do { return try body() } catch { throw readError(error, attempt()) }
    }

    /// The error for a failed read: nothing can have changed, so no outcome is unknown.
    static func readError(_ failure: DatabaseFailure, _ attempt: String) -> LogError {
        let error = LogError(failure, attempt)
        return error.code == .unknownOutcome ? LogError(.failed, error.message) : error
    }
}

/// The statements of a log, prepared once. A class, since a copy of a struct would count three dozen references.
final class SQLiteLogStatements {
    private let claim: Statement
    /// Records how far the log has come.
    let reach: Statement
    let epoch: Statement
    let files: SQLiteEntryFileStatements
    let reading: SQLiteReadStatements
    let checkpoints: SQLiteCheckpointStatements
    let snapshots: SQLiteSnapshotStatements
    let truncation: SQLiteTruncationStatements

    init(_ database: Database) throws(DatabaseFailure) {
        let isIntact = SQLiteMeta.isIntact()
        claim = try database.prepare(
            """
            UPDATE meta SET epoch = epoch + ?1, reached = ?2
            WHERE \(isIntact) RETURNING epoch
            """)
        reach = try database.prepare(
            "UPDATE meta SET reached = ?2 WHERE \(isIntact) AND epoch = ?1")
        epoch = try database.prepare("SELECT epoch FROM meta WHERE \(isIntact)")
        files = try SQLiteEntryFileStatements(database)
        reading = try SQLiteReadStatements(database)
        checkpoints = try SQLiteCheckpointStatements(database)
        snapshots = try SQLiteSnapshotStatements(database)
        truncation = try SQLiteTruncationStatements(database)
    }

    /// Raises the epoch, and records where the log ends.
    ///
    /// - Returns: The new epoch; 0 if the present one is lost.
    func claim(_ step: UInt64, endingAt last: SequenceNumber) throws(DatabaseFailure) -> Int64 {
        claim.bind(Int64(clamping: step), at: 1)
        claim.bind(Int64(clamping: last.rawValue), at: 2)
        defer { claim.reset() }
        guard try claim.step() else { return 0 }
        let epoch = claim.integer(0)
        // The row comes first; the step that ends the statement makes the change.
        while try claim.step() {}
        return epoch
    }
}
