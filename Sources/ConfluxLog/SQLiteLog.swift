import CSQLite
import ConfluxVocabulary

/// The log on this machine's disk: a SQLite database in a folder of its own.
///
/// - One row a commit, in the table `commits`, with a checksum; the table `meta` has the log's id,
///   the format's version and the epoch. `sqlite3 FOLDER/log.sqlite` opens it for reading at any
///   time. A reader that keeps a transaction open for long makes the write-ahead log grow.
/// - One owner: the folder is locked, and the system releases the lock when the process ends.
/// - An append is one statement that is conditional on the epoch and on the log's end. It is
///   durable, or, on an error of the disk, of unknown outcome: then this object takes no more
///   appends, since what the system still holds in memory cannot be trusted. Open the log anew
///   and read its end.
/// - Checksums and density are verified on every read. Damage is found when it is read, and from
///   then on nothing behind it is served.
/// - Copying the write-ahead log into the database stalls one append now and then; see
///   `SQLiteLogSettings.writeAheadBytes`.
///
/// Owned by one thread at a time.
public final class SQLiteLog: ActionLog {
    /// The version of the format that this program writes.
    static let formatVersion: Int64 = 1
    /// "CFLX", by which the file is known to be ours.
    static let applicationID: Int64 = 0x4346_4C58

    private struct Statements {
        let claim: Statement
        let append: Statement
        let epoch: Statement
        let end: Statement
        let start: Statement
        let read: Statement
    }

    /// The random identity of this log.
    public let id: LogID
    /// The highest number in the log.
    public private(set) var last: SequenceNumber = .zero
    /// 1: nothing is ever given up.
    public let floor = SequenceNumber(1)

    private let settings: SQLiteLogSettings
    private var claimed: Epoch?
    /// The lowest damage that a read has met; nothing from there on is served.
    private var damage: LogError?
    /// An error of the disk after which no append can be trusted.
    private var diskFailure: LogError?

    // nil once closed; statements are finalized before the connection closes, and that before the
    // folder is unlocked.
    private var statements: Statements?
    private var database: Database?
    private var folder: LogFolder?

    /// Opens the log in a folder; makes both if they are absent.
    ///
    /// - Parameters:
    ///   - directory: The folder.
    ///   - settings: Durability and bounds.
    /// - Throws: `unusableFolder`, `inUse`, `notALog`, `newerFormat`, `damaged`, `full`, `failed`,
    ///   `invalidSetting`.
    public init(
        directory: String, settings: SQLiteLogSettings = SQLiteLogSettings()
    ) throws(LogError) {
        try settings.validate()
        let folder = try LogFolder(directory)
        do {
            let database = try Database(path: folder.databasePath, vfs: settings.vfs)
            database.setBusyTimeout(milliseconds: settings.busyTimeout.wholeMilliseconds)
            try Self.recognize(database, in: folder)
            try Self.prepare(database, settings)
            guard let id = Identifier(try database.text("SELECT log FROM meta")) else {
                throw LogError(
                    .damaged,
                    "The log in \(folder.path) has lost its identity. Restore it from a backup.")
            }
            self.id = id
            try folder.extendWriteAheadFile(to: settings.writeAheadBytes * 5 / 4)
            try folder.synchronize()
            statements = try Self.statements(of: database)
            self.database = database
        } catch let failure as DatabaseFailure {
            throw Self.error(failure, settings, "Opening the log in \(folder.path)")
        } catch let error as LogError {
            throw error
        } catch {
            throw LogError(.failed, "Opening the log in \(folder.path) failed: \(error).")
        }
        self.folder = folder
        self.settings = settings
        last = try readEnd()?.last ?? .zero
    }

    /// Opens the log in a folder; makes both if they are absent.
    ///
    /// - Parameters:
    ///   - directory: The folder.
    ///   - durability: What an append has done when it returns.
    /// - Throws: As `init(directory:settings:)`.
    public convenience init(
        directory: String, durability: SQLiteLogSettings.Durability
    ) throws(LogError) {
        try self.init(directory: directory, settings: SQLiteLogSettings(durability: durability))
    }

    deinit {
        close()
    }

    // MARK: Writing

