import ConfluxEtcd
import ConfluxHashing
import ConfluxLog
import ConfluxVocabulary
import EtcdCluster
import Foundation
import Testing

/// A log that moves between a folder and etcd.
@Suite(.serialized, .enabled(if: EtcdCluster.isInstalled)) struct CopyTests {
    private let folder = FileManager.default.temporaryDirectory
        .appendingPathComponent("copy-\(Identifier.random())").path
    private let store = StoreName("document/moved")

    private func settings(_ prefix: String) throws -> EtcdLogSettings {
        let text = try EtcdCluster.shared.get().address(prefix)
        return EtcdLogSettings(address: try #require(EtcdAddress(text)))
    }

    private func copy(
        _ log: any CopiedLog, to begin: (LogOrigin) throws(LogError) -> any CopiedLog
    ) throws {
        _ = try LogCopy.make(of: log, in: begin) { _ in }
    }

    private func save(
        _ kind: SavedSnapshot.Kind, at number: UInt64, bytes count: Int, in log: any ActionLog
    ) throws {
        let bytes = (0..<count).map { UInt8(truncatingIfNeeded: $0 &* 3 &+ Int(number)) }
        let snapshot = SavedSnapshot(
            store: try #require(store), life: SequenceNumber(1), sequence: SequenceNumber(number),
            schemaVersion: 1, digest: Digest(of: bytes), byteCount: UInt64(count), kind: kind)
        var offset = 0
        repeat {
            let part = bytes.dropFirst(offset).prefix(1 << 20)
            try log.save(SnapshotPiece(snapshot: snapshot, offset: UInt64(offset), bytes: part))
            offset += part.count
        } while offset < count
    }

    /// Fills a log: commits of four terms, some of them large, a floor, and all kinds of checkpoints and snapshots.
    private func fill(_ log: any ActionLog) throws {
        try log.fill(20, log.claim(raisingEpochBy: 7).epoch)
        try log.fill(3, log.claim(raisingEpochBy: 1_000).epoch, bytes: 400_000)
        try log.fill(1, log.claim().epoch, bytes: 1_200_000)
        let epoch = try log.claim().epoch
        try log.fill(20, epoch, bytes: 3_000)
        try log.save(checkpointAt: 40)
        try log.save(checkpointAt: 80, bytes: 1_200_000)
        try save(.confirmed, at: 30, bytes: 1_200_000, in: log)
        try save(.confirmed, at: 50, bytes: 0, in: log)
        try save(.compared, at: 70, bytes: 10, in: log)
        try save(.aside, at: 60, bytes: 1_000, in: log)
        try log.truncateAll(below: 35)
    }

    /// The content of a log.
    private struct Content: Equatable {
        let floor: SequenceNumber
        let commits: [LoggedCommit]
        let checkpoints: [SavedCheckpoint?]
        let snapshots: [SavedSnapshot]
        let bytes: [Bytes?]

        init(_ log: any ActionLog) throws {
            floor = log.floor
            commits = try log.readAll()
            checkpoints = try [80, 79, 39].map { try log.checkpoint(through: SequenceNumber($0)) }
            snapshots = try log.snapshots()
            bytes = try snapshots.map {
                try log.readSnapshot(of: $0.key, from: 0, limitBytes: 16 << 20)
            }
        }
    }

    @Test func `a log moves to etcd and back, with its whole content`() throws {
        defer { try? FileManager.default.removeItem(atPath: folder) }
        let first = try SQLiteLog(directory: "\(folder)/first", durability: .os)
        try fill(first)
        let content = try Content(first)
        #expect(
            content.snapshots.count == 4 && content.floor > SequenceNumber(30)
                && content.commits.count > 25)
        let settings = try settings(ownPrefix())
        try copy(first) { origin throws(LogError) in try EtcdLog(copyWith: origin, settings) }

        let second = try EtcdLog(copied: settings)
        #expect(try Content(second) == content && second.id == first.id)
        let origin = try first.origin()
        #expect(try second.origin() == origin)
        try copy(second) { origin throws(LogError) in
            try SQLiteLog(copyWith: origin, in: "\(folder)/third")
        }

        let third = try SQLiteLog(directory: "\(folder)/third", durability: .os)
        #expect(try Content(third) == content && third.id == first.id)
        #expect(try third.origin() == origin)
        // It continues with an epoch above all former claims.
        let last = try second.claim().epoch
        let epoch = try third.claim(raisingEpochBy: 2).epoch
        #expect(epoch > last)
        try third.fill(1, epoch)
        third.close()
        first.close()
        let (former, links) = (try chain(of: "first"), try chain(of: "third"))
        #expect(links.dropLast().map(\.hash) == former.map(\.hash))
        #expect(links.count == content.commits.count + 1)
    }

    /// The commits of a log on disk with their hashes. Expects that each hash follows from the one before.
    private func chain(of name: String) throws -> [ChainedCommit] {
        let file = try SQLiteLogFile(directory: "\(folder)/\(name)")
        defer { file.close() }
        var chain = try file.chain()
        let links = try file.readChained(from: file.floor, through: file.last, limitBytes: 1 << 30)
        #expect(links.allSatisfy { chain.follow($0) })
        return links
    }

    @Test func `an empty log moves, too`() throws {
        defer { try? FileManager.default.removeItem(atPath: folder) }
        let log = try EtcdLog(try settings(ownPrefix()))
        try copy(log) { origin throws(LogError) in try SQLiteLog(copyWith: origin, in: folder) }
        let copy = try SQLiteLog(directory: folder, durability: .os)
        let epoch = try copy.claim().epoch
        try copy.fill(2, epoch)
        #expect(copy.id == log.id && epoch == Epoch(2) && copy.last == SequenceNumber(4))
    }

    @Test(arguments: [false, true])
    func `an interrupted copy is not a log, and the next one starts from the beginning`(
        isOnEtcd: Bool
    ) throws {
        defer { try? FileManager.default.removeItem(atPath: folder) }
        let settings = try settings(ownPrefix())
        let source = try SQLiteLog(directory: "\(folder)/source", durability: .os)
        try fill(source)
        func begin(_ origin: LogOrigin) throws(LogError) -> any CopiedLog {
            isOnEtcd
                ? try EtcdLog(copyWith: origin, settings)
                : try SQLiteLog(copyWith: origin, in: "\(folder)/copy")
        }
        for stop in [2, 5, 9, 14] {
            var steps = 0
            let error = failure {
                _ = try LogCopy.make(of: source, in: begin) { _ throws(LogError) in
                    steps += 1
                    if steps == stop { throw .closed }
                }
            }.error
            #expect(error?.code == .closed)
            if isOnEtcd {
                let opened = failure { _ = try EtcdLog(settings) }
                #expect(opened.error?.code == .notALog)
                #expect(opened.error?.message.contains("run that again") == true)
            } else {
                #expect(
                    failure { try SQLiteLogFile(directory: "\(folder)/copy").close() }.error?.code
                        == .notALog)
                // No new log is created in its place.
                #expect(
                    failure { try SQLiteLog(directory: "\(folder)/copy", durability: .os).close() }
                        .error?.code == .notALog)
            }
        }
        try copy(source, to: begin)
        let whole: any ActionLog =
            isOnEtcd
            ? try EtcdLog(settings)
            : try SQLiteLog(directory: "\(folder)/copy", durability: .os)
        #expect(try Content(whole) == Content(source))
        whole.close()
        // A copy can't be made over a log.
        #expect(failure { _ = try begin(try source.origin()) }.error?.code == .inUse)
    }

    @Test func `of two copies to one prefix, only the one that started last becomes the log`()
        throws
    {
        defer { try? FileManager.default.removeItem(atPath: folder) }
        let settings = try settings(ownPrefix())
        let source = try SQLiteLog(directory: folder, durability: .os)
        try source.fill(5, source.claim().epoch)
        let former = try EtcdLog(copyWith: try source.origin(), settings)
        _ = try former.claim(raisingEpochBy: 1)
        try copy(source) { origin throws(LogError) in try EtcdLog(copyWith: origin, settings) }
        #expect(failure { try former.fill(1, Epoch(1)) }.error?.code == .superseded)
        #expect(failure { try former.adopt {} }.error?.code == .superseded)
        #expect(try EtcdLog(settings).readAll() == source.readAll())
    }

    @Test func `a log that is claimed while it is copied is noticed before the copy is adopted`()
        throws
    {
        defer { try? FileManager.default.removeItem(atPath: folder) }
        let settings = try settings(ownPrefix())
        let source = try EtcdLog(settings)
        try source.fill(5, source.claim().epoch)
        let other = try EtcdLog(settings)
        let error = failure {
            try copy(source) { origin throws(LogError) in
                _ = try other.claim()
                return try SQLiteLog(copyWith: origin, in: folder)
            }
        }.error
        #expect(error?.code == .superseded)
        #expect(failure { try SQLiteLogFile(directory: folder).close() }.error?.code == .notALog)
    }

    @Test func `if the log is claimed while its copy is adopted, the outcome is unknown`()
        throws
    {
        defer { try? FileManager.default.removeItem(atPath: folder) }
        let settings = try settings(ownPrefix())
        let etcd = try EtcdLog(settings)
        try etcd.fill(5, etcd.claim().epoch)
        let other = try EtcdLog(settings)
        let source = DisturbedLog(etcd)
        source.confirmed = { () throws(LogError) in
            source.confirmed = {}
            _ = try other.claim()
        }
        let error = failure {
            try copy(source) { origin throws(LogError) in
                try SQLiteLog(copyWith: origin, in: folder)
            }
        }.error
        #expect(error?.code == .unknownOutcome)
        #expect(error?.message.contains("make it again") == true, "\(String(describing: error))")
    }

    @Test(arguments: [false, true])
    func
        `if the answer to an adoption is lost, the outcome is unknown, and the next copy is refused`(
            isOnEtcd: Bool
        ) throws
    {
        defer { try? FileManager.default.removeItem(atPath: folder) }
        let settings = try settings(ownPrefix())
        let source = try SQLiteLog(directory: "\(folder)/source", durability: .os)
        try fill(source)
        func begin(_ origin: LogOrigin) throws(LogError) -> any CopiedLog {
            let target = DisturbedLog(
                isOnEtcd
                    ? try EtcdLog(copyWith: origin, settings)
                    : try SQLiteLog(copyWith: origin, in: "\(folder)/copy"))
            target.adopted = { () throws(LogError) in
                throw LogError(.unknownOutcome, "No answer came.")
            }
            return target
        }
        let error = failure { try copy(source, to: begin) }.error
        #expect(error?.code == .unknownOutcome)
        #expect(
            error?.message.contains("may already be the log") == true,
            "\(String(describing: error))"
        )
        #expect(failure { try copy(source, to: begin) }.error?.code == .inUse)
    }

    @Test func `a log whose hashes do not follow from its entries is not copied`() throws {
        defer { try? FileManager.default.removeItem(atPath: folder) }
        let log = try SQLiteLog(directory: "\(folder)/source", durability: .os)
        try fill(log)
        let source = DisturbedLog(log)
        source.wrongHead = try log.origin().hash
        let error = failure {
            try copy(source) { origin throws(LogError) in
                try SQLiteLog(copyWith: origin, in: "\(folder)/copy")
            }
        }.error
        #expect(error?.code == .damaged)
        #expect(
            failure { try SQLiteLogFile(directory: "\(folder)/copy").close() }.error?.code
                == .notALog)
    }

    @Test func `an unfinished copy is removed without a log whose prefix lies below its own`()
        throws
    {
        defer { try? FileManager.default.removeItem(atPath: folder) }
        let prefix = ownPrefix()
        let source = try SQLiteLog(directory: folder, durability: .os)
        try source.fill(5, source.claim().epoch)
        let unfinished = try EtcdLog(copyWith: try source.origin(), try settings(prefix))
        unfinished.close()
        let inner = try EtcdLog(try settings("\(prefix)/inner"))
        try inner.fill(3, inner.claim().epoch)
        let error = failure {
            let settings = try settings(prefix)
            try copy(source) { origin throws(LogError) in try EtcdLog(copyWith: origin, settings) }
        }.error
        #expect(error?.code == .notALog)
        #expect(try inner.readAll().count == 3)
        try inner.fill(1, try inner.claim().epoch)
    }

    @Test func `no log is begun where one is to be copied`() throws {
        let prefix = ownPrefix()
        let opened = failure { _ = try EtcdLog(copied: try settings(prefix)) }
        #expect(opened.error?.code == .notALog)
        let left = try EtcdCluster.shared.get().control(["get", "/\(prefix)", "--prefix"])
        #expect(left.trimmingCharacters(in: .whitespacesAndNewlines).isEmpty)
    }
}
