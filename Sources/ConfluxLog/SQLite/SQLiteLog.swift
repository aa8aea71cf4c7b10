import CSQLite
import ConfluxVocabulary

/// The log on this machine's disk: files of entries and a SQLite database, in a folder of their own.
///
/// - Commits are in the files `entries-*.conflux`, one behind the other, each with a checksum and a hash that
///   covers the commit and the hash before it (``LogChain``). The database has everything else: the list of
///   these files, checkpoints, snapshots, and in the table `meta` the log's id, the format's version, the epoch, the floor and the
///   beginning of the chain, each of them twice. Nothing in the database is ahead of the entries on disk.
/// - One owner: the folder is locked, and the system releases the lock when the process ends,
///   however it ends.
/// - An append is written behind the last one and synced, if the epoch is the newest and the log ends where expected. After a
///   disk error its outcome is unknown. This object then accepts no more appends, since the data that the system still holds
///   in memory can't be trusted: open the log anew and read its end.
/// - Every read verifies checksums, and that no number is missing. Damage is found when it is read; intact
///   commits around it are served. The chain is verified only on request: `SQLiteLogFile.chain()`.
/// - A part of an append that a crash left behind is removed by the next claim.
///
/// Owned by one thread at a time.
public final class SQLiteLog: CopiedLog {
    /// The random identity of this log.
    public let id: LogID
    /// The highest number in the log.
    public private(set) var last: SequenceNumber
    /// The lowest number that the log still holds.
    public private(set) var floor: SequenceNumber

    let settings: SQLiteLogSettings
    /// The chain's beginning when the log was opened.
    private let chain: LogChain
    /// Whether every commit has a hash.
    var isChained: Bool { chain.first <= floor }

    /// What is known after a claim.
    struct Term {
        let epoch: Epoch
        /// The hash of the last commit. It only changes together with ``last``.
        fileprivate(set) var head: ChainHash
    }
    private(set) var term: Term?
    /// The disk error after which no append can be trusted.
    private var diskFailure: LogError?

    struct Files {
        let statements: SQLiteLogStatements
        let database: Database
        let entries: EntryWriter
        let commits: EntryReader
        // The last property, so that the folder is unlocked after the database is closed.
        let folder: LogFolder
    }

    /// nil once closed.
    private(set) var files: Files?
    /// The bound.
    let limitBytes: Int
    /// How many bytes the database's file has, and how many of them are free.
    var database = DatabaseSize()

    /// Opens the log in a folder, and creates both if they are absent.
    ///
    /// - Parameters:
    ///   - directory: The folder.
    ///   - settings: Durability and bounds.
    /// - Throws: `unusableFolder`, `inUse`, `notALog`, `newerFormat`, `olderFormat`, `damaged`, `full`, `failed`,
    ///   `invalidSetting`.
    public convenience init(
        directory: String, settings: SQLiteLogSettings = SQLiteLogSettings()
    ) throws(LogError) {
        try settings.validate()
        let folder = try LogFolder(directory)
        try LogFolder.refuseUnfinishedCopy(in: folder.path)
        try LogFolder.refuseCutDatabase(folder.databasePath, in: folder.path)
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
        let hasLog = try SQLiteFormat.hasLog(database, in: folder.path)
        if !hasLog { try LogFolder.refuseEntries(folder.databasePath, in: folder.path) }
        let salt =
            hasLog
            ? try SQLiteMeta(database, in: folder.path).salt : .random(in: 1...UInt64.max)
        let files = EntryFiles(folder: folder.path, salt: salt, vfs: settings.vfs)
        let limitBytes =
            settings.limitBytes ?? SQLiteLogSettings.limitBytes(forVolumeOf: folder.path)
        let aheadBytes = settings.writeAheadBytes(under: limitBytes)
        let entries = EntryWriter(files, fileBytes: SQLiteLogSettings.fileBytes(limitBytes)) {
            path throws(DatabaseFailure) in try folder.createFile(path)
        }
        try SQLiteFormat.reporting(attempt) { () throws(DatabaseFailure) in
            try SQLiteFormat.prepare(
                database, hasLog: hasLog, origin: origin ?? .new(.random()), salt: salt,
                aheadBytes: aheadBytes)
            try database.renewWriteAheadFile()
        }
        let meta = try SQLiteMeta(database, in: folder.path)
        try folder.extendWriteAheadFile(to: SQLiteFormat.writeAheadFileBytes(aheadBytes))
        try folder.synchronize()
        (id, floor, chain) = (meta.log, meta.floor, meta.chain)
        self.settings = settings
        self.limitBytes = limitBytes
        let (statements, size) = try SQLiteFormat.reporting(attempt) {
            () throws(DatabaseFailure) in
            try database.setSynchronous(full: settings.durability == .fsync)
            let statements = try SQLiteLogStatements(database)
            return (statements, try Self.size(statements.truncation, database))
        }
        self.database = size
        let commits = EntryReader(files, list: statements.files.list)
        last =
            try commits.end(meta, in: folder.path)?.last
            ?? SequenceNumber(meta.floor.rawValue - 1)
        try folder.hold()
        self.files = Files(
            statements: statements, database: database, entries: entries, commits: commits,
            folder: folder)
    }

