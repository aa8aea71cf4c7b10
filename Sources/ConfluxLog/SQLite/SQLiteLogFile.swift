import ConfluxVocabulary

#if canImport(Darwin)
    import Darwin
#else
    import Glibc
#endif

/// A log on disk, opened only for reading: beside the sequencer that owns it, or without an owner.
///
/// It takes no lock and changes nothing. It reads the log as it was when it was opened, or later. One thread
/// at a time owns it.
public final class SQLiteLogFile: LogReader {
    /// The log's random identity.
    public let id: LogID
    /// The log's end when it was opened.
    public let last: SequenceNumber
    /// The log's beginning when it was opened; it may have been truncated since.
    public let floor: SequenceNumber
    /// The epoch of the log's newest claim when it was opened.
    public let epoch: Epoch
    private let folder: String
    /// The files of its entries.
    private let entries: EntryFiles
    /// nil once closed.
    private var reader: SQLiteLogReader?

    /// Opens the log in a folder.
    ///
    /// - Parameter directory: The folder.
    /// - Throws: `notALog` if there is none; `newerFormat`, `olderFormat`, `unusableFolder`, `damaged`, `failed`.
    public convenience init(directory: String) throws(LogError) {
        try LogFolder.refuseUnfinishedCopy(in: directory)
        try self.init(path: LogFolder.databasePath(in: directory), in: directory)
    }

    init(path: String, in directory: String) throws(LogError) {
        try LogFolder.refuseCutDatabase(path, in: directory)
        guard try LogFolder.size(path) != nil else {
            throw LogError(.notALog, "There is no log in \(directory). Name the folder of one.")
        }
        let attempt = "Opening \(path) for reading"
        let database = try SQLiteFormat.reading(attempt) { () throws(DatabaseFailure) in
            try Database(path: path, vfs: nil, access: .read)
        }
        database.setBusyTimeout(SQLiteLogSettings().busyTimeout)
        guard try SQLiteFormat.hasLog(database, in: directory) else {
            try LogFolder.refuseEntries(path, in: directory)
            throw LogError(
                .notALog,
                "The log in \(directory) is empty: no sequencer has used it. Name another folder.")
        }
        // The entries are read after what the database says of them, so they are not behind it.
        let meta = try SQLiteMeta(database, in: directory)
        entries = EntryFiles(folder: directory, salt: meta.salt, vfs: nil)
        let listing = try SQLiteFormat.reading(attempt) { () throws(DatabaseFailure) in
            try SQLiteEntryFileStatements(database)
        }
        last =
            try EntryReader(entries, list: listing.list).end(meta, in: directory)?.last
            ?? SequenceNumber(meta.floor.rawValue - 1)
        id = meta.log
        floor = meta.floor
        epoch = meta.epoch
        folder = directory
        reader = try SQLiteLogReader(
            path: path, entries: entries, settings: SQLiteLogSettings())
    }

    /// Reads and verifies commits, as described in `LogReader`.
    ///
    /// - Throws: `damaged` with the numbers concerned; `failed`, `closed`.
    public func read(
        from: SequenceNumber, through last: SequenceNumber, limitBytes: Int
    ) throws(LogError) -> [LoggedCommit] {
        guard let reader else { throw .closed }
        return try reader.read(from: from, through: last, limitBytes: limitBytes)
    }

    /// Reads commits like ``read(from:through:limitBytes:)``, each with its hash. It does not check the
    /// hashes: ``LogChain/follow(_:)`` does that.
    ///
    /// - Throws: `damaged` with the numbers concerned; `failed`, `closed`.
    public func readChained(
        from: SequenceNumber, through last: SequenceNumber, limitBytes: Int
    ) throws(LogError) -> [ChainedCommit] {
        guard let reader else { throw .closed }
        return try reader.readChained(from: from, through: last, limitBytes: limitBytes)
    }

    /// Where the chain of the log begins now: after ``last`` if the log's format has no hashes.
    ///
    /// - Throws: `damaged`, `failed`, `closed`.
    public func chain() throws(LogError) -> LogChain {
        guard let reader else { throw .closed }
        return try reader.meta(in: folder).chain
    }

    /// Like `ActionLog.checkpoint(through:)`.
    ///
    /// - Throws: `damaged`, `failed`, `closed`.
    public func checkpoint(through last: SequenceNumber) throws(LogError) -> SavedCheckpoint? {
        guard let reader else { throw .closed }
        return try reader.checkpoint(through: last)
    }

    /// The complete snapshots that are not above `last`, ascending by store and number.
    ///
    /// - Throws: `damaged`, `failed`, `closed`.
    public func snapshots() throws(LogError) -> [SavedSnapshot] {
        guard let reader else { throw .closed }
        return try reader.snapshots(through: last)
    }

