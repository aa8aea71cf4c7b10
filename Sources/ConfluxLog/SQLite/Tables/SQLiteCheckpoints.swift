import CSQLite
import ConfluxVocabulary

/// Checkpoints in the database: one row for each piece, in a table of their own.
enum SQLiteCheckpoints {
    /// Created if it is absent, so that a log from before there were checkpoints gets it, too. A program that
    /// does not know the table leaves it alone, and its appends invalidate no checkpoint.
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
    private let standing: Statement

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
        // Checkpoints above the newest entry belong to a history that the log has lost.
        retire = try database.prepare(
            """
            DELETE FROM checkpoints WHERE sequence > ?1 OR sequence < (
                SELECT min(sequence) FROM (
                    SELECT DISTINCT sequence FROM checkpoints WHERE sequence <= ?1
                    ORDER BY sequence DESC LIMIT 2))
            """)
        standing = try database.prepare(
            """
            SELECT count(*) FROM (
                SELECT 1 FROM checkpoints WHERE sequence BETWEEN ?1 AND ?2
                GROUP BY sequence HAVING count(*) = max(pieces))
            """)
    }

    /// How many pieces of the checkpoint are saved.
    func savedCount(_ piece: CheckpointPiece) throws(DatabaseFailure) -> Int {
        count.bind(Int64(piece.sequence.rawValue), at: 1)
        count.bind(Int64(piece.count), at: 2)
        defer { count.reset() }
        return try count.step() ? Int(count.integer(0)) : 0
    }

    /// Whether the log may begin at a number: two checkpoints must exist right before it or above.
    func permit(
        _ floor: SequenceNumber, endingAt last: SequenceNumber
    ) throws(DatabaseFailure) -> Bool {
        standing.bind(Int64(clamping: floor.rawValue - 1), at: 1)
        standing.bind(Int64(clamping: last.rawValue), at: 2)
        defer { standing.reset() }
        return try standing.step() && standing.integer(0) >= 2
    }

    /// Removes an unfinished checkpoint, and one with the same number.
    func begin(_ piece: CheckpointPiece) throws(DatabaseFailure) {
        discard.bind(Int64(piece.sequence.rawValue), at: 1)
        try discard.run()
    }

    /// Adds the piece, in a transaction of its own. After the last piece, all checkpoints but this one and
    /// the one before it are removed.
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
