import ConfluxLog
import ConfluxVocabulary
import Foundation
import Testing

/// A log whose files somebody moves, removes or replaces while it is open: it writes nothing more.
@Suite struct MovedLogTests {
    private let folder = TemporaryFolder()
    private let aside = TemporaryFolder()
    private let files = FileManager.default

    private func open() throws -> SQLiteLog {
        var settings = SQLiteLogSettings.small()
        // Files of 64 KiB.
        settings.limitBytes = 1 << 20
        return try SQLiteLog(directory: folder.path, settings: settings)
    }

    /// Expects that the log takes nothing more, and that nothing was written into these files.
    private func expectStopped(
        _ log: SQLiteLog, in epoch: UInt64 = 1, naming path: String? = nil,
        sourceLocation: SourceLocation = #_sourceLocation
    ) throws {
        let before = try contents(of: folder.path)
        let next = log.last.rawValue + 1
        let error = #expect(throws: LogError.self, sourceLocation: sourceLocation) {
            try log.append(.sample(next...next, epoch: epoch))
        }
        #expect(error?.code == .moved, sourceLocation: sourceLocation)
        #expect(
            error?.message.contains(path ?? folder.path) == true, "\(String(describing: error))",
            sourceLocation: sourceLocation)
        // One that needs another file.
        #expect(
            code { try log.append(.sample(next...next, epoch: epoch, bytes: 70_000)) }
                == .moved, sourceLocation: sourceLocation)
        #expect(code { try log.save(.sample(2)) } == .moved, sourceLocation: sourceLocation)
        #expect(code { try log.confirm() } == .moved, sourceLocation: sourceLocation)
        #expect(code { _ = try log.claim() } == .moved, sourceLocation: sourceLocation)
        #expect(try contents(of: folder.path) == before, sourceLocation: sourceLocation)
        log.close()
        #expect(try contents(of: folder.path) == before, sourceLocation: sourceLocation)
    }

    private func contents(of path: String) throws -> [String: Data] {
        guard files.fileExists(atPath: path) else { return [:] }
        var found: [String: Data] = [:]
        for name in try files.contentsOfDirectory(atPath: path) where name != "aside" {
            found[name] = try Data(contentsOf: URL(filePath: "\(path)/\(name)"))
        }
        return found
    }

    private func restore(_ backup: TemporaryFolder) throws {
        let file = try SQLiteLogFile(directory: backup.path)
        try file.copy(to: folder.path)
        file.close()
    }

    /// A backup of the log as it is.
    private func backup() throws -> TemporaryFolder {
        let backup = TemporaryFolder()
        let file = try SQLiteLogFile(directory: folder.path)
        try file.copy(to: backup.path)
        file.close()
        return backup
    }

    @Test func `files that were moved aside in the same folder are noticed`() throws {
        let log = try open()
        try log.fill(3)
        let backup = try backup()
        try files.createDirectory(
            atPath: folder.path + "/aside", withIntermediateDirectories: true)
        for name in try files.contentsOfDirectory(atPath: folder.path) where name != "aside" {
            try files.moveItem(
                atPath: "\(folder.path)/\(name)", toPath: "\(folder.path)/aside/\(name)")
        }
        try restore(backup)
        let next = try open()
        try expectStopped(log, naming: folder.path + "/lock")
        #expect(try next.claim().last == SequenceNumber(6))
        try next.append(.sample(7...7, epoch: 2))
    }

    @Test func `a folder that was moved, removed, or replaced behind a link is noticed`() throws {
        let log = try open()
        try log.fill(3)
        let backup = try backup()
        try files.moveItem(atPath: folder.path, toPath: aside.path)
        try restore(backup)
        try expectStopped(log)

        let again = try open()
        try again.fill(1)
        try files.removeItem(atPath: folder.path)
        try expectStopped(again, in: 2)

        try files.removeItem(atPath: aside.path)
        let link = TemporaryFolder()
        try files.createDirectory(atPath: aside.path, withIntermediateDirectories: true)
        try files.createDirectory(atPath: folder.path, withIntermediateDirectories: true)
        try files.createSymbolicLink(atPath: link.path, withDestinationPath: aside.path)
        let linked = try SQLiteLog(directory: link.path, settings: .small())
        try linked.fill(2)
        try files.removeItem(atPath: link.path)
        try files.createSymbolicLink(atPath: link.path, withDestinationPath: folder.path)
        #expect(code { try linked.append(.sample(5...5)) } == .moved)
        #expect(try files.contentsOfDirectory(atPath: folder.path).isEmpty)
    }

    @Test(arguments: [
        "lock", "log.sqlite", "log.sqlite-wal", "entries-0000000000000000001.conflux",
    ])
    func `a file that was replaced is noticed`(name: String) throws {
        let log = try open()
        try log.fill(3)
        let path = "\(folder.path)/\(name)"
        let bytes = try Data(contentsOf: URL(filePath: path))
        try files.removeItem(atPath: path)
        try bytes.write(to: URL(filePath: path))
        // The write-ahead log matters when the database changes.
        if name != "log.sqlite-wal" {
            #expect(code { try log.append(.sample(7...7)) } == .moved)
        }
        #expect(code { try log.save(.sample(2)) } == .moved)
        #expect(code { try log.confirm() } == .moved)
    }

    @Test func `files that were overwritten in place are noticed`() throws {
        let log = try open()
        try log.fill(3)
        let backup = try backup()
        try log.append(.sample(7...8))
        for name in try files.contentsOfDirectory(atPath: backup.path) where name != "lock" {
            let target = try FileHandle(forWritingTo: URL(filePath: "\(folder.path)/\(name)"))
            try target.truncate(atOffset: 0)
            try target.write(
                contentsOf: Data(contentsOf: URL(filePath: "\(backup.path)/\(name)")))
            try target.close()
        }
        #expect(code { try log.append(.sample(9...9)) } == .moved)
    }

    @Test func `entries that were overwritten in place are noticed, though all sizes are the same`()
        throws
    {
        let log = try open()
        try log.fill(3)
        let path = "\(folder.path)/entries-0000000000000000001.conflux"
        let former = try Data(contentsOf: URL(filePath: path))
        try log.append(.sample(7...8))
        let file = try FileHandle(forWritingTo: URL(filePath: path))
        try file.write(contentsOf: former)
        try file.close()
        #expect(code { try log.append(.sample(9...9)) } == .moved)
    }

    @Test func `what the log itself changes is not taken for somebody else's work`() throws {
        var settings = SQLiteLogSettings.small()
        settings.limitBytes = 1 << 20
        let log = try SQLiteLog(directory: folder.path, settings: settings)
        try log.fill(40, bytes: 10_000)
        for number in [70, 80] as [UInt64] { try log.save(.sample(number, bytes: 200_000)) }
        try log.truncateAll(below: 71)
        try log.confirm()
        try log.append(.sample(81...81))
        #expect(try log.readAll().last == .sample(81...81))
    }
}
