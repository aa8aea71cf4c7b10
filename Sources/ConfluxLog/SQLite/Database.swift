import CSQLite
import ConfluxSystem
import ConfluxVocabulary

#if canImport(Darwin)
    import Darwin
#else
    import Glibc
#endif

/// A connection to one database file. Owned by one thread at a time.
final class Database {
    private let connection: OpaquePointer
    private let path: String
    /// These begin and end a transaction.
    private var begin: OpaquePointer?
    private var commit: OpaquePointer?

    /// What a connection may do.
    enum Access {
        case read
        case write

        /// What this user must be allowed to do with the files.
        var mode: Int32 {
            switch self {
            case .read: R_OK
            case .write: R_OK | W_OK
            }
        }

        var flags: Int32 {
            switch self {
            case .read: SQLITE_OPEN_READONLY
            case .write: SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE
            }
        }
    }

    /// Opens a database. To write, creates it if it is absent.
    ///
    /// - Parameters:
    ///   - path: The file.
    ///   - vfs: The name of the VFS to use; nil for the system's.
    ///   - access: What the connection may do.
    /// - Throws: SQLite's failure to open it.
    init(path: String, vfs: String?, access: Access) throws(DatabaseFailure) {
        for name in ["", "-wal", "-shm", "-journal"] {
            try DatabaseFailure.refuse(path + name, for: access)
        }
        var connection: OpaquePointer?
        let flags = access.flags | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE
        // A path that begins with "file:" would be taken for a URI, which leads elsewhere
        // (https://www.sqlite.org/uri.html).
        let literal = Folder.isAbsolute(path) ? path : "./" + path
        let code = sqlite3_open_v2(literal, &connection, flags, vfs)
        guard code == SQLITE_OK, let connection else {
            let number = connection.map(sqlite3_system_errno) ?? 0
            sqlite3_close_v2(connection)
            throw DatabaseFailure(
                code: code, words: String(shownCString: sqlite3_errstr(code)), system: number,
                at: path)
        }
        self.connection = connection
        self.path = path
        begin = try compile("BEGIN IMMEDIATE")
        commit = try compile("COMMIT")
    }

    deinit {
        sqlite3_finalize(begin)
        sqlite3_finalize(commit)
        sqlite3_close_v2(connection)
    }

    /// Runs statements that take no values, and ignores their rows.
    func execute(_ statements: String) throws(DatabaseFailure) {
        let code = sqlite3_exec(connection, statements, nil, nil, nil)
        guard code == SQLITE_OK else { throw failure(code) }
    }

    /// Runs a function as one transaction: all of it takes effect, or nothing.
    ///
    /// - Throws: What the function throws; a disk error if the transaction can't be rolled back.
    func transaction<Result>(
        _ body: () throws(DatabaseFailure) -> Result
    ) throws(DatabaseFailure) -> Result {
        try run(begin)
        return try rollingBack { () throws(DatabaseFailure) in
            let result = try body()
            try run(commit)
            return result
        }
    }

    /// Takes the write lock if a condition holds, and keeps it until ``releaseWriteLock()``. While the lock is
    /// held nobody changes the database, so the condition is not checked again.
    ///
    /// - Returns: Whether the condition holds.
    func holdWriteLock(
        if condition: () throws(DatabaseFailure) -> Bool
    ) throws(DatabaseFailure) -> Bool {
        guard !isInTransaction else { return true }
        try run(begin)
        return try rollingBack { () throws(DatabaseFailure) in
            let holds = try condition()
            if !holds { try run(commit) }
            return holds
        }
    }

    /// Releases the write lock, if it is held. Every change of the database comes after this.
    func releaseWriteLock() throws(DatabaseFailure) {
        guard isInTransaction else { return }
        try rollingBack { () throws(DatabaseFailure) in try run(commit) }
    }

    private var isInTransaction: Bool { sqlite3_get_autocommit(connection) == 0 }

    private func rollingBack<Result>(
        _ body: () throws(DatabaseFailure) -> Result
    ) throws(DatabaseFailure) -> Result {
        do throws(DatabaseFailure) { return try body() } catch {
            // After some failures SQLite rolls back by itself. A transaction that can't be ended would
            // swallow the next change, which would still get a receipt.
            if isInTransaction { sqlite3_exec(connection, "ROLLBACK", nil, nil, nil) }
            guard !isInTransaction else {
                throw DatabaseFailure(
                    code: SQLITE_IOERR, words: error.words, trouble: error.trouble)
            }
            throw error
        }
    }

