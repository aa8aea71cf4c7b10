import ConfluxVocabulary

/// Where a log on disk ends, by its database and its files of entries together.
extension SQLiteLog {
    /// Where the log ends now: the last commit, nil if there is none, and the hash to which the next one is
    /// chained.
    struct End {
        var commit: LoggedCommit?
        let last: SequenceNumber
        let head: ChainHash
        /// nil if there are no entries.
        let place: EntryEnd?
        /// Files that the database does not list.
        let strays: [SequenceNumber]
    }

    func readEnd(_ files: Files) throws(LogError) -> End {
        let meta = try SQLiteMeta(files.database, in: files.folder.path)
        let strays = try files.entries.files.strays(unlike: files.statements.files.list)
        let place = try files.commits.end(meta, in: files.folder.path)
        let last = place?.last ?? SequenceNumber(meta.floor.rawValue - 1)
        guard last >= meta.floor else {
            return End(last: last, head: meta.chain.end.hash, place: place, strays: strays)
        }
        let found = try files.commits.read(from: last, through: last, limitBytes: 1).last
        guard let found, found.commit.last == last,
            let head = found.commit.first < meta.chain.first ? meta.chain.end.hash : found.hash
        else { throw .damaged(last, last, "the last commit has lost its hash") }
        guard found.commit.epoch <= meta.epoch else {
            throw .databaseBehind(found.commit.epoch, meta.epoch, in: files.folder.path)
        }
        return End(
            commit: found.commit, last: last, head: head, place: place, strays: strays)
    }

    func readEpoch(_ files: Files) throws(LogError) -> Epoch {
        let epoch = try SQLiteFormat.reporting("Reading the log's epoch") {
            () throws(DatabaseFailure) in try newestEpoch(files)
        }
        guard let epoch else { throw .epochLost }
        return epoch
    }

    /// The epoch of the newest claim; nil if the file has none.
    func newestEpoch(_ files: Files) throws(DatabaseFailure) -> Epoch? {
        defer { files.statements.epoch.reset() }
        guard try files.statements.epoch.step() else { return nil }
        return UInt64(exactly: files.statements.epoch.integer(0)).map { Epoch($0) }
    }
}
