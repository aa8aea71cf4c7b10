import CSQLite
import ConfluxVocabulary

/// The log on this machine's disk: a SQLite database in a folder of its own.
///
/// - Each commit is a row in the table `commits`, with a checksum and a hash that covers the commit and the
///   hash before it (``LogChain``). The table `meta` has the log's id, the format's version, the epoch, the
///   floor and the beginning of the chain, each of them twice. `sqlite3 FOLDER/log.sqlite` opens it for
///   reading at any time. A reader that keeps a transaction open for long makes the write-ahead log grow.
/// - One owner: the folder is locked, and the system releases the lock when the process ends,
///   however it ends.
/// - An append is one statement, conditional on the epoch and on the log's end. After a disk error its
///   outcome is unknown. This object then accepts no more appends, since the data that the system still holds
///   in memory can't be trusted: open the log anew and read its end.
/// - Every read verifies checksums, and that no number is missing. Damage is found when it is read; intact
///   commits around it are served. The chain is verified only on request: `SQLiteLogFile.chain()`.
/// - Copying the write-ahead log into the database stalls one append now and then; see
///   `SQLiteLogSettings.writeAheadBytes`.
///
/// Owned by one thread at a time.
public final class SQLiteLog: CopiedLog {
    /// The random identity of this log.
    public let id: LogID
    /// The highest number in the log.
    public private(set) var last: SequenceNumber
    /// The lowest number that the log still holds.
    public private(set) var floor: SequenceNumber

    private let settings: SQLiteLogSettings
    /// The chain's beginning when the log was opened.
    private let chain: LogChain
    /// Whether every commit has a hash.
    var isChained: Bool { chain.first <= floor }

    /// What is known after a claim.
    struct Tenure {
        let epoch: Epoch
        /// The hash of the last commit. It only changes together with ``last``.
        fileprivate(set) var head: ChainHash
    }
    private(set) var tenure: Tenure?
    /// The disk error after which no append can be trusted.
    private var diskFailure: LogError?

    struct Files {
        let statements: SQLiteLogStatements
        let database: Database
        // The last property, so that the folder is unlocked after the database is closed.
        let folder: LogFolder
    }

    /// nil once closed.
    private var files: Files?

    /// Opens the log in a folder, and creates both if they are absent.
    ///
    /// - Parameters:
    ///   - directory: The folder.
    ///   - settings: Durability and bounds.
    /// - Throws: `unusableFolder`, `inUse`, `notALog`, `newerFormat`, `damaged`, `full`, `failed`,
    ///   `invalidSetting`.
    public convenience init(
        directory: String, settings: SQLiteLogSettings = SQLiteLogSettings()
    ) throws(LogError) {
        try settings.validate()
        let folder = try LogFolder(directory)
        try folder.refuseCutDatabase()
        try folder.refuseUnfinishedCopy()
        try self.init(in: folder, settings, origin: nil)
    }

    /// Opens the log in a folder that this object locks. If there is none, begins one with an origin, or a
    /// new log without one.
    init(
        in folder: LogFolder, _ settings: SQLiteLogSettings, origin: LogOrigin?
    ) throws(LogError) {
        try folder.makeFile(folder.databasePath)
        let attempt = "Opening the log in \(folder.path)"
        let database = try SQLiteFormat.reporting(attempt) { () throws(DatabaseFailure) in
            try Database(path: folder.databasePath, vfs: settings.vfs, access: .write)
        }
        database.setBusyTimeout(settings.busyTimeout)
        let version = try SQLiteFormat.version(of: database, in: folder.path)
        // Damage must be found before an upgrade overwrites it.
        let former = try version.map { version throws(LogError) in
            try SQLiteMeta(database, version: version, in: folder.path)
        }
        try SQLiteFormat.reporting(attempt) { () throws(DatabaseFailure) in
            try SQLiteFormat.prepare(
                database, version: version, origin: origin ?? .new(former?.log ?? .random()),
                settings: settings)
            try database.renewWriteAheadFile()
        }
        let meta = try SQLiteMeta(database, version: SQLiteFormat.version, in: folder.path)
        // A quarter more, since the commit that reaches the limit exceeds it.
        try folder.extendWriteAheadFile(to: settings.writeAheadBytes * 5 / 4)
        try folder.synchronize()
        id = meta.log
        self.settings = settings
        last = meta.last
        floor = meta.floor
        chain = meta.chain
        files = try SQLiteFormat.reporting(attempt) { () throws(DatabaseFailure) in
            let files = Files(
                statements: try SQLiteLogStatements(database), database: database, folder: folder)
            try files.database.setSynchronous(full: settings.durability == .fsync)
            return files
        }
    }

    /// Opens the log in a folder, and creates both if they are absent.
    ///
    /// - Parameters:
    ///   - directory: The folder.
    ///   - durability: What an append guarantees when it returns.
    /// - Throws: Like `init(directory:settings:)`.
    public convenience init(
        directory: String, durability: SQLiteLogSettings.Durability
    ) throws(LogError) {
        try self.init(directory: directory, settings: SQLiteLogSettings(durability: durability))
    }

