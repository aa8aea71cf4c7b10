import ConfluxVocabulary
import Forging
import Foundation
import Testing

@testable import ConfluxLog

/// The chain of hashes: how it continues, and what it detects.
@Suite struct ChainTests {
    private let folder = TemporaryFolder()
    private let other = TemporaryFolder()

    private func open() throws -> SQLiteLog {
        try SQLiteLog(directory: folder.path, settings: .small())
    }

    private func followed() throws -> Followed { try Followed(folder.path) }

    /// A log of 1–2 … 19–20, closed.
    ///
    /// - Returns: Its anchor.
    @discardableResult
    private func fill() throws -> LogAnchor {
        let log = try open()
        try log.fill(10)
        log.close()
        let end = try #require(try followed().end)
        #expect(end.number == SequenceNumber(20))
        return end
    }

    private func forge(_ body: ([ChainedCommit]) throws -> [ChainedCommit]) throws {
        try folder.forger.change { $0 = try body($0) }
        try folder.hideEnd()
    }

    // MARK: Detection

    @Test func `a commit that was changed with its checksum is named`() throws {
        try fill()
        try forge { rows in
            var rows = rows
            rows[3] = rows[3].changed(bytes: [1, 2, 3])
            return rows
        }
        // A mere read can't detect it.
        #expect(try open().readAll()[3].bytes == [1, 2, 3])
        #expect(try followed() == .broken(at: 7))
    }

    @Test func `a commit that was changed with its own hash is named by the next one`() throws {
        try fill()
        try forge { rows in
            var rows = rows
            rows[3] = rows[3].changed(bytes: [1, 2, 3])
            rows[3] = rows[3].rehashed(rows[2].hash?.next(rows[3].commit))
            return rows
        }
        #expect(try followed() == .broken(at: 9))
    }

    @Test func `a commit that was removed is named, though later ones were renumbered`() throws {
        try fill()
        try forge { rows in
            Array(rows[..<3]) + rows[4...].map { $0.changed(by: -2) }
        }
        #expect(try open().readAll().count == 9)
        #expect(try followed() == .broken(at: 7))
    }

    @Test(arguments: [true, false])
    func `commits that were swapped are named`(_ hashesGoAlong: Bool) throws {
        try fill()
        try forge { rows in
            var rows = rows
            rows.swapAt(2, 5)
            rows[2] = rows[2].changed(by: -6)
            rows[5] = rows[5].changed(by: 6)
            if !hashesGoAlong {
                let hash = rows[2].hash
                rows[2] = rows[2].rehashed(rows[5].hash)
                rows[5] = rows[5].rehashed(hash)
            }
            return rows
        }
        #expect(try open().readAll().count == 10)
        #expect(try followed() == .broken(at: 5))
    }

    @Test(arguments: [nil, ChainHash.lost])
    func `a hash that was changed is named`(_ hash: ChainHash?) throws {
        try fill()
        try forge { rows in rows.map { $0.commit.first.rawValue == 9 ? $0.rehashed(hash) : $0 } }
        #expect(try open().readAll().count == 10)
        #expect(try followed() == .broken(at: 9))
    }

    @Test func `a log that claims to be chained from a later number is reported`() throws {
        try fill()
        try folder.run("UPDATE meta SET chained = 9")
        #expect(try followed() == .broken(at: 1))
    }

    @Test func `a log that was rewritten with all its hashes lacks its anchor`() throws {
        let anchor = try fill()
        try forge { rows in
            var rows = rows
            rows[3] = rows[3].changed(bytes: [1, 2, 3])
            return rows.rehashed(from: 3)
        }
        let end = try #require(try followed().end)
        #expect(end.number == anchor.number && end.hash != anchor.hash)
    }

    @Test func `a log that lost its end does not reach its anchor`() throws {
        let anchor = try fill()
        try forge { rows in rows.dropLast(2) }
        #expect(try followed().end.map { $0.number < anchor.number } == true)
    }

    // MARK: Continuation

    @Test func `the chain begins with the log's id, so no other log has its hashes`() throws {
        let log = try open()
        #expect(try followed() == .whole(from: 1, LogAnchor(.zero, .genesis(of: log.id))))
        let commit = try log.fill(1)[0]
        #expect(try followed().end?.hash == ChainHash.genesis(of: log.id).next(commit))
    }

