import ConfluxLog
import ConfluxVocabulary

/// The disk under the log: what processes wrote, and how much of it would survive a loss of power.
final class SimulatedDisk {
    private(set) var id: LogID
    private(set) var epoch = Epoch.none
    private(set) var commits: [LoggedCommit] = []
    /// The commits before this index survive a loss of power.
    private var syncedCount = 0
    let durability: SimulationPlan.Durability
    private var copy: (commits: [LoggedCommit], epoch: Epoch, checkpoints: CheckpointShelf)?
    /// They lie where the commits lie, and are lost with the end that they stand on.
    var checkpoints = CheckpointShelf()

    init(id: LogID, durability: SimulationPlan.Durability) {
        self.id = id
        self.durability = durability
    }

    var last: SequenceNumber { commits.last?.last ?? .zero }

    /// The number up to which nothing that was answered can be lost.
    var durableThrough: SequenceNumber {
        durability == .fsync ? (syncedCount > 0 ? commits[syncedCount - 1].last : .zero) : last
    }

    func claim() -> Epoch {
        epoch = epoch.next
        return epoch
    }

    func append(_ commit: LoggedCommit, forced: Bool) {
        commits.append(commit)
        if forced || durability == .fsync { syncedCount = commits.count }
    }

    func sync() { syncedCount = commits.count }

    /// - Returns: Whether anything was lost.
    func losePower() -> Bool {
        guard syncedCount < commits.count else { return false }
        commits.removeLast(commits.count - syncedCount)
        checkpoints.cut(to: last)
        return true
    }

    func takeCopy() { copy = (commits, epoch, checkpoints) }

    /// Puts the copy back, as a careless administrator does: with its id and its epoch.
    ///
    /// - Returns: Whether anything was lost.
    func restoreCopy() -> Bool {
        guard let copy, copy.commits != commits else { return false }
        commits = copy.commits
        syncedCount = commits.count
        epoch = copy.epoch
        checkpoints = copy.checkpoints
        return true
    }

    /// A log in memory ends with its process.
    func forget(as id: LogID) {
        self.id = id
        epoch = .none
        commits = []
        checkpoints = CheckpointShelf()
        syncedCount = 0
        copy = nil
    }
}

/// One process's handle of the log on a ``SimulatedDisk``.
final class SimulatedLog: ActionLog {
    /// What goes wrong with a call.
    enum Fault {
        case none
        /// The answer is lost; what was asked was done, or not.
        case unknown(isDone: Bool)
        case failed
    }

    private let disk: SimulatedDisk
    private let nextFault: () -> Fault
    private let appended: (LoggedCommit) -> Void
    private var claimed: Epoch?
    private var isClosed = false

    /// Makes a handle.
    ///
    /// - Parameters:
    ///   - disk: Where the log is.
    ///   - nextFault: Asked at each append and claim.
    ///   - appended: Told of each commit that comes into the log.
    init(
        disk: SimulatedDisk, nextFault: @escaping () -> Fault,
        appended: @escaping (LoggedCommit) -> Void
    ) {
        self.disk = disk
        self.nextFault = nextFault
        self.appended = appended
    }

    var id: LogID { disk.id }
    var last: SequenceNumber { disk.last }
    var floor: SequenceNumber { SequenceNumber(1) }

    func claim() throws(LogError) -> LogClaim {
        if case .failed = nextFault() { throw Self.failure }
        let epoch = disk.claim()
        claimed = epoch
        return LogClaim(
            epoch: epoch, last: disk.last, lastEpoch: disk.commits.last?.epoch ?? .none)
    }

    func append(
        _ commit: LoggedCommit, expecting last: SequenceNumber, forced: Bool
    ) throws(LogError) {
        guard !isClosed, claimed != nil else {
            throw LogError(.closed, "the simulated log is not claimed")
        }
        let fault = nextFault()
        if case .failed = fault { throw Self.failure }
        if case .unknown(isDone: false) = fault { throw Self.unknown }
        if disk.commits.last != commit {
            guard commit.epoch == disk.epoch else {
                throw LogError(.superseded, "epoch \(disk.epoch) has claimed the log")
            }
            guard disk.last == last else {
                throw LogError(.endDiffers, "the log ends at \(disk.last), not at \(last)")
            }
            // A copy, since a slice would keep all of what it was cut from.
            let owned = LoggedCommit(
                first: commit.first, last: commit.last, epoch: commit.epoch,
                bytes: Array(commit.bytes)[...])
            disk.append(owned, forced: forced)
            appended(owned)
        }
        if case .unknown = fault { throw Self.unknown }
    }

    func confirm() throws(LogError) {
        guard claimed == disk.epoch else {
            throw LogError(.superseded, "epoch \(disk.epoch) has claimed the log")
        }
    }

    func read(from: SequenceNumber, limitBytes: Int) throws(LogError) -> [LoggedCommit] {
        var low = 0
        var high = disk.commits.count
        while low < high {
            let middle = (low + high) / 2
            if disk.commits[middle].last < from { low = middle + 1 } else { high = middle }
        }
        var found: [LoggedCommit] = []
        var bytes = 0
        for commit in disk.commits[low...] {
            bytes += commit.bytes.count
            if !found.isEmpty, bytes > limitBytes { break }
            found.append(commit)
        }
        return found
    }

    func save(_ piece: CheckpointPiece) throws(LogError) {
        guard !isClosed else { throw LogError(.closed, "the simulated log is closed") }
        if case .failed = nextFault() { throw Self.failure }
        try disk.checkpoints.save(piece, endingAt: disk.last)
    }

    func checkpoint(through last: SequenceNumber) throws(LogError) -> SavedCheckpoint? {
        disk.checkpoints.newest(through: last)
    }

    func makeReader() throws(LogError) -> any LogReader { SimulatedLogReader(self) }

    func close() { isClosed = true }

    private static let failure = LogError(.failed, "the simulated disk failed")
    private static let unknown = LogError(
        .unknownOutcome, "the answer of the simulated disk was lost")
}

/// Reads what the log's handle reads.
private final class SimulatedLogReader: LogReader {
    private let log: SimulatedLog

    init(_ log: SimulatedLog) {
        self.log = log
    }

    func read(
        from: SequenceNumber, through last: SequenceNumber, limitBytes: Int
    ) throws(LogError) -> [LoggedCommit] {
        try log.read(from: from, limitBytes: limitBytes).filter { $0.first <= last }
    }

    func checkpoint(through last: SequenceNumber) throws(LogError) -> SavedCheckpoint? {
        try log.checkpoint(through: last)
    }

    func close() {}
}
