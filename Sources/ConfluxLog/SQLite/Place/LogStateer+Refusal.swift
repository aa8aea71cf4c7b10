#if canImport(Darwin)
    import Darwin
#else
    import Glibc
#endif

/// What is in a folder in the place of a log.
extension LogFolder {
    /// Refuses an empty database beside a write-ahead log or entries: it was truncated or removed. SQLite would
    /// remove the write-ahead log, too, and a new log would replace the old one. SQLite also treats a file of one
    /// byte as empty.
    ///
    /// - Throws: `damaged`; `unusableFolder`, `failed` if the system does not say what is there.
    static func refuseCutDatabase(_ database: String, in folder: String) throws(LogError) {
        let size = try size(database) ?? 0
        guard size <= 1, access(folder, F_OK) == 0 else { return }
        guard size == 0, try self.size(database + "-wal") ?? 0 == 0 else { throw cut(database) }
        try refuseEntries(database, in: folder)
    }

    /// Refuses entries beside a database that has no log: it, or its write-ahead log, was removed or emptied.
    ///
    /// - Throws: `damaged`; `unusableFolder`, `failed` if the system does not say what is there.
    static func refuseEntries(_ database: String, in folder: String) throws(LogError) {
        guard try entries(in: folder).isEmpty else { throw cut(database) }
    }

    private static func cut(_ database: String) -> LogError {
        LogError(
            .damaged,
            "There was a log in \(database), which was emptied or removed, or \(database)-wal was. Put them "
                + "back, or restore the log from a backup.")
    }

    /// Refuses a folder with an unfinished copy.
    ///
    /// - Throws: `notALog`; `unusableFolder`, `failed` if the system does not say what is there.
    static func refuseUnfinishedCopy(in folder: String) throws(LogError) {
        let copy = copyPath(in: folder)
        guard try size(databasePath(in: folder)) == nil, try size(copy) != nil else { return }
        throw LogError(
            .notALog,
            "In \(folder) there is a copy of a log that was not finished: \(copy). Make the copy again; or "
                + "empty the folder, and a new log begins here.")
    }

    /// The files of entries in a folder.
    static func entries(in folder: String) throws(LogError) -> [String] {
        let files = EntryFiles(folder: folder, salt: 0, vfs: nil)
        return try SQLiteFormat.reading("Listing \(folder)") { () throws(DatabaseFailure) in
            try files.firsts().map { files.path($0) }
        }
    }

    /// The size of a file; nil if there is none.
    ///
    /// - Throws: `unusableFolder` for a folder; that or `failed` if the system does not say.
    static func size(_ path: String) throws(LogError) -> Int? {
        guard let status = try status(of: path) else { return nil }
        guard status.st_mode & S_IFMT != S_IFDIR else { throw .examining(path, EISDIR) }
        return Int(status.st_size)
    }

    /// What the system says of a file; nil if there is none.
    ///
    /// - Parameters:
    ///   - path: The file.
    ///   - absent: The error numbers that mean that there is none. Any other one says nothing about that.
    /// - Returns: What the system says; nil if there is no file.
    /// - Throws: `unusableFolder`, `failed`.
    static func status(of path: String, absent: [Int32] = [ENOENT]) throws(LogError) -> stat? {
        var status = stat()
        if stat(path, &status) == 0 { return status }
        guard absent.contains(errno) else { throw .examining(path, errno) }
        return nil
    }
}

extension LogError {
    /// The system does not say what is at a path.
    fileprivate static func examining(_ path: String, _ number: Int32) -> LogError {
        LogError(DatabaseFailure(system: number, at: path), "Examining \(path)")
    }
}
