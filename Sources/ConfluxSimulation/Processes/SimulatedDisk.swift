import ConfluxLog
import ConfluxVocabulary

/// The log's disk: what processes wrote, and how much of it would survive a power failure.
final class SimulatedDisk {
    /// The data beside the commits. It is written in one order with them: a power failure that takes a commit
    /// takes everything that was written after it.
    struct Shelves {
        var checkpoints = CheckpointShelf()
        var snapshots = SnapshotShelf()
        /// Where the log begins for its readers.
        var floor = SequenceNumber(1)

        mutating func cut(to last: SequenceNumber) {
            checkpoints.cut(to: last)
            snapshots.cut(to: last)
        }
    }

    private(set) var id: LogID
    private(set) var epoch = Epoch.none
    /// All commits that were ever written. Truncated ones are kept here but not served.
    private(set) var commits: [LoggedCommit] = []
    /// The commits before this index survive a power failure.
    private var syncedCount = 0
    let durability: SimulationPlan.Durability
    /// The bound of the log; `UInt64.max` if it has none.
    let limitBytes: UInt64
    /// The first numbers of the commits that need no room: the claims.
    private var claims: Set<SequenceNumber> = []
    private var copy: (commits: [LoggedCommit], epoch: Epoch, shelves: Shelves)?
    private(set) var shelves = Shelves()
    /// Commits that can't be read, by their first numbers.
    private(set) var damaged: Set<SequenceNumber> = []
    /// Stores with a damaged row in the list of snapshots.
    private(set) var unlisted: Set<StoreName> = []
    /// The log and the list of snapshots as they were when the list was last read.
    private(set) var reading: (floor: SequenceNumber, last: SequenceNumber, list: [SavedSnapshot]) =
        (SequenceNumber(1), .zero, [])
    /// The last floor that was requested since then. The truncation follows later.
    var orderedFloor = SequenceNumber(1)
    /// Stores of which a snapshot was saved since then, with all later entries still in the log.
    var whole: Set<StoreName> = []
    /// The data beside the commits that survives a power failure.
    private var syncedShelves = Shelves()

    init(id: LogID, durability: SimulationPlan.Durability, limitBytes: UInt64 = .max) {
        self.id = id
        self.durability = durability
        self.limitBytes = limitBytes
    }

    var last: SequenceNumber { commits.last?.last ?? .zero }

    /// The number up to which nothing that was acknowledged can be lost.
    var durableThrough: SequenceNumber {
        durability == .fsync ? (syncedCount > 0 ? commits[syncedCount - 1].last : .zero) : last
    }

    func claim(raisingEpochBy step: UInt64) -> Epoch {
        epoch = epoch.raised(by: step)
        change { $0.snapshots.cut(to: last) }
        return epoch
    }

    /// Notes the claim of a log that is kept elsewhere.
    func adopt(_ epoch: Epoch) { self.epoch = epoch }

    /// Changes the data beside the commits.
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
        if forced { claims.formUnion(added.map(\.first)) }
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

    var space: LogSpace {
        LogSpace(usedBytes: limitBytes == .max ? 0 : usedBytes, of: limitBytes)
    }

    /// The bytes that the log takes: the entries from the floor on, the checkpoints, the snapshots, and what is kept
    /// aside.
    var usedBytes: UInt64 {
        let entryBytes = kept.reduce(0) { $0 + $1.bytes.count }
        return UInt64(entryBytes + checkpointBytes + shelves.snapshots.byteCount)
    }

    /// How many of them needed no room.
    var unboundedBytes: UInt64 {
        let forced = kept.filter { claims.contains($0.first) }
        return UInt64(forced.reduce(checkpointBytes) { $0 + $1.bytes.count })
    }

    private var kept: ArraySlice<LoggedCommit> {
        let floor = shelves.floor
        return commits.suffix(commits.reversed().prefix { $0.last >= floor }.count)
    }

    private var checkpointBytes: Int {
        guard let newest = shelves.checkpoints.newest(through: last) else { return 0 }
        let older = shelves.checkpoints.newest(
            through: SequenceNumber(newest.sequence.rawValue - 1))
        return newest.bytes.count + (older?.bytes.count ?? 0)
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

    /// Damages a row of the list of snapshots.
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

    /// Copies the log. A copy is verified while it is made, so a damaged log can't be copied.
    func takeCopy() {
        guard damaged.isEmpty, unlisted.isEmpty else { return }
        copy = (commits, epoch, shelves)
    }

    /// Restores the copy, with its id and its epoch, as a careless administrator does.
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

    /// Begins a new log in memory, since the former one ended with its process.
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
