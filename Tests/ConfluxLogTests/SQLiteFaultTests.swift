import CSQLite
import ConfluxVocabulary
import Foundation
import Synchronization
import Testing

@testable import ConfluxLog

/// The system's files, except that syncing a write-ahead log is counted, and fails when told to.
enum FaultyDisk {
    static let name = "conflux-faulty"
    static let isFailing = Atomic(false)
    static let syncs = Atomic(0)

    // Written once, by `register`, before any file is opened through it.
    nonisolated(unsafe) private static var system: UnsafeMutablePointer<sqlite3_vfs>?
    // Written under the suite's `.serialized`: files are opened by one test at a time.
    nonisolated(unsafe) private static var systemMethods: UnsafePointer<sqlite3_io_methods>?
    // As above.
    nonisolated(unsafe) private static var methods: UnsafeMutablePointer<sqlite3_io_methods>?

    static let register: Bool = {
        guard let system = sqlite3_vfs_find(nil) else { return false }
        Self.system = system
        let faulty = UnsafeMutablePointer<sqlite3_vfs>.allocate(capacity: 1)
        faulty.initialize(to: system.pointee)
        faulty.pointee.pNext = nil
        faulty.pointee.zName = name.withCString { UnsafePointer(strdup($0)) }
        faulty.pointee.xOpen = { _, path, file, flags, outFlags in
            guard let system = FaultyDisk.system, let file else { return SQLITE_ERROR }
            let code = system.pointee.xOpen(system, path, file, flags, outFlags)
            if code == SQLITE_OK && flags & SQLITE_OPEN_WAL != 0 { FaultyDisk.intercept(file) }
            return code
        }
        return sqlite3_vfs_register(faulty, 0) == SQLITE_OK
    }()

    private static func intercept(_ file: UnsafeMutablePointer<sqlite3_file>) {
        guard let original = file.pointee.pMethods else { return }
        systemMethods = original
        let faulty = methods ?? .allocate(capacity: 1)
        methods = faulty
        faulty.initialize(to: original.pointee)
        faulty.pointee.xSync = { file, flags in
            FaultyDisk.syncs.add(1, ordering: .relaxed)
            // SQLITE_IOERR_FSYNC, a macro that Swift does not import.
            if FaultyDisk.isFailing.load(ordering: .relaxed) { return SQLITE_IOERR | 4 << 8 }
            return FaultyDisk.systemMethods?.pointee.xSync(file, flags) ?? SQLITE_ERROR
        }
        file.pointee.pMethods = UnsafePointer(faulty)
    }
}

@Suite(.serialized) struct SQLiteFaultTests {
    private let folder = TemporaryFolder()

    private func open(_ durability: SQLiteLogSettings.Durability) throws -> SQLiteLog {
        try #require(FaultyDisk.register)
        var settings = SQLiteLogSettings.small(durability)
        settings.vfs = FaultyDisk.name
        return try SQLiteLog(directory: folder.path, settings: settings)
    }

    private func syncs(_ body: () throws -> Void) rethrows -> Int {
        let before = FaultyDisk.syncs.load(ordering: .relaxed)
        try body()
        return FaultyDisk.syncs.load(ordering: .relaxed) - before
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
        #expect(try syncs { try log.append(.sample(1...1)) } == 0)
        #expect(try syncs { try log.append(.sample(2...2), forced: true) } >= 1)
        #expect(try syncs { try log.append(.sample(3...3)) } == 0)
        #expect(try syncs { try log.append(.sample(3...3)) } == 0)
        #expect(try syncs { try log.append(.sample(3...3), forced: true) } >= 1)
        #expect(try syncs { try log.append(.sample(4...4)) } == 0)
        #expect(syncs { log.close() } >= 1)
    }

    @Test func `an error of the disk leaves the outcome unknown until the log is opened anew`()
        throws
    {
        let log = try open(.fsync)
        let commits = try log.fill(2)
        FaultyDisk.isFailing.store(true, ordering: .relaxed)
        defer { FaultyDisk.isFailing.store(false, ordering: .relaxed) }
        #expect(code { try log.append(.sample(5...5)) } == .unknownOutcome)
        FaultyDisk.isFailing.store(false, ordering: .relaxed)
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

    @Test func `a claim whose sync fails is not had`() throws {
        let log = try open(.os)
        FaultyDisk.isFailing.store(true, ordering: .relaxed)
        defer { FaultyDisk.isFailing.store(false, ordering: .relaxed) }
        #expect(code { _ = try log.claim() } == .unknownOutcome)
        #expect(code { try log.confirm() } == .notClaimed)
    }
}
