import ConfluxVocabulary
import Synchronization

/// A log in memory, for tests and for state that may be lost. Each has a new id, and it ends with the
/// process.
///
/// It keeps everything that is not truncated, up to a bound in bytes. At the bound `append` and `save` throw
/// `full`; nothing is discarded.
public final class MemoryLog: ActionLog {
    /// The history that logs made with `sharing:` have in common.
    fileprivate final class History: Sendable {
        struct State {
            var checkpoints = CheckpointShelf()
            var snapshots = SnapshotShelf()
            var commits = CommitShelf()
            var epoch = Epoch.none

            var last: SequenceNumber { commits.last }
            var keptBytes: Int { commits.keptBytes + snapshots.byteCount }
        }

        let id: LogID
        let limitBytes: Int
        let state = Mutex(State())

        init(id: LogID, limitBytes: Int) {
            self.id = id
            self.limitBytes = limitBytes
        }
    }

    private let history: History
    private var claimed: Epoch?
    private var isClosed = false

    /// Makes an empty log.
    ///
    /// - Parameters:
    ///   - id: Its id; a random one by default.
    ///   - limitBytes: The bound: it counts the commits' bytes, some overhead for each commit, and snapshots.
    public init(id: LogID = .random(), limitBytes: Int = 1 << 30) {
        history = History(id: id, limitBytes: limitBytes)
    }

    /// Opens a log a second time, like a sequencer that takes over: both objects have the same history, and
    /// each makes its own claim. Different threads may own them.
    ///
    /// - Parameter other: The log with the history.
    public init(sharing other: MemoryLog) {
        history = other.history
    }

    /// The random identity of this log.
    public var id: LogID { history.id }

    /// The highest number in the log.
    public var last: SequenceNumber { history.state.withLock { $0.last } }

    /// The lowest number that the log still holds.
    public var floor: SequenceNumber { history.state.withLock { $0.commits.floor } }

    /// How much of the bound the commits and snapshots use.
    public var space: LogSpace {
        LogSpace(
            usedBytes: UInt64(history.state.withLock { $0.keptBytes }),
            of: UInt64(history.limitBytes))
    }

    /// Begins a term.
    ///
    /// - Parameter step: By how much the epoch rises, 1 or more.
    /// - Returns: The new epoch, and where the log ends.
    /// - Throws: `closed`.
    public func claim(raisingEpochBy step: UInt64) throws(LogError) -> LogClaim {
        guard !isClosed else { throw .closed }
        let claim = history.state.withLock { state in
            state.epoch = state.epoch.raised(by: step)
            state.snapshots.cut(to: state.last)
            return LogClaim(
                epoch: state.epoch, last: state.last,
                lastEpoch: state.commits.newest?.epoch ?? .none)
        }
        claimed = claim.epoch
        return claim
    }

    /// Appends commits.
    ///
    /// - Parameters:
    ///   - commits: The commits to add.
    ///   - last: The number at which the caller expects the log to end.
    ///   - forced: Ignored: nothing is durable.
    /// - Throws: `superseded`, `endDiffers`, `full`, `invalidCommit`, `notClaimed`, `closed`.
    public func append(
        _ commits: [LoggedCommit], expecting last: SequenceNumber, forced: Bool
    ) throws(LogError) {
        guard !isClosed else { throw .closed }
        guard claimed != nil else { throw .notClaimed }
        let newest = try commits.validate(expecting: last)
        let limitBytes = history.limitBytes
        try history.change { state throws(LogError) in
            if state.commits.newest == newest { return }
            if newest.epoch != state.epoch { throw .superseded(newest.epoch, by: state.epoch) }
            if state.last != last { throw .endDiffers(expected: last, found: state.last) }
            let cost = commits.reduce(0) { $0 + CommitShelf.cost(of: $1) }
            guard cost <= limitBytes - state.keptBytes else { throw Self.full(limitBytes) }
            for commit in commits { state.commits.append(commit) }
        }
    }