    deinit {
        close()
    }

    /// Whether seven eighths of the bound are used.
    public var isNearlyFull: Bool {
        guard let files else { return false }
        do throws(DatabaseFailure) {
            return try files.statements.truncation.usedBytes() > settings.limitBytes / 8 * 7
        } catch {
            // If this fails, the next append meets the same error.
            return false
        }
    }

    /// Begins a tenure; the new epoch is on disk when this returns.
    ///
    /// - Parameter step: By how much the epoch rises, 1 or more.
    /// - Returns: The new epoch, and where the log ends.
    /// - Throws: `damaged` if the last commit is; `unknownOutcome` after a disk error: an epoch may be used
    ///   up; `full`, `failed`, `closed`.
    public func claim(raisingEpochBy step: UInt64) throws(LogError) -> LogClaim {
        let files = try writableFiles()
        let end = try readEnd(files)
        let epoch = try writing("Claiming the log") { () throws(DatabaseFailure) -> Int64 in
            defer { files.statements.claim.reset() }
            try files.statements.snapshots.cut(to: end.last)
            try files.database.setSynchronous(full: true)
            files.statements.claim.bind(Int64(clamping: step), at: 1)
            guard try files.statements.claim.step() else { return 0 }
            let epoch = files.statements.claim.integer(0)
            // The row comes first; the step that ends the statement commits the change.
            while try files.statements.claim.step() {}
            try files.database.setSynchronous(full: settings.durability == .fsync)
            return epoch
        }
        guard epoch > 0 else { throw .epochLost }
        let claim = LogClaim(
            epoch: Epoch(UInt64(epoch)), last: end.last, lastEpoch: end.commit?.epoch ?? .none)
        tenure = Tenure(epoch: claim.epoch, head: end.head)
        last = claim.last
        return claim
    }

    /// Appends commits, in one transaction.
    ///
    /// - Parameters:
    ///   - commits: The commits to add.
    ///   - last: The number at which the caller expects the log to end.
    ///   - forced: Whether they must be on disk on return, whatever the durability.
    /// - Throws: `superseded`, `endDiffers`, `full`, `failed`, `unknownOutcome`, `invalidCommit`,
    ///   `notClaimed`, `closed`.
    public func append(
        _ commits: [LoggedCommit], expecting last: SequenceNumber, forced: Bool
    ) throws(LogError) {
        let files = try writableFiles()
        guard let tenure else { throw .notClaimed }
        let newest = try commits.validate(expecting: last)
        var head = tenure.head
        let raisesDurability = forced && settings.durability == .os
        let attempt = "Appending entries \(last.next) to \(newest.last)"
        let isAppended = try writing(attempt) { () throws(DatabaseFailure) -> Bool in
            if raisesDurability { try files.database.setSynchronous(full: true) }
            // One statement is a transaction by itself.
            let isAppended =
                commits.count == 1
                ? try insert(newest, behind: &head, into: files)
                : try files.database.transaction { () throws(DatabaseFailure) in
                    try insert(commits, behind: &head, into: files)
                }
            if raisesDurability { try files.database.setSynchronous(full: false) }
            return isAppended
        }
        if isAppended {
            self.last = newest.last
            self.tenure?.head = head
            return
        }
        let end = try readEnd(files)
        self.last = end.last
        self.tenure?.head = end.head
        guard end.commit == newest else {
            let epoch = try readEpoch(files)
            if newest.epoch != epoch { throw .superseded(newest.epoch, by: epoch) }
            if self.last == last { throw .takesNothing(behind: last) }
            throw .endDiffers(expected: last, found: self.last)
        }
        // The commits are in the log already, perhaps without being forced.
        if raisesDurability { try makeDurable(files) }
    }

    /// Confirms that there is no newer claim.
    ///
    /// - Throws: `superseded`, `failed`, `notClaimed`, `closed`.
    public func confirm() throws(LogError) {
        let files = try openFiles()
        guard let tenure else { throw .notClaimed }
        let newest = try readEpoch(files)
        guard newest == tenure.epoch else { throw .superseded(tenure.epoch, by: newest) }
    }

    /// Reads and verifies commits, from the one that contains a number.
    ///
    /// - Parameters:
    ///   - from: The number to begin with; a number below `floor` means `floor`.
    ///   - limitBytes: The most bytes of all commits together; the first is always returned.
    /// - Returns: The commits; none if the log ends before `from`.
    /// - Throws: `damaged` with the numbers concerned; `failed`, `closed`.
    public func read(
        from: SequenceNumber, limitBytes: Int
    ) throws(LogError) -> [LoggedCommit] {
        let files = try openFiles()
        let from = max(from, floor)
        guard from <= last else { return [] }
        return try LogScan.read(
            files.statements.reading, from: from, through: last, limitBytes: limitBytes)
    }

    /// Makes a reader for another thread, with a connection of its own.
    ///
    /// - Returns: The reader.
    /// - Throws: `failed`, `unusableFolder`, `closed`.
    public func makeReader() throws(LogError) -> any LogReader {
        try SQLiteLogReader(path: openFiles().folder.databasePath, settings: settings)
    }

