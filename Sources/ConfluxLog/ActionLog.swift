import ConfluxVocabulary

/// The one totally ordered history. The log alone decides who may extend it.
///
/// A sequencer claims the log, reads to its end, and then appends commits. Each append is conditional on the
/// claim and on where the log ends. Only that condition fences: a superseded term cannot append, however
/// late it notices.
///
/// The caller must expect that any call
///
/// - takes long: an engine may wait for a disk or for a majority of machines. Call from a thread that may
///   block; no call can be cancelled.
/// - throws `LogError.Code.unknownOutcome`: the change may have happened, or may yet happen. Nothing that was
///   admitted may be published after such an answer.
/// - throws `superseded`: a newer claim exists, and this term is over.
///
/// One thread at a time owns a log. One thread may make it and hand it to another, so it need not be
/// Sendable. The log does not interpret commits.
public protocol ActionLog: AnyObject {
    /// The random identity of this log. It never changes while the log is open.
    var id: LogID { get }

    /// The highest number in the log, as far as this object knows; `zero` if the log is empty. After a claim,
    /// and after each append that succeeded, it is the log's end.
    var last: SequenceNumber { get }

    /// The lowest number that the log still holds, or would hold if it were not empty: 1 until
    /// `truncate(below:limitBytes:)` raises it. A commit begins at this number.
    var floor: SequenceNumber { get }

    /// How much of its bound the log uses, and what is left. The last eighth is a reserve for what makes room
    /// again: checkpoints, snapshots and what truncation needs.
    var space: LogSpace { get }

    /// How many bytes are free on the disk of the log; nil if it has none here, or the system does not say. By default
    /// it is nil.
    var freeBytes: UInt64? { get }

    /// Begins a term: raises the log's epoch, durably, whatever the durability of appends. From then on
    /// every earlier claim is superseded. The claim discards unfinished snapshots, and snapshots above the
    /// log's end, whose history is lost.
    ///
    /// - Parameter step: By how much the epoch rises, 1 or more.
    /// - Returns: The new epoch, and where the log ends.
    /// - Throws: `unknownOutcome`: an epoch may be used up; claim again. `damaged` if the end of the log is.
    ///   `failed`, `full`, `closed`.
    func claim(raisingEpochBy step: UInt64) throws(LogError) -> LogClaim

    /// Adds commits to the end, all or none, if the claim of their epoch is the newest and the log ends where
    /// expected.
    ///
    /// If the last of these commits is the log's last already, with the same numbers, epoch and bytes, the
    /// call succeeds and changes nothing, even if a newer claim exists. So after an unknown outcome, a retry
    /// tells the truth.
    ///
    /// - Parameters:
    ///   - commits: The commits to add, at least one. The first directly follows `last`, and each other one
    ///     the commit before it. All carry the claim's epoch.
    ///   - last: The number at which the caller expects the log to end.
    ///   - forced: Whether they must be durable on return even if the log's durability is lower.
    /// - Throws: `superseded`; `endDiffers`; `unknownOutcome`: retry with identical commits; `full` and
    ///   `failed`: none is in the log; `invalidCommit`, `notClaimed`, `closed`.
    func append(
        _ commits: [LoggedCommit], expecting last: SequenceNumber, forced: Bool
    ) throws(LogError)

    /// Confirms that at some moment during this call no newer claim existed.
    ///
    /// - Throws: `superseded`; `failed` or `unknownOutcome` if that is unknown; `notClaimed`, `closed`.
    func confirm() throws(LogError)

    /// Reads intact commits, in order and without gaps, from the one that contains a number.
    ///
    /// - Parameters:
    ///   - from: The number to begin with; a number below `floor` means `floor`.
    ///   - limitBytes: The most bytes of all commits together. The first commit is returned even if it is
    ///     larger.
    /// - Returns: The commits; none if the log ends before `from`.
    /// - Throws: `damaged` if the first commit can't be read; if a later one can't, the commits before it are
    ///   returned. The error's numbers contain `from`, and end before the next commit that may be readable.
    ///   `failed`, `closed`.
    func read(from: SequenceNumber, limitBytes: Int) throws(LogError) -> [LoggedCommit]

    /// Saves a piece of a checkpoint. With its last piece the checkpoint exists, and all older checkpoints
    /// but one are discarded. The pieces of a checkpoint are saved in order, and only one checkpoint at a
    /// time: the first piece of another one discards an unfinished one.
    ///
    /// A checkpoint is never ahead of the log: if a crash takes the end of the log, the checkpoint is gone
    /// before the entries that it depends on.
    ///
    /// - Parameter piece: The piece to save; the checkpoint's number is `floor` − 1 or more.
    /// - Throws: `invalidCheckpoint`; `notClaimed`, `superseded`; `full`, `failed`: nothing was
    ///   changed; `unknownOutcome`, `closed`.
    func save(_ piece: CheckpointPiece) throws(LogError)

