#if canImport(Darwin)
    import Darwin
#else
    import Glibc
#endif

/// What a log has open, and what must still be at its paths: the system lets somebody move a file, or put another
/// one in its place, while a process writes to it.
///
/// A file has moved only if the system says that nothing, or something else, is at its path now. If the system does
/// not let the process look, nothing is known: the write fails, and a later one looks again.
struct HeldFiles {
    /// One file, whatever its name is.
    private struct Identity: Equatable {
        let device: dev_t
        let inode: ino_t

        init(_ status: stat) { (device, inode) = (status.st_dev, status.st_ino) }

        /// The file at a path; nil if there is none.
        init?(_ path: String) throws(LogError) {
            guard let status = try HeldFiles.status(of: path) else { return nil }
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

        /// The file at a path; nil if there is none.
        init?(_ path: String) throws(LogError) {
            guard let status = try HeldFiles.status(of: path) else { return nil }
            identity = Identity(status)
            size = status.st_size
            #if canImport(Darwin)
                (seconds, nanoseconds) = (status.st_mtimespec.tv_sec, status.st_mtimespec.tv_nsec)
            #else
                (seconds, nanoseconds) = (status.st_mtim.tv_sec, status.st_mtim.tv_nsec)
            #endif
        }
    }

    /// What is at a path; nil if nothing is.
    private static func status(of path: String) throws(LogError) -> stat? {
        try LogFolder.status(of: path, absent: [ENOENT, ENOTDIR])
    }

    private let path: String
    private let lockPath: String
    private let databasePath: String
    private let writeAheadPath: String
    private let folder: Identity
    private let lock: Identity
    private let writeAhead: Identity
    private var database: Version
    /// Whether the owner has changed the database since, and could not look at it afterwards.
    private var isChangeUnseen = false
    /// The file of entries that was checked last.
    private var newest: (path: String, identity: Identity)?

    /// Takes the files that are open.
    ///
    /// - Parameters:
    ///   - folder: The folder.
    ///   - lock: Its file `lock`.
    ///   - path: The path of the folder.
    ///   - databasePath: The path of the database.
    /// - Throws: `moved`; `unusableFolder`, `failed` if the system does not say.
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
        guard let database = try Version(databasePath) else { throw .moved(databasePath) }
        guard let writeAhead = try Identity(writeAheadPath) else { throw .moved(writeAheadPath) }
        self.folder = folder
        self.lock = lock
        self.database = database
        self.writeAhead = writeAhead
    }

    /// Takes the database as it is after a change by its owner.
    mutating func databaseChanged() {
        do throws(LogError) {
            isChangeUnseen = false
            try takeDatabase()
        } catch {
            // The next check throws this, or looks at it first.
            isChangeUnseen = true
        }
    }

    private mutating func takeDatabase() throws(LogError) {
        guard let version = try Version(databasePath), version.identity == database.identity else {
            return
        }
        database = version
    }

    /// The first path at which something else is now; nil if there is none.
    ///
    /// - Throws: `unusableFolder`, `failed` if the system does not say.
    mutating func firstMoved(
        _ entries: (path: String, byteCount: Int)?, isThorough: Bool
    ) throws(LogError) -> String? {
        guard try Identity(lockPath) == lock else { return lockPath }
        if isChangeUnseen {
            try takeDatabase()
            isChangeUnseen = false
        }
        guard try Version(databasePath) == database else { return databasePath }
        if let entries, try !isThere(entries) { return entries.path }
        guard isThorough else { return nil }
        guard try Identity(path) == folder else { return path }
        return try Identity(writeAheadPath) == writeAhead ? nil : writeAheadPath
    }

    private mutating func isThere(
        _ entries: (path: String, byteCount: Int)
    ) throws(LogError) -> Bool {
        guard let status = try Self.status(of: entries.path), status.st_size >= entries.byteCount
        else { return false }
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
