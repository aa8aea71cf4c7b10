import ConfluxVocabulary
import Synchronization

/// A log in memory, for tests and for state that may be lost: each has a new id, and it ends with
/// the process.
///
/// It keeps everything up to a bound in bytes. At the bound `append` throws `full`, and nothing
/// that is in it is given up.
public final class MemoryLog: ActionLog {
    /// What the logs made by `sharing:` have in common.
    fileprivate final class History: Sendable {
        struct State {
            var checkpoints = CheckpointShelf()
            var commits: [LoggedCommit] = []
            var epoch = Epoch.none
            var keptBytes = 0

            var last: SequenceNumber { commits.last?.last ?? .zero }
        }

        let id: LogID
        let limitBytes: Int
        let state = Mutex(State())

        init(id: LogID, limitBytes: Int) {
            self.id = id
            self.limitBytes = limitBytes
        }
    }

    /// What a commit costs besides its bytes, in the reckoning of the bound.
    private static let commitBytes = MemoryLayout<LoggedCommit>.stride + 32

    private let history: History
    private var claimed: Epoch?
    private var isClosed = false

    /// Makes an empty log.
    ///
    /// - Parameters:
    ///   - id: Its identity; a random one by default.
    ///   - limitBytes: How much it keeps, commits' bytes and some for each commit.
    public init(id: LogID = .random(), limitBytes: Int = 1 << 30) {
        history = History(id: id, limitBytes: limitBytes)
    }

    /// Opens a log a second time, as a sequencer that takes over would: the history is the same,
    /// the claim is each object's own. The two may be owned by different threads.
    ///
    /// - Parameter other: The log that has the history.
    public init(sharing other: MemoryLog) {
        history = other.history
    }

    /// The random identity of this log.
    public var id: LogID { history.id }

    /// The highest number in the log.
    public var last: SequenceNumber { history.state.withLock { $0.last } }

    /// 1: nothing is ever given up.
    public var floor: SequenceNumber { SequenceNumber(1) }

    /// Begins a tenure.
    ///
    /// - Returns: The new epoch, and where the log ends.
    /// - Throws: `closed`.
    public func claim() throws(LogError) -> LogClaim {
        guard !isClosed else { throw .closed }
        let claim = history.state.withLock { state in
            state.epoch = state.epoch.next
            return LogClaim(
                epoch: state.epoch, last: state.last, lastEpoch: state.commits.last?.epoch ?? .none)
        }
        claimed = claim.epoch
        return claim
    }

    /// Adds a commit to the end.
    ///
    /// - Parameters:
    ///   - commit: What to add.
    ///   - last: Where the caller believes that the log ends.
    ///   - forced: Without meaning here: nothing is durable.
    /// - Throws: `superseded`, `endDiffers`, `full`, `invalidCommit`, `notClaimed`, `closed`.
    public func append(
        _ commit: LoggedCommit, expecting last: SequenceNumber, forced: Bool
    ) throws(LogError) {
        guard !isClosed else { throw .closed }
        guard claimed != nil else { throw .notClaimed }
        try commit.validate(expecting: last)
        let limitBytes = history.limitBytes
        let failure = history.state.withLock { state -> LogError? in
            if state.commits.last == commit { return nil }
            if commit.epoch != state.epoch { return .superseded(commit.epoch, by: state.epoch) }
            if state.last != last { return .endDiffers(expected: last, found: state.last) }
            let cost = commit.bytes.count + Self.commitBytes
            guard cost <= limitBytes - state.keptBytes else {
                return LogError(
                    .full,
                    "The log in memory is full: it keeps \(limitBytes) bytes. Start again with a "
                        + "higher bound, or keep the log on disk (--data).")
            }
            state.keptBytes += cost
            // A copy, since a slice would keep all of what it was cut from.
            let owned = LoggedCommit(
                first: commit.first, last: commit.last, epoch: commit.epoch,
                bytes: Array(commit.bytes)[...])
            state.commits.append(owned)
            return nil
        }
        if let failure { throw failure }
    }

    /// Makes sure that there is no newer claim.
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
    ///   - limitBytes: How many bytes they have together at most; the first is given in any case.
    /// - Returns: The commits; none if the log ends before `from`.
    /// - Throws: `closed`.
    /// - Complexity: Logarithmic in the number of commits, plus what is returned.
    public func read(
        from: SequenceNumber, limitBytes: Int
    ) throws(LogError) -> [LoggedCommit] {
        guard !isClosed else { throw .closed }
        return history.read(from: from, limitBytes: limitBytes)
    }

    /// Saves a piece of a checkpoint.
    ///
    /// - Parameter piece: What to save.
    /// - Throws: `invalidCheckpoint`, `closed`.
    public func save(_ piece: CheckpointPiece) throws(LogError) {
        guard !isClosed else { throw .closed }
        let failure = history.state.withLock { state -> LogError? in
            do throws(LogError) {
                try state.checkpoints.save(piece, endingAt: state.last)
                return nil
            } catch {
                return error
            }
        }
        if let failure { throw failure }
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

    /// Makes a reader for another thread.
    ///
    /// - Returns: A reader of the same history.
    /// - Throws: `closed`.
    public func makeReader() throws(LogError) -> any LogReader {
        guard !isClosed else { throw .closed }
        return MemoryLogReader(history)
    }

    /// Gives up this object's hold on the history.
    public func close() {
        isClosed = true
    }
}

extension MemoryLog.History {
    func read(from: SequenceNumber, limitBytes: Int) -> [LoggedCommit] {
        state.withLock { state in
            var low = 0
            var high = state.commits.count
            while low < high {
                let middle = (low + high) / 2
                if state.commits[middle].last < from { low = middle + 1 } else { high = middle }
            }
            var end = low
            var total = 0
            while end < state.commits.count {
                total += state.commits[end].bytes.count
                if end > low && total > limitBytes { break }
                end += 1
            }
            return Array(state.commits[low..<end])
        }
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

    func close() {
        isClosed = true
    }
}
