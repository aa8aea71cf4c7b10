import ConfluxVocabulary

/// The one totally ordered history, and the only thing that decides who may extend it.
///
/// A sequencer claims the log, reads to its end, and then appends commits, each conditional on its
/// claim and on where the log ends. Only that condition fences: a tenure that was superseded
/// cannot append, however late it notices.
///
/// Whoever calls must expect of every call that it
///
/// - takes long: an engine may wait for a disk or for a majority of machines. Call from a thread
///   that can wait; no call is cancelled.
/// - ends with `LogError.Code.unknownOutcome`: what was asked may have happened, or may yet
///   happen. Nothing that was admitted may be published on such an answer.
/// - says `superseded`: a newer claim exists, and this tenure is over.
///
/// One thread at a time owns a log; it may be made by one and handed to another, and need not be
/// Sendable. Commits are opaque here.
public protocol ActionLog: AnyObject {
    /// The random identity of this log. It never changes while the log is open.
    var id: LogID { get }

    /// The highest number that is in the log, as far as this object knows; `zero` if none is.
    /// After a claim, and after each append that succeeded, that is the log's end.
    var last: SequenceNumber { get }

    /// The lowest number that the log still holds, or would hold if it were not empty: 1 until
    /// `truncate(below:limitBytes:)` raises it. A commit begins there.
    var floor: SequenceNumber { get }

    /// Whether all but a reserve of the log's bound is used. What makes room again should have the
    /// reserve: checkpoints, snapshots and what truncation needs.
    var isNearlyFull: Bool { get }

    /// Begins a tenure: raises the log's epoch, durably, whatever the durability of appends.
    /// Every earlier claim is superseded from then on. Snapshots above the log's end, whose history
    /// is lost, and those that were not finished are given up.
    ///
    /// - Parameter step: By how much the epoch rises, 1 or more.
    /// - Returns: The new epoch, and where the log ends.
    /// - Throws: `unknownOutcome`: an epoch may have been used up; claim again. `damaged` if the
    ///   end of the log is. `failed`, `full`, `closed`.
    func claim(raisingEpochBy step: UInt64) throws(LogError) -> LogClaim

    /// Adds commits to the end, all of them or none, if the claim of their epoch stands and the log
    /// ends where expected.
    ///
    /// Appending commits of which the last already is the log's last, with the same numbers, epoch and
    /// bytes, succeeds and changes nothing, even if a newer claim exists: so a retry after an unknown
    /// outcome tells the truth.
    ///
    /// - Parameters:
    ///   - commits: What to add, one at least. The first follows `last` directly, each of the others
    ///     the one before it, and all bear the claim's epoch.
    ///   - last: Where the caller believes that the log ends.
    ///   - forced: Whether they must be durable on return even if the log's durability is less.
    /// - Throws: `superseded`; `endDiffers`; `unknownOutcome`: retry with the very same commits;
    ///   `full` and `failed`: none is in the log; `invalidCommit`, `notClaimed`, `closed`.
    func append(
        _ commits: [LoggedCommit], expecting last: SequenceNumber, forced: Bool
    ) throws(LogError)

    /// Makes sure that no newer claim existed at some moment during this call.
    ///
    /// - Throws: `superseded`; `failed` or `unknownOutcome` if it cannot be told; `notClaimed`,
    ///   `closed`.
    func confirm() throws(LogError)

    /// Reads commits, whole and in order, without holes, from the one that contains a number.
    ///
    /// - Parameters:
    ///   - from: The number to begin with; one below `floor` begins at `floor`.
    ///   - limitBytes: How many bytes the commits have together at most. The first is given even if
    ///     it alone has more.
    /// - Returns: The commits; none if the log ends before `from`.
    /// - Throws: `damaged` if the first commit can't be read: whole ones before it are given. Its
    ///   numbers contain `from`, and end before the next commit that may be readable. `failed`,
    ///   `closed`.
    func read(from: SequenceNumber, limitBytes: Int) throws(LogError) -> [LoggedCommit]

    /// Saves a piece of a checkpoint; with its last piece it is there, and replaces all but the one
    /// before it. The pieces are saved in their order, those of one checkpoint at a time: the first
    /// piece of another one gives up what was not finished.
    ///
    /// A checkpoint is never ahead of the log: after a crash that takes the end of the log, it is
    /// gone before the entries that it stands on are.
    ///
    /// - Parameter piece: What to save; its number is `floor` − 1 or more.
    /// - Throws: `invalidCheckpoint`; `notClaimed`, `superseded`; `full`, `failed`: nothing was
    ///   changed; `unknownOutcome`, `closed`.
    func save(_ piece: CheckpointPiece) throws(LogError)

    /// The newest checkpoint at or below a number.
    ///
    /// - Parameter last: The highest number that it may have.
    /// - Returns: The checkpoint; nil if there is none, or none that was finished.
    /// - Throws: `damaged` if its bytes are not what was written, with its number if that can be
    ///   told: ask again below it. `failed`, `closed`.
    func checkpoint(through last: SequenceNumber) throws(LogError) -> SavedCheckpoint?

