import ConfluxHashing
import ConfluxLog
import ConfluxNode
import ConfluxProtocol
import ConfluxVocabulary
import ConfluxWorker
import Foundation
import Testing

@testable import ConfluxCLI

/// What is checked of a log on disk, and how a log is restored from a copy.
struct RestoreTests {
    private func failure(of log: KeptLog) throws -> CommandFailure? {
        let file = try SQLiteLogFile(directory: log.path)
        defer { file.close() }
        do throws(CommandFailure) {
            _ = try LogVerification(of: file)
            return nil
        } catch {
            return error
        }
    }

    @Test(arguments: [1, 3, 11, 17] as [UInt64])
    func `a log is whole from its floor on, with its checkpoints and snapshots`(floor: UInt64)
        async throws
    {
        let log = try KeptLog(from: floor)
        let run = try await Run.tool(["log", "--verify", log.path, "--json"])
        #expect(run.exitCode == .success)
        let line = try JSONValue(json: try #require(run.lines.first))
        #expect(line["/floor"] == .integer(JSONInteger(floor)))
        #expect(line["/last"] == .integer(20))
        #expect(line["/commits"] == .integer(JSONInteger((21 - floor) / 2)))
        #expect(line["/epoch"] == .integer(10))
        #expect(line["/snapshots"] == .integer(1))
    }

    @Test func `a log that was truncated needs one checkpoint that can be read`() throws {
        let log = try KeptLog(from: 11)
        try log.run("UPDATE checkpoints SET checksum = checksum + 1 WHERE sequence = 16")
        #expect(try failure(of: log) == nil)
        try log.run("UPDATE checkpoints SET checksum = checksum + 1 WHERE sequence = 18")
        let damaged = try #require(try failure(of: log))
        #expect(damaged.exitCode == .logFailed && damaged.code == "damaged")
        #expect(damaged.message.contains("begins at entry 11"))
        try log.run("DELETE FROM checkpoints")
        #expect(try failure(of: log)?.message.contains("there is none") == true)
    }

    @Test func `a log from entry 1 needs no checkpoint`() throws {
        let log = try KeptLog()
        try log.run("DELETE FROM checkpoints")
        #expect(try failure(of: log) == nil)
    }

    @Test func `a log can't start from a checkpoint below its floor`() throws {
        let log = try KeptLog(from: 17)
        try log.run("DELETE FROM checkpoints; UPDATE meta SET floor = 19")
        #expect(try failure(of: log)?.message.contains("begins at entry 19") == true)
    }

    @Test func `entries must follow from the checkpoint before them`() throws {
        let log = try KeptLog(from: 11)
        // This checkpoint claims to be at 16, but belongs to another history.
        let other = try KeptLog(from: 1)
        try log.save(other.checkpoints[0].encoded(), at: SequenceNumber(16))
        #expect(try failure(of: log)?.message.contains("no checkpoint says") == true)
    }

    @Test func `a damaged last entry is named, and no log is made of it`() async throws {
        let log = try KeptLog(from: 11)
        log.log.close()
        try log.forger.flip(19, at: 100)
        let words = ["restore", log.path, "--data", log.root + "/back"]
        let failure = try await Run.failure(of: words, RestoreCommand.run)
        #expect(failure?.code == "damaged")
        #expect(failure?.message.contains("ends at 18, and had entry 20") == true)
        #expect(!log.holdsLog("back"))
    }

    @Test(arguments: [11, 15, 17] as [UInt64])
    func `a damaged entry is named, before the checkpoint and after it`(first: UInt64) throws {
        let log = try KeptLog(from: 11)
        try log.forger.flip(first, at: 100)
        let damaged = try #require(try failure(of: log))
        #expect(damaged.code == "damaged")
        #expect(damaged.message.contains("Entries \(first) to \(first + 1)"))
    }

    @Test func `a damaged snapshot is named, and so is one without its digest`() throws {
        let log = try KeptLog()
        try log.run("UPDATE snapshot_pieces SET bytes = CAST('stale' AS BLOB)")
        let damaged = try #require(try failure(of: log))
        #expect(damaged.code == "damaged" && damaged.message.contains("shared/shared at 18"))
        let other = try KeptLog(digest: Digest(of: [7]))
        let differing = try #require(try failure(of: other))
        #expect(differing.code == "damaged" && differing.message.contains("\(Digest(of: [7]))"))
    }

    @Test func `a backup becomes a log with the same id`() async throws {
        let log = try KeptLog(from: 11)
        let id = log.log.id
        log.log.close()
        let target = log.root + "/back"
        let run = try await Run.tool(["restore", log.path, "--data", target, "--json"])
        #expect(run.exitCode == .success)
        let line = try JSONValue(json: try #require(run.lines.first))
        #expect(line["/log"] == .string(id.description))
        #expect(line["/floor"] == .integer(11))
        #expect(line["/last"] == .integer(20))
        let back = try SQLiteLog(directory: target, durability: .os)
        #expect(back.id == id && back.floor == SequenceNumber(11))
        #expect(try back.snapshots() == [KeptLog.snapshot])
        #expect(try back.claim().epoch == Epoch(11))
        back.close()
        // It is not restored over a log, which stays as it is.
        let again = try await Run.tool(["restore", log.path, "--data", target])
        #expect(again.exitCode == .cannotCreate)
    }

    @Test func `no log is made of a damaged or missing backup`() async throws {
        let log = try KeptLog(from: 11)
        try log.forger.flip(17, at: 100)
        log.log.close()
        let arguments = ["restore", log.path, "--data", log.root + "/back"]
        #expect(try await Run.tool(arguments).exitCode == .logFailed)
        #expect(!log.holdsLog("back"))
        #expect(
            !FileManager.default.fileExists(atPath: log.root + "/back/log.sqlite.partial"))
        try log.forger.flip(17, at: 100)
        #expect(try await Run.tool(arguments).exitCode == .success)
        let none = try await Run.tool(
            ["restore", log.root + "/nowhere", "--data", log.root + "/other"])
        #expect(none.exitCode == .noInput)
        #expect(!FileManager.default.fileExists(atPath: log.root + "/other"))
    }

    @Test func `a served log can't be restored, and nothing is restored into a used folder`()
        async throws
    {
        let log = try KeptLog()
        let served = try await Run.tool(["restore", log.path, "--data", log.root + "/back"])
        #expect(served.exitCode == .cannotCreate)
        #expect(!log.holdsLog("back"))
        let other = try KeptLog()
        other.log.close()
        let used = try await Run.tool(["restore", other.path, "--data", log.path])
        #expect(used.exitCode == .cannotCreate)
        #expect(try log.log.claim().last == SequenceNumber(20))
    }

    @Test(arguments: ["log.sqlite-wal", "log.sqlite-journal"])
    func `files that another log left do not affect a restored log`(_ name: String) async throws {
        let log = try KeptLog()
        log.log.close()
        let target = log.root + "/back"
        try FileManager.default.createDirectory(atPath: target, withIntermediateDirectories: true)
        try Data("left".utf8).write(to: URL(filePath: "\(target)/\(name)"))
        let arguments = ["restore", log.path, "--data", target]
        #expect(try await Run.tool(arguments).exitCode == .cannotCreate)
        #expect(!log.holdsLog("back"))
        try FileManager.default.removeItem(atPath: "\(target)/\(name)")
        #expect(try await Run.tool(arguments).exitCode == .success)
    }
}