    /// Confirms that there is no newer claim.
    ///
    /// - Throws: `superseded`, `notClaimed`, `closed`.
    public func confirm() throws(LogError) {
        guard !isClosed else { throw .closed }
        guard let claimed else { throw .notClaimed }
        let newest = history.state.withLock { $0.epoch }
        guard newest == claimed else { throw .superseded(claimed, by: newest) }
    }

    /// Reads commits, from the one that contains a number.
    ///
    /// - Parameters:
    ///   - from: The number to begin with.
    ///   - limitBytes: The most bytes of all commits together; the first is always returned.
    /// - Returns: The commits; none if the log ends before `from`.
    /// - Throws: `closed`.
    /// - Complexity: Logarithmic in the number of commits, plus the number of commits returned.
    public func read(
        from: SequenceNumber, limitBytes: Int
    ) throws(LogError) -> [LoggedCommit] {
        guard !isClosed else { throw .closed }
        return history.read(from: from, limitBytes: limitBytes)
    }

    /// Saves a piece of a checkpoint.
    ///
    /// - Parameter piece: The piece to save.
    /// - Throws: `invalidCheckpoint`, `notClaimed`, `superseded`, `closed`.
    public func save(_ piece: CheckpointPiece) throws(LogError) {
        try changing { state throws(LogError) in
            try state.checkpoints.save(piece, from: state.commits.floor, endingAt: state.last)
        }
    }

    /// The newest checkpoint at or below a number.
    ///
    /// - Parameter last: The highest number that it may have.
    /// - Returns: The checkpoint; nil if there is none.
    /// - Throws: `closed`.
    public func checkpoint(through last: SequenceNumber) throws(LogError) -> SavedCheckpoint? {
        guard !isClosed else { throw .closed }
        return history.checkpoint(through: last)
    }

    /// Saves a piece of a store's snapshot.
    ///
    /// - Parameter piece: The piece to save.
    /// - Throws: `invalidSnapshot`, `notClaimed`, `superseded`, `full`, `closed`.
    public func save(_ piece: SnapshotPiece) throws(LogError) {
        let limitBytes = history.limitBytes
        try changing { state throws(LogError) in
            guard piece.bytes.count <= limitBytes - state.keptBytes else {
                state.snapshots.giveUp(piece.snapshot.store)
                throw Self.full(limitBytes)
            }
            try state.snapshots.save(piece, endingAt: state.last)
        }
    }

    /// The complete snapshots, ascending by store and number.
    ///
    /// - Throws: `closed`.
    public func snapshots() throws(LogError) -> [SavedSnapshot] {
        guard !isClosed else { throw .closed }
        return history.state.withLock { $0.snapshots.listed(through: $0.last) }
    }

    /// Reads bytes of a snapshot.
    ///
    /// - Parameters:
    ///   - key: The snapshot's key.
    ///   - offset: The offset of the first byte to read.
    ///   - limitBytes: The most bytes to read; at least one is read.
    /// - Returns: The bytes, none after its end; nil if there is no such complete snapshot.
    /// - Throws: `closed`.
    public func readSnapshot(
        of key: SavedSnapshot.Key, from offset: UInt64, limitBytes: Int
    ) throws(LogError) -> Bytes? {
        guard !isClosed else { throw .closed }
        return history.readSnapshot(of: key, from: offset, limitBytes: limitBytes)
    }

    /// Removes all snapshots of a store.
    ///
    /// - Parameter store: The store.
    /// - Throws: `notClaimed`, `superseded`, `closed`.
    public func removeSnapshots(of store: StoreName) throws(LogError) {
        try changing { $0.snapshots.remove(store) }
    }