    /// The newest checkpoint at or below a number.
    ///
    /// - Parameter last: The highest number that it may have.
    /// - Returns: The checkpoint; nil if there is no finished one.
    /// - Throws: `damaged` if its bytes are not what was written, with its number if that is known: ask again
    ///   below that number. `failed`, `closed`.
    func checkpoint(through last: SequenceNumber) throws(LogError) -> SavedCheckpoint?

    /// Saves a piece of a store's snapshot, in one transaction. With its last piece the snapshot exists. It
    /// then retires other snapshots of the store: those of other lives, those that are not confirmed, and all
    /// older confirmed ones but one, so that two confirmed ones remain.
    ///
    /// The pieces are saved in order; the first one discards an unfinished snapshot of the store. Like a
    /// checkpoint, a snapshot is never ahead of the log.
    ///
    /// - Parameter piece: The piece to save.
    /// - Throws: `invalidSnapshot`; `notClaimed`, `superseded`; `full`, `failed`: nothing was changed;
    ///   `unknownOutcome`, `closed`.
    func save(_ piece: SnapshotPiece) throws(LogError)

    /// The complete snapshots that are not above `last`, ascending by store and number.
    ///
    /// - Throws: `damaged`, `failed`, `closed`.
    func snapshots() throws(LogError) -> [SavedSnapshot]

    /// The same list, but damage is not an error: the list says what is intact, and which stores the rest may
    /// concern.
    ///
    /// - Throws: `failed`, `closed`.
    func snapshotList() throws(LogError) -> SnapshotList

    /// Reads and verifies bytes of a snapshot.
    ///
    /// - Parameters:
    ///   - key: The snapshot's key.
    ///   - offset: The offset of the first byte to read.
    ///   - limitBytes: The most bytes to read; at least one is read.
    /// - Returns: The bytes, none after its end; nil if there is no such complete snapshot.
    /// - Throws: `damaged`, with its number, if its bytes are not what was written. The rest of the log is
    ///   not affected. `failed`, `closed`.
    func readSnapshot(
        of key: SavedSnapshot.Key, from offset: UInt64, limitBytes: Int
    ) throws(LogError) -> Bytes?

    /// Removes all snapshots of a store, for example because the store was dropped.
    ///
    /// - Parameter store: The store.
    /// - Throws: `notClaimed`, `superseded`; `full`, `failed`: nothing was changed; `unknownOutcome`,
    ///   `closed`.
    func removeSnapshots(of store: StoreName) throws(LogError)

    /// Discards commits whose entries are all below a number, the oldest first. Each call discards a limited
    /// part, so that no append waits long. Afterwards it gives free space back.
    ///
    /// `floor` rises with each part. After a crash it is what it was before a call, or higher. The last
    /// commit always stays. Two checkpoints must exist at `floor` − 1 or above, so that the log can be read
    /// from one of them if the other is damaged.
    ///
    /// - Parameters:
    ///   - floor: The lowest number to keep. The commit that contains it stays complete.
    ///   - limitBytes: About the most bytes to discard. At least one commit is discarded.
    /// - Returns: Whether it is done. If not, call again; appends may come in between.
    /// - Throws: `invalidFloor`; `notClaimed`, `superseded`; `full`, `failed`: nothing was changed;
    ///   `unknownOutcome`, `closed`.
    func truncate(below floor: SequenceNumber, limitBytes: Int) throws(LogError) -> Bool

    /// Makes a reader for another thread.
    ///
    /// - Throws: `failed`, `unusableFolder`, `closed`.
    func makeReader() throws(LogError) -> any LogReader

    /// Registers a function to call when another program may have claimed the log, until the log is closed.
    /// An engine that only one program can open never calls it.
    ///
    /// - Parameter tell: Called on one of the engine's threads; it must not block. The call is only a hint:
    ///   it may be wrong, late or missing. `confirm()` tells the truth.
    func watchClaims(_ tell: @escaping @Sendable () -> Void)

    /// Releases everything. What was appended is then durable, as far as the engine can ensure it. Every
    /// later call throws `closed`; closing again does nothing.
    func close()
}

/// The result of a claim.
public struct LogClaim: Sendable, Hashable {
    /// The epoch of the term that begins.
    public let epoch: Epoch
    /// Where the log ends; `zero` if it is empty.
    public let last: SequenceNumber
    /// The epoch of the last commit; `none` if there is no commit.
    public let lastEpoch: Epoch

