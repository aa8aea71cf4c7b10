import ConfluxVocabulary

/// The totally ordered history. It alone decides which program may extend it.
///
/// A sequencer claims the log, reads to its end, and then appends commits. Each append is conditional on the claim and
/// on the end of the log. This condition is the fence: a superseded tenure can't append, however late it notices.
///
/// Expect of every call that it
///
/// - takes long: an engine may wait for a disk or for a majority of machines. Call it on a thread that can wait; calls
///   can't be cancelled.
/// - throws `LogError.Code.unknownOutcome`: the change may have happened, or may happen later. Do not publish anything
///   on such an answer.
/// - throws `superseded`: a newer claim exists, and this tenure is over.
///
/// One thread at a time owns a log. A log need not be Sendable: one thread may make it and hand it to another. The log
/// does not look into commits.
public protocol ActionLog: AnyObject {
    /// The random identity of this log. It never changes while the log is open.
    var id: LogID { get }

    /// The highest number in the log, as far as this object knows; `zero` if it is empty. After a claim, and after each
    /// successful append, this is the log's end.
    var last: SequenceNumber { get }

    /// The lowest number that the log still holds, or would hold if it were not empty: 1 until
    /// `truncate(below:limitBytes:)` raises it. A commit begins there.
    var floor: SequenceNumber { get }

    /// Whether the log's bound is used up except for a reserve. Leave the reserve to checkpoints, snapshots and
    /// truncation, which make room again.
    var isNearlyFull: Bool { get }

    /// Begins a tenure: raises the log's epoch, durably, whatever the durability of appends. This supersedes every
    /// earlier claim. It also discards unfinished snapshots, and snapshots above the log's end, whose history is lost.
    ///
    /// - Parameter step: By how much the epoch rises, 1 or more.
    /// - Returns: The new epoch, and where the log ends.
    /// - Throws: `unknownOutcome`: an epoch may be used up; claim again. `damaged` if the end of the log is damaged.
    ///   `failed`, `full`, `closed`.
    func claim(raisingEpochBy step: UInt64) throws(LogError) -> LogClaim

    /// Appends commits, all of them or none, if the claim of their epoch is the newest and the log ends where expected.
    ///
    /// If the last of the commits is already the log's last commit, with the same numbers, epoch and bytes, the call
    /// succeeds and changes nothing, even if a newer claim exists. So a retry after an unknown outcome reports the
    /// truth.
    ///
    /// - Parameters:
    ///   - commits: The commits, at least one. The first follows `last` directly, each of the others follows the one
    ///     before it, and all have the claim's epoch.
    ///   - last: The end of the log that the caller expects.
    ///   - forced: Whether they must be durable on return even if the log's durability is less.
    /// - Throws: `superseded`; `endDiffers`; `unknownOutcome`: retry with the very same commits;
    ///   `full` and `failed`: none is in the log; `invalidCommit`, `notClaimed`, `closed`.
    func append(
        _ commits: [LoggedCommit], expecting last: SequenceNumber, forced: Bool
    ) throws(LogError)

    /// Makes sure that no newer claim existed at some moment during this call.
    ///
    /// - Throws: `superseded`; `failed` or `unknownOutcome` if that can't be found out; `notClaimed`, `closed`.
    func confirm() throws(LogError)

    /// Reads commits, whole and in order, without holes, from the one that contains a number.
    ///
    /// - Parameters:
    ///   - from: The first number; below `floor`, reading begins at `floor`.
    ///   - limitBytes: The most bytes of the commits together. The first commit is returned even if it has more.
    /// - Returns: The commits; none if the log ends before `from`.
    /// - Throws: `damaged` if the first commit can't be read. The error's numbers contain `from`, and end before the
    ///   next commit that may be readable. Intact commits before a damaged one are returned. `failed`, `closed`.
    func read(from: SequenceNumber, limitBytes: Int) throws(LogError) -> [LoggedCommit]

