import CSQLite
import ConfluxLog
import ConfluxVocabulary
import Forging
import Foundation
import Testing

@Suite struct SQLiteLogTests {
    private let folder = TemporaryFolder()

    private func open(_ durability: SQLiteLogSettings.Durability = .fsync) throws -> SQLiteLog {
        try SQLiteLog(directory: folder.path, settings: .small(durability))
    }

    private func openingError(of path: String) -> LogError? {
        do throws(LogError) {
            _ = try SQLiteLog(directory: path, settings: .small())
            return nil
        } catch {
            return error
        }
    }

    @Test(arguments: SQLiteLogSettings.Durability.allCases)
    func `a log is the same after closing and opening`(
        _ durability: SQLiteLogSettings.Durability
    ) throws {
        let log = try open(durability)
        let id = log.id
        let commits = try log.fill(3)
        log.close()
        let again = try open(durability)
        #expect(again.id == id)
        #expect(again.last == SequenceNumber(6))
        #expect(try again.readAll() == commits)
        #expect(
            try again.claim()
                == LogClaim(epoch: Epoch(2), last: SequenceNumber(6), lastEpoch: Epoch(1)))
    }

    @Test(arguments: SQLiteLogSettings.Durability.allCases)
    func `a log is the same after its process was killed`(
        _ durability: SQLiteLogSettings.Durability
    ) throws {
        let log = try open(durability)
        let commits = try log.fill(100, bytes: 1_000)
        let copy = try folder.copyAsAfterKill()
        let survivor = try SQLiteLog(directory: copy.path, settings: .small())
        #expect(survivor.id == log.id)
        #expect(try survivor.readAll() == commits)
        #expect(try survivor.claim().epoch == Epoch(2))
    }

    @Test func `appends continue after many checkpoints of the write-ahead log`() throws {
        let log = try open(.os)
        let commits = try log.fill(200, bytes: 50_000)
        #expect(try log.readAll() == commits)
        let bytes = try #require(
            FileManager.default.attributesOfItem(atPath: folder.database + "-wal")[.size] as? Int)
        #expect(bytes < 2 << 20)
        withExtendedLifetime(log) {}
    }

    @Test func `the write-ahead log has its blocks before it is used`() throws {
        let log = try open()
        let bytes = try #require(
            FileManager.default.attributesOfItem(atPath: folder.database + "-wal")[.size] as? Int)
        #expect(bytes >= 1 << 20)
        withExtendedLifetime(log) {}
    }

    @Test func `missing folders are created`() throws {
        let path = folder.path + "/a/b/"
        let log = try SQLiteLog(directory: path, settings: .small())
        #expect(FileManager.default.fileExists(atPath: folder.path + "/a/b/log.sqlite"))
        log.close()
    }

    @Test func `a path that looks like a URI is taken as it is`() throws {
        // Relative, since a path that begins with a slash is none.
        let path = "file:conflux-log-\(UUID())%41?x"
        defer { try? FileManager.default.removeItem(atPath: path) }
        try SQLiteLog(directory: path, settings: .small()).close()
        let names = try FileManager.default.contentsOfDirectory(atPath: path)
        #expect(names.contains("log.sqlite"))
        let file = try SQLiteLogFile(directory: path)
        #expect(file.last == .zero)
        file.close()
    }

    @Test func `a folder that cannot be created is named`() throws {
        try FileManager.default.createDirectory(
            atPath: folder.path, withIntermediateDirectories: true)
        let file = folder.path + "/file"
        try Data("x".utf8).write(to: URL(fileURLWithPath: file))
        let error = try #require(openingError(of: file))
        #expect(error.code == .unusableFolder)
        #expect(error.message.contains(file))
        #expect(openingError(of: file + "/below")?.code == .unusableFolder)
        #expect(openingError(of: "")?.code == .unusableFolder)
    }

    @Test func `a closed log is free even if a forked child has its lock file open`() throws {
        let log = try open()
        var lock = stat()
        #expect(stat(folder.path + "/lock", &lock) == 0)
        // A duplicated descriptor shares the open file, as a child does between fork and exec.
        // Other tests that run in this process also have files open.
        let originals = (Int32(0)..<65_536).filter { descriptor in
            var file = stat()
            return fstat(descriptor, &file) == 0 && file.st_ino == lock.st_ino
                && file.st_dev == lock.st_dev
        }
        let copies = originals.map { fcntl($0, F_DUPFD_CLOEXEC, 3) }
        defer { for copy in copies { close(copy) } }
        #expect(!copies.isEmpty)
        log.close()
        #expect(openingError(of: folder.path) == nil)
    }

    @Test func `a second owner in the same process is refused`() throws {
        let log = try open()
        let error = try #require(openingError(of: folder.path))
        #expect(error.code == .inUse)
        #expect(error.message.contains(folder.path))
        #expect(error.message.contains("process \(getpid())"))
        log.close()
        #expect(openingError(of: folder.path) == nil)
    }

    @Test func `a second process is refused until the first has died`() throws {
        try open().close()
        let owner = Process()
        owner.executableURL = URL(fileURLWithPath: "/usr/bin/perl")
        owner.arguments = [
            "-e",
            "open F, '+>>', $ARGV[0]; flock F, 2; $| = 1; print \"locked\\n\"; <STDIN>",
            folder.path + "/lock",
        ]
        let output = Pipe()
        owner.standardOutput = output
        owner.standardInput = Pipe()
        try owner.run()
        #expect(output.fileHandleForReading.availableData == Data("locked\n".utf8))
        #expect(openingError(of: folder.path)?.code == .inUse)
        kill(owner.processIdentifier, SIGKILL)
        owner.waitUntilExit()
        #expect(openingError(of: folder.path) == nil)
    }

    @Test func `another program reads it while it is open`() throws {
        let log = try open()
        try log.fill(3)
        #expect(try folder.forger.commits.map(\.commit.last.rawValue) == [2, 4, 6])
        #expect(try folder.number("SELECT epoch FROM meta") == 1)
        #expect(try folder.number("SELECT format FROM meta") == 6)
        try log.append(.sample(7...7))
    }

    @Test func `while another program writes, an append fails and is retried`() throws {
        var settings = SQLiteLogSettings.small()
        settings.busyTimeout = .zero
        let log = try SQLiteLog(directory: folder.path, settings: settings)
        try log.fill(1)
        try log.releaseWriteLock()
        let writer = try OtherConnection(folder.database)
        try writer.run("BEGIN IMMEDIATE")
        #expect(code { try log.append(.sample(3...3)) } == .failed)
        try writer.run("ROLLBACK")
        try log.append(.sample(3...3))
        #expect(log.last == SequenceNumber(3))
    }

    @Test func `a claim by another program supersedes`() throws {
        let log = try open()
        try log.fill(1)
        try log.confirm()
        try log.releaseWriteLock()
        try folder.run("UPDATE meta SET epoch = epoch + 1")
        #expect(code { try log.confirm() } == .superseded)
        #expect(code { try log.append(.sample(3...3)) } == .superseded)
        #expect(try log.readAll().count == 1)
    }

    @Test func `after an append no other program can claim until the log changes the database`()
        throws
    {
        let log = try open()
        let other = try OtherConnection(folder.database)
        let claim = "UPDATE meta SET epoch = epoch + 1"
        _ = try log.claim()
        #expect(other.code(claim) == SQLITE_OK)
        // The append that finds a newer claim holds nothing.
        #expect(code { try log.append(.sample(1...2)) } == .superseded)
        #expect(other.code(claim) == SQLITE_OK)
        let commits = try log.fill(2)
        #expect(other.code(claim) == SQLITE_BUSY)
        // A read does not release the lock, and neither does an append that fails.
        #expect(try log.readAll() == commits)
        #expect(code { try log.append(.sample(9...9, epoch: 4)) } == .endDiffers)
        #expect(other.code(claim) == SQLITE_BUSY)
        try log.confirm()
        try log.save(.sample(4))
        #expect(other.code(claim) == SQLITE_OK)
        #expect(code { try log.append(.sample(5...5, epoch: 4)) } == .superseded)
    }

    @Test func `a log that is closed after an append can be claimed`() throws {
        let log = try open()
        try log.fill(1)
        log.close()
        #expect(try open().claim().last == SequenceNumber(2))
    }

    @Test func `a superseded owner changes nothing besides commits`() throws {
        let log = try open()
        try log.fill(10)
        let snapshot = SavedSnapshot.sample(8)
        try log.keep(snapshot)
        for number in [12, 16] as [UInt64] { try log.save(.sample(number)) }
        try folder.run("UPDATE meta SET epoch = epoch + 1")
        for piece in SavedSnapshot.sample(10).pieces(of: 7) {
            #expect(code { try log.save(piece) } == .superseded)
        }
        #expect(code { try log.removeSnapshots(of: .sample()) } == .superseded)
        #expect(code { try log.save(.sample(20)) } == .superseded)
        #expect(try log.checkpoint(through: log.last)?.sequence == SequenceNumber(16))
        #expect(
            code { _ = try log.truncate(below: SequenceNumber(3), limitBytes: 1) } == .superseded)
        #expect(try log.snapshots() == [snapshot])
        #expect(try log.contents(of: snapshot) == snapshot.contents)
        #expect(log.floor == SequenceNumber(1))
    }

    @Test func `a newer format is refused and left unchanged`() throws {
        try open().close()
        try folder.run("PRAGMA user_version = 7")
        let error = try #require(openingError(of: folder.path))
        #expect(error.code == .newerFormat)
        #expect(error.message.contains("format 7"))
        #expect(try folder.number("PRAGMA user_version") == 7)
    }

    @Test func `an older format is refused and left unchanged`() throws {
        try open().close()
        try folder.run("UPDATE meta SET format = 5; PRAGMA user_version = 5")
        let error = try #require(openingError(of: folder.path))
        #expect(error.code == .olderFormat)
        #expect(error.message.contains("format 5"))
        let reading = #expect(throws: LogError.self) {
            try SQLiteLogFile(directory: folder.path)
        }
        #expect(reading?.code == .olderFormat)
        #expect(try folder.number("PRAGMA user_version") == 5)
    }

    @Test func `a file of another program is refused`() throws {
        try open().close()
        try folder.run("PRAGMA application_id = 7")
        #expect(openingError(of: folder.path)?.code == .notALog)
        for name in ["log.sqlite", "log.sqlite-wal"] {
            try Data(repeating: 0x41, count: 9_000)
                .write(to: URL(fileURLWithPath: "\(folder.path)/\(name)"))
        }
        #expect(openingError(of: folder.path)?.code == .notALog)
    }

    @Test func `a log at its bound is full and continues to serve reads`() throws {
        var settings = SQLiteLogSettings.small()
        settings.limitBytes = 1 << 20
        let log = try SQLiteLog(directory: folder.path, settings: settings)
        let commits = try log.fill(5, bytes: 100_000)
        #expect(code { try log.append(.sample(11...11, bytes: 1_000_000)) } == .full)
        try log.append(.sample(11...11, bytes: 1_000))
        #expect(try log.readAll() == commits + [.sample(11...11, bytes: 1_000)])
    }

    @Test func `settings outside their bounds are refused`() {
        var settings = SQLiteLogSettings()
        settings.writeAheadBytes = 1
        #expect(code { try settings.validate() } == .invalidSetting)
        settings = SQLiteLogSettings()
        settings.limitBytes = 0
        #expect(code { try settings.validate() } == .invalidSetting)
        settings = SQLiteLogSettings()
        settings.busyTimeout = .seconds(-1)
        #expect(
            code { _ = try SQLiteLog(directory: folder.path, settings: settings) }
                == .invalidSetting)
        #expect(!FileManager.default.fileExists(atPath: folder.path))
    }
}
