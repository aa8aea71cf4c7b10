import ConfluxLog
import ConfluxVocabulary
import Forging
import Foundation
import Testing

/// Snapshots and truncation, as only the log on disk has them.
@Suite struct SQLiteKeepingTests {
    private let folder = TemporaryFolder()
    private let other = TemporaryFolder()

    private func open() throws -> SQLiteLog {
        try SQLiteLog(directory: folder.path, settings: .small())
    }

    /// A log of 1–2 … 19–20 that begins at a number.
    private func truncated(to floor: UInt64) throws -> SQLiteLog {
        let log = try open()
        try log.fill(10)
        for number in [16, 18] as [UInt64] { try log.save(.sample(number)) }
        try log.truncateAll(below: floor)
        return log
    }

    // MARK: Snapshots

    @Test func `snapshots are still there when the log is opened again`() throws {
        let log = try open()
        try log.fill(5)
        try log.keep(.sample(6))
        try log.save(SavedSnapshot.sample(8).pieces(of: 7)[0])
        let killed = try folder.copyAsAfterKill()
        log.close()
        for path in [folder.path, killed.path] {
            let again = try SQLiteLog(directory: path, settings: .small())
            #expect(try again.snapshots() == [.sample(6)])
            #expect(try again.contents(of: .sample(6)) == SavedSnapshot.sample(6).contents)
        }
    }

