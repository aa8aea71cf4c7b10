import ConfluxVocabulary

/// Why a call of a log failed.
public struct LogError: Error, Sendable, Equatable, CustomStringConvertible {
    /// The kind of failure. Programs use it to decide what to do.
    public enum Code: String, Sendable, Hashable {
        /// A newer claim exists. This term is over: publish nothing more, stop or claim again.
        case superseded
        /// The commit may or may not be in the log. Append the very same commit again until the
        /// outcome is known, or open the log anew and read its end.
        case unknownOutcome
        /// Nothing was changed. The reason may be temporary.
        case failed
        /// Nothing was changed: the disk is full, or the log has reached its bound.
        case full
        /// The log does not end where the caller expects. Nothing was changed.
        case endDiffers
        /// No log accepts this commit: its numbers are inconsistent, or it is too large.
        case invalidCommit
        /// No log accepts this checkpoint: it is above the log's end or too large, or its pieces are out of
        /// order.
        case invalidCheckpoint
        /// No log accepts this snapshot: it is above the log's end or too large, or its pieces are out of
        /// order.
        case invalidSnapshot
        /// The log can't begin there: there would not be two checkpoints at its beginning or after it.
        case invalidFloor
        /// This object has not claimed the log yet.
        case notClaimed
        /// Bytes are not those that were written, or commits are missing.
        case damaged
        /// Another process, or another log in this one, has the folder open.
        case inUse
        /// The folder can't be created or used.
        case unusableFolder
        /// The folder, or a file in it, was moved, removed or replaced while this object had it open. Nothing
        /// more is written. Open the log anew to use what is there now.
        case moved
        /// The engine that keeps the log can't be reached, or something else answers in its place.
        case unreachable
        /// The engine that keeps the log refuses: a certificate, a password or a right is missing or wrong.
        case denied
        /// The file is not a Conflux log.
        case notALog
        /// The log was written by a newer version of this program.
        case newerFormat
        /// The log was written by a version of this program from before the first release.
        case olderFormat
        /// A setting is out of bounds.
        case invalidSetting
        /// The log is closed.
        case closed

        /// A description of the failure for clients on other machines. Unlike ``LogError/message`` it
        /// contains no path.
        package var summary: String {
            switch self {
            case .full: "the disk is full, or the log has reached its bound"
            case .unknownOutcome: "it is not known what was written to its disk"
            case .unusableFolder: "its folder can't be used"
            case .inUse: "another program uses it"
            case .moved: "its files were moved or replaced while it was open"
            case .unreachable: "the engine that keeps it can't be reached"
            case .denied: "the engine that keeps it refuses"
            case .damaged, .notALog: "its file is damaged, or is not a log"
            case .newerFormat: "a newer version of the program wrote it"
            case .olderFormat: "an older version of the program wrote it"
            case .superseded, .failed, .endDiffers, .invalidCommit, .invalidCheckpoint,
                .invalidSnapshot, .invalidFloor, .notClaimed, .invalidSetting, .closed:
                "it can't be read or written"
            }
        }
    }

    /// The kind of failure.
    public let code: Code
    /// What happened, and what to do.
    public let message: String
    /// The sequence numbers that the failure concerns, if any.
    public let numbers: ClosedRange<SequenceNumber>?

    /// Makes an error.
    ///
    /// - Parameters:
    ///   - code: The kind of failure.
    ///   - message: What happened, and what to do.
    ///   - numbers: The sequence numbers that the failure concerns, if any.
    public init(_ code: Code, _ message: String, numbers: ClosedRange<SequenceNumber>? = nil) {
        self.code = code
        self.message = message
        self.numbers = numbers
    }

    /// The message.
    public var description: String { message }

    package static let closed = LogError(.closed, "The log is closed. Open it again to go on.")

    package static let notClaimed = LogError(
        .notClaimed,
        "Nothing was claimed through this log. Call claim(raisingEpochBy:) before changing it.")

    package static func superseded(_ epoch: Epoch, by newest: Epoch) -> LogError {
        LogError(
            .superseded,
            "Epoch \(epoch) is over: epoch \(newest) has claimed the log. Another sequencer serves "
                + "it now; stop this one, or claim again.")
    }

    package static func endDiffers(expected: SequenceNumber, found: SequenceNumber) -> LogError {
        LogError(
            .endDiffers,
            "The log ends at \(found), not at \(expected) as expected. Read its end and begin there."
        )
    }

    package static func outOfOrder(_ piece: CheckpointPiece, after saved: Int) -> LogError {
        LogError(
            .invalidCheckpoint,
            "Piece \(piece.index + 1) of \(piece.count) of the checkpoint at \(piece.sequence) does "
                + "not follow the \(saved) that were saved. Save it from its first piece on.")
    }

    package static func outOfOrder(_ piece: SnapshotPiece) -> LogError {
        LogError(
            .invalidSnapshot,
            "The bytes from \(piece.offset) on of the snapshot of \(piece.snapshot.key) don't follow "
                + "those that were saved. Save it from its first piece on.")
    }

    package static func invalidFloor(_ floor: SequenceNumber) -> LogError {
        LogError(
            .invalidFloor,
            "The log can't begin at \(floor): it keeps no two checkpoints that stand there or behind "
                + "it. Save them first.")
    }

    package static func damagedSnapshot(_ key: SavedSnapshot.Key, _ what: String) -> LogError {
        LogError(
            .damaged, "The snapshot of \(key): \(what). The entries of the log are not affected.",
            numbers: key.sequence...key.sequence)
    }

    package static func damagedCheckpoint(_ sequence: SequenceNumber, _ what: String) -> LogError {
        LogError(
            .damaged,
            "The checkpoint at \(sequence): \(what). An older one, or the log itself, says the same.",
            numbers: sequence...sequence)
    }

    package static func damaged(
        _ first: SequenceNumber, _ last: SequenceNumber, _ what: String
    ) -> LogError {
        let range = first...max(first, last)
        let words = first < last ? "Entries \(first) to \(last)" : "Entry \(first)"
        return LogError(
            .damaged,
            "\(words) of the log: \(what). Restore the log from a backup.", numbers: range)
    }
}
