import ConfluxVocabulary

/// Checkpoints, snapshots and truncation.
extension SQLiteLog {
    /// Saves a piece of a checkpoint, in one transaction.
    ///
    /// - Parameter piece: The piece to save.
    /// - Throws: `invalidCheckpoint`, `notClaimed`, `superseded`, `full`, `failed`,
    ///   `unknownOutcome`, `closed`.
    public func save(_ piece: CheckpointPiece) throws(LogError) {
        try piece.validate(from: floor, endingAt: last)
        let attempt = "Saving the checkpoint at \(piece.sequence)"
        // No room is required: without a checkpoint, the log would never have any. There are at most three at a time.
        let saved = try changing(attempt) { statements throws(DatabaseFailure) in
            if piece.index == 0 { try statements.checkpoints.begin(piece) }
            let saved = try statements.checkpoints.savedCount(piece)
            if saved == Int(piece.index) { try statements.checkpoints.add(piece) }
            return saved
        }
        guard saved == Int(piece.index) else { throw .outOfOrder(piece, after: saved) }
    }

    /// The newest checkpoint at or below a number, verified.
    ///
    /// - Parameter last: The highest number that it may have.
    /// - Returns: The checkpoint; nil if there is none.
    /// - Throws: `damaged`, with its number if that is known; `failed`, `closed`.
    public func checkpoint(through last: SequenceNumber) throws(LogError) -> SavedCheckpoint? {
        try openFiles().statements.reading.checkpoint(through: last)
    }

    /// Saves a piece of a store's snapshot, and removes some pieces of retired snapshots. For a moment, what one
    /// transaction adds takes room twice, so in a small log a piece takes several.
    ///
    /// - Parameter piece: The piece to save.
    /// - Throws: `invalidSnapshot`, `notClaimed`, `superseded`, `full`, `failed`, `unknownOutcome`,
    ///   `closed`.
    public func save(_ piece: SnapshotPiece) throws(LogError) {
        try piece.validate(endingAt: last)
        for part in piece.parts(bytesMax: max(64 << 10, limitBytes / 64)) { try save(part: part) }
    }

    private func save(part piece: SnapshotPiece) throws(LogError) {
        let attempt = "Saving the snapshot of \(piece.snapshot.key)"
        let isSaved: Bool
        do throws(LogError) {
            isSaved = try changing(attempt, adding: piece.bytes.count) {
                statements throws(DatabaseFailure) in
                // Twice as much as is added, so that the backlog of retired pieces shrinks.
                _ = try statements.snapshots.collect(limitBytes: 2 * piece.bytes.count)
                return try statements.snapshots.save(piece)
            }
        } catch {
            guard error.code == .full else { throw error }
            // The next attempt begins anew, so what is saved of this one takes room in vain.
            try changing("Discarding what is saved of it") { statements throws(DatabaseFailure) in
                try statements.snapshots.giveUp(piece.snapshot.store)
            }
            throw error
        }
        guard isSaved else { throw .outOfOrder(piece) }
    }

    /// The complete snapshots that are not above `last`, ascending by store and number.
    ///
    /// - Throws: `damaged`, `failed`, `closed`.
    public func snapshots() throws(LogError) -> [SavedSnapshot] {
        try openFiles().statements.reading.snapshots.listed(through: last)
    }

    /// The same list, but damage is not an error.
    ///
    /// - Throws: `failed`, `closed`.
    public func snapshotList() throws(LogError) -> SnapshotList {
        try openFiles().statements.reading.snapshots.list(through: last)
    }

    /// Reads and verifies bytes of a snapshot.
    ///
    /// - Parameters:
    ///   - key: The snapshot's key.
    ///   - offset: The offset of the first byte to read.
    ///   - limitBytes: The most bytes to read; at least one is read.
    /// - Returns: The bytes, none after its end; nil if there is no such complete snapshot.
    /// - Throws: `damaged`, with its number: entries can still be read. `failed`, `closed`.
    public func readSnapshot(
        of key: SavedSnapshot.Key, from offset: UInt64, limitBytes: Int
    ) throws(LogError) -> Bytes? {
        try openFiles().statements.reading.snapshots.read(
            key, from: offset, limitBytes: limitBytes)
    }

    /// Removes all snapshots of a store.
    ///
    /// - Parameter store: The store.
    /// - Throws: `notClaimed`, `superseded`, `full`, `failed`, `unknownOutcome`, `closed`.
    public func removeSnapshots(of store: StoreName) throws(LogError) {
        try changing("Discarding the snapshots of \(store)") {
            statements throws(DatabaseFailure) in
            try statements.snapshots.remove(store)
        }
    }