    /// Closes the database and unlocks the folder. What was appended is then on disk, unless the disk fails.
    /// Closing again does nothing.
    public func close() {
        guard let files else { return }
        // Errors here can't be reported. They lose no more than a crash would.
        if let tenure, diskFailure == nil {
            files.statements.reach.bind(Int64(tenure.epoch.rawValue), at: 1)
            _ = try? files.statements.reach.run()
        }
        if settings.durability == .os && diskFailure == nil {
            _ = try? makeDurable(files)
        }
        disconnect()
    }

    /// Closes the database as it is. The folder stays locked.
    func disconnect() {
        files = nil
    }

    // MARK: Parts

    func openFiles() throws(LogError) -> Files {
        guard let files else { throw .closed }
        return files
    }

    func writableFiles() throws(LogError) -> Files {
        let files = try openFiles()
        if let diskFailure { throw diskFailure }
        return files
    }

    /// Runs a function that writes, and remembers a disk error.
    func writing<Result>(
        _ attempt: @autoclosure () -> String, _ body: () throws(DatabaseFailure) -> Result
    ) throws(LogError) -> Result {
        do { return try body() } catch {
            let error = LogError(error, attempt())
            if error.code == .unknownOutcome { diskFailure = error }
            throw error
        }
    }

    /// Takes over a new floor.
    func rise(to floor: SequenceNumber) {
        self.floor = floor
    }

    /// - Returns: Whether they follow the log's end; if not, none is inserted.
    private func insert(
        _ commits: [LoggedCommit], behind head: inout ChainHash, into files: Files
    ) throws(DatabaseFailure) -> Bool {
        for (index, commit) in commits.enumerated()
        where try !insert(commit, behind: &head, into: files) {
            guard index == 0 else {
                throw DatabaseFailure(code: SQLITE_ABORT, words: "a part of an append follows")
            }
            return false
        }
        return true
    }

    /// - Returns: Whether it follows the log's end; if not, it is not inserted.
    private func insert(
        _ commit: LoggedCommit, behind head: inout ChainHash, into files: Files
    ) throws(DatabaseFailure) -> Bool {
        head = head.next(commit)
        let statement = files.statements.append
        statement.bind(Int64(commit.first.rawValue), at: 1)
        statement.bind(Int64(commit.last.rawValue), at: 2)
        statement.bind(Int64(commit.epoch.rawValue), at: 3)
        statement.bind(Int64(bitPattern: Checksum.of(commit)), at: 4)
        try commit.bytes.withUnsafeBufferPointer { buffer throws(DatabaseFailure) in
            try head.bytes.withUnsafeBufferPointer { hash throws(DatabaseFailure) in
                statement.bind(UnsafeRawBufferPointer(buffer), at: 5)
                statement.bind(UnsafeRawBufferPointer(hash), at: 6)
                try statement.run()
            }
        }
        return files.database.changes == 1
    }

    /// Makes a write that changes nothing, so that everything before it reaches the disk.
    private func makeDurable(_ files: Files) throws(LogError) {
        try writing("Writing to the disk") { () throws(DatabaseFailure) in
            try files.database.setSynchronous(full: true)
            // SQLite always writes this, unlike a row that is set to its present value.
            try files.database.execute("PRAGMA user_version = \(SQLiteFormat.version)")
            try files.database.setSynchronous(full: settings.durability == .fsync)
        }
    }

    /// Where the log ends: the last commit, nil if there is none, and the hash to which the next one is
    /// chained.
    private struct End {
        var commit: LoggedCommit?
        /// The next number.
        let before: SequenceNumber
        let head: ChainHash

        var last: SequenceNumber { SequenceNumber(before.rawValue - 1) }
    }

    private func readEnd(_ files: Files) throws(LogError) -> End {
        defer { files.statements.end.reset() }
        let hasRow = try SQLiteFormat.reporting("Reading the end of the log") {
            () throws(DatabaseFailure) in try files.statements.end.step()
        }
        guard hasRow else { return End(before: floor, head: chain.end.hash) }
        let row = SQLiteLogRow(files.statements.end)
        let hash = SQLiteLogRow.hash(files.statements.end)
        guard let commit = row.commit(),
            let head = commit.first < chain.first ? chain.end.hash : hash
        else {
            throw .damaged(
                row.first, row.first, "the last commit, whose bytes are not those that were written"
            )
        }
        return End(commit: commit, before: commit.last.next, head: head)
    }

    func readEpoch(_ files: Files) throws(LogError) -> Epoch {
        let epoch = try SQLiteFormat.reporting("Reading the log's epoch") {
            () throws(DatabaseFailure) in try newestEpoch(files)
        }
        guard let epoch else { throw .epochLost }
        return epoch
    }

    /// The epoch of the newest claim; nil if the file has none.
    func newestEpoch(_ files: Files) throws(DatabaseFailure) -> Epoch? {
        defer { files.statements.epoch.reset() }
        guard try files.statements.epoch.step() else { return nil }
        return UInt64(exactly: files.statements.epoch.integer(0)).map { Epoch($0) }
    }
}
