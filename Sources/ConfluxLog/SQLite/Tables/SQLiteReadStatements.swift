import ConfluxVocabulary

/// The statements that read, prepared once.
struct SQLiteReadStatements {
    private let floor: Statement
    private let newest: Statement
    private let pieces: Statement
    let snapshots: SQLiteSnapshotReading

    /// - Parameter database: The connection.
    /// - Throws: SQLite's failure to prepare them.
    init(_ database: Database) throws(DatabaseFailure) {
        floor = try database.prepare("SELECT \(SQLiteMeta.floor())")
        newest = try database.prepare(
            """
            SELECT sequence FROM checkpoints WHERE sequence <= ?1
            GROUP BY sequence HAVING count(*) = max(pieces) ORDER BY sequence DESC LIMIT 1
            """)
        pieces = try database.prepare(
            """
            SELECT piece, pieces, checksum, bytes FROM checkpoints
            WHERE sequence = ?1 ORDER BY piece
            """)
        snapshots = try SQLiteSnapshotReading(database)
    }

    /// The lowest number that the log holds now.
    func currentFloor() throws(LogError) -> SequenceNumber {
        try SQLiteFormat.reading("Reading the log's floor") { () throws(DatabaseFailure) in
            defer { floor.reset() }
            return try floor.step()
                ? SequenceNumber(UInt64(max(1, floor.integer(0)))) : SequenceNumber(1)
        }
    }

    func checkpoint(through last: SequenceNumber) throws(LogError) -> SavedCheckpoint? {
        try SQLiteFormat.reading("Reading the checkpoint at or below \(last)") {
            () throws(DatabaseFailure) -> Result<SavedCheckpoint, LogError>? in
            newest.bind(Int64(clamping: last.rawValue), at: 1)
            defer { newest.reset() }
            guard try newest.step() else { return nil }
            return try gather(SequenceNumber(UInt64(bitPattern: newest.integer(0))))
        }?.get()
    }

    private func gather(
        _ sequence: SequenceNumber
    ) throws(DatabaseFailure) -> Result<SavedCheckpoint, LogError> {
        pieces.bind(Int64(bitPattern: sequence.rawValue), at: 1)
        defer { pieces.reset() }
        var bytes: [UInt8] = []
        var index: UInt32 = 0
        var count: UInt32 = 1
        while index < count, try pieces.step() {
            let piece = pieces.bytes(3)
            count = UInt32(clamping: pieces.integer(1))
            let checksum = SQLiteCheckpoints.checksum(sequence, index, of: count, piece)
            guard pieces.integer(0) == Int64(index),
                checksum == UInt64(bitPattern: pieces.integer(2)),
                bytes.count + piece.count <= SavedCheckpoint.bytesMax
            else {
                return .failure(
                    .damagedCheckpoint(sequence, "its bytes are not those that were written"))
            }
            bytes.append(contentsOf: piece)
            index += 1
        }
        guard index == count else {
            return .failure(.damagedCheckpoint(sequence, "a piece is missing"))
        }
        return .success(SavedCheckpoint(sequence: sequence, bytes: bytes[...]))
    }
}
