import ConfluxVocabulary

extension SQLiteLog {
    /// Begins a copy of a log in a folder. Until ``adopt(after:)`` it does not have the name of a log.
    ///
    /// - Parameters:
    ///   - origin: What the log begins with.
    ///   - directory: A folder without a log; it is made if it is absent. What an interrupted copy left there is
    ///     removed.
    /// - Throws: `inUse` where a log is there already; `unusableFolder`, `full`, `failed`.
    public convenience init(
        copyWith origin: LogOrigin, in directory: String
    ) throws(LogError) {
        // It is made durable as a whole.
        try self.init(
            in: try LogFolder(directory, forCopy: true), SQLiteLogSettings(durability: .os),
            origin: origin)
    }

    /// Where the log begins now. A log of a former format has no hashes where it begins; its copies are chained as a
    /// new log is.
    ///
    /// - Throws: `damaged`, `failed`, `closed`.
    public func origin() throws(LogError) -> LogOrigin {
        let files = try openFiles()
        let meta = try SQLiteMeta(
            files.database, version: SQLiteFormat.version, in: files.folder.path)
        return LogOrigin(
            log: meta.log, floor: meta.floor,
            hash: isChained ? meta.chain.end.hash : .genesis(of: meta.log))
    }

    /// The hash of the last commit; nil in a log of a former format, where not all commits have hashes.
    public var head: ChainHash? { isChained ? tenure?.head : nil }

    /// Gives the copy the name of a log, once it is on the disk; then closes it.
    ///
    /// - Parameter confirm: Called right before that. What it throws leaves the copy unfinished.
    /// - Throws: `unusableFolder`, `full`, `failed`, `notClaimed`, `closed`; `unknownOutcome` where it has the name, and
    ///   may lose it with the power.
    public func adopt(after confirm: () throws(LogError) -> Void) throws(LogError) {
        let folder = try gatherInOneFile()
        disconnect()
        try folder.makeCopyDurable()
        try confirm()
        try folder.adoptCopy()
    }

    private func gatherInOneFile() throws(LogError) -> LogFolder {
        let files = try writableFiles()
        guard let tenure else { throw .notClaimed }
        try writing("Ending the copy") { () throws(DatabaseFailure) in
            try files.database.setSynchronous(full: true)
            files.statements.reach.bind(Int64(tenure.epoch.rawValue), at: 1)
            try files.statements.reach.run()
            try files.database.execute("PRAGMA journal_mode = DELETE")
        }
        return files.folder
    }
}

extension LogOrigin {
    /// What a new log begins with.
    package static func new(_ log: LogID) -> LogOrigin {
        LogOrigin(log: log, floor: SequenceNumber(1), hash: .genesis(of: log))
    }
}
