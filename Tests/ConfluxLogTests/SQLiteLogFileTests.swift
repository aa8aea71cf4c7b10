import ConfluxLog
import ConfluxVocabulary
import Forging
import Foundation
import Testing

/// A log that is read and copied while another program owns it.
@Suite struct SQLiteLogFileTests {
    private let folder = TemporaryFolder()
    private let other = TemporaryFolder()

    private func code(_ body: () throws(LogError) -> Void) -> LogError.Code? {
        do throws(LogError) {
            try body()
            return nil
        } catch {
            return error.code
        }
    }

    private func everything(_ file: SQLiteLogFile) throws -> [LoggedCommit] {
        try file.read(from: SequenceNumber(1), through: file.last, limitBytes: .max)
    }

    @Test func `a copy has the log's content and is a separate log`() throws {
        let log = try SQLiteLog(directory: folder.path, settings: .small())
        let commits = try log.fill(3)
        let checkpoint = SavedCheckpoint(sequence: commits[1].last, bytes: [1, 2, 3])
        for piece in checkpoint.pieces() { try log.save(piece) }
        let file = try SQLiteLogFile(directory: folder.path)
        try file.copy(to: other.path + "/copy")
        #expect(try everything(file) == commits)
        file.close()
        #expect(
            code { () throws(LogError) in _ = try file.checkpoint(through: SequenceNumber(9)) }
                == .closed)
        // Its owner appends more, and the copy does not change.
        let more = try log.fill(2)
        #expect(try log.readAll() == commits + more)
        log.close()

        let copy = try SQLiteLog(directory: other.path + "/copy", settings: .small())
        #expect(copy.id == log.id && copy.last == commits[2].last)
        #expect(try copy.readAll() == commits)
        #expect(try copy.checkpoint(through: copy.last) == checkpoint)
        #expect(try copy.claim().epoch > Epoch(1))
        copy.close()
    }

    @Test func `a copy is made into a folder without a log, even after an interrupted copy`() throws
    {
        let log = try SQLiteLog(directory: folder.path, settings: .small())
        try log.fill(2)
        let file = try SQLiteLogFile(directory: folder.path)
        let target = other.path + "/copy"
        try FileManager.default.createDirectory(atPath: target, withIntermediateDirectories: true)
        try Data("half".utf8).write(to: URL(filePath: target + "/log.sqlite.partial"))
        #expect(
            code { () throws(LogError) in _ = try SQLiteLogFile(directory: target) } == .notALog)
        try file.copy(to: target)
        #expect(!FileManager.default.fileExists(atPath: target + "/log.sqlite.partial"))
        #expect(code { () throws(LogError) in try file.copy(to: target) } == .inUse)
        // A log can't be copied into its own folder, which has an owner.
        #expect(code { () throws(LogError) in try file.copy(to: folder.path) } == .inUse)
        #expect(
            code { () throws(LogError) in try file.copy(to: "/proc/conflux") } == .unusableFolder)
        log.close()
    }

    @Test func `a copy without its entries is damaged`() throws {
        let log = try SQLiteLog(directory: folder.path, settings: .small())
        // The log was claimed when it was empty, and nothing but entries was written since.
        try log.fill(3)
        try SQLiteLogFile(directory: folder.path).copy(to: other.path)
        log.close()
        for path in try other.forger.paths { try FileManager.default.removeItem(atPath: path) }
        #expect(
            code { () throws(LogError) in _ = try SQLiteLogFile(directory: other.path) }
                == .damaged)
        #expect(
            code { () throws(LogError) in
                _ = try SQLiteLog(directory: other.path, settings: .small())
            } == .damaged)
    }

    @Test func `a folder may have a quote in its name`() throws {
        let log = try SQLiteLog(directory: folder.path, settings: .small())
        let commits = try log.fill(1)
        let file = try SQLiteLogFile(directory: folder.path)
        try file.copy(to: other.path + "/it's a 'copy'")
        #expect(
            try everything(try SQLiteLogFile(directory: other.path + "/it's a 'copy'")) == commits)
        log.close()
    }

    @Test func `a file that is not a log, or is damaged, is reported`() throws {
        #expect(
            code { () throws(LogError) in _ = try SQLiteLogFile(directory: folder.path) }
                == .notALog)
        let log = try SQLiteLog(directory: folder.path, settings: .small())
        try log.fill(4)
        log.close()
        try folder.forger.flip(5, at: 40)
        let file = try SQLiteLogFile(directory: folder.path)
        let rest = code { () throws(LogError) in
            _ = try file.read(from: SequenceNumber(5), through: file.last, limitBytes: .max)
        }
        #expect(rest == .damaged)
    }
}
