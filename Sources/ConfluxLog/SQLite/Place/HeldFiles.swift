#if canImport(Darwin)
    import Darwin
#else
    import Glibc
#endif

/// What a log has open, and what must still be at its paths: the system lets somebody move a file, or put another
/// one in its place, while a process writes to it.
struct HeldFiles {
    /// One file, whatever its name is.
    private struct Identity: Equatable {
        let device: dev_t
        let inode: ino_t

        init(_ status: stat) { (device, inode) = (status.st_dev, status.st_ino) }

        /// nil if there is no file.
        init?(_ path: String) throws(LogError) {
            guard let status = try HeldFiles.status(path) else { return nil }
            self.init(status)
        }

        init?(_ descriptor: Int32) {
            var status = stat()
            guard fstat(descriptor, &status) == 0 else { return nil }
            self.init(status)
        }
    }

    /// The content of a file, as far as the system says: who writes it changes this.
    private struct Version: Equatable {
        let identity: Identity
        let size: off_t
        let seconds: time_t
        let nanoseconds: Int

        /// nil if there is no file.
        init?(_ path: String) throws(LogError) {
            guard let status = try HeldFiles.status(path) else { return nil }
            identity = Identity(status)
            size = status.st_size
            #if canImport(Darwin)
                (seconds, nanoseconds) = (status.st_mtimespec.tv_sec, status.st_mtimespec.tv_nsec)
            #else
                (seconds, nanoseconds) = (status.st_mtim.tv_sec, status.st_mtim.tv_nsec)
            #endif
        }
    }

    private let path: String
    private let lockPath: String
    private let databasePath: String
    private let writeAheadPath: String
    private let folder: Identity
    private let lock: Identity
    private let writeAhead: Identity
    private var database: Version
    /// Whether the database has changed since, and the system did not say how.
    private var isDatabaseUnread = false
    /// The file of entries that was checked last.
    private var newest: (path: String, identity: Identity)?

    /// Takes the files that are open.
    ///
    /// - Parameters:
    ///   - folder: The folder.
    ///   - lock: Its file `lock`.
    ///   - path: The path of the folder.
    ///   - databasePath: The path of the database.
    /// - Throws: `moved`.
    init(
        folder: Int32, lock: Int32, path: String, database databasePath: String
    ) throws(LogError) {
        self.path = path
        lockPath = path + "/lock"
        self.databasePath = databasePath
        writeAheadPath = databasePath + "-wal"
        guard let folder = Identity(folder), try Identity(path) == folder else {
            throw .moved(path)
        }
        guard let lock = Identity(lock), try Identity(lockPath) == lock else {
            throw .moved(lockPath)
        }
        guard let database = try Version(databasePath),
            let writeAhead = try Identity(writeAheadPath)
        else { throw .moved(databasePath) }
        self.folder = folder
        self.lock = lock
        self.database = database
        self.writeAhead = writeAhead
    }

    /// Takes the database as it is after a change by its owner.
    mutating func databaseChanged() {
        do throws(LogError) {
            try readDatabase()
        } catch {
            // The next check tries again, and reports it.
            isDatabaseUnread = true
        }
    }

    private mutating func readDatabase() throws(LogError) {
        let version = try Version(databasePath)
        isDatabaseUnread = false
        if let version, version.identity == database.identity { database = version }
    }

    /// Checks that nothing else is at the paths now.
    ///
    /// - Throws: `moved`; `unusableFolder` or `failed` if the system does not say.
    mutating func check(
        _ entries: (path: String, byteCount: Int)?, isThorough: Bool
    ) throws(LogError) {
        guard try Identity(lockPath) == lock else { throw .moved(lockPath) }
        if isDatabaseUnread { try readDatabase() }
        guard try Version(databasePath) == database else { throw .moved(databasePath) }
        if let entries, try !isThere(entries) { throw .moved(entries.path) }
        guard isThorough else { return }
        guard try Identity(path) == folder else { throw .moved(path) }
        guard try Identity(writeAheadPath) == writeAhead else { throw .moved(writeAheadPath) }
    }

    /// What is at a path; nil if nothing is.
    ///
    /// - Throws: `unusableFolder` or `failed` if the system does not say: then nobody knows whether it was moved.
    private static func status(_ path: String) throws(LogError) -> stat? {
        var status = stat()
        if stat(path, &status) == 0 { return status }
        guard [ENOENT, ENOTDIR].contains(errno) else {
            throw LogError(DatabaseFailure(system: errno, at: path), "Examining \(path)")
        }
        return nil
    }

    private mutating func isThere(
        _ entries: (path: String, byteCount: Int)
    ) throws(LogError) -> Bool {
        guard let status = try Self.status(entries.path), status.st_size >= entries.byteCount else {
            return false
        }
        let identity = Identity(status)
        if let newest, newest.path == entries.path { return newest.identity == identity }
        newest = (entries.path, identity)
        return true
    }
}

extension LogError {
    static func moved(_ path: String) -> LogError {
        LogError(
            .moved,
            "\(path) was moved, removed, replaced or changed by another program while the log was open. Nothing "
                + "more is written. A log that is restored has no owner meanwhile: start the sequencer again to "
                + "serve what is there now.")
    }
}
