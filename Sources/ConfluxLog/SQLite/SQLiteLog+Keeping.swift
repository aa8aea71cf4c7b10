import ConfluxVocabulary

/// Snapshots, and what is given up.
extension SQLiteLog {
    /// Saves a piece of a store's snapshot, in one transaction, and gives up some of what was
    /// retired before.
    ///
    /// - Parameter piece: What to save.
    /// - Throws: `invalidSnapshot`, `full`, `failed`, `unknownOutcome`, `closed`.
    public func save(_ piece: SnapshotPiece) throws(LogError) {
        let files = try writableFiles()
        try piece.validate(endingAt: last)
        let attempt = "Saving the snapshot of \(piece.snapshot.key)"
        let isSaved = try writing(attempt) { () throws(DatabaseFailure) in
            try files.database.transaction { () throws(DatabaseFailure) in
                // Twice what is added, so that what is retired comes to an end.
                _ = try files.statements.snapshots.collect(limitBytes: 2 * piece.bytes.count)
                return try files.statements.snapshots.save(piece)
            }
        }
        guard isSaved else { throw .outOfOrder(piece) }
    }

    /// The snapshots that are whole and not above `last`, ascending by store and number.
    ///
    /// - Throws: `damaged`, `failed`, `closed`.
    public func snapshots() throws(LogError) -> [SavedSnapshot] {
        try openFiles().statements.reading.snapshots?.listed(through: last) ?? []
    }

    /// Reads bytes of a snapshot; verified.
    ///
    /// - Parameters:
    ///   - key: Which one.
    ///   - offset: How many bytes are before the first.
    ///   - limitBytes: How many bytes to read at most; one is read at least.
    /// - Returns: The bytes, none behind its end; nil if it isn't there, or not whole.
    /// - Throws: `damaged`, with its number: reading entries goes on. `failed`, `closed`.
    public func readSnapshot(
        of key: SavedSnapshot.Key, from offset: UInt64, limitBytes: Int
    ) throws(LogError) -> Bytes? {
        try openFiles().statements.reading.snapshots?
            .read(key, from: offset, limitBytes: limitBytes)
    }

    /// Gives up all snapshots of a store.
    ///
    /// - Parameter store: The store.
    /// - Throws: `full`, `failed`, `unknownOutcome`, `closed`.
    public func removeSnapshots(of store: StoreName) throws(LogError) {
        let files = try writableFiles()
        try writing("Giving up the snapshots of \(store)") { () throws(DatabaseFailure) in
            try files.statements.snapshots.remove(store)
        }
    }

    /// Gives up commits that are wholly below a number, then pieces of retired snapshots, then the
    /// space that is free: one of these at each call, in one transaction. The file of a log that
    /// was begun by a version without truncation does not shrink; a copy of it (`SQLiteLogFile`) does.
    ///
    /// - Parameters:
    ///   - floor: The lowest number that is kept.
    ///   - limitBytes: About how many bytes to give up at most.
    /// - Returns: Whether it is done.
    /// - Throws: `invalidFloor`, `notClaimed`, `superseded`, `full`, `failed`, `unknownOutcome`,
    ///   `closed`.
    public func truncate(
        below floor: SequenceNumber, limitBytes: Int
    ) throws(LogError) -> Bool {
        let files = try writableFiles()
        try confirm()
        if floor > self.floor {
            let isPermitted = try SQLiteFormat.reading("Looking for checkpoints") {
                () throws(DatabaseFailure) in
                try files.statements.checkpoints.permit(floor, endingAt: last)
            }
            guard isPermitted else { throw .invalidFloor(floor) }
            let attempt = "Giving up the entries below \(floor)"
            let raised = try writing(attempt) { () throws(DatabaseFailure) in
                try files.database.transaction { () throws(DatabaseFailure) in
                    try files.statements.truncation.truncate(below: floor, limitBytes: limitBytes)
                }
            }
            if let raised {
                rise(to: raised)
                return false
            }
        }
        return try writing("Giving back space") { () throws(DatabaseFailure) -> Bool in
            let isClean = try files.database.transaction { () throws(DatabaseFailure) in
                try files.statements.snapshots.collect(limitBytes: limitBytes)
            }
            guard isClean else { return false }
            return try files.statements.truncation.shrink(limitBytes: limitBytes)
        }
    }
}
