import ConfluxVocabulary

#if canImport(Darwin)
    import Darwin
#else
    import Glibc
#endif

extension SQLiteLog {
    /// Begins a copy of a log in a folder. Until ``adopt(after:)`` it does not have the name of a log.
    ///
    /// - Parameters:
    ///   - origin: The origin of the log.
    ///   - directory: A folder without a log; it is created if it is absent. The remains of an interrupted
    ///     copy are removed.
    /// - Throws: `inUse` if the folder has a log already; `unusableFolder`, `full`, `failed`.
    public convenience init(
        copyWith origin: LogOrigin, in directory: String
    ) throws(LogError) {
        // Single appends need not be durable: the whole copy is synced at the end.
        try self.init(
            in: try LogFolder(directory, forCopy: true), SQLiteLogSettings(durability: .os),
            origin: origin)
    }

    /// The origin of the log as it is now. A log of an older format has no hash before its floor; its copies
    /// are chained like a new log.
    ///
    /// - Throws: `damaged`, `failed`, `closed`.
    public func origin() throws(LogError) -> LogOrigin {
        let files = try openFiles()
        let meta = try SQLiteMeta(files.database, in: files.folder.path)
        return LogOrigin(
            log: meta.log, floor: meta.floor,
            hash: isChained ? meta.chain.end.hash : .genesis(of: meta.log))
    }

    /// The hash of the last commit; nil in a log of an older format, where some commits have no hash.
    public var head: ChainHash? { isChained ? term?.head : nil }

    /// Syncs the copy, gives it the name of a log, and closes it.
    ///
    /// - Parameter confirm: Called right before the renaming. If it throws, the copy remains unfinished.
    /// - Throws: `unusableFolder`, `full`, `failed`, `notClaimed`, `closed`; `unknownOutcome` if it has the
    ///   name but a power failure may undo that.
    public func adopt(after confirm: () throws(LogError) -> Void) throws(LogError) {
        let folder = try gatherDatabase()
        disconnect()
        try folder.makeCopyDurable()
        try confirm()
        try folder.adoptCopy()
    }

    /// Checks the copy as a log on disk. If it is whole, gives it the name of a log, and closes it; otherwise removes it.
    ///
    /// - Parameter isWhole: Checks the copy.
    /// - Throws: As ``adopt(after:)``, and whatever opening the copy throws. Then nothing is left of it.
    package func adopt(if isWhole: (SQLiteLogFile) -> Bool) throws(LogError) {
        let folder = try gatherDatabase()
        disconnect()
        let copy = try SQLiteLogFile(path: folder.databasePath, in: folder.path)
        let isAdopted = isWhole(copy)
        copy.close()
        guard isAdopted else { return try Self.remove(folder) }
        try folder.makeCopyDurable()
        try folder.adoptCopy()
    }

    /// Removes the copy.
    ///
    /// - Throws: `unusableFolder` if something of it is left. It is not a log, and the next copy removes it.
    package func abandon() throws(LogError) {
        guard let folder = files?.folder else { return }
        disconnect()
        try Self.remove(folder)
    }

    private static func remove(_ folder: LogFolder) throws(LogError) {
        try folder.removeEntries()
        for path in [
            folder.databasePath, folder.writeAheadPath, folder.journalPath,
            folder.databasePath + "-shm",
        ] {
            unlink(path)
        }
    }

    private func gatherDatabase() throws(LogError) -> LogFolder {
        let files = try writableFiles()
        guard term != nil else { throw .notClaimed }
        try writing("Ending the copy") { () throws(DatabaseFailure) in
            try files.entries.sync()
            try files.database.setSynchronous(full: true)
            try noteEnd(files, last)
            try files.database.execute("PRAGMA journal_mode = DELETE")
        }
        return files.folder
    }
}

extension LogOrigin {
    /// The origin of a new log.
    package static func new(_ log: LogID) -> LogOrigin {
        LogOrigin(log: log, floor: SequenceNumber(1), hash: .genesis(of: log))
    }
}
