#if canImport(Darwin)
    import Darwin
#else
    import Glibc
#endif

/// The folder of a log on disk, locked for one owner for as long as this object lives.
///
/// The lock is the system's (`flock`) and ends with the process, however that ends.
final class LogFolder {
    let path: String
    private let descriptor: Int32

    /// The database that is opened here: the log's, or a copy that does not have the log's name yet.
    let databasePath: String
    var writeAheadPath: String { databasePath + "-wal" }
    var journalPath: String { databasePath + "-journal" }

    static func databasePath(in folder: String) -> String { folder + "/log.sqlite" }
    private static func copyPath(in folder: String) -> String {
        databasePath(in: folder) + ".partial"
    }

    /// Nobody but the owner may read or write what a log makes, whatever the umask is. What is there
    /// already keeps its permissions: somebody may have chosen them.
    private static let folderMode: mode_t = 0o700
    private static let fileMode: mode_t = 0o600

    /// Makes the folder if it is absent, and locks it.
    ///
    /// - Parameters:
    ///   - path: The folder.
    ///   - isForCopy: Whether a copy is made here, and not a log opened.
    /// - Throws: `unusableFolder`, `inUse`; for a copy `inUse` as well where a log is there already, or a part of one,
    ///   and what an interrupted copy left is removed.
    init(_ path: String, forCopy isForCopy: Bool = false) throws(LogError) {
        guard !path.isEmpty, !path.utf8.contains(0) else {
            throw LogError(.unusableFolder, "The log needs the name of a folder. Give one.")
        }
        var trimmed = path[...]
        while trimmed.utf8.count > 1 && trimmed.hasSuffix("/") { trimmed = trimmed.dropLast() }
        self.path = String(trimmed)
        let logPath = Self.databasePath(in: self.path)
        databasePath = isForCopy ? Self.copyPath(in: self.path) : logPath
        try Self.make(self.path)

        let lockPath = self.path + "/lock"
        let descriptor = open(lockPath, O_RDWR | O_CREAT | O_CLOEXEC, Self.fileMode)
        guard descriptor >= 0 else { throw Self.unusable(self.path, errno) }
        while flock(descriptor, LOCK_EX | LOCK_NB) != 0 {
            let number = errno
            if number == EINTR { continue }
            let owner = Self.owner(in: descriptor)
            close(descriptor)
            guard number == EWOULDBLOCK else { throw Self.unusable(self.path, number) }
            throw LogError(
                .inUse,
                "The log in \(self.path) is open already\(owner.map { ", in process \($0)" } ?? ""). "
                    + "A log has one owner: end that one, or choose another folder.")
        }
        self.descriptor = descriptor
        // For people, and for the message above; the lock does not depend on it.
        let words = Array("\(getpid())\n".utf8)
        if ftruncate(descriptor, 0) == 0 { pwrite(descriptor, words, words.count, 0) }
        if isForCopy { try makeRoomForCopy(at: logPath) }
    }

    private func makeRoomForCopy(at logPath: String) throws(LogError) {
        // What stands beside a database is written into it when it is opened: what another log left
        // must not meet this one.
        for found in [logPath, logPath + "-wal", logPath + "-journal"]
        where access(found, F_OK) == 0 {
            throw LogError(
                .inUse,
                "There is a log in \(path) already, or a part of one: \(found). Give a folder without "
                    + "one.")
        }
        for left in [databasePath, writeAheadPath, journalPath, databasePath + "-shm"]
        where unlink(left) != 0 && errno != ENOENT {
            throw LogError(
                .unusableFolder,
                "\(left), which an interrupted copy left, can't be removed: "
                    + "\(String(cString: strerror(errno))). Remove it, and copy again.")
        }
    }

    deinit {
        // Said, not left to the closing: a child that was forked and has not begun its program yet
        // has the descriptor, too, and would keep the lock.
        _ = flock(descriptor, LOCK_UN)
        close(descriptor)
    }

