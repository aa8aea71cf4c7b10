import ConfluxLog
import ConfluxVocabulary

/// Passes everything on to another log, except for the disturbances that a test wants.
final class DisturbedLog: CopiedLog {
    private let log: any CopiedLog
    /// Is called after each confirmed claim.
    var confirmed: () throws(LogError) -> Void = {}
    /// Is called after the log is adopted.
    var adopted: () throws(LogError) -> Void = {}
    /// Replaces the hash of the last commit.
    var wrongHead: ChainHash?

    init(_ log: any CopiedLog) { self.log = log }

    var id: LogID { log.id }
    var last: SequenceNumber { log.last }
    var floor: SequenceNumber { log.floor }
    var space: LogSpace { log.space }
    var head: ChainHash? { wrongHead ?? log.head }

    func confirm() throws(LogError) {
        try log.confirm()
        try confirmed()
    }

    func adopt(after confirm: () throws(LogError) -> Void) throws(LogError) {
        try log.adopt(after: confirm)
        try adopted()
    }

    func origin() throws(LogError) -> LogOrigin { try log.origin() }

    func claim(raisingEpochBy step: UInt64) throws(LogError) -> LogClaim {
        try log.claim(raisingEpochBy: step)
    }

    func append(
        _ commits: [LoggedCommit], expecting last: SequenceNumber, forced: Bool
    ) throws(LogError) {
        try log.append(commits, expecting: last, forced: forced)
    }

    func read(from: SequenceNumber, limitBytes: Int) throws(LogError) -> [LoggedCommit] {
        try log.read(from: from, limitBytes: limitBytes)
    }

    func save(_ piece: CheckpointPiece) throws(LogError) { try log.save(piece) }

    func checkpoint(through last: SequenceNumber) throws(LogError) -> SavedCheckpoint? {
        try log.checkpoint(through: last)
    }

    func save(_ piece: SnapshotPiece) throws(LogError) { try log.save(piece) }

    func snapshots() throws(LogError) -> [SavedSnapshot] { try log.snapshots() }

    func readSnapshot(
        of key: SavedSnapshot.Key, from offset: UInt64, limitBytes: Int
    ) throws(LogError) -> Bytes? {
        try log.readSnapshot(of: key, from: offset, limitBytes: limitBytes)
    }

    func removeSnapshots(of store: StoreName) throws(LogError) {
        try log.removeSnapshots(of: store)
    }

    func truncate(below floor: SequenceNumber, limitBytes: Int) throws(LogError) -> Bool {
        try log.truncate(below: floor, limitBytes: limitBytes)
    }

    func makeReader() throws(LogError) -> any LogReader { try log.makeReader() }

    func close() { log.close() }
}
