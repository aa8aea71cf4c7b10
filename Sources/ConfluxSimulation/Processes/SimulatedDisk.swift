import ConfluxLog
import ConfluxVocabulary

/// The disk under the log: what processes wrote, and how much of it would survive a loss of power.
final class SimulatedDisk {
    /// What lies beside the commits, and in one order with them: a loss of power that takes a commit
    /// takes all of it that was written behind that.
    struct Shelves {
        var checkpoints = CheckpointShelf()
        var snapshots = SnapshotShelf()
        /// Where the log begins, for those who read it.
        var floor = SequenceNumber(1)

        mutating func cut(to last: SequenceNumber) {
            checkpoints.cut(to: last)
            snapshots.cut(to: last)
        }
    }

    private(set) var id: LogID
    private(set) var epoch = Epoch.none
    /// All there ever were: what was truncated is not served, but happened.
    private(set) var commits: [LoggedCommit] = []
    /// The commits before this index survive a loss of power.
    private var syncedCount = 0
    let durability: SimulationPlan.Durability
    private var copy: (commits: [LoggedCommit], epoch: Epoch, shelves: Shelves)?
    private(set) var shelves = Shelves()
    /// Commits that can't be read, by their first numbers.
    private(set) var damaged: Set<SequenceNumber> = []
    /// Stores that have a damaged row in the list of snapshots.
    private(set) var unlisted: Set<StoreName> = []
    /// What the log and the list of snapshots were when that was last read.
    private(set) var reading: (floor: SequenceNumber, last: SequenceNumber, list: [SavedSnapshot]) =
        (SequenceNumber(1), .zero, [])
    /// What was last to be given up of the log since. It is done later.
    var orderedFloor = SequenceNumber(1)
    /// Stores of which a snapshot was saved since, behind which the log had everything.
    var whole: Set<StoreName> = []
    /// What a loss of power leaves of them.
    private var syncedShelves = Shelves()

    init(id: LogID, durability: SimulationPlan.Durability) {
        self.id = id
        self.durability = durability
    }

    var last: SequenceNumber { commits.last?.last ?? .zero }

    /// The number up to which nothing that was answered can be lost.
    var durableThrough: SequenceNumber {
        durability == .fsync ? (syncedCount > 0 ? commits[syncedCount - 1].last : .zero) : last
    }

    func claim(raisingEpochBy step: UInt64) -> Epoch {
        epoch = epoch.raised(by: step)
        change { $0.snapshots.cut(to: last) }
        return epoch
    }

    /// Changes what lies beside the commits.
    func change<Result>(
        _ body: (inout Shelves) throws(LogError) -> Result
    ) throws(LogError) -> Result {
        defer { if durability == .fsync { sync() } }
        return try body(&shelves)
    }

    func change(_ body: (inout Shelves) -> Void) {
        body(&shelves)
        if durability == .fsync { sync() }
    }

    func append(_ added: [LoggedCommit], forced: Bool) {
        commits += added
        if forced || durability == .fsync { sync() }
    }

    func sync() {
        syncedCount = commits.count
        syncedShelves = shelves
    }

    /// - Returns: Whether anything was lost.
    func losePower() -> Bool {
        shelves = syncedShelves
        guard syncedCount < commits.count else { return false }
        commits.removeLast(commits.count - syncedCount)
        shelves.cut(to: last)
        return true
    }

    /// Commits that no start needs: those up to the older of two checkpoints.
    var expendable: [LoggedCommit] {
        let newest = shelves.checkpoints.newest(through: last)?.sequence.rawValue ?? 0
        guard newest > 0,
            let older = shelves.checkpoints.newest(through: SequenceNumber(newest - 1))
        else { return [] }
        return commits.filter { $0.first > shelves.floor && $0.last <= older.sequence }
    }

    func damage(_ commit: LoggedCommit) { damaged.insert(commit.first) }

    /// The list of snapshots has a row that is not what was written.
    func unlist(_ snapshot: SavedSnapshot) {
        change { $0.snapshots.lose(snapshot.key) }
        unlisted.insert(snapshot.store)
        read()
    }

    private func read() {
        reading = (shelves.floor, last, shelves.snapshots.listed(through: last))
        orderedFloor = shelves.floor
        whole = []
    }

    func list() -> SnapshotList {
        read()
        return SnapshotList(
            intact: reading.list,
            damage: unlisted.isEmpty ? nil : SnapshotList.Damage(stores: unlisted))
    }

