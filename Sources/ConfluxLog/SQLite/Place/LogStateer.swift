import ConfluxSystem
import ConfluxVocabulary

#if canImport(Darwin)
    import Darwin
#else
    import Glibc
#endif

/// The folder of a log on disk, locked for one owner for as long as this object lives.
///
/// The lock is the system's (`flock`). It ends with the process, however the process ends.
final class LogFolder {
    let path: String
    /// The file `lock`.
    private let descriptor: Int32
    /// The folder.
    private let directory: Int32
    /// The files as they were when the log was opened; nil before.
    private var held: HeldFiles?

    /// The database to open: the log's, or that of a copy that does not have the log's name yet.
    let databasePath: String
    var writeAheadPath: String { databasePath + "-wal" }
    var journalPath: String { databasePath + "-journal" }

    static func databasePath(in folder: String) -> String { folder + "/log.sqlite" }
    static func copyPath(in folder: String) -> String {
        databasePath(in: folder) + ".partial"
    }

    /// Only the owner may read or write the files that a log creates, whatever the umask is. Existing files
    /// keep their permissions: somebody may have chosen them.
    private static let folderMode: mode_t = 0o700
    private static let fileMode: mode_t = 0o600

    /// Creates the folder if it is absent, and locks it.
    ///
    /// - Parameters:
    ///   - path: The folder.
    ///   - isForCopy: Whether to make a copy here, instead of opening a log. The remains of an interrupted
    ///     copy are removed.
    /// - Throws: `unusableFolder`, `inUse`; for a copy also `inUse` if there is a log already, or a part of
    ///   one.
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
        guard descriptor >= 0 else { throw Self.unusable(self.path, errno, at: lockPath) }
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
        let directory = open(self.path, O_RDONLY | O_CLOEXEC)
        guard directory >= 0 else {
            let number = errno
            close(descriptor)
            throw Self.unusable(self.path, number)
        }
        self.descriptor = descriptor
        self.directory = directory
        // The pid is for people, and for the message above. The lock does not depend on it.
        let words = Array("\(getpid())\n".utf8)
        if ftruncate(descriptor, 0) == 0 { pwrite(descriptor, words, words.count, 0) }
        if isForCopy { try makeRoomForCopy(at: logPath) }
    }

    private func makeRoomForCopy(at logPath: String) throws(LogError) {
        // SQLite replays files beside a database when it opens the database. The files of another log must
        // not be replayed into this one.
        for found in [logPath, logPath + "-wal", logPath + "-journal"]
        where try Self.size(found) != nil {
            throw Self.taken(path, by: found)
        }
        // Entries beside the remains of a copy belong to them.
        if try Self.size(databasePath) == nil, let found = try entries().first {
            throw Self.taken(path, by: found)
        }
        try removeEntries()
        for left in [databasePath, writeAheadPath, journalPath, databasePath + "-shm"]
        where unlink(left) != 0 && errno != ENOENT {
            let reason = SystemFailure(errno, at: left).reason(advice: "Remove it.")
            throw LogError(
                .unusableFolder,
                "\(left), which an interrupted copy left, can't be removed: \(reason) Then copy again."
            )
        }
    }

    private static func taken(_ path: String, by found: String) -> LogError {
        LogError(
            .inUse,
            "There is a log in \(path) already, or a part of one: \(found). Give a folder without one."
        )
    }

    private func entries() throws(LogError) -> [String] { try Self.entries(in: path) }

    /// Removes all files of entries, which belong to no log.
    ///
    /// - Throws: `unusableFolder`.
    func removeEntries() throws(LogError) {
        for left in try entries() where unlink(left) != 0 && errno != ENOENT {
            throw Self.unusable(path, errno, at: left)
        }
    }

    deinit {
        // Unlock explicitly. A forked child that has not executed its program yet shares the descriptor, and
        // would keep the lock.
        _ = flock(descriptor, LOCK_UN)
        close(descriptor)
        close(directory)
    }

    /// Remembers the folder, the lock and the database as they are now.
    ///
    /// - Throws: `unusableFolder`; `moved` if they are no longer what this object opened.
    func hold() throws(LogError) {
        held = try HeldFiles(
            folder: directory, lock: descriptor, path: path, database: databasePath)
    }

    /// Remembers the database as it is after a change by this object.
    func databaseChanged() { held?.databaseChanged() }

    /// Checks that everything is still where this object opened it.
    ///
    /// - Parameters:
    ///   - newest: The file to which entries are appended, and how many bytes it has; nil if there is none.
    ///   - isThorough: Whether to look at the folder and the write-ahead log, too: before a file is created
    ///     or the database changed.
    /// - Throws: `moved`; `unusableFolder` or `failed` if the system does not say.
    func check(
        _ newest: (path: String, byteCount: Int)?, isThorough: Bool
    ) throws(LogError) {
        guard let moved = try held?.firstMoved(newest, isThorough: isThorough) else { return }
        throw .moved(moved)
    }

    /// Whether a process has locked a folder. Changes nothing in it.
    ///
    /// - Throws: `unusableFolder`.
    static func isLocked(_ path: String) throws(LogError) -> Bool {
        let lockPath = path + "/lock"
        let descriptor = open(lockPath, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else {
            if errno == ENOENT { return false }
            throw unusable(path, errno, at: lockPath)
        }
        defer { close(descriptor) }
        while flock(descriptor, LOCK_SH | LOCK_NB) != 0 {
            if errno == EWOULDBLOCK { return true }
            if errno != EINTR { throw unusable(path, errno) }
        }
        _ = flock(descriptor, LOCK_UN)
        return false
    }

    /// Creates an empty file of entries in this folder if there is none, whose name is then durable. Where the
    /// folder's path leads meanwhile does not matter.
    func createFile(_ file: String) throws(DatabaseFailure) {
        let name = String(file.dropFirst(path.count + 1))
        let created = openat(directory, name, O_RDWR | O_CREAT | O_CLOEXEC, Self.fileMode)
        guard created >= 0 else { throw DatabaseFailure(system: errno, at: file) }
        close(created)
        guard fsync(directory) == 0 || errno == EINVAL || errno == ENOTSUP else {
            throw DatabaseFailure(system: errno, at: path)
        }
    }

    /// Creates an empty file if there is none. SQLite treats it as an empty database, and gives its
    /// permissions to the files beside it.
    ///
    /// - Throws: `unusableFolder`.
    func makeFile(_ file: String) throws(LogError) {
        let descriptor = open(file, O_RDWR | O_CREAT | O_CLOEXEC, Self.fileMode)
        guard descriptor >= 0 else { throw Self.unusable(path, errno, at: file) }
        close(descriptor)
    }

    /// Syncs the copy's database, as one file.
    func makeCopyDurable() throws(LogError) {
        let descriptor = open(databasePath, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else { throw Self.unusable(path, errno, at: databasePath) }
        defer { close(descriptor) }
        guard fsync(descriptor) == 0 else { throw Self.unusable(path, errno, at: databasePath) }
        // Their content is in the database.
        for left in [writeAheadPath, databasePath + "-shm"]
        where unlink(left) != 0 && errno != ENOENT {
            throw Self.unusable(path, errno, at: left)
        }
    }

    /// Gives the copy, which is durable, the name of a log.
    ///
    /// - Throws: `unusableFolder`; `unknownOutcome` if it has the name but a power failure may undo that.
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

    /// Syncs the folder, so that the names of new files are durable.
    func synchronize() throws(LogError) {
        try Self.synchronize(path)
    }

    /// Allocates blocks for the write-ahead log, since a write that extends a file takes twice as long to
    /// sync. The file's contents stay; SQLite ignores zeros after them.
    ///
    /// - Parameter bytes: The minimum size of the file.
    /// - Throws: `full` if the disk has no room; `unusableFolder`.
    func extendWriteAheadFile(to bytes: Int) throws(LogError) {
        let file = open(writeAheadPath, O_WRONLY | O_CLOEXEC)
        guard file >= 0 else { throw Self.unusable(path, errno, at: writeAheadPath) }
        defer { close(file) }
        var end = Int(lseek(file, 0, SEEK_END))
        guard end >= 0 else { throw Self.unusable(path, errno, at: writeAheadPath) }
        guard end < bytes else { return }
        let zeros = [UInt8](repeating: 0, count: 1 << 20)
        while end < bytes {
            let written = pwrite(file, zeros, min(zeros.count, bytes - end), off_t(end))
            if written > 0 {
                end += written
            } else if errno != EINTR {
                throw Self.unusable(path, errno, at: writeAheadPath)
            }
        }
        guard fsync(file) == 0 else { throw Self.unusable(path, errno, at: writeAheadPath) }
    }

    private static func make(_ path: String) throws(LogError) {
        var status = stat()
        if stat(path, &status) == 0 {
            guard status.st_mode & S_IFMT == S_IFDIR else { throw unusable(path, ENOTDIR) }
            return
        }
        guard errno == ENOENT else { throw unusable(path, errno) }
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
        // Some file systems can't sync a folder, and report one of these errors.
        if fsync(folder) != 0 && errno != EINVAL && errno != ENOTSUP {
            throw unusable(path, errno)
        }
    }

    private static func owner(in descriptor: Int32) -> Int32? {
        var buffer = [UInt8](repeating: 0, count: 32)
        let count = pread(descriptor, &buffer, buffer.count, 0)
        guard count > 0 else { return nil }
        let line = buffer.prefix(count).prefix { $0 != UInt8(ascii: "\n") }
        return (try? String(utf8: line)).flatMap { Int32($0) }
    }

    /// - Parameters:
    ///   - path: The folder.
    ///   - number: The system's error number.
    ///   - file: The file that caused it; nil for the folder itself.
    /// - Returns: The error.
    private static func unusable(
        _ path: String, _ number: Int32, at file: String? = nil
    ) -> LogError {
        let failure = SystemFailure(number, at: file ?? path)
        let reason = failure.reason(advice: "Give a folder that this user may make and write.")
        return LogError(
            failure.trouble?.logCode ?? .unusableFolder,
            "The folder \(path) cannot be used for a log: \(file.map { "\($0): " } ?? "")\(reason)")
    }
}