    /// Saves a piece of a store's snapshot, in one transaction; with its last piece it is there.
    /// Others of that store go then: those of other lives, those that are not confirmed, and
    /// confirmed ones but the newest, so that two of them are there.
    ///
    /// The pieces are saved in their order; the first one gives up what was not finished of that
    /// store. A snapshot is never ahead of the log, as a checkpoint is not.
    ///
    /// - Parameter piece: What to save.
    /// - Throws: `invalidSnapshot`; `notClaimed`, `superseded`; `full`, `failed`: nothing was changed;
    ///   `unknownOutcome`, `closed`.
    func save(_ piece: SnapshotPiece) throws(LogError)

    /// The snapshots that are whole and not above `last`, ascending by store and number.
    ///
    /// - Throws: `damaged`, `failed`, `closed`.
    func snapshots() throws(LogError) -> [SavedSnapshot]

    /// The same, where a list that is damaged is no error: what of it is intact, and whom the rest
    /// concerns.
    ///
    /// - Throws: `failed`, `closed`.
    func snapshotList() throws(LogError) -> SnapshotList

    /// Reads bytes of a snapshot, verified.
    ///
    /// - Parameters:
    ///   - key: Which one.
    ///   - offset: How many bytes are before the first.
    ///   - limitBytes: How many bytes to read at most; one is read at least.
    /// - Returns: The bytes, none behind its end; nil if it isn't there, or not whole.
    /// - Throws: `damaged`, with its number, if its bytes are not what was written: the log is none
    ///   the worse for it. `failed`, `closed`.
    func readSnapshot(
        of key: SavedSnapshot.Key, from offset: UInt64, limitBytes: Int
    ) throws(LogError) -> Bytes?

    /// Gives up all snapshots of a store, as when it was dropped.
    ///
    /// - Parameter store: The store.
    /// - Throws: `notClaimed`, `superseded`; `full`, `failed`: nothing was changed; `unknownOutcome`,
    ///   `closed`.
    func removeSnapshots(of store: StoreName) throws(LogError)

    /// Gives up commits that are wholly below a number, oldest first, a part of them at each call,
    /// so that no append waits long; then gives back the space that is free.
    ///
    /// `floor` rises with what is given up; after a crash it is what it was before a call, or behind
    /// it. The last commit stays in any case. Two checkpoints must stand at `floor` − 1 or above, so
    /// that the log can be read from one of them if the other is damaged.
    ///
    /// - Parameters:
    ///   - floor: The lowest number that is kept; the commit that contains it is kept whole.
    ///   - limitBytes: About how many bytes to give up at most. One commit is given up at least.
    /// - Returns: Whether it is done; else call again, with appends in between as they come.
    /// - Throws: `invalidFloor`; `notClaimed`, `superseded`; `full`, `failed`: nothing was changed;
    ///   `unknownOutcome`, `closed`.
    func truncate(below floor: SequenceNumber, limitBytes: Int) throws(LogError) -> Bool

    /// Makes a reader for another thread.
    ///
    /// - Throws: `failed`, `unusableFolder`, `closed`.
    func makeReader() throws(LogError) -> any LogReader

    /// Has somebody told when another program may have claimed the log, until it is closed. An engine that only
    /// one program can open never tells.
    ///
    /// - Parameter tell: Called on a thread of the engine's; it must not wait. It is a hint, which may come for
    ///   nothing, late or not at all: `confirm()` says what is so.
    func watchClaims(_ tell: @escaping @Sendable () -> Void)

    /// Releases everything; what was appended is durable then, as far as the engine can. Every
    /// later call throws `closed`; closing again does nothing.
    func close()
}

/// What a claim found.
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

/// A commit as the log keeps it: its place and its bytes.
public struct LoggedCommit: Sendable, Hashable {
    /// The largest commit that a log takes: 256 MiB.
    public static let bytesMax = 256 << 20

    /// The number of its first entry.
    public let first: SequenceNumber
    /// The number of its last entry.
    public let last: SequenceNumber
    /// The tenure that committed it.
    public let epoch: Epoch
    /// Its contents, which the log does not look at.
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
    /// - Parameter expected: Where the caller believes that the log ends.
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
    /// - Parameter expected: Where the caller believes that the log ends.
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

    /// Adds a commit to the end; else as `append(_:expecting:forced:)` of several.
    ///
    /// - Parameters:
    ///   - commit: What to add.
    ///   - last: Where the caller believes that the log ends.
    ///   - forced: Whether it must be durable on return even if the log's durability is less.
    /// - Throws: As `append(_:expecting:forced:)` of several.
    public func append(
        _ commit: LoggedCommit, expecting last: SequenceNumber, forced: Bool
    ) throws(LogError) {
        try append([commit], expecting: last, forced: forced)
    }

    /// Begins a tenure with the next epoch; else as `claim(raisingEpochBy:)`.
    ///
    /// - Returns: The new epoch, and where the log ends.
    /// - Throws: As `claim(raisingEpochBy:)`.
    public func claim() throws(LogError) -> LogClaim { try claim(raisingEpochBy: 1) }
}