    /// A copy is checked while it is made: there is none of a log that is damaged.
    func takeCopy() {
        guard damaged.isEmpty, unlisted.isEmpty else { return }
        copy = (commits, epoch, shelves)
    }

    /// Puts the copy back, as a careless administrator does: with its id and its epoch.
    ///
    /// - Returns: Whether anything was lost.
    func restoreCopy() -> Bool {
        guard let copy, copy.commits != commits else { return false }
        commits = copy.commits
        epoch = copy.epoch
        shelves = copy.shelves
        damaged = []
        unlisted = []
        sync()
        return true
    }

    /// A log in memory ends with its process.
    func forget(as id: LogID) {
        self.id = id
        epoch = .none
        commits = []
        shelves = Shelves()
        damaged = []
        unlisted = []
        sync()
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
    private let saved: (SavedSnapshot, Bytes) -> Void
    /// Whether the newest of two checkpoints can't be read.
    var isNewestDamaged = false
    private var claimed: Epoch?
    private var isClosed = false

    /// Makes a handle.
    ///
    /// - Parameters:
    ///   - disk: Where the log is.
    ///   - nextFault: Asked at each append and claim.
    ///   - appended: Told of each commit that comes into the log.
    ///   - saved: Told of each snapshot that is whole.
    init(
        disk: SimulatedDisk, nextFault: @escaping () -> Fault,
        appended: @escaping (LoggedCommit) -> Void,
        saved: @escaping (SavedSnapshot, Bytes) -> Void
    ) {
        self.disk = disk
        self.nextFault = nextFault
        self.appended = appended
        self.saved = saved
    }

    var id: LogID { disk.id }
    var last: SequenceNumber { disk.last }
    var floor: SequenceNumber { disk.shelves.floor }
    var isNearlyFull: Bool { false }

    func claim(raisingEpochBy step: UInt64) throws(LogError) -> LogClaim {
        if case .failed = nextFault() { throw Self.failure }
        let epoch = disk.claim(raisingEpochBy: step)
        claimed = epoch
        return LogClaim(
            epoch: epoch, last: disk.last, lastEpoch: disk.commits.last?.epoch ?? .none)
    }

    func append(
        _ commits: [LoggedCommit], expecting last: SequenceNumber, forced: Bool
    ) throws(LogError) {
        guard !isClosed else { throw Self.closed }
        guard claimed != nil else { throw Self.notClaimed }
        let fault = nextFault()
        if case .failed = fault { throw Self.failure }
        if case .unknown(isDone: false) = fault { throw Self.unknown }
        if disk.commits.last != commits.last {
            guard commits.allSatisfy({ $0.epoch == disk.epoch }) else {
                throw LogError(.superseded, "epoch \(disk.epoch) has claimed the log")
            }
            guard disk.last == last else {
                throw LogError(.endDiffers, "the log ends at \(disk.last), not at \(last)")
            }
            // A copy, since a slice would keep all of what it was cut from.
            let owned = commits.map { commit in
                LoggedCommit(
                    first: commit.first, last: commit.last, epoch: commit.epoch,
                    bytes: Array(commit.bytes)[...])
            }
            disk.append(owned, forced: forced)
            for commit in owned { appended(commit) }
        }
        if case .unknown = fault { throw Self.unknown }
    }

    func confirm() throws(LogError) {
        guard !isClosed else { throw Self.closed }
        guard let claimed else { throw Self.notClaimed }
        guard claimed == disk.epoch else {
            throw LogError(.superseded, "epoch \(disk.epoch) has claimed the log")
        }
    }

    func read(from: SequenceNumber, limitBytes: Int) throws(LogError) -> [LoggedCommit] {
        let found = stored(from: from, limitBytes: limitBytes)
        if let first = found.first, disk.damaged.contains(first.first) {
            throw LogError(
                .damaged, "the simulated disk lost a commit", numbers: first.first...first.last)
        }
        return Array(found.prefix { !disk.damaged.contains($0.first) })
    }

    private func stored(from: SequenceNumber, limitBytes: Int) -> [LoggedCommit] {
        let from = max(from, floor)
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
        try confirm()
        if case .failed = nextFault() { throw Self.failure }
        try disk.change { shelves throws(LogError) in
            try shelves.checkpoints.save(piece, from: shelves.floor, endingAt: disk.last)
        }
    }

    func checkpoint(through last: SequenceNumber) throws(LogError) -> SavedCheckpoint? {
        let newest = disk.shelves.checkpoints.newest(through: last)
        if isNewestDamaged, let newest,
            disk.shelves.checkpoints.newest(
                through: SequenceNumber(newest.sequence.rawValue - 1)) != nil
        {
            throw LogError(
                .damaged, "the simulated disk lost a checkpoint",
                numbers: newest.sequence...newest.sequence)
        }
        return newest
    }

    func save(_ piece: SnapshotPiece) throws(LogError) {
        try confirm()
        if case .failed = nextFault() { throw Self.failure }
        try disk.change { shelves throws(LogError) in
            try shelves.snapshots.save(piece, endingAt: disk.last)
        }
        // It may have given way to another one with its number.
        if piece.isLast,
            disk.shelves.snapshots.listed(through: disk.last).contains(piece.snapshot),
            let bytes = disk.shelves.snapshots.read(piece.snapshot.key, from: 0, limitBytes: .max)
        {
            saved(piece.snapshot, bytes)
        }
    }

    func snapshots() throws(LogError) -> [SavedSnapshot] {
        let list = disk.list()
        if let damage = list.damage { throw LogError(.damaged, damage.message) }
        return list.intact
    }

    func snapshotList() throws(LogError) -> SnapshotList { disk.list() }

    func readSnapshot(
        of key: SavedSnapshot.Key, from offset: UInt64, limitBytes: Int
    ) throws(LogError) -> Bytes? {
        disk.shelves.snapshots.read(key, from: offset, limitBytes: limitBytes)
    }

    func removeSnapshots(of store: StoreName) throws(LogError) {
        try confirm()
        if case .failed = nextFault() { throw Self.failure }
        disk.change { $0.snapshots.remove(store) }
    }

    func truncate(below floor: SequenceNumber, limitBytes: Int) throws(LogError) -> Bool {
        try confirm()
        let fault = nextFault()
        if case .failed = fault { throw Self.failure }
        if case .unknown(isDone: false) = fault { throw Self.unknown }
        var isDone = true
        if floor > self.floor {
            guard disk.shelves.checkpoints.permits(floor) else {
                throw LogError(.invalidFloor, "no two checkpoints stand at \(floor)")
            }
            // One commit at a time, so that much can happen in between.
            if let last = lastToGiveUp(below: floor) {
                disk.change { $0.floor = last.next }
                isDone = lastToGiveUp(below: floor) == nil
            }
        }
        if case .unknown = fault { throw Self.unknown }
        return isDone
    }

    /// Where the oldest commit ends, if all of it is below a floor; the newest one stays.
    private func lastToGiveUp(below floor: SequenceNumber) -> SequenceNumber? {
        guard let oldest = stored(from: self.floor, limitBytes: 0).first, oldest.last < floor,
            oldest.last < disk.last
        else { return nil }
        return oldest.last
    }

    func makeReader() throws(LogError) -> any LogReader { SimulatedLogReader(self, on: disk) }

    func close() { isClosed = true }

    private static let closed = LogError(.closed, "the simulated log is closed")
    private static let notClaimed = LogError(.notClaimed, "the simulated log is not claimed")
    private static let failure = LogError(.failed, "the simulated disk failed")
    private static let unknown = LogError(
        .unknownOutcome, "the answer of the simulated disk was lost")
}

/// Reads what the log's handle reads.
private final class SimulatedLogReader: LogReader {
    private let log: SimulatedLog
    private let disk: SimulatedDisk

    init(_ log: SimulatedLog, on disk: SimulatedDisk) {
        self.log = log
        self.disk = disk
    }

    func read(
        from: SequenceNumber, through last: SequenceNumber, limitBytes: Int
    ) throws(LogError) -> [LoggedCommit] {
        try log.read(from: from, limitBytes: limitBytes).filter { $0.first <= last }
    }

    func checkpoint(through last: SequenceNumber) throws(LogError) -> SavedCheckpoint? {
        try log.checkpoint(through: last)
    }

    func snapshot(of key: SavedSnapshot.Key) throws(LogError) -> SavedSnapshot? {
        let listed = disk.shelves.snapshots.listed(through: disk.last)
        if let found = listed.first(where: { $0.key == key }) { return found }
        guard disk.unlisted.isEmpty else {
            throw LogError(.damaged, "the simulated disk can't tell whether there is one")
        }
        return nil
    }

    func readSnapshot(
        of key: SavedSnapshot.Key, from offset: UInt64, limitBytes: Int
    ) throws(LogError) -> Bytes? {
        try log.readSnapshot(of: key, from: offset, limitBytes: limitBytes)
    }

    func close() {}
}