    /// Whether someone has a folder locked. Changes nothing in it.
    ///
    /// - Throws: `unusableFolder`.
    static func isLocked(_ path: String) throws(LogError) -> Bool {
        let descriptor = open(path + "/lock", O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else {
            if errno == ENOENT { return false }
            throw unusable(path, errno)
        }
        defer { close(descriptor) }
        while flock(descriptor, LOCK_SH | LOCK_NB) != 0 {
            if errno == EWOULDBLOCK { return true }
            if errno != EINTR { throw unusable(path, errno) }
        }
        _ = flock(descriptor, LOCK_UN)
        return false
    }

    /// Makes an empty file if there is none. SQLite takes one for an empty database, and gives its
    /// permissions to the files that it makes beside it.
    ///
    /// - Throws: `unusableFolder`.
    func makeFile(_ file: String) throws(LogError) {
        let descriptor = open(file, O_RDWR | O_CREAT | O_CLOEXEC, Self.fileMode)
        guard descriptor >= 0 else { throw Self.unusable(path, errno) }
        close(descriptor)
    }

    /// Has the copy on the disk, in one file.
    func makeCopyDurable() throws(LogError) {
        let descriptor = open(databasePath, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else { throw Self.unusable(path, errno) }
        defer { close(descriptor) }
        guard fsync(descriptor) == 0 else { throw Self.unusable(path, errno) }
        // The database has all of their content.
        for left in [writeAheadPath, databasePath + "-shm"]
        where unlink(left) != 0 && errno != ENOENT {
            throw Self.unusable(path, errno)
        }
    }

    /// Gives the copy, which is durable, the name of a log.
    ///
    /// - Throws: `unusableFolder`; `unknownOutcome` where it has the name, and may lose it with the power.
    func adoptCopy() throws(LogError) {
        guard rename(databasePath, Self.databasePath(in: path)) == 0 else {
            throw Self.unusable(path, errno)
        }
        do throws(LogError) {
            try synchronize()
        } catch {
            throw LogError(.unknownOutcome, error.message)
        }
    }

    /// Makes the names of new files in the folder durable.
    func synchronize() throws(LogError) {
        try Self.synchronize(path)
    }

    /// A database without a byte beside a write-ahead log was cut to nothing, or removed: SQLite would
    /// remove the other, too, and a new log would begin where there was one. One of a single byte is
    /// empty for SQLite as well.
    ///
    /// - Throws: `damaged`.
    func refuseCutDatabase() throws(LogError) {
        let size = Self.size(databasePath)
        guard size <= 1, size == 1 || Self.size(writeAheadPath) > 0 else { return }
        throw LogError(
            .damaged,
            "\(databasePath), where there was a log, was cut to nothing or removed. Restore it from a "
                + "backup.")
    }

    /// Where a copy was begun and not finished, no new log begins in its place.
    ///
    /// - Throws: `notALog`.
    func refuseUnfinishedCopy() throws(LogError) {
        let copy = Self.copyPath(in: path)
        guard access(databasePath, F_OK) != 0, access(copy, F_OK) == 0 else { return }
        throw LogError(
            .notALog,
            "In \(path) there is a copy of a log that was not finished: \(copy). Make the copy again; or "
                + "remove that file, and a new log begins here.")
    }

    private static func size(_ path: String) -> Int {
        var status = stat()
        return stat(path, &status) == 0 ? Int(status.st_size) : 0
    }

    /// Gives the write-ahead log blocks to write into, since a write that grows a file takes twice
    /// as long to reach the disk. What is in the file stays; zeros behind it mean nothing to
    /// SQLite.
    ///
    /// - Parameter bytes: How long the file is to be at least.
    /// - Throws: `full` if the disk has no room; `unusableFolder`.
    func extendWriteAheadFile(to bytes: Int) throws(LogError) {
        let file = open(writeAheadPath, O_WRONLY | O_CLOEXEC)
        guard file >= 0 else { throw Self.unusable(path, errno) }
        defer { close(file) }
        var end = Int(lseek(file, 0, SEEK_END))
        guard end >= 0 else { throw Self.unusable(path, errno) }
        guard end < bytes else { return }
        let zeros = [UInt8](repeating: 0, count: 1 << 20)
        while end < bytes {
            let written = pwrite(file, zeros, min(zeros.count, bytes - end), off_t(end))
            if written > 0 {
                end += written
            } else if errno == ENOSPC {
                throw LogError(
                    .full,
                    "The disk of \(path) has no room for a log of \(bytes) bytes. Free some space.")
            } else if errno != EINTR {
                throw Self.unusable(path, errno)
            }
        }
        guard fsync(file) == 0 else { throw Self.unusable(path, errno) }
    }

    private static func make(_ path: String) throws(LogError) {
        var status = stat()
        if stat(path, &status) == 0 {
            guard status.st_mode & S_IFMT == S_IFDIR else { throw unusable(path, ENOTDIR) }
            return
        }
        let parent = parent(of: path)
        if parent != path { try make(parent) }
        if mkdir(path, folderMode) != 0 && errno != EEXIST { throw unusable(path, errno) }
        try synchronize(parent)
    }

    private static func parent(of path: String) -> String {
        guard let slash = path.lastIndex(of: "/") else { return "." }
        return slash == path.startIndex ? "/" : String(path[..<slash])
    }

    private static func synchronize(_ path: String) throws(LogError) {
        let folder = open(path, O_RDONLY | O_CLOEXEC)
        guard folder >= 0 else { throw unusable(path, errno) }
        defer { close(folder) }
        // Some file systems have nothing to do here, and say so.
        if fsync(folder) != 0 && errno != EINVAL && errno != ENOTSUP {
            throw unusable(path, errno)
        }
    }

    private static func owner(in descriptor: Int32) -> Int32? {
        var buffer = [UInt8](repeating: 0, count: 32)
        let count = pread(descriptor, &buffer, buffer.count, 0)
        guard count > 0 else { return nil }
        let line = buffer.prefix(count).prefix { $0 != UInt8(ascii: "\n") }
        return Int32(String(decoding: line, as: UTF8.self))
    }

    private static func unusable(_ path: String, _ number: Int32) -> LogError {
        LogError(
            .unusableFolder,
            "The folder \(path) cannot be used for a log: \(String(cString: strerror(number))). "
                + "Give a folder that this user may make and write.")
    }
}