    /// Begins a tenure; the new epoch is on the disk when this returns.
    ///
    /// - Returns: The new epoch, and where the log ends.
    /// - Throws: `damaged` if the last commit is; `unknownOutcome` after an error of the disk: an
    ///   epoch may have been used up; `full`, `failed`, `closed`.
    public func claim() throws(LogError) -> LogClaim {
        let statements = try open()
        if let diskFailure { throw diskFailure }
        let end = try readEnd()
        last = end?.last ?? .zero
        do {
            defer { statements.claim.reset() }
            try setSynchronous(full: true)
            guard try statements.claim.step() else {
                throw LogError(.damaged, "The log has lost its epoch. Restore it from a backup.")
            }
            let epoch = Epoch(UInt64(bitPattern: statements.claim.integer(0)))
            // The row comes first; the change is committed when the statement has ended.
            _ = try statements.claim.step()
            claimed = epoch
            try setSynchronous(full: settings.durability == .fsync)
            return LogClaim(epoch: epoch, last: last, lastEpoch: end?.epoch ?? .none)
        } catch let failure as DatabaseFailure {
            throw writeError(failure, "Claiming the log")
        } catch let error as LogError {
            throw error
        } catch {
            throw LogError(.unknownOutcome, "Claiming the log failed: \(error). Open it again.")
        }
    }

    /// Adds a commit to the end.
    ///
    /// - Parameters:
    ///   - commit: What to add.
    ///   - last: Where the caller believes that the log ends.
    ///   - forced: Whether it must be on the disk on return, whatever the durability.
    /// - Throws: `superseded`, `endDiffers`, `full`, `failed`, `unknownOutcome`, `invalidCommit`,
    ///   `notClaimed`, `closed`.
    public func append(
        _ commit: LoggedCommit, expecting last: SequenceNumber, forced: Bool
    ) throws(LogError) {
        let statements = try open()
        if let diskFailure { throw diskFailure }
        guard claimed != nil else { throw .notClaimed }
        try commit.validate(expecting: last)
        let checksum = Checksum.of(commit)
        let raisesDurability = forced && settings.durability == .os
        let changes: Int32
        do {
            if raisesDurability { try setSynchronous(full: true) }
            let outcome = commit.bytes.withUnsafeBytes { bytes in
                insert(commit, bytes, checksum, expecting: last, statements.append)
            }
            try outcome.get()
            changes = database?.changes ?? 0
            if raisesDurability { try setSynchronous(full: false) }
        } catch {
            throw writeError(error, "Appending entries \(commit.first) to \(commit.last)")
        }
        if changes == 1 {
            self.last = commit.last
        } else {
            try explainRefusal(of: commit, checksum: checksum, expecting: last)
            // It was appended before, perhaps unforced or with an unknown outcome.
            if forced || settings.durability == .fsync { try makeDurable() }
        }
    }

    /// Makes sure that there is no newer claim.
    ///
    /// - Throws: `superseded`, `failed`, `notClaimed`, `closed`.
    public func confirm() throws(LogError) {
        _ = try open()
        guard let claimed else { throw .notClaimed }
        let newest = try readEpoch()
        guard newest == claimed else { throw .superseded(claimed, by: newest) }
    }

    private func insert(
        _ commit: LoggedCommit, _ bytes: UnsafeRawBufferPointer, _ checksum: UInt64,
        expecting last: SequenceNumber, _ statement: Statement
    ) -> Result<Void, DatabaseFailure> {
        statement.bind(Int64(commit.first.rawValue), at: 1)
        statement.bind(Int64(commit.last.rawValue), at: 2)
        statement.bind(Int64(commit.epoch.rawValue), at: 3)
        statement.bind(Int64(bitPattern: checksum), at: 4)
        statement.bind(bytes, at: 5)
        statement.bind(Int64(last.rawValue), at: 6)
        do {
            try statement.run()
            return .success(())
        } catch {
            return .failure(error)
        }
    }

    /// Tells why the conditional insert did nothing; returns if the very same commit is there.
    private func explainRefusal(
        of commit: LoggedCommit, checksum: UInt64, expecting last: SequenceNumber
    ) throws(LogError) {
        let end = try readEnd()
        self.last = end?.last ?? .zero
        if end == commit { return }
        let newest = try readEpoch()
        if commit.epoch != newest { throw .superseded(commit.epoch, by: newest) }
        throw .endDiffers(expected: last, found: self.last)
    }

    /// Writes something, so that everything before it reaches the disk too.
    private func makeDurable() throws(LogError) {
        do {
            try setSynchronous(full: true)
            try database?.execute("UPDATE meta SET epoch = epoch")
            try setSynchronous(full: settings.durability == .fsync)
        } catch {
            throw writeError(error, "Writing to the disk")
        }
    }

    private func setSynchronous(full: Bool) throws(DatabaseFailure) {
        try database?.execute("PRAGMA synchronous = \(full ? "FULL" : "NORMAL")")
    }

    private func writeError(_ failure: DatabaseFailure, _ attempt: String) -> LogError {
        let error = Self.error(failure, settings, attempt)
        if error.code == .unknownOutcome { diskFailure = error }
        return error
    }

    // MARK: Reading

