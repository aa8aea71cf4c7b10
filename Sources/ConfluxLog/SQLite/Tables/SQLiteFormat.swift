import CSQLite
import ConfluxVocabulary

#if canImport(Darwin)
    import Darwin
#else
    import Glibc
#endif

/// The format of a log's database: its tables, and how a file is recognised and set up.
enum SQLiteFormat {
    /// The version that this program writes. 2: a log begins at its floor, and has snapshots. 3: the
    /// descriptions of the log and of its snapshots are stored twice. 4: commits are chained by hashes. 5: commits
    /// are in files of their own. A log of an older version is upgraded when it is opened for writing.
    static let version: Int64 = 5
    /// "CFLX": identifies the file as a log.
    static let applicationID: Int64 = 0x4346_4C58
    /// SQLite's page size in a new file; an older file keeps its own (``Database/pageBytes()``). Measured
    /// with 4, 16 and 64 KiB: four producers reach 0.99, 1.11 and 1.08 million actions a second, and a single
    /// action in flight takes 407, 391 and 417 µs.
    private static let newPageBytes = 16_384

    private static func upgrade(from former: Int64, _ log: LogID, salt: UInt64) -> String {
        let snapshots = [SQLiteSnapshots.tables, SQLiteSnapshots.upgrade, "", ""][Int(former) - 1]
        let chain = """
            , chained = 1 + \(SQLiteMeta.end), base = x'\(ChainHash.genesis(of: log))'
            """
        return """
            \(SQLiteMeta.upgrade(from: former))
            \(snapshots)
            UPDATE meta SET format = \(version), salt = \(Int64(bitPattern: salt)),
                reached = \(SQLiteMeta.end)\(former > 3 ? "" : chain);
            DROP TABLE commits;
            PRAGMA user_version = \(version);
            """
    }

    /// Examines the file without changing it.
    ///
    /// - Returns: The version of its format; nil if it is empty, so that a log can be made in it.
    /// - Throws: `notALog`, `newerFormat`, `damaged`.
    static func version(of database: Database, in folder: String) throws(LogError) -> Int64? {
        let path = LogFolder.databasePath(in: folder)
        let (application, version, tables) = try reporting("Opening \(path)") {
            () throws(DatabaseFailure) in
            (
                try database.number("PRAGMA application_id"),
                try database.number("PRAGMA user_version"),
                try database.number("SELECT count(*) FROM sqlite_schema")
            )
        }
        if application == 0 && version == 0 && tables == 0 { return nil }
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
        return version
    }

    /// Sets the connection up, and creates missing tables.
    ///
    /// - Parameters:
    ///   - database: The connection.
    ///   - version: The file's format; nil if it is empty.
    ///   - origin: The log's id, and the origin of a new file.
    ///   - salt: The salt of a log that gets one.
    ///   - settings: The bounds.
    /// - Throws: SQLite's failure.
    static func prepare(
        _ database: Database, version: Int64?, origin: LogOrigin, salt: UInt64,
        settings: SQLiteLogSettings
    ) throws(DatabaseFailure) {
        // Neither can change once there is a table. The second one lets the file shrink.
        if version == nil {
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
            """)
        database.keepWriteAheadFile()
        let pageBytes = try database.pageBytes()
        database.setCheckpoint(pages: Int32(settings.writeAheadBytes / pageBytes))
        try database.transaction { () throws(DatabaseFailure) in
            if version == nil {
                try database.execute(
                    """
                    \(SQLiteMeta.table)
                    \(SQLiteSnapshots.tables)
                    INSERT INTO meta (only, format, log, epoch)
                    VALUES (1, \(self.version), '\(origin.log)', 0);
                    UPDATE meta SET floor = \(origin.floor), reached = \(origin.floor.rawValue - 1),
                        salt = \(Int64(bitPattern: salt)), chained = \(origin.floor), base = x'\(origin.hash)';
                    PRAGMA application_id = \(applicationID);
                    PRAGMA user_version = \(self.version);
                    """)
            } else if let version, version < self.version {
                try database.execute(upgrade(from: version, origin.log, salt: salt))
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
        reading = try SQLiteReadStatements(database, version: SQLiteFormat.version)
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

/// A row of `commits`, a table of former formats, as stored in the file. Its bytes are valid until the statement steps.
struct SQLiteLogRow {
    let first: SequenceNumber
    let last: SequenceNumber
    let epoch: Epoch
    let checksum: UInt64
    let bytes: UnsafeRawBufferPointer

    init(_ statement: Statement) {
        first = SequenceNumber(UInt64(bitPattern: statement.integer(0)))
        last = SequenceNumber(UInt64(bitPattern: statement.integer(1)))
        epoch = Epoch(UInt64(bitPattern: statement.integer(2)))
        checksum = UInt64(bitPattern: statement.integer(3))
        bytes = statement.bytes(4)
    }

    /// The hash, which follows the columns; nil if there is none.
    static func hash(_ statement: Statement) -> ChainHash? { ChainHash(statement.bytes(5)) }

    /// The commit, copied; nil if the row is not what was written.
    func commit() -> LoggedCommit? {
        let found = Checksum.of(
            first: first.rawValue, last: last.rawValue, epoch: epoch.rawValue, bytes: bytes)
        guard found == checksum, first <= last else { return nil }
        let copy = [UInt8](unsafeUninitializedCapacity: bytes.count) { buffer, count in
            UnsafeMutableRawBufferPointer(buffer).copyMemory(from: bytes)
            count = bytes.count
        }
        return LoggedCommit(first: first, last: last, epoch: epoch, bytes: copy[...])
    }
}

extension LogError {
    /// The log's error for a failure of the database.
    init(_ failure: DatabaseFailure, _ attempt: String) {
        let (code, advice): (Code, String) =
            switch failure.primaryCode {
            case SQLITE_FULL:
                (
                    .full,
                    "The disk is full, or the log has reached its bound. Make room, or raise it."
                )
            case SQLITE_IOERR:
                (
                    .unknownOutcome,
                    "The disk reported an error. Check it, then open the log again and read its end."
                )
            // The statements are valid for an intact log, so the file must be damaged.
            case SQLITE_CORRUPT, SQLITE_ERROR, SQLITE_CONSTRAINT, SQLITE_MISMATCH, SQLITE_TOOBIG,
                SQLITE_SCHEMA, SQLITE_FORMAT:
                (.damaged, "The database is damaged. Restore it from a backup.")
            case SQLITE_NOTADB:
                (.notALog, "The file is not a database. Choose another folder.")
            case SQLITE_BUSY, SQLITE_LOCKED:
                (
                    .failed,
                    "Another program uses the database. End that program if it is a sequencer, or its transaction, and try again."
                )
            case SQLITE_CANTOPEN, SQLITE_PERM, SQLITE_READONLY, SQLITE_AUTH:
                // A wrong byte in the header can also forbid writing, which SQLite reports the same way.
                (
                    .unusableFolder,
                    "Make sure that this user may write the folder and its files. If it may, the "
                        + "file is damaged: restore it from a backup."
                )
            case SQLITE_NOMEM:
                (.failed, "Free memory; try again.")
            default:
                (.failed, "Nothing was changed.")
            }
        self.init(
            code, "\(attempt) failed: \(failure.words) (SQLite \(failure.code)). \(advice)")
    }
}
