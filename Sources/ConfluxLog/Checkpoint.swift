import ConfluxVocabulary

/// A checkpoint as the log keeps it: everything that a sequencer's decisions depended on at one number. It
/// spares reading; the log is complete without it.
public struct SavedCheckpoint: Sendable, Hashable {
    /// The largest checkpoint that a log accepts: 768 MiB. SQLite's own bound for a value is about
    /// 954 MiB.
    public static let bytesMax = 768 << 20

    /// The number of the last entry that it covers.
    public let sequence: SequenceNumber
    /// Its contents, which the log does not interpret.
    public let bytes: Bytes

    /// Makes a checkpoint.
    ///
    /// - Parameters:
    ///   - sequence: The number of the last entry that it covers, 1 or more.
    ///   - bytes: Its contents, at most ``bytesMax``.
    public init(sequence: SequenceNumber, bytes: Bytes) {
        self.sequence = sequence
        self.bytes = bytes
    }

    /// Splits the checkpoint into the pieces in which it is saved, so that an append waits for at most one of
    /// them.
    ///
    /// - Parameter bytesMax: The most bytes of a piece.
    /// - Returns: At least one piece, in order.
    public func pieces(of bytesMax: Int = 1 << 20) -> [CheckpointPiece] {
        precondition(bytesMax > 0, "a piece has at least one byte")
        let count = max(1, (bytes.count + bytesMax - 1) / bytesMax)
        return (0..<count).map { index in
            CheckpointPiece(
                sequence: sequence, index: UInt32(index), count: UInt32(count),
                bytes: bytes.dropFirst(index * bytesMax).prefix(bytesMax))
        }
    }
}

/// A piece of a checkpoint, the unit in which it is saved.
public struct CheckpointPiece: Sendable, Hashable {
    /// The checkpoint's number.
    public let sequence: SequenceNumber
    /// The index of this piece, from 0.
    public let index: UInt32
    /// How many pieces the checkpoint has.
    public let count: UInt32
    /// The bytes.
    public let bytes: Bytes

    /// Whether the checkpoint is complete with this piece.
    public var isLast: Bool { index + 1 == count }

    /// The check that every engine makes before it saves the piece.
    ///
    /// - Parameters:
    ///   - floor: Where the log begins. The log could not be read from a checkpoint further below.
    ///   - last: Where the log ends.
    /// - Throws: `invalidCheckpoint`.
    package func validate(
        from floor: SequenceNumber, endingAt last: SequenceNumber
    ) throws(LogError) {
        guard sequence > .zero, sequence <= last, sequence.next >= floor, index < count,
            bytes.count * Int(count) <= SavedCheckpoint.bytesMax + Int(count)
        else {
            throw LogError(
                .invalidCheckpoint,
                "A checkpoint at \(sequence), piece \(index + 1) of \(count) with \(bytes.count) "
                    + "bytes, can't be saved in a log of entries \(floor) to \(last) "
                    + "that takes \(SavedCheckpoint.bytesMax) bytes. Save one within these bounds.")
        }
    }
}

/// Reads a log beside its owner, from another thread, and changes nothing.
///
/// One thread at a time owns a reader. It must be closed, preferably before its log.
public protocol LogReader: AnyObject {
    /// Reads commits like `ActionLog.read(from:limitBytes:)`, up to a number.
    ///
    /// - Parameters:
    ///   - from: The number to begin with; a number below the log's current floor means the floor.
    ///   - last: A number that is known to be in the log. The commit that contains it may be the last one
    ///     that is returned.
    ///   - limitBytes: The most bytes of all commits together, except that the first is always returned.
    /// - Returns: The commits; none if `from` is above `last`.
    /// - Throws: `damaged` if the first commit can't be read; the numbers contain `from`, and end before the
    ///   next commit that may be readable. `failed`, `closed`.
    func read(
        from: SequenceNumber, through last: SequenceNumber, limitBytes: Int
    ) throws(LogError) -> [LoggedCommit]

    /// Like `ActionLog.checkpoint(through:)`.
    func checkpoint(through last: SequenceNumber) throws(LogError) -> SavedCheckpoint?

    /// The log's description of a snapshot, as in `ActionLog.snapshots()`.
    ///
    /// - Parameter key: The snapshot's key.
    /// - Returns: The description; nil if there is no such complete snapshot.
    /// - Throws: `damaged`, `failed`, `closed`.
    func snapshot(of key: SavedSnapshot.Key) throws(LogError) -> SavedSnapshot?

    /// Like `ActionLog.readSnapshot(of:from:limitBytes:)`.
    func readSnapshot(
        of key: SavedSnapshot.Key, from offset: UInt64, limitBytes: Int
    ) throws(LogError) -> Bytes?

    /// Releases everything; every later call throws `closed`.
    func close()
}