    /// Reads commits, from the one that contains a number; verifies each.
    ///
    /// - Parameters:
    ///   - from: The number to begin with.
    ///   - limitBytes: How many bytes they have together at most; the first is given in any case.
    /// - Returns: The commits; none if the log ends before `from`.
    /// - Throws: `damaged` with the numbers concerned; `failed`, `closed`.
    public func read(
        from: SequenceNumber, limitBytes: Int
    ) throws(LogError) -> [LoggedCommit] {
        let statements = try open()
        let from = max(from, floor)
        if let damage, let lowest = damage.numbers?.lowerBound, lowest <= from { throw damage }
        guard from <= last else { return [] }
        var commits: [LoggedCommit] = []
        var next = from
        do {
            statements.start.bind(Int64(from.rawValue), at: 1)
            defer { statements.start.reset() }
            let start = try statements.start.step() ? statements.start.integer(0) : 1
            statements.read.bind(start, at: 1)
            defer { statements.read.reset() }
            var total = 0
            while try statements.read.step() {
                let row = Row(statements.read)
                total += row.bytes.count
                if !commits.isEmpty && total > limitBytes { return commits }
                // The first row holds `from`; each later one follows the one before.
                if commits.isEmpty {
                    guard row.first <= next else { return try found(.missing(next, row.first)) }
                    guard row.last >= next || !row.isWhole else {
                        return try found(.missing(next, nextFirst(after: row.first)))
                    }
                } else if row.first != next {
                    return try found(.missing(next, row.first), after: commits)
                }
                guard row.isWhole else {
                    let claimedLast = row.last >= row.first && row.last <= last ? row.last : row.first
                    return try found(
                        .damaged(row.first, claimedLast, "the bytes are not those that were written"),
                        after: commits)
                }
                commits.append(row.commit)
                next = row.last.next
            }
        } catch let failure as DatabaseFailure {
            let error = Self.error(failure, settings, "Reading the log from entry \(next)")
            guard error.code == .damaged else { throw error }
            return try found(.damaged(next, last, failure.words), after: commits)
        } catch let error as LogError {
            throw error
        } catch {
            throw LogError(.failed, "Reading the log from entry \(next) failed: \(error).")
        }
        guard next > last else { return try found(.missing(next, last.next), after: commits) }
        return commits
    }

    /// Remembers damage, and serves what is whole before it.
    private func found(
        _ error: LogError, after commits: [LoggedCommit] = []
    ) throws(LogError) -> [LoggedCommit] {
        if let known = damage?.numbers?.lowerBound, let new = error.numbers?.lowerBound, known <= new
        {
        } else {
            damage = error
        }
        if commits.isEmpty { throw error }
        return commits
    }

    private func nextFirst(after first: SequenceNumber) throws(DatabaseFailure) -> SequenceNumber {
        guard let database else { return last.next }
        let statement = try database.prepare(
            "SELECT coalesce(min(first), 0) FROM commits WHERE first > ?1")
        statement.bind(Int64(first.rawValue), at: 1)
        let next = try statement.step() ? statement.integer(0) : 0
        return next > 0 ? SequenceNumber(UInt64(next)) : last.next
    }

    private func readEnd() throws(LogError) -> LoggedCommit? {
        let statements = try open()
        do {
            defer { statements.end.reset() }
            guard try statements.end.step() else { return nil }
            let row = Row(statements.end)
            guard row.isWhole else {
                throw LogError.damaged(
                    row.first, row.last, "the bytes are not those that were written")
            }
            return row.commit
        } catch let failure as DatabaseFailure {
            throw Self.error(failure, settings, "Reading the end of the log")
        } catch let error as LogError {
            throw error
        } catch {
            throw LogError(.failed, "Reading the end of the log failed: \(error).")
        }
    }

    private func readEpoch() throws(LogError) -> Epoch {
        let statements = try open()
        do {
            defer { statements.epoch.reset() }
            guard try statements.epoch.step() else {
                throw LogError(.damaged, "The log has lost its epoch. Restore it from a backup.")
            }
            return Epoch(UInt64(bitPattern: statements.epoch.integer(0)))
        } catch let failure as DatabaseFailure {
            throw Self.error(failure, settings, "Reading the log's epoch")
        } catch let error as LogError {
            throw error
        } catch {
            throw LogError(.failed, "Reading the log's epoch failed: \(error).")
        }
    }

    // MARK: Opening and closing

    /// Closes the database and unlocks the folder. Doing it again does nothing.
    public func close() {
        if statements != nil && diskFailure == nil && settings.durability == .os {
            // Closing copies the write-ahead log only if nobody else reads; then as now, what was
            // appended shall be on the disk. A failure loses no more than a crash would.
            do { try makeDurable() } catch { diskFailure = error }
        }
        statements = nil
        database = nil
        folder = nil
    }

    private func open() throws(LogError) -> Statements {
        guard let statements else { throw .closed }
        return statements
    }

}
