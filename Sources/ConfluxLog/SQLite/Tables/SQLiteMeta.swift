import ConfluxVocabulary

/// The single row of `meta`: the log's id, its newest claim, its floor, how far it came, and the beginning of
/// its chain.
///
/// Nothing else in the file has these values, so each is stored twice in the row: a trigger copies all of
/// them into `copy`. No statement uses a row that differs from its copy. None overwrites such a row either,
/// since that would copy the damage.
struct SQLiteMeta {
    private static let values = """
        format || ' ' || log || ' ' || epoch || ' ' || floor || ' ' || reached || ' ' || chained
        || ' ' || hex(base) || ' ' || salt
        """
    /// `chained` is the first number that has a hash, and `base` is the hash before it (``LogChain``).
    ///
    /// `reached` is a number that the log has reached, so that the loss of its end is noticed. It is updated
    /// together with other writes, not with each append, and never before the commits that it covers are on
    /// disk. `salt` protects the headers of entries (``EntryHeader``).
    static let table = """
        CREATE TABLE meta (
            only INTEGER PRIMARY KEY CHECK (only = 1),
            format INTEGER NOT NULL,
            log TEXT NOT NULL,
            epoch INTEGER NOT NULL,
            floor INTEGER NOT NULL DEFAULT 1,
            reached INTEGER NOT NULL DEFAULT 0,
            copy TEXT NOT NULL DEFAULT '',
            chained INTEGER NOT NULL DEFAULT 1,
            base BLOB NOT NULL DEFAULT x'',
            salt INTEGER NOT NULL DEFAULT 0
        ) STRICT;
        \(trigger)
        """
    // Not a generated column: `VACUUM INTO` of some SQLite versions can't copy it.
    private static let trigger = """
        CREATE TRIGGER meta_copied
        AFTER UPDATE OF format, log, epoch, floor, reached, chained, base, salt ON meta
        BEGIN
            UPDATE meta SET copy = \(values);
        END;
        """
    /// The condition for an intact row.
    static func isIntact() -> String { "copy = \(values)" }

    /// The floor. If `meta` is lost, the log is read from its first entry.
    static func floor() -> String {
        "coalesce((SELECT floor FROM meta WHERE \(isIntact())), 1)"
    }

    let log: LogID
    let epoch: Epoch
    let floor: SequenceNumber
    /// A number that the log has reached.
    let reached: SequenceNumber
    /// Protects the headers of entries.
    let salt: UInt64
    /// Where the chain begins.
    let chain: LogChain

    /// Reads the row, at one moment.
    ///
    /// - Throws: `damaged`, `failed`.
    init(_ database: Database, in folder: String) throws(LogError) {
        let found = try SQLiteFormat.reporting("Opening \(LogFolder.databasePath(in: folder))") {
            () throws(DatabaseFailure) -> Values? in
            let row = try database.prepare(
                """
                SELECT log, epoch, floor, reached, chained, base, salt FROM meta
                WHERE \(Self.isIntact())
                """)
            defer { row.reset() }
            guard try row.step() else { return nil }
            let numbers = (1...4).map { UInt64(exactly: row.integer($0)) }
            return Values(
                name: row.text(0), numbers: numbers, base: ChainHash(row.bytes(5)),
                salt: UInt64(bitPattern: row.integer(6)))
        }
        guard let found, let log = Identifier(found.name), let epoch = found.numbers[0],
            let floor = found.numbers[1], let reached = found.numbers[2],
            let first = found.numbers[3]
        else { throw .identityLost(in: folder) }
        self.log = log
        self.epoch = Epoch(epoch)
        self.floor = SequenceNumber(max(1, floor))
        self.reached = SequenceNumber(reached)
        salt = found.salt
        self.chain = LogChain(
            from: SequenceNumber(max(1, first)),
            behind: found.base ?? .lost)
    }

    /// The row as it was read.
    private struct Values {
        let name: String
        let numbers: [UInt64?]
        let base: ChainHash?
        let salt: UInt64
    }

    /// Checks where the log was found to end.
    ///
    /// - Throws: `damaged` if its end is missing.
    func check(_ last: SequenceNumber, in folder: String) throws(LogError) {
        guard last < reached else { return }
        throw LogError(
            .damaged,
            "The log in \(folder) ends at \(last), and had entry \(reached): its end is "
                + "missing. Restore it from a backup.", numbers: last.next...reached)
    }
}

extension LogError {
    static let epochLost = LogError(
        .damaged,
        "The log's epoch and floor are not those that were written, so nothing more is appended. "
            + "Restore it from a backup.")

    static func databaseBehind(
        _ found: Epoch, _ epoch: Epoch, in folder: String
    ) -> LogError {
        LogError(
            .damaged,
            "The log in \(folder) ends in epoch \(found), and its database says \(epoch): it is older "
                + "than the entries. Restore all files of a backup together.")
    }

    static func endLost(in folder: String) -> LogError {
        LogError(
            .damaged,
            "The end of the log in \(folder) is not what was written. Restore it from a backup.")
    }

    fileprivate static func identityLost(in folder: String) -> LogError {
        LogError(
            .damaged,
            "The log in \(folder) has lost its identity, epoch or floor: they are not those that were "
                + "written. Restore it from a backup.")
    }
}
