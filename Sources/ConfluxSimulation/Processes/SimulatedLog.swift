import ConfluxLog
import ConfluxVocabulary

/// One process's handle on the log of a ``SimulatedDisk``.
final class SimulatedLog: ActionLog {
    /// The calls of the log in which a fault may strike.
    enum Work {
        case write, truncate
    }

    /// The fault that strikes a call.
    enum Fault {
        case none
        /// The answer is lost. The work was done, or not.
        case unknown(isDone: Bool)
        case failed
    }

    private let disk: SimulatedDisk
    private let nextFault: (Work) -> Fault
    private let appended: (LoggedCommit) -> Void
    private let saved: (SavedSnapshot, Bytes) -> Void
    private let refused: () -> Void
    /// Whether the newer of two checkpoints can't be read.
    var isNewestDamaged = false
    private var claimed: Epoch?
    private var isClosed = false

    /// Makes a handle.
    ///
    /// - Parameters:
    ///   - disk: The log's disk.
    ///   - nextFault: Called for each change, and returns its fault.
    ///   - appended: Called with each appended commit.
    ///   - saved: Called with each complete snapshot.
    ///   - refused: Called when the log's bound has no room for something.
    init(
        disk: SimulatedDisk, nextFault: @escaping (Work) -> Fault,
        appended: @escaping (LoggedCommit) -> Void,
        saved: @escaping (SavedSnapshot, Bytes) -> Void, refused: @escaping () -> Void = {}
    ) {
        self.disk = disk
        self.nextFault = nextFault
        self.appended = appended
        self.saved = saved
        self.refused = refused
    }

    var id: LogID { disk.id }
    var last: SequenceNumber { disk.last }
    var floor: SequenceNumber { disk.shelves.floor }
    var space: LogSpace { disk.space }

    func claim(raisingEpochBy step: UInt64) throws(LogError) -> LogClaim {
        if case .failed = nextFault(.write) { throw Self.failure }
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
        let fault = nextFault(.write)
        if case .failed = fault { throw Self.failure }
        if case .unknown(isDone: false) = fault { throw Self.unknown }
        if disk.commits.last != commits.last {
            guard commits.allSatisfy({ $0.epoch == disk.epoch }) else {
                throw LogError(.superseded, "epoch \(disk.epoch) has claimed the log")
            }
            guard disk.last == last else {
                throw LogError(.endDiffers, "the log ends at \(disk.last), not at \(last)")
            }
            // A claim needs room, so that its term can make some.
            if !forced { try requireRoom(commits.reduce(0) { $0 + $1.bytes.count }) }
            let owned = commits.map(\.copy)
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
        let first = disk.commits.partitioningIndex { $0.last >= from }
        var found: [LoggedCommit] = []
        var bytes = 0
        for commit in disk.commits[first...] {
            bytes += commit.bytes.count
            if !found.isEmpty, bytes > limitBytes { break }
            found.append(commit)
        }
        return found
    }

    func save(_ piece: CheckpointPiece) throws(LogError) {
        try confirm()
        if case .failed = nextFault(.write) { throw Self.failure }
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
        if case .failed = nextFault(.write) { throw Self.failure }
        do throws(LogError) {
            try requireRoom(piece.bytes.count)
        } catch {
            disk.change { $0.snapshots.giveUp(piece.snapshot.store) }
            throw error
        }
        try disk.change { shelves throws(LogError) in
            try shelves.snapshots.save(piece, endingAt: disk.last)
        }
        // It may have yielded to another snapshot with the same number.
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
        if case .failed = nextFault(.write) { throw Self.failure }
        disk.change { $0.snapshots.remove(store) }
    }

    func truncate(below floor: SequenceNumber, limitBytes: Int) throws(LogError) -> Bool {
        try confirm()
        let fault = nextFault(.truncate)
        if case .failed = fault { throw Self.failure }
        if case .unknown(isDone: false) = fault { throw Self.unknown }
        var isDone = true
        if isNearlyFull { disk.change { $0.snapshots.removeSuperseded() } }
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

    /// Fails if the bound has no room for more bytes. What makes room again needs none: claims, checkpoints and
    /// truncation. As in a log on disk, the last thirty-second is for what is small.
    private func requireRoom(_ bytes: Int) throws(LogError) {
        let last = disk.limitBytes / 32
        let most = UInt64(bytes) > last / 2 ? disk.limitBytes - last : disk.limitBytes
        guard disk.usedBytes + UInt64(bytes) > most else { return }
        refused()
        throw LogError(.full, "the simulated log may take \(disk.limitBytes) bytes")
    }

    /// The end of the oldest commit, if all of it is below a floor; the newest commit always stays.
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

/// Reads the same log as the handle.
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
