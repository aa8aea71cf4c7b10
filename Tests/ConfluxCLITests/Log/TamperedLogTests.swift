import ConfluxArguments
import ConfluxNode
import ConfluxVocabulary
import ConfluxWorker
import Foundation
import Testing

@testable import ConfluxCLI
@testable import ConfluxLog

/// A log that somebody has changed, with everything that would reveal it except the chain of hashes.
struct TamperedLogTests {
    private func verify(
        _ path: String, expecting anchor: LogAnchor? = nil
    ) throws -> Result<LogVerification, CommandFailure> {
        let file = try SQLiteLogFile(directory: path)
        defer { file.close() }
        return Result { () throws(CommandFailure) in
            try LogVerification(of: file, expecting: anchor)
        }
    }

    private func failure(
        of log: KeptLog, expecting anchor: LogAnchor? = nil
    ) throws -> CommandFailure? {
        guard case .failure(let failure) = try verify(log.path, expecting: anchor) else {
            return nil
        }
        #expect(failure.exitCode == .logFailed)
        return failure
    }

    // MARK: Anchors

    @Test(arguments: [1, 11, 17] as [UInt64])
    func `a whole log prints its anchor, and has every one that it ever had`(floor: UInt64)
        async throws
    {
        let whole = try KeptLog()
        let log = try KeptLog(from: floor)
        #expect(try anchors(of: whole).count == 10)
        let anchors = try anchors(of: log)
        let end = try #require(anchors.last)
        #expect(end.number == SequenceNumber(20))
        let run = try await Run.tool(["log", "--verify", log.path, "--json"])
        let line = try JSONValue(json: try #require(run.lines.first))
        #expect(line["/anchor"] == .string(end.description))
        #expect(line["/chained"] == .integer(JSONInteger(floor)))
        #expect(line["/expected"] == nil)
        let file = try SQLiteLogFile(directory: log.path)
        // Among them is the anchor of the entry before the floor, which the log remembers.
        for anchor in anchors + [try file.chain().end] {
            #expect(try failure(of: log, expecting: anchor) == nil, "\(anchor)")
        }
    }

    @Test func `a found anchor is reported in both forms`() async throws {
        let log = try KeptLog()
        let anchor = try #require(try anchors(of: log).dropLast(3).last)
        let command = ["log", "--verify", log.path, "--expect", anchor.description]
        let text = try await Run.tool(command)
        #expect(text.exitCode == .success)
        #expect(text.lines.first?.hasPrefix("intact, with the anchor of entry 14: ") == true)
        #expect(text.lines.last?.hasPrefix("anchor: 20:") == true)
        let json = try await Run.tool(command + ["--json"])
        let line = try JSONValue(json: try #require(json.lines.first))
        #expect(line["/expected"] == .string(anchor.description))
    }

    @Test func `an anchor of another log, or one within a commit, is not an anchor of this log`()
        throws
    {
        let log = try KeptLog()
        let end = try #require(try anchors(of: log).last)
        let foreign = try #require(try anchors(of: try KeptLog()).last)
        for anchor in [foreign, LogAnchor(SequenceNumber(19), end.hash)] {
            let failure = try failure(of: log, expecting: anchor)
            #expect(failure?.code == "anchorDiffers")
            #expect(failure?.message.contains("entry \(anchor.number)") == true)
        }
    }

    @Test func `an anchor of dropped entries is reported as such`() throws {
        let log = try KeptLog()
        let anchor = try #require(try anchors(of: log).first)
        let truncated = try KeptLog(from: 11)
        let failure = try failure(of: truncated, expecting: anchor)
        #expect(failure?.code == "anchorBelowFloor")
        #expect(failure?.message.contains("begins at entry 11") == true)
    }

    @Test func `an invalid anchor is a usage error, and so is one without a log`() async throws {
        let hash = String(repeating: "0", count: 64)
        for words in [["--verify", "x", "--expect", "7:12"], ["--expect", "7:\(hash)"]] {
            let error = await #expect(throws: UsageError.self) {
                try await Run.tool(["log"] + words)
            }
            #expect(error?.message.contains("--expect") == true)
        }
    }

    // MARK: Detected changes

    @Test(arguments: [7, 19] as [UInt64])
    func `an entry that was changed with its checksum is named`(first: UInt64) throws {
        let log = try KeptLog()
        try log.forge(first)
        let failure = try failure(of: log)
        #expect(failure?.code == "damaged")
        #expect(failure?.message.hasPrefix("Entries \(first) to \(first + 1) do not have") == true)
    }

    @Test func `entries rewritten with all hashes are whole, but lack the anchor`()
        throws
    {
        let log = try KeptLog()
        let before = try anchors(of: log)
        try log.forge(7)
        try log.rehash(from: 7)
        #expect(try failure(of: log) == nil)
        // The entries before the change still have their anchors.
        #expect(try failure(of: log, expecting: before[2]) == nil)
        for anchor in before[3...] {
            #expect(try failure(of: log, expecting: anchor)?.code == "anchorDiffers")
        }
    }

    @Test func `the anchor reveals entries removed from the end`() throws {
        let log = try KeptLog()
        let anchor = try #require(try anchors(of: log).last)
        try log.forger.change { $0.removeLast() }
        try log.run("UPDATE meta SET reached = 18")
        #expect(try failure(of: log) == nil)
        let failure = try failure(of: log, expecting: anchor)
        #expect(failure?.code == "anchorAboveEnd")
        #expect(failure?.message.contains("ends at entry 18") == true)
        #expect(failure?.message.contains("of entry 20") == true)
    }

    @Test func `a truncated log is whole, and a change after its floor is named`() throws {
        let log = try KeptLog(from: 11)
        #expect(try failure(of: log) == nil)
        try log.forge(11)
        #expect(try failure(of: log)?.message.hasPrefix("Entries 11 to 12 do not have") == true)
    }

    @Test func `an upgraded log says where its chain begins`() async throws {
        let log = try KeptLog()
        let genesis = ChainHash.genesis(of: log.log.id)
        func chain(from first: Int) throws {
            try log.forger.change { commits in
                commits = commits.map { link in
                    link.commit.first.rawValue < first
                        ? ChainedCommit(commit: link.commit, hash: nil) : link
                }
            }
            try log.run("UPDATE meta SET chained = \(first), base = x'\(genesis)'")
        }
        try chain(from: 13)
        #expect(try failure(of: log)?.message.hasPrefix("Entries 13 to 14 do not have") == true)
        try log.rehash(from: 13)
        let half = try await Run.tool(["log", "--verify", log.path])
        #expect(half.exitCode == .success)
        #expect(half.lines.first?.hasSuffix("; entries before 13 have no hashes") == true)
        #expect(half.lines.last?.hasPrefix("anchor: 20:") == true)
        try chain(from: 21)
        let none = try await Run.tool(["log", "--verify", log.path])
        #expect(none.exitCode == .success)
        #expect(none.lines.last?.hasPrefix("no anchor: ") == true)
        let json = try await Run.tool(["log", "--verify", log.path, "--json"])
        let line = try JSONValue(json: try #require(json.lines.first))
        #expect(line["/anchor"] == nil && line["/chained"] == .integer(21))
    }

    // MARK: Copies

    @Test func `a backup prints the anchor of its copy, and the restored log still has it`()
        async throws
    {
        let log = try KeptLog(from: 11)
        let anchor = try #require(try anchors(of: log).last)
        let copy = log.root + "/copy"
        let backup = try await Run.tool(["backup", copy, "--data", log.path])
        #expect(backup.lines.last == "anchor: \(anchor)")
        let back = log.root + "/back"
        let restored = try await Run.tool(["restore", copy, "--data", back])
        #expect(restored.lines.last == "anchor: \(anchor)")
        #expect(throws: Never.self) { try verify(back, expecting: anchor).get() }
    }

    @Test func `a changed backup is not restored, and a changed log makes no good backup`()
        async throws
    {
        let log = try KeptLog()
        let copy = log.root + "/copy"
        try log.forge(7)
        #expect(try await Run.tool(["backup", copy, "--data", log.path]).exitCode == .logFailed)
        let back = try await Run.tool(["restore", copy, "--data", log.root + "/back"])
        #expect(back.exitCode == .logFailed)
        #expect(!log.holdsLog("back"))
    }

    @Test func `a backup with the expected anchor is restored, and the anchor is printed`()
        async throws
    {
        let log = try KeptLog()
        log.log.close()
        let anchor = try #require(try anchors(of: log).dropLast(3).last)
        let text = try await Run.tool([
            "restore", log.path, "--data", log.root + "/text", "--expect", anchor.description,
        ])
        #expect(text.exitCode == .success)
        let told = "restored to \(log.root)/text, with the anchor of entry 14: entries 1 to 20 "
        #expect(text.lines.first?.hasPrefix(told) == true, "\(text.lines)")
        let json = try await Run.tool([
            "restore", log.path, "--data", log.root + "/json", "--expect", anchor.description,
            "--json",
        ])
        let line = try JSONValue(json: try #require(json.lines.first))
        #expect(line["/expected"] == .string(anchor.description))
        #expect(log.holdsLog("text") && log.holdsLog("json"))
    }

    @Test func `a backup without the expected anchor is not restored`() async throws {
        let log = try KeptLog()
        let before = try anchors(of: log)
        let end = try #require(before.last)
        // The changed entries look intact: without an anchor, they are restored.
        try log.forge(7)
        try log.rehash(from: 7)
        log.log.close()
        let zero = try #require(LogAnchor("40:" + String(repeating: "0", count: 64)))
        for (anchor, code) in [(end, "anchorDiffers"), (zero, "anchorAboveEnd")] {
            let back = log.root + "/back"
            let words = ["restore", log.path, "--data", back, "--expect", anchor.description]
            let run = try await Run.tool(words)
            #expect(run.exitCode == .logFailed && run.lines.isEmpty)
            let failure = try await Run.failure(of: words, RestoreCommand.run)
            #expect(failure?.code == code)
            #expect(failure?.message.hasPrefix("Nothing was restored. ") == true)
            #expect(!log.holdsLog("back"))
            #expect(!FileManager.default.fileExists(atPath: back + "/log.sqlite.partial"))
        }
        // The entries before the change still have their anchors.
        let other = try await Run.tool([
            "restore", log.path, "--data", log.root + "/back", "--expect", before[2].description,
        ])
        #expect(other.exitCode == .success && log.holdsLog("back"))
    }

    // MARK: Helpers

    private func anchors(of log: KeptLog) throws -> [LogAnchor] {
        try log.links.compactMap { link in link.hash.map { LogAnchor(link.commit.last, $0) } }
    }
}

extension KeptLog {
    /// The commits and their hashes.
    fileprivate var links: [ChainedCommit] {
        get throws {
            let file = try SQLiteLogFile(directory: path)
            defer { file.close() }
            return try file.readChained(from: file.floor, through: file.last, limitBytes: .max)
        }
    }

    /// Replaces a commit by another one with the same numbers and a valid checksum.
    fileprivate func forge(_ first: UInt64) throws {
        let commits = try links.map(\.commit)
        let index = try #require(commits.firstIndex { $0.first.rawValue == first })
        let former = index > 0 ? commits[index - 1].epoch : Epoch(commits[0].epoch.rawValue - 1)
        let forged = commit(
            LogClaim(
                epoch: commits[index].epoch, last: SequenceNumber(first - 1), lastEpoch: former))
        try #require(forged.last == commits[index].last && forged != commits[index])
        try forger.change { $0[index] = ChainedCommit(commit: forged, hash: $0[index].hash) }
    }

    /// Computes the hashes again, starting at a number.
    fileprivate func rehash(from first: UInt64) throws {
        let file = try SQLiteLogFile(directory: path)
        var hash = try file.chain().end.hash
        file.close()
        try forger.change { commits in
            commits = commits.map { link in
                if link.commit.first.rawValue < first {
                    hash = link.hash ?? hash
                    return link
                }
                hash = hash.next(link.commit)
                return ChainedCommit(commit: link.commit, hash: hash)
            }
        }
    }
}