    /// Saves a piece of a checkpoint. With its last piece the checkpoint counts, and replaces all but the previous one.
    /// Save the pieces in order, one checkpoint at a time: the first piece of another checkpoint discards an unfinished
    /// one.
    ///
    /// A checkpoint is never ahead of the log: if a crash loses the end of the log, it loses the checkpoint before the
    /// entries on which that is based.
    ///
    /// - Parameter piece: The piece; its number is `floor` − 1 or more.
    /// - Throws: `invalidCheckpoint`; `notClaimed`, `superseded`; `full`, `failed`: nothing was
    ///   changed; `unknownOutcome`, `closed`.
    func save(_ piece: CheckpointPiece) throws(LogError)

    /// The newest checkpoint at or below a number.
    ///
    /// - Parameter last: The highest number that it may have.
    /// - Returns: The checkpoint; nil if no finished one exists.
    /// - Throws: `damaged` if its bytes are not those that were written, with its number if that is known: ask again
    ///   below it. `failed`, `closed`.
    func checkpoint(through last: SequenceNumber) throws(LogError) -> SavedCheckpoint?

    /// Saves a piece of a store's snapshot, in one transaction. With its last piece the snapshot counts. It then
    /// replaces the store's snapshots of other lives, unconfirmed ones, and all confirmed ones but the newest, so that
    /// two confirmed snapshots exist.
    ///
    /// Save the pieces in order; the first piece discards an unfinished snapshot of that store. Like a checkpoint, a
    /// snapshot is never ahead of the log.
    ///
    /// - Parameter piece: The piece.
    /// - Throws: `invalidSnapshot`; `notClaimed`, `superseded`; `full`, `failed`: nothing was changed;
    ///   `unknownOutcome`, `closed`.
    func save(_ piece: SnapshotPiece) throws(LogError)

    /// The finished snapshots that are not above `last`, ascending by store and number.
    ///
    /// - Throws: `damaged`, `failed`, `closed`.
    func snapshots() throws(LogError) -> [SavedSnapshot]

    /// The same, without an error for a damaged list: its intact part, and the stores that the rest concerns.
    ///
    /// - Throws: `failed`, `closed`.
    func snapshotList() throws(LogError) -> SnapshotList

    /// Reads and verifies bytes of a snapshot.
    ///
    /// - Parameters:
    ///   - key: The snapshot.
    ///   - offset: The offset of the first byte.
    ///   - limitBytes: The most bytes to read; at least one is read.
    /// - Returns: The bytes, empty behind the end; nil if the snapshot does not exist, or is unfinished.
    /// - Throws: `damaged`, with its number, if its bytes are not those that were written. The log itself is still
    ///   intact. `failed`, `closed`.
    func readSnapshot(
        of key: SavedSnapshot.Key, from offset: UInt64, limitBytes: Int
    ) throws(LogError) -> Bytes?

    /// Removes all snapshots of a store, as when it was dropped.
    ///
    /// - Parameter store: The store.
    /// - Throws: `notClaimed`, `superseded`; `full`, `failed`: nothing was changed; `unknownOutcome`,
    ///   `closed`.
    func removeSnapshots(of store: StoreName) throws(LogError)

    /// Discards commits that are wholly below a number, oldest first, some of them at each call, so that no append
    /// waits long. Then returns free space to the engine.
    ///
    /// `floor` rises with the discarded commits. After a crash it is either the former or the new one. The last commit
    /// always stays. Two checkpoints must exist at `floor` − 1 or above, so that the log can be read from one of them if
    /// the other is damaged.
    ///
    /// - Parameters:
    ///   - floor: The lowest number to keep; the commit that contains it is kept whole.
    ///   - limitBytes: About the most bytes to discard. At least one commit is discarded.
    /// - Returns: Whether it is done. If not, call again; appends may come in between.
    /// - Throws: `invalidFloor`; `notClaimed`, `superseded`; `full`, `failed`: nothing was changed;
    ///   `unknownOutcome`, `closed`.
    func truncate(below floor: SequenceNumber, limitBytes: Int) throws(LogError) -> Bool