    /// The log's description of a snapshot; nil if there is no such complete snapshot.
    ///
    /// - Throws: `damaged`, `failed`, `closed`.
    public func snapshot(of key: SavedSnapshot.Key) throws(LogError) -> SavedSnapshot? {
        guard let reader else { throw .closed }
        return try reader.snapshot(of: key)
    }

    /// Like `ActionLog.readSnapshot(of:from:limitBytes:)`.
    ///
    /// - Throws: `damaged`, `failed`, `closed`.
    public func readSnapshot(
        of key: SavedSnapshot.Key, from offset: UInt64, limitBytes: Int
    ) throws(LogError) -> Bytes? {
        guard let reader else { throw .closed }
        return try reader.readSnapshot(of: key, from: offset, limitBytes: limitBytes)
    }

    /// Releases everything.
    public func close() {
        reader?.close()
        reader = nil
    }

    /// Whether a sequencer or another program has the log open for writing.
    ///
    /// - Throws: `unusableFolder` if that is unknown.
    public func isOwned() throws(LogError) -> Bool { try LogFolder.isLocked(folder) }

    /// Copies the log as it is at one moment, while its owner continues to append.
    ///
    /// The copy has the log's id: a sequencer that serves it continues that log, and nodes that have seen
    /// more entries notice (rule 2). Until the copy is complete and on disk, it does not have the name of a
    /// log. So an interrupted copy is not a log.
    ///
    /// - Parameters:
    ///   - directory: A folder without a log; it is created if it is absent.
    ///   - isWhole: Checks the copy, and returns whether to give it the name of a log. If not, it is removed.
    /// - Throws: `inUse` if the folder has a log already; `unusableFolder`, `full`, `damaged`, `failed`,
    ///   `closed`.
    public func copy(
        to directory: String, if isWhole: (SQLiteLogFile) -> Bool = { _ in true }
    ) throws(LogError) {
        guard let reader else { throw .closed }
        let target = try LogFolder(directory, forCopy: true)
        try copyFiles(reader, to: target)
        let copy = try SQLiteLogFile(path: target.databasePath, in: directory)
        let isAdopted = isWhole(copy)
        copy.close()
        if isAdopted {
            try target.makeCopyDurable()
            try target.adoptCopy()
        } else {
            // If this fails, the remains are not a log, and the next copy removes them.
            try target.removeEntries()
            unlink(target.databasePath)
        }
    }

    private func copyFiles(_ reader: SQLiteLogReader, to target: LogFolder) throws(LogError) {
        for _ in 0..<Self.attempts {
            try target.makeFile(target.databasePath)
            try reader.vacuum(into: target.databasePath)
            // The database is copied first, so that the copied entries are not behind it.
            if try Self.complete(target, with: entries) { return }
            // The owner has discarded entries that the copied database still begins with.
            try target.removeEntries()
            unlink(target.databasePath)
        }
        throw LogError(
            .failed,
            "The log was truncated \(Self.attempts) times while it was copied. Copy it when less is written."
        )
    }

    /// Copies the entries to a copy of the database, and records there where they end. So a copy that loses
    /// them is not taken for a log with fewer entries.
    ///
    /// - Returns: Whether all entries with which the copied database begins were still there.
    private static func complete(
        _ target: LogFolder, with entries: EntryFiles
    ) throws(LogError) -> Bool {
        let attempt = "Completing \(target.databasePath)"
        let database = try SQLiteFormat.reading(attempt) { () throws(DatabaseFailure) in
            try Database(path: target.databasePath, vfs: nil, access: .write)
        }
        let meta = try SQLiteMeta(database, in: target.path)
        let listing = try SQLiteFormat.reading(attempt) { () throws(DatabaseFailure) in
            try SQLiteEntryFileStatements(database)
        }
        let listed = try SQLiteFormat.reading(attempt, listing.list)
        guard let made = try entries.copy(listed, to: target) else { return false }
        try SQLiteFormat.reading(attempt) { () throws(DatabaseFailure) in
            for file in made { try listing.add(file) }
        }
        let copied = EntryFiles(folder: target.path, salt: meta.salt, vfs: nil)
        guard
            let last = try EntryReader(copied, list: listing.list).end(meta, in: target.path)?.last
        else { return true }
        try SQLiteFormat.reading(attempt) { () throws(DatabaseFailure) in
            try database.execute(
                "UPDATE meta SET reached = \(last) WHERE \(SQLiteMeta.isIntact())")
        }
        return true
    }

    /// How often a copy begins anew.
    private static let attempts = 10
}
