import CSQLite
@testable import ConfluxLog
import ConfluxVocabulary
import Forging
import Foundation
import Testing

@Suite struct SQLiteDamageTests {
    private let folder = TemporaryFolder()

    /// A log of 1–2, 3–4, 5–6, 7–8 whose files were changed, and that was opened again.
    private func damaged(
        by change: (EntryForger) throws -> Void
    ) throws -> (SQLiteLog, [LoggedCommit]) {
        let log = try SQLiteLog(directory: folder.path, settings: .small())
        let commits = try log.fill(4)
        log.close()
        try change(folder.forger)
        return (try SQLiteLog(directory: folder.path, settings: .small()), commits)
    }

    private func failure(_ log: SQLiteLog, from: UInt64) -> LogError? {
        do throws(LogError) {
            _ = try log.read(from: SequenceNumber(from), limitBytes: .max)
            return nil
        } catch {
            return error
        }
    }

    /// Of the header: the length, what was on disk, the mark, the flags, the numbers, the epoch, the checksum,
    /// the hash, the seal. Then the commit's bytes.
    @Test(arguments: [0, 4, 8, 15, 16, 24, 32, 40, 47, 48, 79, 80, 87, 88, 97])
    func `a damaged commit is named, and intact ones around it are served`(offset: Int) throws {
        let (log, commits) = try damaged { try $0.flip(5, at: offset) }
        #expect(try log.readAll() == Array(commits[..<2]))
        let error = try #require(failure(log, from: 5))
        #expect(error.code == .damaged)
        #expect(error.numbers == SequenceNumber(5)...SequenceNumber(6))
        #expect(error.message.contains("5 to 6"))
        #expect(failure(log, from: 6)?.numbers == SequenceNumber(5)...SequenceNumber(6))
        #expect(try log.read(from: SequenceNumber(7), limitBytes: .max) == [commits[3]])
        #expect(try log.read(from: SequenceNumber(3), limitBytes: .max) == [commits[1]])
    }

    @Test func `a changed number is damage`() throws {
        let (log, commits) = try damaged { forger in
            try forger.change { rows in
                rows[2] = ChainedCommit(
                    commit: LoggedCommit(
                        first: SequenceNumber(5), last: SequenceNumber(5), epoch: Epoch(1),
                        bytes: rows[2].commit.bytes), hash: rows[2].hash)
            }
        }
        #expect(try log.readAll() == Array(commits[..<2]) + [.sample(5...5)])
        #expect(failure(log, from: 6)?.numbers == SequenceNumber(6)...SequenceNumber(6))
    }

    @Test func `a missing commit is named, and intact ones around it are served`() throws {
        let (log, commits) = try damaged { try $0.change { rows in rows.remove(at: 1) } }
        #expect(try log.readAll() == [commits[0]])
        #expect(failure(log, from: 3)?.numbers == SequenceNumber(3)...SequenceNumber(4))
        #expect(failure(log, from: 4)?.numbers == SequenceNumber(3)...SequenceNumber(4))
        #expect(try log.read(from: SequenceNumber(5), limitBytes: .max) == Array(commits[2...]))
        #expect(try log.read(from: SequenceNumber(2), limitBytes: .max) == [commits[0]])
    }

    @Test func `missing first entries are named`() throws {
        let (log, _) = try damaged { try $0.change { rows in rows.removeFirst(2) } }
        #expect(failure(log, from: 1)?.numbers == SequenceNumber(1)...SequenceNumber(4))
    }

    @Test(arguments: [24, 90])
    func `a log whose last commit is damaged is not opened, and stays as it is`(
        offset: Int
    ) throws {
        let log = try SQLiteLog(directory: folder.path, settings: .small())
        let commits = try log.fill(4)
        log.close()
        let file = URL(filePath: try #require(try folder.forger.paths.first))
        let intact = try Data(contentsOf: file)
        try folder.forger.flip(7, at: offset)
        let flipped = try Data(contentsOf: file)
        #expect(
            code { _ = try SQLiteLog(directory: folder.path, settings: .small()) } == .damaged)
        #expect(code { _ = try SQLiteLogFile(directory: folder.path) } == .damaged)
        #expect(try Data(contentsOf: file) == flipped)
        try intact.write(to: file)
        #expect(try SQLiteLog(directory: folder.path, settings: .small()).readAll() == commits)
    }

    @Test func `a damaged part of a file is damage`() throws {
        let log = try SQLiteLog(directory: folder.path, settings: .small())
        try log.fill(40, bytes: 12_000)
        log.close()
        let file = try FileHandle(
            forUpdating: URL(filePath: try #require(try folder.forger.paths.first)))
        try file.seek(toOffset: 200_000)
        try file.write(contentsOf: Data(repeating: 0xFF, count: 32_768))
        try file.close()
        let again = try SQLiteLog(directory: folder.path, settings: .small())
        let reader = try again.makeReader()
        try expectDamagePassed { from in
            try again.read(from: SequenceNumber(from), limitBytes: 40_000)
        }
        try expectDamagePassed { from in
            try reader.read(
                from: SequenceNumber(from), through: SequenceNumber(80), limitBytes: 40_000)
        }
        reader.close()
    }

    /// Expects that a reader that continues after each damage reaches the end of 40 commits, and is told of
    /// all that are missing.
    private func expectDamagePassed(_ read: (UInt64) throws -> [LoggedCommit]) throws {
        var next: UInt64 = 1
        var whole = 0
        var damaged: [ClosedRange<SequenceNumber>] = []
        while next <= 80 {
            do {
                let found = try read(next)
                #expect(found.first?.first == SequenceNumber(next))
                whole += found.count
                next = try #require(found.last).last.rawValue + 1
            } catch let error as LogError {
                let numbers = try #require(error.numbers)
                #expect(error.code == .damaged && numbers.contains(SequenceNumber(next)))
                damaged.append(numbers)
                next = numbers.upperBound.rawValue + 1
            }
        }
        #expect(!damaged.isEmpty && whole > 30 && whole < 40)
    }
}

/// A connection like that of another program.
final class OtherConnection {
    private var connection: OpaquePointer?

    init(_ path: String) throws {
        try #require(sqlite3_open_v2(path, &connection, SQLITE_OPEN_READWRITE, nil) == SQLITE_OK)
    }

    func run(_ statements: String) throws { try #require(code(statements) == SQLITE_OK) }

    /// Runs statements.
    ///
    /// - Returns: SQLite's result.
    func code(_ statements: String) -> Int32 { sqlite3_exec(connection, statements, nil, nil, nil) }

    deinit { sqlite3_close_v2(connection) }
}