    /// Makes a reader for another thread.
    ///
    /// - Throws: `failed`, `unusableFolder`, `closed`.
    func makeReader() throws(LogError) -> any LogReader

    /// Calls a function when another program may have claimed the log, until the log is closed. An engine that only one
    /// program can open never calls it.
    ///
    /// - Parameter tell: Called on a thread of the engine; it must not wait. It is a hint, which may come without a
    ///   reason, late, or never. `confirm()` finds the truth.
    func watchClaims(_ tell: @escaping @Sendable () -> Void)

    /// Makes appended commits durable, as far as the engine can, and releases everything. Every later call throws
    /// `closed`; closing again does nothing.
    func close()
}

/// The result of a claim.
public struct LogClaim: Sendable, Hashable {
    /// The epoch of the tenure that begins.
    public let epoch: Epoch
    /// Where the log ends; `zero` if it is empty.
    public let last: SequenceNumber
    /// The epoch of the last commit; `none` if there is no commit.
    public let lastEpoch: Epoch

    /// Makes a claim's result.
    ///
    /// - Parameters:
    ///   - epoch: The epoch of the tenure that begins.
    ///   - last: Where the log ends.
    ///   - lastEpoch: The epoch of the last commit.
    public init(epoch: Epoch, last: SequenceNumber, lastEpoch: Epoch) {
        self.epoch = epoch
        self.last = last
        self.lastEpoch = lastEpoch
    }
}

/// A commit as the log keeps it: its numbers, its epoch and its bytes.
public struct LoggedCommit: Sendable, Hashable {
    /// The largest commit that a log accepts: 256 MiB.
    public static let bytesMax = 256 << 20

    /// The number of its first entry.
    public let first: SequenceNumber
    /// The number of its last entry.
    public let last: SequenceNumber
    /// The tenure that committed it.
    public let epoch: Epoch
    /// Its content, which the log does not interpret.
    public let bytes: Bytes

    /// Makes a commit.
    ///
    /// - Parameters:
    ///   - first: The number of its first entry, 1 or more.
    ///   - last: The number of its last entry, `first` or more.
    ///   - epoch: The tenure that commits it.
    ///   - bytes: Its contents.
    public init(first: SequenceNumber, last: SequenceNumber, epoch: Epoch, bytes: Bytes) {
        self.first = first
        self.last = last
        self.epoch = epoch
        self.bytes = bytes
    }

    /// What every engine checks before it looks at the log.
    ///
    /// - Parameter expected: The end of the log that the caller expects.
    /// - Throws: `invalidCommit`.
    package func validate(expecting expected: SequenceNumber) throws(LogError) {
        // The largest number that SQLite and most other engines keep.
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
    /// What every engine checks before it looks at the log.
    ///
    /// - Parameter expected: The end of the log that the caller expects.
    /// - Returns: The last of them.
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
    /// The list of a log whose list is whole, or can't be read at all.
    public func snapshotList() throws(LogError) -> SnapshotList {
        SnapshotList(intact: try snapshots())
    }

    /// Nobody else can claim the log.
    public func watchClaims(_ tell: @escaping @Sendable () -> Void) {}

    /// Appends a commit; else as `append(_:expecting:forced:)` of several.
    ///
    /// - Parameters:
    ///   - commit: The commits.
    ///   - last: The end of the log that the caller expects.
    ///   - forced: Whether it must be durable on return even if the log's durability is less.
    /// - Throws: Like `append(_:expecting:forced:)` of several.
    public func append(
        _ commit: LoggedCommit, expecting last: SequenceNumber, forced: Bool
    ) throws(LogError) {
        try append([commit], expecting: last, forced: forced)
    }

    /// Begins a tenure with the next epoch; else as `claim(raisingEpochBy:)`.
    ///
    /// - Returns: The new epoch, and where the log ends.
    /// - Throws: Like `claim(raisingEpochBy:)`.
    public func claim() throws(LogError) -> LogClaim { try claim(raisingEpochBy: 1) }
}
