import CSQLite
import ConfluxVocabulary

/// The log on this machine's disk: a SQLite database in a folder of its own.
///
/// - The table `commits` has one row a commit, with a checksum, and with a hash of the commit and of the previous hash
///   (``LogChain``). The table `meta` has the log's id, the format's version, the epoch, the floor and the beginning of
///   the chain, each of them twice. `sqlite3 FOLDER/log.sqlite` opens the log for reading at any time. A reader that
///   keeps a transaction open for long makes the write-ahead log grow.
/// - One owner: the folder is locked, and the system releases the lock when the process ends, however it ends.
/// - An append is one statement, conditional on the epoch and on the log's end. After a disk error its outcome is
///   unknown. This object then refuses appends, since the system's cache can't be trusted: open the log anew and read
///   its end.
/// - Every read verifies checksums, and that no commit is missing. Intact commits around a damaged one are served.
///   `SQLiteLogFile.chain()` verifies the chain.
/// - Copying the write-ahead log into the database delays an append from time to time; see
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
    /// Where the chain began when the log was opened.
    private let chain: LogChain
    /// Whether every commit has a hash.
    var isChained: Bool { chain.first <= floor }

    /// What is so from a claim on.
    struct Tenure {
        let epoch: Epoch
        /// The hash of the last commit. It changes with ``last``, never by itself.
        fileprivate(set) var head: ChainHash
    }
    private(set) var tenure: Tenure?
    /// The error of the disk after which no append can be trusted.
    private var diskFailure: LogError?

    struct Files {
        let statements: SQLiteLogStatements
        let database: Database
        // Last, so that the folder is unlocked when the database is closed.
        let folder: LogFolder
    }

    /// nil once closed.
    private var files: Files?

    /// Opens the log in a folder; creates both if they do not exist.
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

    /// Opens what stands in a folder that this object locks, or begins it with an origin; without one it is a new log.
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
        // Damage is found before an upgrade writes over it.
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
        // A quarter more, since the commit that reaches the mark goes beyond it.
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

    /// Opens the log in a folder; creates both if they do not exist.
    ///
    /// - Parameters:
    ///   - directory: The folder.
    ///   - durability: What an append has done when it returns.
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
            // Whatever keeps it from being told is met by the next append.
            return false
        }
    }

    /// Begins a tenure; the new epoch is on the disk when this returns.
    ///
    /// - Parameter step: By how much the epoch rises, 1 or more.
    /// - Returns: The new epoch, and where the log ends.
    /// - Throws: `damaged` if the last commit is damaged; `unknownOutcome` after an error of the disk: an
    ///   epoch may be used up; `full`, `failed`, `closed`.
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
            // The row comes first; the change is committed by the step that ends the statement.
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
    ///   - commits: The commits.
    ///   - last: The end of the log that the caller expects.
    ///   - forced: Whether they must be on the disk on return, whatever the durability is.
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
        // They were appended before, then perhaps without force.
        if raisesDurability { try makeDurable(files) }
    }

    /// Makes sure that there is no newer claim.
    ///
    /// - Throws: `superseded`, `failed`, `notClaimed`, `closed`.
    public func confirm() throws(LogError) {
        let files = try openFiles()
        guard let tenure else { throw .notClaimed }
        let newest = try readEpoch(files)
        guard newest == tenure.epoch else { throw .superseded(tenure.epoch, by: newest) }
    }

    /// Reads commits, from the one that contains a number; verifies each.
    ///
    /// - Parameters:
    ///   - from: The first number; below `floor`, reading begins at `floor`.
    ///   - limitBytes: The most bytes of the commits together; the first is returned in any case.
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

    /// Closes the database and unlocks the folder. Appended commits are then on the disk, unless the disk fails.
    /// Repeated calls do nothing.
    public func close() {
        guard let files else { return }
        // Nobody can be told if these fail, and then no more is lost than by a crash.
        if let tenure, diskFailure == nil {
            files.statements.reach.bind(Int64(tenure.epoch.rawValue), at: 1)
            _ = try? files.statements.reach.run()
        }
        if settings.durability == .os && diskFailure == nil {
            _ = try? makeDurable(files)
        }
        disconnect()
    }

    /// Closes the database as it is; whoever holds the folder keeps it locked.
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

    /// Runs something that writes, and remembers an error of the disk.
    func writing<Result>(
        _ attempt: @autoclosure () -> String, _ body: () throws(DatabaseFailure) -> Result
    ) throws(LogError) -> Result {
        do { return try body() } catch {
            let error = LogError(error, attempt())
            if error.code == .unknownOutcome { diskFailure = error }
            throw error
        }
    }

    /// Goes on from a new floor.
    func rise(to floor: SequenceNumber) {
        self.floor = floor
    }

    /// - Returns: Whether they follow; else none is there.
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

    /// - Returns: Whether it follows; else it is not there.
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

    /// Writes what changes nothing, so that all that stands before it reaches the disk.
    private func makeDurable(_ files: Files) throws(LogError) {
        try writing("Writing to the disk") { () throws(DatabaseFailure) in
            try files.database.setSynchronous(full: true)
            // Unlike a row that is set to what it is, this is written in any case.
            try files.database.execute("PRAGMA user_version = \(SQLiteFormat.version)")
            try files.database.setSynchronous(full: settings.durability == .fsync)
        }
    }

    /// Where the log ends: the last commit, nil if there is none, and what the next one is chained to.
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

    /// The epoch of the newest claim; nil if the file does not say.
    func newestEpoch(_ files: Files) throws(DatabaseFailure) -> Epoch? {
        defer { files.statements.epoch.reset() }
        guard try files.statements.epoch.step() else { return nil }
        return UInt64(exactly: files.statements.epoch.integer(0)).map { Epoch($0) }
    }
}