    /// The id of the row that was added last.
    var lastRow: Int64 { sqlite3_last_insert_rowid(connection) }

    /// The single integer that a statement returns.
    func number(_ statement: String) throws(DatabaseFailure) -> Int64 {
        let statement = try prepare(statement)
        defer { statement.reset() }
        return try statement.step() ? statement.integer(0) : 0
    }

    /// The page size of the file in bytes: fixed once there is a table.
    func pageBytes() throws(DatabaseFailure) -> Int { Int(try number("PRAGMA page_size")) }

    func prepare(_ text: String) throws(DatabaseFailure) -> Statement {
        Statement(try compile(text), of: self)
    }

    private func compile(_ text: String) throws(DatabaseFailure) -> OpaquePointer {
        var statement: OpaquePointer?
        let code = sqlite3_prepare_v3(
            connection, text, -1, UInt32(SQLITE_PREPARE_PERSISTENT), &statement, nil)
        guard code == SQLITE_OK, let statement else { throw failure(code) }
        return statement
    }

    /// Runs a statement that takes no values and returns no rows.
    private func run(_ statement: OpaquePointer?) throws(DatabaseFailure) {
        let code = sqlite3_step(statement)
        defer { sqlite3_reset(statement) }
        guard code == SQLITE_DONE else { throw failure(code) }
    }

    /// Sets how long to wait for a lock that another connection holds.
    func setBusyTimeout(_ timeout: Duration) {
        let (seconds, attoseconds) = timeout.components
        sqlite3_busy_timeout(
            connection,
            Int32(clamping: seconds * 1_000 + attoseconds / 1_000_000_000_000_000))
    }

    /// Sets whether a transaction is on disk when it has ended.
    func setSynchronous(full: Bool) throws(DatabaseFailure) {
        try execute("PRAGMA synchronous = \(full ? "FULL" : "NORMAL")")
    }

    /// Sets at how many pages the write-ahead log is copied into the database.
    func setCheckpoint(pages: Int32) { sqlite3_wal_autocheckpoint(connection, pages) }

    /// Copies the write-ahead log into the database and empties its file, unless somebody reads from it now.
    func emptyWriteAheadFile() {
        // The system's error, if there is one, is found by the next write.
        sqlite3_wal_checkpoint_v2(connection, "main", SQLITE_CHECKPOINT_TRUNCATE, nil, nil)
    }

    /// Keeps the write-ahead log's file when the connection closes.
    func keepWriteAheadFile() {
        var isOn: Int32 = 1
        sqlite3_file_control(connection, "main", SQLITE_FCNTL_PERSIST_WAL, &isOn)
    }

    /// Rewrites the write-ahead log with its own contents, and syncs it.
    ///
    /// After a failed sync, the system may keep data in memory that it could not write, and consider it
    /// written: then the next sync succeeds without it. A power failure would lose appends after such a gap,
    /// although their own syncs succeeded. Writing everything again leaves no gap.
    func renewWriteAheadFile() throws(DatabaseFailure) {
        // The transaction keeps other writers out, and ensures that the file is open.
        try transaction { () throws(DatabaseFailure) in try copyWriteAheadFileOntoItself() }
    }

