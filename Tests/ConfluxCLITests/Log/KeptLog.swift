import ConfluxHashing
import CSQLite
import ConfluxLog
import ConfluxVocabulary
import Forging
import Foundation
import Testing

@testable import ConfluxProtocol

/// A folder with a log like those of sequencers: ten terms, each with a claim and a session,
/// checkpoints at 16 and 18, and a snapshot at 18. It is removed with this object.
final class KeptLog {
    let root = NSTemporaryDirectory() + "conflux-kept-\(Identifier.random())"
    let log: SQLiteLog
    private(set) var checkpoints: [LogState] = []

    var path: String { root + "/log" }
    static let snapshot = SavedSnapshot(
        store: StoreName(state: .shared, instance: .shared), life: SequenceNumber(18),
        sequence: SequenceNumber(18), schemaVersion: 1, digest: Digest(of: Array("state".utf8)),
        byteCount: 5, kind: .confirmed)

    /// - Parameters:
    ///   - floor: The number at which the log begins.
    ///   - digest: The digest that the snapshot is recorded with.
    /// - Throws: The errors of the log.
    init(from floor: UInt64 = 1, digest: Digest = snapshot.digest) throws {
        log = try SQLiteLog(directory: root + "/log", durability: .os)
        var logState = LogState(log: log.id)
        for term in 1...10 as ClosedRange<UInt64> {
            let claim = try log.claim()
            let logged = commit(claim)
            try logState.apply(try Commit.decode(body: logged.bytes), byteCount: logged.bytes.count)
            try log.append(logged, expecting: claim.last, forced: false)
            if term == 8 || term == 9 {
                checkpoints.append(logState)
                try save(logState.encoded(), at: logState.last)
            }
        }
        var snapshot = Self.snapshot
        snapshot.digest = digest
        try log.save(SnapshotPiece(snapshot: snapshot, offset: 0, bytes: Array("state".utf8)[...]))
        while try !log.truncate(below: SequenceNumber(floor), limitBytes: 1) {}
    }

    /// The commit that a sequencer writes after its claim. It is different each time.
    func commit(_ claim: LogClaim) -> LoggedCommit {
        var builder = CommitBuilder(
            log: log.id, epoch: claim.epoch, predecessor: claim.lastEpoch, first: claim.last.next)
        builder.append(.claim(epoch: claim.epoch, nonce: .random()))
        let isKeyed = claim.epoch.rawValue % 2 == 0
        builder.append(.joined(nonce: .random(), name: nil, rejoining: .none, isKeyed: isKeyed))
        let body = builder.finish(timestamp: Timestamp(Int64(claim.epoch.rawValue)))
            .dropFirst(Frame.size)
        return LoggedCommit(
            first: claim.last.next, last: claim.last.advanced(by: 2), epoch: claim.epoch,
            bytes: body)
    }

    func save(_ logState: [UInt8], at sequence: SequenceNumber) throws {
        for piece in SavedCheckpoint(sequence: sequence, bytes: logState[...]).pieces() {
            try log.save(piece)
        }
    }

    /// Changes the log's entries like a failing disk or an attacker.
    var forger: EntryForger {
        get throws { try EntryForger(path) }
    }

    /// Runs SQL like another program.
    func run(_ statements: String) throws {
        var connection: OpaquePointer?
        try #require(sqlite3_open(path + "/log.sqlite", &connection) == SQLITE_OK)
        defer { sqlite3_close_v2(connection) }
        sqlite3_busy_timeout(connection, 5_000)
        try #require(sqlite3_exec(connection, statements, nil, nil, nil) == SQLITE_OK)
    }

    func holdsLog(_ folder: String) -> Bool {
        FileManager.default.fileExists(atPath: root + "/\(folder)/log.sqlite")
    }

    deinit {
        log.close()
        do {
            try FileManager.default.removeItem(atPath: root)
        } catch {
            Issue.record("\(root) was left behind: \(error)")
        }
    }
}
