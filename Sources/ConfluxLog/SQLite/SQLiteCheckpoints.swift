import CSQLite
import ConfluxVocabulary

/// How checkpoints lie in the database: one row a piece, in a table of their own.
enum SQLiteCheckpoints {
    /// Made where it is absent, so that a log of before there were checkpoints gets it, too. A
    /// program that does not know the table leaves it alone, and its appends make no checkpoint
    /// wrong.
    static let table = """
        CREATE TABLE IF NOT EXISTS checkpoints (
            sequence INTEGER NOT NULL,
            piece INTEGER NOT NULL,
            pieces INTEGER NOT NULL,
            checksum INTEGER NOT NULL,
            bytes BLOB NOT NULL,
            PRIMARY KEY (sequence, piece)
        ) STRICT;
        """

    static func checksum(_ piece: CheckpointPiece) -> UInt64 {
        piece.bytes.withUnsafeBytes { bytes in
            checksum(piece.sequence, piece.index, of: piece.count, bytes)
        }
    }

    static func checksum(
        _ sequence: SequenceNumber, _ index: UInt32, of count: UInt32,
        _ bytes: UnsafeRawBufferPointer
    ) -> UInt64 {
        Checksum.of(
            first: sequence.rawValue, last: UInt64(index), epoch: UInt64(count), bytes: bytes)
    }
}

/// The statements that save checkpoints, prepared once.
struct SQLiteCheckpointStatements {
    private let discard: Statement
    private let count: Statement
    private let insert: Statement
    private let retire: Statement

    init(_ database: Database) throws(DatabaseFailure) {
        discard = try database.prepare(
            """
            DELETE FROM checkpoints WHERE sequence = ?1 OR sequence IN (
                SELECT sequence FROM checkpoints
                GROUP BY sequence HAVING count(*) < max(pieces))
            """)
        count = try database.prepare(
            "SELECT count(*) FROM checkpoints WHERE sequence = ?1 AND pieces = ?2")
        insert = try database.prepare(
            """
            INSERT INTO checkpoints (sequence, piece, pieces, checksum, bytes)
            VALUES (?1, ?2, ?3, ?4, ?5)
            """)
        // What is above the newest is of a history that the log has lost.
        retire = try database.prepare(
            """
            DELETE FROM checkpoints WHERE sequence > ?1 OR sequence < (
                SELECT min(sequence) FROM (
                    SELECT DISTINCT sequence FROM checkpoints WHERE sequence <= ?1
                    ORDER BY sequence DESC LIMIT 2))
            """)
    }

    /// How many pieces of the checkpoint are there.
    func savedCount(_ piece: CheckpointPiece) throws(DatabaseFailure) -> Int {
        count.bind(Int64(piece.sequence.rawValue), at: 1)
        count.bind(Int64(piece.count), at: 2)
        defer { count.reset() }
        return try count.step() ? Int(count.integer(0)) : 0
    }

    /// Forgets what was not finished, and a checkpoint of the same number.
    func begin(_ piece: CheckpointPiece) throws(DatabaseFailure) {
        discard.bind(Int64(piece.sequence.rawValue), at: 1)
        try discard.run()
    }

    /// Adds the piece, in a transaction of its own. Behind the last one, all checkpoints but this
    /// and the one before it are given up.
    func add(_ piece: CheckpointPiece) throws(DatabaseFailure) {
        insert.bind(Int64(piece.sequence.rawValue), at: 1)
        insert.bind(Int64(piece.index), at: 2)
        insert.bind(Int64(piece.count), at: 3)
        insert.bind(Int64(bitPattern: SQLiteCheckpoints.checksum(piece)), at: 4)
        try piece.bytes.withUnsafeBufferPointer { buffer throws(DatabaseFailure) in
            insert.bind(UnsafeRawBufferPointer(buffer), at: 5)
            try insert.run()
        }
        guard piece.isLast else { return }
        retire.bind(Int64(piece.sequence.rawValue), at: 1)
        try retire.run()
    }
}

/// The statements that read commits and checkpoints, prepared once.
struct SQLiteReadStatements {
    let start: Statement
    let read: Statement
    private let newest: Statement
    private let pieces: Statement

    init(_ database: Database) throws(DatabaseFailure) {
        start = try database.prepare(
            "SELECT coalesce(max(first), 0) FROM commits WHERE first <= ?1")
        read = try database.prepare(
            "SELECT \(SQLiteLogRow.columns) FROM commits WHERE first >= ?1 ORDER BY first")
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
