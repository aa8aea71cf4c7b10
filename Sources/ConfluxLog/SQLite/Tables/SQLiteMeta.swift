import ConfluxVocabulary

/// The one row of `meta`: which log it is, its newest claim, where it begins, how far it came, and what
/// its chain begins with.
///
/// Nothing else in the file says the same, so each value stands in the row twice: a trigger puts all of
/// them into `copy` as well. No statement uses a row that differs from its copy, and none writes over
/// it, since that would make a copy of the damage.
struct SQLiteMeta {
    private static let formerValues = """
        format || ' ' || log || ' ' || epoch || ' ' || floor || ' ' || reached
        """
    private static let values = """
        \(formerValues) || ' ' || chained || ' ' || hex(base)
        """
    /// `chained` is the first number that has a hash, and `base` the hash before it (``LogChain``).
    ///
    /// `reached` is a number that the log had, so that a page that lost its last rows is noticed. It
    /// is written with what is written anyway, not with each append, and never before the commits
    /// that it speaks of.
    static let table = """
        CREATE TABLE meta (
            only INTEGER PRIMARY KEY CHECK (only = 1),
            format INTEGER NOT NULL,
            log TEXT NOT NULL,
            epoch INTEGER NOT NULL,
            floor INTEGER NOT NULL DEFAULT 1,
            reached INTEGER NOT NULL DEFAULT 0,
            copy TEXT NOT NULL DEFAULT '',
            \(chained),
            \(base)
        ) STRICT;
        \(trigger)
        """
    private static let chained = "chained INTEGER NOT NULL DEFAULT 1"
    private static let base = "base BLOB NOT NULL DEFAULT x''"
    /// From a former format, up to the trigger.
    static func upgrade(from version: Int64) -> String {
        """
        \(version > 1 ? "" : "ALTER TABLE meta ADD COLUMN floor INTEGER NOT NULL DEFAULT 1;")
        \(version > 2 ? "DROP TRIGGER meta_copied;" : copied)
        ALTER TABLE meta ADD COLUMN \(chained);
        ALTER TABLE meta ADD COLUMN \(base);
        \(trigger)
        """
    }
    /// What came with the third format.
    private static let copied = """
        ALTER TABLE meta ADD COLUMN reached INTEGER NOT NULL DEFAULT 0;
        ALTER TABLE meta ADD COLUMN copy TEXT NOT NULL DEFAULT '';
        """
    // Not a generated column, which `VACUUM INTO` of some versions of SQLite can't copy.
    private static let trigger = """
        CREATE TRIGGER meta_copied
        AFTER UPDATE OF format, log, epoch, floor, reached, chained, base ON meta
        BEGIN
            UPDATE meta SET copy = \(values);
        END;
        """
    /// Where the log ends; of it `reached` is set. A copy that has no entry yet ends before its floor.
    static let end = "coalesce((\(newest)), (SELECT floor - 1 FROM meta))"
    private static let newest = "SELECT last FROM commits ORDER BY first DESC LIMIT 1"
    /// The same where no log has a floor.
    private static let firstEnd = "coalesce((\(newest)), 0)"

    /// What is true of a row that is as it was written.
    static func isIntact(_ version: Int64 = SQLiteFormat.version) -> String {
        version > 3 ? "copy = \(values)" : version > 2 ? "copy = \(formerValues)" : "true"
    }

    let log: LogID
    let epoch: Epoch
    let floor: SequenceNumber
    /// Where the log ends, as its last row says, which may itself be damaged.
    let last: SequenceNumber
    /// Where the chain begins.
    let chain: LogChain

    /// Reads it, all of one moment.
    ///
    /// - Throws: `damaged`, `failed`.
    init(_ database: Database, version: Int64, in folder: String) throws(LogError) {
        let columns = version > 2 ? "floor, reached" : version > 1 ? "floor, 0" : "1, 0"
        // A log without hashes is chained from its end on, once it is upgraded.
        let end = version > 1 ? Self.end : Self.firstEnd
        let chain = version > 3 ? "chained, base" : "1 + \(end), x''"
        let found = try SQLiteFormat.reporting("Opening \(LogFolder.databasePath(in: folder))") {
            () throws(DatabaseFailure) -> (name: String, numbers: [UInt64?], base: ChainHash?)? in
            let row = try database.prepare(
                """
                SELECT log, epoch, \(columns), \(end), \(chain) FROM meta
                WHERE \(Self.isIntact(version))
                """)
            defer { row.reset() }
            guard try row.step() else { return nil }
            let numbers = (1...5).map { UInt64(exactly: row.integer($0)) }
            return (row.text(0), numbers, ChainHash(row.bytes(6)))
        }
        guard let found, let log = Identifier(found.name), let epoch = found.numbers[0],
            let floor = found.numbers[1], let reached = found.numbers[2],
            let last = found.numbers[3], let first = found.numbers[4]
        else { throw .identityLost(in: folder) }
        guard last >= reached else {
            throw LogError(
                .damaged,
                "The log in \(folder) ends at \(last), and had entry \(reached): its end is "
                    + "missing. Restore it from a backup.",
                numbers: SequenceNumber(last + 1)...SequenceNumber(reached))
        }
        self.log = log
        self.epoch = Epoch(epoch)
        self.floor = SequenceNumber(max(1, floor))
        self.last = SequenceNumber(last)
        self.chain = LogChain(
            from: SequenceNumber(max(1, first)),
            behind: version > 3 ? found.base ?? .lost : .genesis(of: log))
    }
}

extension LogError {
    static let epochLost = LogError(
        .damaged,
        "The log's epoch and floor are not those that were written, so nothing more is appended. "
            + "Restore it from a backup.")

    static func takesNothing(behind last: SequenceNumber) -> LogError {
        LogError(
            .damaged,
            "The database takes no entry behind \(last), where the log ends: what it is told to take "
                + "is not what was written. Restore it from a backup.")
    }

    fileprivate static func identityLost(in folder: String) -> LogError {
        LogError(
            .damaged,
            "The log in \(folder) has lost its identity, epoch or floor: they are not those that were "
                + "written. Restore it from a backup.")
    }
}
