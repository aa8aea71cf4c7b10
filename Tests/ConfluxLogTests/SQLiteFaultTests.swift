import ConfluxLog
import ConfluxVocabulary
import FaultyDisk
import Testing

@Suite struct SQLiteFaultTests {
    private let folder = TemporaryFolder()
    private let disk: FaultyDisk

    init() throws {
        disk = try #require(FaultyDisk())
    }

    private func open(_ durability: SQLiteLogSettings.Durability) throws -> SQLiteLog {
        var settings = SQLiteLogSettings.small(durability)
        settings.vfs = disk.vfs
        return try SQLiteLog(directory: folder.path, settings: settings)
    }

    private func syncs(_ body: () throws -> Void) rethrows -> Int {
        let before = disk.syncs.load(ordering: .relaxed)
        try body()
        return disk.syncs.load(ordering: .relaxed) - before
    }

    @Test func `with fsync every append and claim waits for the disk`() throws {
        let log = try open(.fsync)
        #expect(try syncs { _ = try log.claim() } >= 1)
        for number in 1...5 as ClosedRange<UInt64> {
            #expect(try syncs { try log.append(.sample(number...number)) } >= 1)
        }
    }

    @Test func `with os only claims and forced appends wait for the disk`() throws {
        let log = try open(.os)
        #expect(try syncs { _ = try log.claim() } >= 1)
        // The first one in a file, which is recorded in the database.
        #expect(try syncs { try log.append(.sample(1...1)) } >= 1)
        #expect(try syncs { try log.append(.sample(2...2), forced: true) } >= 1)
        #expect(try syncs { try log.append(.sample(3...3)) } == 0)
        #expect(try syncs { try log.append(.sample(3...3)) } == 0)
        #expect(try syncs { try log.append(.sample(3...3), forced: true) } >= 1)
        #expect(try syncs { try log.append(.sample(4...4)) } == 0)
        #expect(syncs { log.close() } >= 1)
    }

    @Test func `a disk error leaves the outcome unknown until the log is opened again`()
        throws
    {
        let log = try open(.fsync)
        let commits = try log.fill(2)
        disk.failsToSync.store(true, ordering: .relaxed)
        #expect(code { try log.append(.sample(5...5)) } == .unknownOutcome)
        disk.failsToSync.store(false, ordering: .relaxed)
        #expect(code { try log.append(.sample(5...5)) } == .unknownOutcome)
        #expect(code { try log.append(.sample(5...6)) } == .unknownOutcome)
        #expect(code { _ = try log.claim() } == .unknownOutcome)
        #expect(try log.readAll().starts(with: commits))
        log.close()

        let again = try open(.fsync)
        let claim = try again.claim()
        #expect(claim.epoch == Epoch(2))
        #expect(claim.last == SequenceNumber(4) || claim.last == SequenceNumber(5))
        let next = claim.last.rawValue + 1
        try again.append(.sample(next...next, epoch: 2))
        #expect(try again.readAll().starts(with: commits))
    }

    @Test func `a claim whose sync fails does not count`() throws {
        let log = try open(.os)
        disk.failsToSync.store(true, ordering: .relaxed)
        #expect(code { _ = try log.claim() } == .unknownOutcome)
        #expect(code { try log.confirm() } == .notClaimed)
    }

    @Test func `a checkpoint whose sync fails damages nothing else`() throws {
        let log = try open(.fsync)
        let commits = try log.fill(4)
        try log.save(.sample(4), pieceBytes: 5)
        let pieces = SavedCheckpoint.sample(8).pieces(of: 5)
        try log.save(pieces[0])
        disk.failsToSync.store(true, ordering: .relaxed)
        #expect(code { try log.save(pieces[1]) } == .unknownOutcome)
        // The data in the system's memory can't be trusted any more, so nothing is written after it.
        #expect(code { try log.append(.sample(9...9)) } == .unknownOutcome)
        disk.failsToSync.store(false, ordering: .relaxed)
        log.close()

        let again = try open(.fsync)
        #expect(try again.readAll() == commits)
        #expect(try again.checkpoint(through: again.last) == .sample(4))
        _ = try again.claim()
        try again.save(.sample(8), pieceBytes: 5)
        #expect(try again.checkpoint(through: again.last) == .sample(8))
    }

    @Test func `a checkpoint that finds the disk full damages nothing else`() throws {
        let log = try open(.fsync)
        try log.fill(4)
        try log.save(.sample(4))
        let pieces = SavedCheckpoint.sample(8, bytes: 2 << 20).pieces(of: 1 << 18)
        try log.save(pieces[0])
        disk.isFull.store(true, ordering: .relaxed)
        #expect(code { try log.save(pieces[1]) } == .full)
        disk.isFull.store(false, ordering: .relaxed)
        #expect(try log.checkpoint(through: log.last) == .sample(4))
        // The next checkpoint replaces the pieces of this one.
        try log.save(.sample(8))
        try log.append(.sample(9...9, bytes: 1 << 18))
        #expect(try log.checkpoint(through: log.last) == .sample(8))
    }

    @Test func `a checkpoint above the log's bound is saved, since it makes room`() throws {
        var settings = SQLiteLogSettings.small()
        settings.limitBytes = 1 << 20
        let log = try SQLiteLog(directory: folder.path, settings: settings)
        try log.fill(4)
        let large = SavedCheckpoint.sample(8, bytes: 2 << 20)
        try log.save(large, pieceBytes: 1 << 18)
        #expect(code { try log.append(.sample(9...9)) } == .full)
        #expect(try log.checkpoint(through: log.last) == large)
    }
}