    @Test(arguments: [
        "UPDATE snapshot_pieces SET bytes = zeroblob(7) WHERE position = 7",
        "UPDATE snapshot_pieces SET bytes = CAST(bytes || x'00' AS BLOB) WHERE position = 7",
        "UPDATE snapshot_pieces SET bytes = x'' WHERE position = 7",
        "UPDATE snapshot_pieces SET checksum = checksum + 1 WHERE position = 7",
        "UPDATE snapshot_pieces SET position = 8 WHERE position = 7",
        "DELETE FROM snapshot_pieces WHERE position = 7",
    ])
    func `a damaged piece is named with its store, and everything else is served`(_ change: String)
        throws
    {
        let log = try open()
        let commits = try log.fill(5)
        try log.keep(.sample(6))
        try folder.run(change)
        let intact = SavedSnapshot.sample(8, of: .sample("intact"))
        try log.keep(intact)
        let key = SavedSnapshot.sample(6).key
        let error = #expect(throws: LogError.self) {
            try log.readSnapshot(of: key, from: 10, limitBytes: 100)
        }
        #expect(error?.code == .damaged)
        #expect(error?.numbers == SequenceNumber(6)...SequenceNumber(6))
        #expect(error?.message.contains("document/shared at 6") == true)
        // The piece before it is intact, and so is the log.
        #expect(try log.readSnapshot(of: key, from: 0, limitBytes: 7)?.count == 7)
        #expect(try log.contents(of: intact) == intact.contents)
        #expect(try log.readAll() == commits)
        try log.append(.sample(11...11))
        // Later snapshots replace the damaged one.
        for number in [9, 10] as [UInt64] { try log.keep(.sample(number)) }
        #expect(try log.snapshots() == [intact, .sample(9), .sample(10)])
    }

    @Test(arguments: [
        "digest = zeroblob(32)", "version = 9", "size = 22", "kind = 0", "life = 2",
        "sequence = 7", "store = 'document/b'",
    ])
    func `a snapshot's metadata that another program changed is checked against its pieces`(
        _ change: String
    ) throws {
        let log = try open()
        try log.fill(5)
        try log.keep(.sample(6))
        try folder.run("UPDATE snapshots SET \(change)")
        let found = try #require(try log.snapshots().first)
        #expect(found != .sample(6))
        #expect(
            code { _ = try log.readSnapshot(of: found.key, from: 0, limitBytes: 9) } == .damaged)
    }

    @Test func `an unreadable list of snapshots is damage, and entries are served`() throws {
        let log = try open()
        try log.fill(5)
        try log.keep(.sample(6))
        try folder.run("UPDATE snapshots SET store = 'no name'")
        #expect(code { _ = try log.snapshots() } == .damaged)
        #expect(try log.readAll().count == 5)
    }

    @Test func `a snapshot of a lost history is not listed, and a claim removes it`()
        throws
    {
        let log = try open()
        try log.fill(5)
        try log.keep(.sample(6))
        try log.keep(.sample(8))
        try folder.run("UPDATE snapshots SET sequence = 11 WHERE sequence = 8")
        #expect(try log.snapshots() == [.sample(6)])
        _ = try log.claim()
        try log.append(.sample(11...11, epoch: 2))
        #expect(try log.snapshots() == [.sample(6)])
    }

    @Test func `a retired snapshot is removed piece by piece, with later writes`() throws {
        let log = try open()
        try log.fill(10)
        for number in [2, 4, 6] as [UInt64] {
            try log.keep(.sample(number, bytes: 100), pieceBytes: 1)
        }
        let pieces = "SELECT count(*) FROM snapshot_pieces"
        #expect(try folder.number(pieces) == 300)
        let next = SavedSnapshot.sample(8, bytes: 100).pieces(of: 1)
        try log.save(next[0])
        // Two pieces were removed, and one was added.
        #expect(try folder.number(pieces) == 299)
        for piece in next.dropFirst() { try log.save(piece) }
        #expect(try folder.number(pieces) == 300)
        // A truncation removes them, too.
        #expect(try !log.truncate(below: SequenceNumber(1), limitBytes: 10))
        #expect(try folder.number(pieces) == 290)
        try log.truncateAll(below: 1, limitBytes: 10)
        #expect(try folder.number(pieces) == 200)
        #expect(try folder.number("SELECT count(*) FROM snapshots") == 2)
    }

    // MARK: The floor

    @Test func `a reopened log begins at its floor`() throws {
        try truncated(to: 7).close()
        let log = try open()
        #expect(log.floor == SequenceNumber(7))
        #expect(try log.readAll().first?.first == SequenceNumber(7))
        let file = try SQLiteLogFile(directory: folder.path)
        #expect(file.floor == SequenceNumber(7))
        #expect(file.epoch == Epoch(1))
    }

    @Test func `missing first entries are distinguished from truncated ones`() throws {
        try truncated(to: 7).close()
        try folder.forger.change {
            $0.removeFirst($0.firstIndex { $0.commit.first.rawValue == 9 } ?? 0)
        }
        let log = try open()
        let file = try SQLiteLogFile(directory: folder.path)
        let one = SequenceNumber(1)
        let errors = [
            #expect(throws: LogError.self) { try log.read(from: one, limitBytes: .max) },
            #expect(throws: LogError.self) {
                try file.read(from: one, through: file.last, limitBytes: .max)
            },
        ]
        for error in errors {
            #expect(error?.numbers?.contains(SequenceNumber(7)) == true)
            #expect(error?.numbers?.upperBound == SequenceNumber(8))
        }
    }

    @Test func `truncation removes damage with the commits that had it`() throws {
        let log = try truncated(to: 3)
        try folder.forger.flip(5, at: 40)
        #expect(code { _ = try log.read(from: SequenceNumber(5), limitBytes: .max) } == .damaged)
        #expect(try log.read(from: SequenceNumber(7), limitBytes: .max).count == 7)
        try log.truncateAll(below: 7)
        #expect(try log.readAll().map(\.first.rawValue) == [7, 9, 11, 13, 15, 17, 19])
    }

    // MARK: Space

    private func fileBytes(_ folder: TemporaryFolder) throws -> Int {
        let paths = try [folder.database] + folder.forger.paths
        return try paths.reduce(0) { sum, path in
            let values = try FileManager.default.attributesOfItem(atPath: path)
            return try sum + #require(values[.size] as? Int)
        }
    }

    /// Makes a log with 4 MiB of commits in files of 512 KiB, and discards nearly all of them.
    ///
    /// - Returns: The remaining commits.
    private func truncateMuch() throws -> [LoggedCommit] {
        var settings = SQLiteLogSettings.small()
        settings.limitBytes = 8 << 20
        let log = try SQLiteLog(directory: folder.path, settings: settings)
        let commits = try log.fill(200, bytes: 20_000)
        for number in [398, 400] as [UInt64] { try log.save(.sample(number)) }
        var calls = 0
        while try !log.truncate(below: SequenceNumber(391), limitBytes: 200_000) { calls += 1 }
        #expect(calls >= 6)
        log.close()
        return Array(commits[195...])
    }

    @Test func `space is returned to the file system`() throws {
        let kept = try truncateMuch()
        #expect(try fileBytes(folder) < 1 << 20)
        #expect(try folder.number("PRAGMA freelist_count") == 0)
        let log = try open()
        #expect(try log.readAll() == kept)
        try log.fill(3)
        #expect(try log.readAll().count == 8)
    }

    @Test func `a log above its bound takes nothing, and can still discard`() throws {
        var settings = SQLiteLogSettings.small()
        settings.limitBytes = 4 << 20
        let log = try SQLiteLog(directory: folder.path, settings: settings)
        try log.fill(100, bytes: 20_000)
        for number in [198, 200] as [UInt64] { try log.save(.sample(number)) }
        log.close()
        settings.limitBytes = 1 << 20
        let again = try SQLiteLog(directory: folder.path, settings: settings)
        let epoch = try again.claim().epoch.rawValue
        #expect(again.isNearlyFull)
        let next = LoggedCommit.sample(201...201, epoch: epoch)
        #expect(code { try again.append(next) } == .full)
        #expect(code { try again.keep(.sample(2, bytes: 100)) } == .full)
        // What makes room needs some itself: a claim, and checkpoints.
        let claim = LoggedCommit.sample(201...201, epoch: epoch)
        try again.append(claim, expecting: again.last, forced: true)
        try again.save(.sample(201))
        try again.truncateAll(below: 201)
        #expect(!again.isNearlyFull)
        try again.append(.sample(202...202, epoch: epoch))
        #expect(try again.readAll().count == 2)
    }

    @Test func `the space of replaced snapshots is given back, though the floor stays`() throws {
        var settings = SQLiteLogSettings.small()
        settings.limitBytes = 64 << 20
        let log = try SQLiteLog(directory: folder.path, settings: settings)
        try log.fill(100)
        try log.keep(.sample(2, bytes: 12 << 20), pieceBytes: 1 << 20)
        let most = log.space.usedBytes
        #expect(most > 12 << 20)
        try log.removeSnapshots(of: .sample())
        for number in 3...30 as ClosedRange<UInt64> {
            try log.keep(.sample(number, bytes: 100_000), pieceBytes: 10_000)
        }
        #expect(log.space.usedBytes < 6 << 20, "\(log.space.usedBytes)")
        #expect(log.floor == SequenceNumber(1))
    }

    @Test func `a nearly full log gives up snapshots of dropped stores, and superseded ones`()
        throws
    {
        var settings = SQLiteLogSettings.small()
        settings.limitBytes = 16 << 20
        let log = try SQLiteLog(directory: folder.path, settings: settings)
        try log.fill(100)
        let dropped = StoreName.sample("dropped")
        try log.keep(.sample(2, of: dropped, bytes: 3 << 20), pieceBytes: 1 << 20)
        for number in [10, 20] as [UInt64] {
            try log.keep(.sample(number, bytes: 4 << 20), pieceBytes: 1 << 20)
        }
        try log.removeSnapshots(of: dropped)
        #expect(log.isNearlyFull)
        try log.truncateAll(below: 1, limitBytes: 1 << 20)
        #expect(log.space.room == .ample, "\(log.space.usedBytes)")
        #expect(try log.snapshots().map(\.sequence) == [SequenceNumber(20)])
        // With room, the former snapshot stays.
        try log.keep(.sample(30, bytes: 4 << 20), pieceBytes: 1 << 20)
        try log.truncateAll(below: 1, limitBytes: 1 << 20)
        #expect(try log.snapshots().map(\.sequence) == [SequenceNumber(20), SequenceNumber(30)])
    }

    @Test func `the bound follows the file system of the folder, unless one is set`() throws {
        let whole = SQLiteLogSettings.limitBytes(forVolumeOf: "/tmp")
        #expect(whole >= 1 << 20 && whole <= 64 << 30)
        let absent = SQLiteLogSettings.limitBytes(forVolumeOf: "/tmp/is/not/there/at/all")
        #expect(absent == whole)
        #expect(SQLiteLogSettings.limitBytes(forVolumeOf: "not-there") > 0)
        let log = try SQLiteLog(directory: folder.path)
        let volume = SQLiteLogSettings.limitBytes(forVolumeOf: folder.path)
        #expect(log.space.limitBytes == UInt64(volume))
    }

    @Test func `a log that can't shrink does so in a copy`() throws {
        try open().close()
        try folder.run("PRAGMA auto_vacuum = NONE; VACUUM")
        #expect(try folder.number("PRAGMA auto_vacuum") == 0)
        let log = try open()
        let kept = try log.fill(5)
        try log.keep(.sample(2, bytes: 4 << 20), pieceBytes: 1 << 20)
        try log.removeSnapshots(of: .sample())
        try log.truncateAll(below: 1)
        log.close()
        #expect(try fileBytes(folder) > 3 << 20)
        try SQLiteLogFile(directory: folder.path).copy(to: other.path)
        #expect(try fileBytes(other) < 1 << 20)
        #expect(try other.number("PRAGMA auto_vacuum") == 2)
        let copy = try SQLiteLog(directory: other.path, settings: .small())
        #expect(try copy.readAll() == kept)
    }

    @Test func `a copy has the floor, and the snapshots`() throws {
        let log = try truncated(to: 7)
        try log.keep(.sample(10))
        try SQLiteLogFile(directory: folder.path).copy(to: other.path)
        let file = try SQLiteLogFile(directory: other.path)
        #expect(file.floor == SequenceNumber(7))
        #expect(try file.snapshots() == [.sample(10)])
        let bytes = try file.readSnapshot(
            of: SavedSnapshot.sample(10).key, from: 0, limitBytes: 100)
        #expect(bytes.map(Array.init) == SavedSnapshot.sample(10).contents)
        #expect(try file.checkpoint(through: file.last) == .sample(18))
        file.close()
        #expect(code { _ = try file.snapshots() } == .closed)
    }
}