    /// Discards commits whose entries are all below a number, then pieces of retired snapshots, then gives
    /// back free space. Each call does one of these, in one transaction. A log that is nearly full retires the
    /// snapshots that newer ones supersede, too. The file of a log that was begun by
    /// a version without truncation does not shrink; a copy of it (`SQLiteLogFile`) does.
    ///
    /// - Parameters:
    ///   - floor: The lowest number to keep.
    ///   - limitBytes: About the most bytes to discard. Entries are discarded by whole files, one at least.
    /// - Returns: Whether it is done.
    /// - Throws: `invalidFloor`, `notClaimed`, `superseded`, `full`, `failed`, `unknownOutcome`,
    ///   `closed`.
    public func truncate(
        below floor: SequenceNumber, limitBytes: Int
    ) throws(LogError) -> Bool {
        if floor > self.floor {
            let files = try writableFiles()
            let beginning = try beginning(
                at: min(floor, files.entries.floor(discarding: limitBytes)), files)
            let isPermitted = try changing("Discarding the entries below \(floor)", forced: true) {
                statements throws(DatabaseFailure) in
                guard try statements.checkpoints.permit(floor, endingAt: last) else { return false }
                if let beginning {
                    try statements.truncation.raise(
                        to: beginning.first, behind: beginning.hash, endingAt: last)
                    try statements.files.remove(below: beginning.first)
                }
                return true
            }
            guard isPermitted else { throw .invalidFloor(floor) }
            if let beginning {
                rise(to: beginning.first)
                // The floor is on disk.
                files.entries.discard(below: beginning.first)
                return false
            }
        }
        let superseded =
            isNearlyFull ? SavedSnapshot.superseded(among: try snapshotList().intact) : []
        let isClean = try changing("Discarding retired snapshots") {
            statements throws(DatabaseFailure) in
            for snapshot in superseded { try statements.snapshots.remove(snapshot) }
            return try statements.snapshots.collect(limitBytes: limitBytes)
        }
        guard isClean else { return false }
        let files = try writableFiles()
        return try writing("Freeing space") { () throws(DatabaseFailure) in
            let isDone = try files.statements.truncation.shrink(limitBytes: limitBytes)
            try measure(files)
            return isDone
        }
    }

    /// The beginning of the commit that contains a number, and the hash before it; nil if the log begins
    /// there. If that commit is damaged, the log begins with the damage.
    private func beginning(
        at number: SequenceNumber, _ files: Files
    ) throws(LogError) -> (first: SequenceNumber, hash: ChainHash?)? {
        func commit(_ number: SequenceNumber) throws(LogError) -> (SequenceNumber, ChainHash?)? {
            do throws(LogError) {
                return try files.commits.read(from: number, through: number, limitBytes: 1).first
                    .map { ($0.commit.first, $0.hash) }
            } catch {
                guard error.code == .damaged else { throw error }
                return error.numbers.map { ($0.lowerBound, nil) }
            }
        }
        guard let first = try commit(min(number, last))?.0, first > floor else { return nil }
        return (first, try commit(SequenceNumber(first.rawValue - 1))?.1)
    }

    /// Changes the data beside the commits, in one transaction, if no newer claim exists (rule 1). All commits
    /// are on disk before.
    private func changing<Result>(
        _ attempt: String, adding bytes: Int = 0, forced: Bool = false,
        _ body: (SQLiteLogStatements) throws(DatabaseFailure) -> Result
    ) throws(LogError) -> Result {
        let files = try writableFiles()
        guard let claimed = term?.epoch else { throw .notClaimed }
        let raisesDurability = forced && settings.durability == .os
        let changed = try writing(attempt) { () throws(DatabaseFailure) -> Result? in
            // What adds nothing may be what makes room.
            if bytes > 0 {
                try measure(files)
                try requireRoom(bytes, toDatabase: true)
            }
            try files.entries.sync()
            if raisesDurability { try files.database.setSynchronous(full: true) }
            let changed = try files.database.transaction { () throws(DatabaseFailure) -> Result? in
                guard try newestEpoch(files) == claimed else { return nil }
                return try body(files.statements)
            }
            if raisesDurability { try files.database.setSynchronous(full: false) }
            try measure(files)
            if hasFreeBytes {
                _ = try files.statements.truncation.shrink(limitBytes: max(2 * bytes, 1 << 20))
                try measure(files)
            }
            return changed
        }
        guard let changed else { throw .superseded(claimed, by: try readEpoch(files)) }
        return changed
    }
}