    deinit {
        close()
    }

    /// Begins a term; the new epoch is on disk when this returns.
    ///
    /// - Parameter step: By how much the epoch rises, 1 or more.
    /// - Returns: The new epoch, and where the log ends.
    /// - Throws: `damaged` if the last commit is; `unknownOutcome` after a disk error: an epoch may be used
    ///   up; `moved`, `full`, `failed`, `closed`.
    public func claim(raisingEpochBy step: UInt64) throws(LogError) -> LogClaim {
        let files = try writableFiles()
        let claimed = try writing("Claiming the log") {
            () throws(DatabaseFailure) -> Result<(End, Int64), LogError> in
            try files.database.setSynchronous(full: true)
            let claimed = try files.database.transaction {
                () throws(DatabaseFailure) -> Result<(End, Int64), LogError> in
                let end: End
                do throws(LogError) { end = try readEnd(files) } catch { return .failure(error) }
                try files.entries.resume(
                    at: end.place, of: try files.statements.files.list(), removing: end.strays)
                files.entries.discard(below: floor)
                try files.statements.snapshots.cut(to: end.last)
                return .success((end, try files.statements.claim(step, endingAt: end.last)))
            }
            try files.database.setSynchronous(full: settings.durability == .fsync)
            return claimed
        }
        let (end, epoch) = try claimed.get()
        guard epoch > 0 else { throw .epochLost }
        let claim = LogClaim(
            epoch: Epoch(UInt64(epoch)), last: end.last, lastEpoch: end.commit?.epoch ?? .none)
        term = Term(epoch: claim.epoch, head: end.head)
        last = claim.last
        return claim
    }

    /// Appends commits: all of them, or none.
    ///
    /// - Parameters:
    ///   - commits: The commits to add.
    ///   - last: The number at which the caller expects the log to end.
    ///   - forced: Whether they must be on disk on return, whatever the durability.
    /// - Throws: `superseded`, `endDiffers`, `full`, `failed`, `unknownOutcome`, `moved`, `invalidCommit`,
    ///   `notClaimed`, `closed`.
    public func append(
        _ commits: [LoggedCommit], expecting last: SequenceNumber, forced: Bool
    ) throws(LogError) {
        let files = try writableFiles()
        guard let term else { throw .notClaimed }
        let newest = try commits.validate(expecting: last)
        let mustSync = forced || settings.durability == .fsync
        var head = term.head
        let chained = commits.map { commit in
            head = head.next(commit)
            return ChainedCommit(commit: commit, hash: head)
        }
        try checkPlace(files, isThorough: !files.entries.hasRoom(for: chained))
        func attempt() -> String { "Appending entries \(last.next) to \(newest.last)" }
        var isWritten = false
        try rememberingFailure(attempt()) { () throws(DatabaseFailure) in
            do throws(DatabaseFailure) {
                guard self.last == last, newest.epoch == term.epoch,
                    try holdWriteLock(files, term.epoch)
                else { return }
                // A claim needs room, so that its term can make some.
                if !forced { try requireRoom(EntryWriter.size(chained)) }
                let file = try files.entries.makeFile(ifNeededFor: chained)
                defer { if file != nil { files.folder.databaseChanged() } }
                if let file, try !begin(file, files, term.epoch) { return }
                try files.entries.append(chained)
                isWritten = true
                if mustSync || file != nil { try files.entries.sync() }
                // So that the file is known not to be empty.
                if file != nil {
                    try record(files, term.epoch) { () throws(DatabaseFailure) in
                        try noteEnd(files, newest.last)
                    }
                }
            } catch {
                // Whatever failed after the write, the entries may be in the log.
                guard isWritten else { throw error }
                throw DatabaseFailure(
                    code: SQLITE_IOERR, words: error.words, trouble: error.trouble)
            }
        }
        if isWritten {
            self.last = newest.last
            self.term?.head = head
            return
        }
        let end = try readEnd(files)
        guard end.commit == newest else {
            let epoch = try readEpoch(files)
            if newest.epoch != epoch { throw .superseded(newest.epoch, by: epoch) }
            throw .endDiffers(expected: last, found: end.last)
        }
        // The commits are in the log already, perhaps without being forced.
        if mustSync {
            try rememberingFailure(attempt()) { () throws(DatabaseFailure) in
                try files.entries.sync()
            }
        }
    }