    /// Makes a claim's result.
    ///
    /// - Parameters:
    ///   - epoch: The epoch of the term that begins.
    ///   - last: Where the log ends.
    ///   - lastEpoch: The epoch of the last commit.
    public init(epoch: Epoch, last: SequenceNumber, lastEpoch: Epoch) {
        self.epoch = epoch
        self.last = last
        self.lastEpoch = lastEpoch
    }
}

/// A commit as the log keeps it.
public struct LoggedCommit: Sendable, Hashable {
    /// The largest commit that a log accepts: 256 MiB.
    public static let bytesMax = 256 << 20

    /// The number of its first entry.
    public let first: SequenceNumber
    /// The number of its last entry.
    public let last: SequenceNumber
    /// The term that committed it.
    public let epoch: Epoch
    /// Its contents, which the log does not interpret.
    public let bytes: Bytes

    /// Makes a commit.
    ///
    /// - Parameters:
    ///   - first: The number of its first entry, 1 or more.
    ///   - last: The number of its last entry, `first` or more.
    ///   - epoch: The term that commits it.
    ///   - bytes: Its contents.
    public init(first: SequenceNumber, last: SequenceNumber, epoch: Epoch, bytes: Bytes) {
        self.first = first
        self.last = last
        self.epoch = epoch
        self.bytes = bytes
    }

    /// The commit with a buffer of its own: a slice would keep the whole buffer that it was cut from.
    package var copy: LoggedCommit {
        LoggedCommit(first: first, last: last, epoch: epoch, bytes: Array(bytes)[...])
    }

    /// The check that every engine makes before it looks at the log.
    ///
    /// - Parameter expected: The number at which the caller expects the log to end.
    /// - Throws: `invalidCommit`.
    package func validate(expecting expected: SequenceNumber) throws(LogError) {
        // The largest number that SQLite and most other engines can store.
        let numberMax = UInt64(Int64.max)
        guard expected.rawValue < numberMax, first == expected.next, first <= last,
            last.rawValue < numberMax, epoch != .none, epoch.rawValue < numberMax
        else {
            throw LogError(
                .invalidCommit,
                "A commit of entries \(first) to \(last) in epoch \(epoch) cannot follow \(expected). Read the log's end, and append behind it."
            )
        }
        guard bytes.count <= Self.bytesMax else {
            throw LogError(
                .invalidCommit,
                "The commit of entries \(first) to \(last) has \(bytes.count) bytes; the log takes "
                    + "\(Self.bytesMax). Commit fewer entries at a time.", numbers: first...last)
        }
    }
}

extension [LoggedCommit] {
    /// The check that every engine makes before it looks at the log.
    ///
    /// - Parameter expected: The number at which the caller expects the log to end.
    /// - Returns: The last of the commits.
    /// - Throws: `invalidCommit`.
    package func validate(expecting expected: SequenceNumber) throws(LogError) -> LoggedCommit {
        var end = expected
        for commit in self {
            try commit.validate(expecting: end)
            end = commit.last
        }
        guard let last, allSatisfy({ $0.epoch == last.epoch }) else {
            throw LogError(
                .invalidCommit,
                "An append has one commit at least, and all are of one epoch. Append each epoch's by itself."
            )
        }
        return last
    }
}

extension ActionLog {
    /// Whether only the reserve of the bound is left.
    public var isNearlyFull: Bool { space.room == .nearlyFull }

    /// No disk here.
    public var freeBytes: UInt64? { nil }

    /// The list of a log whose list is either intact or not readable at all.
    public func snapshotList() throws(LogError) -> SnapshotList {
        SnapshotList(intact: try snapshots())
    }

    /// Does nothing: no other program can claim the log.
    public func watchClaims(_ tell: @escaping @Sendable () -> Void) {}

    /// Adds one commit to the end, like `append(_:expecting:forced:)` of several.
    ///
    /// - Parameters:
    ///   - commit: The commit to add.
    ///   - last: The number at which the caller expects the log to end.
    ///   - forced: Whether it must be durable on return even if the log's durability is lower.
    /// - Throws: Like `append(_:expecting:forced:)` of several.
    public func append(
        _ commit: LoggedCommit, expecting last: SequenceNumber, forced: Bool
    ) throws(LogError) {
        try append([commit], expecting: last, forced: forced)
    }

    /// Begins a term with the next epoch, like `claim(raisingEpochBy:)`.
    ///
    /// - Returns: The new epoch, and where the log ends.
    /// - Throws: Like `claim(raisingEpochBy:)`.
    public func claim() throws(LogError) -> LogClaim { try claim(raisingEpochBy: 1) }
}