    /// Discards commits whose entries are all below a number.
    ///
    /// - Parameters:
    ///   - floor: The lowest number to keep.
    ///   - limitBytes: About the most bytes to discard.
    /// - Returns: Whether it is done.
    /// - Throws: `invalidFloor`, `notClaimed`, `superseded`, `closed`.
    public func truncate(
        below floor: SequenceNumber, limitBytes: Int
    ) throws(LogError) -> Bool {
        var isDone = true
        let isNearlyFull = isNearlyFull
        try changing { state throws(LogError) in
            if isNearlyFull { state.snapshots.removeSuperseded() }
            guard floor > state.commits.floor else { return }
            guard state.checkpoints.permits(floor) else { throw .invalidFloor(floor) }
            isDone = state.commits.truncate(below: floor, limitBytes: limitBytes)
        }
        return isDone
    }

    /// Makes a reader for another thread.
    ///
    /// - Returns: A reader of the same history.
    /// - Throws: `closed`.
    public func makeReader() throws(LogError) -> any LogReader {
        guard !isClosed else { throw .closed }
        return MemoryLogReader(history)
    }

    /// Releases this object's reference to the history.
    public func close() {
        isClosed = true
    }

    /// Changes the data beside the commits, if no newer claim exists (rule 1).
    private func changing(
        _ body: (inout History.State) throws(LogError) -> Void
    ) throws(LogError) {
        guard !isClosed else { throw .closed }
        guard let claimed else { throw .notClaimed }
        try history.change { state throws(LogError) in
            guard state.epoch == claimed else { throw .superseded(claimed, by: state.epoch) }
            try body(&state)
        }
    }

    private static func full(_ limitBytes: Int) -> LogError {
        LogError(
            .full,
            "The log in memory is full: it keeps \(limitBytes) bytes. Start again with a higher "
                + "bound, or keep the log on disk (--data).")
    }
}

extension MemoryLog.History {
    /// Changes the history under its lock.
    func change(_ body: (inout State) throws(LogError) -> Void) throws(LogError) {
        let failure = state.withLock { state -> LogError? in
            do throws(LogError) {
                try body(&state)
                return nil
            } catch {
                return error
            }
        }
        if let failure { throw failure }
    }

    func read(from: SequenceNumber, limitBytes: Int) -> [LoggedCommit] {
        state.withLock { $0.commits.read(from: from, limitBytes: limitBytes) }
    }

    func readSnapshot(
        of key: SavedSnapshot.Key, from offset: UInt64, limitBytes: Int
    ) -> Bytes? {
        state.withLock { $0.snapshots.read(key, from: offset, limitBytes: limitBytes) }
    }

    func checkpoint(through last: SequenceNumber) -> SavedCheckpoint? {
        state.withLock { $0.checkpoints.newest(through: last) }
    }
}

/// Reads a log in memory from another thread.
private final class MemoryLogReader: LogReader {
    private let history: MemoryLog.History
    private var isClosed = false

    init(_ history: MemoryLog.History) {
        self.history = history
    }

    func read(
        from: SequenceNumber, through last: SequenceNumber, limitBytes: Int
    ) throws(LogError) -> [LoggedCommit] {
        guard !isClosed else { throw .closed }
        return history.read(from: from, limitBytes: limitBytes).filter { $0.first <= last }
    }

    func checkpoint(through last: SequenceNumber) throws(LogError) -> SavedCheckpoint? {
        guard !isClosed else { throw .closed }
        return history.checkpoint(through: last)
    }

    func snapshot(of key: SavedSnapshot.Key) throws(LogError) -> SavedSnapshot? {
        guard !isClosed else { throw .closed }
        return history.state.withLock { $0.snapshots.snapshot(of: key) }
    }

    func readSnapshot(
        of key: SavedSnapshot.Key, from offset: UInt64, limitBytes: Int
    ) throws(LogError) -> Bytes? {
        guard !isClosed else { throw .closed }
        return history.readSnapshot(of: key, from: offset, limitBytes: limitBytes)
    }

    func close() {
        isClosed = true
    }
}