    /// Keeps other claims out, until this log changes the database.
    ///
    /// - Returns: Whether there is no newer claim.
    private func holdWriteLock(
        _ files: Files, _ epoch: Epoch
    ) throws(DatabaseFailure) -> Bool {
        try files.database.holdWriteLock { () throws(DatabaseFailure) in
            try newestEpoch(files) == epoch
        }
    }

    /// Goes on in another file. The database lists it, durably, before anything is written there.
    ///
    /// - Returns: Whether there is no newer claim.
    private func begin(
        _ file: EntryFileRecord, _ files: Files, _ epoch: Epoch
    ) throws(DatabaseFailure) -> Bool {
        let isListed = try record(files, epoch) { () throws(DatabaseFailure) in
            try files.statements.files.add(file)
            // The files before this one are on disk.
            try noteEnd(files, last)
        }
        guard isListed else { return false }
        try files.entries.begin(file)
        return try holdWriteLock(files, epoch)
    }

    /// Changes the database, durably, if there is no newer claim.
    ///
    /// - Returns: Whether there is none.
    @discardableResult
    private func record(
        _ files: Files, _ epoch: Epoch, _ body: () throws(DatabaseFailure) -> Void
    ) throws(DatabaseFailure) -> Bool {
        try files.database.releaseWriteLock()
        if settings.durability == .os { try files.database.setSynchronous(full: true) }
        let isNewest = try files.database.transaction { () throws(DatabaseFailure) in
            guard try newestEpoch(files) == epoch else { return false }
            try body()
            return true
        }
        if settings.durability == .os { try files.database.setSynchronous(full: false) }
        return isNewest
    }

    /// Confirms that there is no newer claim.
    ///
    /// - Throws: `superseded`, `moved`, `failed`, `notClaimed`, `closed`.
    public func confirm() throws(LogError) {
        let files = try openFiles()
        guard let term else { throw .notClaimed }
        try checkPlace(files, isThorough: true)
        let newest = try readEpoch(files)
        guard newest == term.epoch else { throw .superseded(term.epoch, by: newest) }
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
        return try files.commits.read(from: from, through: last, limitBytes: limitBytes)
            .map(\.commit)
    }

    /// Makes a reader for another thread, with a connection of its own.
    ///
    /// - Returns: The reader.
    /// - Throws: `failed`, `unusableFolder`, `closed`.
    public func makeReader() throws(LogError) -> any LogReader {
        let files = try openFiles()
        return try SQLiteLogReader(
            path: files.folder.databasePath, entries: files.entries.files, settings: settings)
    }

    /// Closes the database and unlocks the folder. What was appended is then on disk, unless the disk fails.
    /// Closing again does nothing.
    public func close() {
        guard let files else { return }
        // Errors here can't be reported. They lose no more than a crash would.
        if diskFailure == nil {
            _ = try? writing("Closing the log") { () throws(DatabaseFailure) in
                try files.entries.sync()
                if settings.durability == .os { try files.database.setSynchronous(full: true) }
                try noteEnd(files, last)
            }
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

    /// Runs a function that writes to the database, and remembers a disk error.
    func writing<Result>(
        _ attempt: @autoclosure () -> String, _ body: () throws(DatabaseFailure) -> Result
    ) throws(LogError) -> Result {
        if let files { try checkPlace(files, isThorough: true) }
        defer { files?.folder.databaseChanged() }
        return try rememberingFailure(attempt()) { () throws(DatabaseFailure) in
            try files?.database.releaseWriteLock()
            return try body()
        }
    }

    /// Checks, before a write, that the log's files are still where they were opened. Nobody else writes them.
    ///
    /// - Throws: `moved`; `unusableFolder`, `failed` if that is not known.
    private func checkPlace(_ files: Files, isThorough: Bool) throws(LogError) {
        let newest = files.entries.newest
        try files.folder.check(newest, isThorough: isThorough)
        let isUnchanged = try SQLiteFormat.reading(
            "Reading the end of the log", files.entries.endsAsWritten)
        if let newest, !isUnchanged { throw .moved(newest.path) }
    }

    /// Runs a function that writes, and remembers a disk error.
    private func rememberingFailure<Result>(
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

    /// Records that the log has reached a number, which is on disk.
    func noteEnd(_ files: Files, _ last: SequenceNumber) throws(DatabaseFailure) {
        guard let term else { return }
        files.statements.reach.bind(Int64(term.epoch.rawValue), at: 1)
        files.statements.reach.bind(Int64(clamping: last.rawValue), at: 2)
        try files.statements.reach.run()
    }
}
