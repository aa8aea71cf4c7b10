import ConfluxVocabulary

/// The checkpoints of a log in memory.
package struct CheckpointShelf {
    /// The finished checkpoints, ascending; at most two.
    private var checkpoints: [SavedCheckpoint] = []
    /// The pieces of the checkpoint that is being saved.
    private var pieces: [CheckpointPiece] = []

    /// Makes an empty shelf.
    package init() {}

    /// The newest checkpoint at or below a number.
    package func newest(through last: SequenceNumber) -> SavedCheckpoint? {
        checkpoints.last { $0.sequence <= last }
    }

    /// Whether the log may begin at a number: two checkpoints must exist right before it or above.
    package func permits(_ floor: SequenceNumber) -> Bool {
        checkpoints.count { $0.sequence.next >= floor } >= 2
    }

    /// Forgets checkpoints above a number, and an unfinished one.
    package mutating func cut(to last: SequenceNumber) {
        checkpoints.removeAll { $0.sequence > last }
        pieces = []
    }

    /// Like `ActionLog.save(_:)`.
    ///
    /// - Throws: `invalidCheckpoint`.
    package mutating func save(
        _ piece: CheckpointPiece, from floor: SequenceNumber, endingAt last: SequenceNumber
    ) throws(LogError) {
        try piece.validate(from: floor, endingAt: last)
        if piece.index == 0 { pieces = [] }
        guard pieces.count == Int(piece.index),
            pieces.allSatisfy({ $0.sequence == piece.sequence && $0.count == piece.count })
        else { throw .outOfOrder(piece, after: pieces.count) }
        // Copy: a slice would keep the whole buffer that it was cut from.
        pieces.append(
            CheckpointPiece(
                sequence: piece.sequence, index: piece.index, count: piece.count,
                bytes: Array(piece.bytes)[...]))
        guard piece.isLast else { return }
        let bytes = Array(pieces.map(\.bytes).joined())[...]
        pieces = []
        checkpoints.removeAll { $0.sequence >= piece.sequence }
        checkpoints.append(SavedCheckpoint(sequence: piece.sequence, bytes: bytes))
        checkpoints = checkpoints.suffix(2)
    }
}