    private func copyWriteAheadFileOntoItself() throws(DatabaseFailure) {
        guard let file = journal, let methods = file.pointee.pMethods?.pointee else { return }
        let size = Int64(try writeAheadBytes())
        // SQLite's files accept less than 128 KiB at once.
        let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 1 << 16, alignment: 8)
        defer { buffer.deallocate() }
        var offset: Int64 = 0
        while offset < size {
            let count = Int32(min(Int64(buffer.count), size - offset))
            try check(methods.xRead(file, buffer.baseAddress, count, offset))
            // After this many zeros there are no valid frames.
            if buffer.prefix(Int(count)).allSatisfy({ $0 == 0 }) { break }
            try check(methods.xWrite(file, buffer.baseAddress, count, offset))
            offset += Int64(count)
        }
        try check(methods.xSync(file, SQLITE_SYNC_FULL))
    }

    private func check(_ code: Int32) throws(DatabaseFailure) {
        guard code == SQLITE_OK else {
            throw failure(code, String(shownCString: sqlite3_errstr(code)))
        }
    }

    /// How large the write-ahead log's file is; 0 if none is open.
    func writeAheadBytes() throws(DatabaseFailure) -> Int {
        guard let file = journal, let methods = file.pointee.pMethods?.pointee else { return 0 }
        var size: Int64 = 0
        try check(methods.xFileSize(file, &size))
        return Int(size)
    }

    /// The write-ahead log's file, or the journal's; nil if none is open.
    private var journal: UnsafeMutablePointer<sqlite3_file>? {
        var pointer: UnsafeMutableRawPointer?
        sqlite3_file_control(connection, "main", SQLITE_FCNTL_JOURNAL_POINTER, &pointer)
        let file = pointer?.assumingMemoryBound(to: sqlite3_file.self)
        return file?.pointee.pMethods == nil ? nil : file
    }

    fileprivate func failure(_ code: Int32) -> DatabaseFailure {
        failure(code, String(shownCString: sqlite3_errmsg(connection)))
    }

    private func failure(_ code: Int32, _ words: String) -> DatabaseFailure {
        DatabaseFailure(
            code: code, words: words, system: systemNumber(of: code), at: path)
    }

    /// The system's error number for a failure; 0 if it is not known.
    private func systemNumber(of code: Int32) -> Int32 {
        let last = sqlite3_system_errno(connection)
        guard code & 0xFF == SQLITE_IOERR else { return last }
        // Before SQLite asks for that number, it undoes the transaction, by calls that have numbers of their own. But
        // each file keeps its number.
        if let number = journal?.lastSystemNumber, number != 0 { return number }
        var number: Int32 = 0
        sqlite3_file_control(connection, "main", SQLITE_FCNTL_LAST_ERRNO, &number)
        if number != 0 { return number }
        return SystemTrouble(number: last, at: path) == nil ? 0 : last
    }
}

/// A statement that is prepared once and run many times.
final class Statement {
    private let statement: OpaquePointer
    /// Keeps the connection open as long as it has statements.
    private let database: Database

    fileprivate init(_ statement: OpaquePointer, of database: Database) {
        self.statement = statement
        self.database = database
    }

    deinit {
        sqlite3_finalize(statement)
    }

    /// Binds an integer to a parameter, counted from 1.
    func bind(_ value: Int64, at place: Int32) {
        sqlite3_bind_int64(statement, place, value)
    }

    /// Binds a text.
    func bind(_ text: String, at place: Int32) {
        // SQLITE_TRANSIENT: SQLite makes a copy.
        let copied = unsafeBitCast(-1, to: sqlite3_destructor_type.self)
        sqlite3_bind_text(statement, place, text, -1, copied)
    }

    /// Binds bytes without copying them: they must stay valid until `reset()`.
    func bind(_ bytes: UnsafeRawBufferPointer, at place: Int32) {
        if let base = bytes.baseAddress, !bytes.isEmpty {
            sqlite3_bind_blob64(statement, place, base, UInt64(bytes.count), nil)
        } else {
            sqlite3_bind_zeroblob(statement, place, 0)
        }
    }

    /// Moves to the next row.
    ///
    /// - Returns: Whether there is one.
    func step() throws(DatabaseFailure) -> Bool {
        switch sqlite3_step(statement) {
        case SQLITE_ROW: return true
        case SQLITE_DONE: return false
        case let code: throw database.failure(code)
        }
    }

    /// Runs a statement that returns no rows, and makes it ready to run again.
    func run() throws(DatabaseFailure) {
        defer { reset() }
        while try step() {}
    }

    /// Makes the statement ready to run again, and releases bound bytes.
    func reset() {
        sqlite3_reset(statement)
        sqlite3_clear_bindings(statement)
    }

    /// The integer in a column, counted from 0.
    func integer(_ column: Int32) -> Int64 { sqlite3_column_int64(statement, column) }

    /// The text in a column; empty if there is none, or it is not UTF-8, which only damage explains.
    func text(_ column: Int32) -> String {
        guard let start = sqlite3_column_text(statement, column) else { return "" }
        let count = Int(sqlite3_column_bytes(statement, column))
        return (try? String(utf8: UnsafeBufferPointer(start: start, count: count))) ?? ""
    }

    /// The bytes in a column, valid until the next step.
    func bytes(_ column: Int32) -> UnsafeRawBufferPointer {
        let start = sqlite3_column_blob(statement, column)
        return UnsafeRawBufferPointer(
            start: start, count: Int(sqlite3_column_bytes(statement, column)))
    }
}

extension UnsafeMutablePointer<sqlite3_file> {
    /// The system's error number for the file's last failure; 0 if there was none.
    var lastSystemNumber: Int32 {
        var number: Int32 = 0
        _ = pointee.pMethods?.pointee.xFileControl(self, SQLITE_FCNTL_LAST_ERRNO, &number)
        return number
    }
}