    @Test func `several commits of one append are chained one by one`() throws {
        let log = try open()
        let epoch = try log.claim().epoch.rawValue
        let commits = [1, 3, 5].map { LoggedCommit.sample($0...$0 + 1, epoch: epoch) }
        try log.append(commits, expecting: .zero, forced: false)
        #expect(
            try followed().end?.hash
                == commits.reduce(ChainHash.genesis(of: log.id)) { $0.next($1) })
        try log.append(.sample(7...7))
        #expect(try followed().end?.number == SequenceNumber(7))
    }

    @Test func `an append that fails or is repeated leaves the chain unchanged`() throws {
        var settings = SQLiteLogSettings.small()
        settings.busyTimeout = .zero
        settings.limitBytes = 1 << 20
        let log = try SQLiteLog(directory: folder.path, settings: settings)
        try log.fill(2)
        try log.releaseWriteLock()
        let writer = try OtherConnection(folder.database)
        // The next commit must follow the actual end, not the failed append.
        func expectFailure(_ code: LogError.Code, _ append: () throws -> Void) throws {
            let end = try #require(try followed().end)
            #expect(ConfluxLogTests.code(of: append) == code)
            #expect(try followed().end == end)
            let next = LoggedCommit.sample(log.last.next.rawValue...log.last.next.rawValue)
            try log.append(next)
            #expect(try followed().end?.hash == end.hash.next(next))
            // The log already has it.
            try log.append(next, forced: true)
            #expect(try followed().end?.hash == end.hash.next(next))
        }
        try writer.run("BEGIN IMMEDIATE")
        #expect(code { try log.append(.sample(5...5)) } == .failed)
        try writer.run("ROLLBACK")
        try expectFailure(.full) { try log.append(.sample(5...5, bytes: 2 << 20)) }
        try expectFailure(.full) {
            let commits: [LoggedCommit] = [.sample(6...6), .sample(7...7, bytes: 2 << 20)]
            try log.append(commits, expecting: SequenceNumber(5), forced: false)
        }
        try expectFailure(.endDiffers) { try log.append(.sample(9...9)) }
        try expectFailure(.superseded) { try log.append(.sample(8...8, epoch: 7)) }
    }

    @Test func `the chain continues when the log is opened again, and in a copy`() throws {
        let anchor = try fill()
        try SQLiteLogFile(directory: folder.path).copy(to: other.path)
        #expect(try Followed(other.path) == .whole(from: 1, anchor))
        try open().fill(3)
        #expect(try followed().end?.number == SequenceNumber(26))
        try SQLiteLog(directory: other.path, settings: .small()).fill(1)
        #expect(try Followed(other.path).end?.number == SequenceNumber(22))
    }

    @Test
    func
        `an owner whose lock was removed writes nothing more, and the chain of the new owner is whole`()
        throws
    {
        func fill(_ log: SQLiteLog, _ count: Int) throws {
            try log.fill(count)
            try log.releaseWriteLock()
        }
        let former = try open()
        try fill(former, 2)
        try FileManager.default.removeItem(atPath: folder.path + "/lock")
        let newer = try open()
        try fill(newer, 2)
        #expect(code { try former.append(.sample(5...6)) } == .moved)
        #expect(code { try former.append(.sample(9...9)) } == .moved)
        #expect(code { _ = try former.claim() } == .moved)
        #expect(try followed().end?.number == SequenceNumber(8))
        try fill(newer, 1)
        #expect(try followed().end?.number == SequenceNumber(10))
    }

    @Test func `an end without a hash prevents a claim`() throws {
        try fill()
        try forge { rows in rows.map { $0.commit.first.rawValue == 19 ? $0.rehashed(nil) : $0 } }
        let log = try open()
        #expect(code { _ = try log.claim() } == .damaged)
        #expect(try folder.number("SELECT epoch FROM meta") == 1)
    }

    // MARK: Truncation

    /// Truncates the log that ``fill()`` makes.
    private func truncate(below floor: UInt64) throws {
        let log = try open()
        _ = try log.claim()
        for number in [16, 18] as [UInt64] { try log.save(.sample(number)) }
        try log.truncateAll(below: floor)
        log.close()
    }

    @Test func `a log that was truncated is chained from its floor on`() throws {
        let anchor = try fill()
        try truncate(below: 7)
        #expect(try followed() == .whole(from: 7, anchor))
        try open().fill(2)
        #expect(try followed().end?.number == SequenceNumber(24))
        try SQLiteLogFile(directory: folder.path).copy(to: other.path)
        #expect(try Followed(other.path) == (try followed()))
    }

    @Test(arguments: [7, 9] as [UInt64])
    func `a change after the floor is named, and so is one at the floor`(first: UInt64) throws {
        try fill()
        try truncate(below: 7)
        try forge { rows in
            rows.map { $0.commit.first.rawValue == first ? $0.changed(bytes: [1]) : $0 }
        }
        #expect(try followed() == .broken(at: first))
    }

    @Test(arguments: [3, 5, 7, 9] as [UInt64])
    func `truncation removes a broken place below the new floor`(floor: UInt64) throws {
        let anchor = try fill()
        try forge { rows in rows.map { $0.commit.first.rawValue == 5 ? $0.rehashed(nil) : $0 } }
        try truncate(below: floor)
        let whole = Followed.whole(from: 9, anchor)
        #expect(try followed() == (floor < 9 ? .broken(at: max(5, floor)) : whole))
    }
}
