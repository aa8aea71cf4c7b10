import CSQLite
import ConfluxLog
import ConfluxVocabulary
import Foundation
import Testing

@Suite struct SQLiteDamageTests {
    private let folder = TemporaryFolder()

    /// A log of 1–2, 3–4, 5–6, 7–8 that was changed by SQL and opened again.
    private func damaged(by statements: String) throws -> (SQLiteLog, [LoggedCommit]) {
        let log = try SQLiteLog(directory: folder.path, settings: .small())
        let commits = try log.fill(4)
        log.close()
        try folder.run(statements)
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

    @Test(arguments: [
        "bytes = zeroblob(10)", "bytes = CAST(bytes || x'00' AS BLOB)", "bytes = x''", "epoch = 2",
        "checksum = checksum + 1",
    ])
    func `a damaged row is named, and intact rows around it are served`(_ change: String) throws {
        let (log, commits) = try damaged(by: "UPDATE commits SET \(change) WHERE first = 5")
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
        let (log, commits) = try damaged(by: "UPDATE commits SET last = 5 WHERE first = 5")
        #expect(try log.readAll() == Array(commits[..<2]))
        #expect(failure(log, from: 5)?.numbers == SequenceNumber(5)...SequenceNumber(6))
        #expect(failure(log, from: 6)?.numbers?.contains(SequenceNumber(6)) == true)
    }

    @Test func `a missing row is named, and intact rows around it are served`() throws {
        let (log, commits) = try damaged(by: "DELETE FROM commits WHERE first = 3")
        #expect(try log.readAll() == [commits[0]])
        #expect(failure(log, from: 3)?.numbers == SequenceNumber(3)...SequenceNumber(4))
        #expect(failure(log, from: 4)?.numbers == SequenceNumber(3)...SequenceNumber(4))
        #expect(try log.read(from: SequenceNumber(5), limitBytes: .max) == Array(commits[2...]))
        #expect(try log.read(from: SequenceNumber(2), limitBytes: .max) == [commits[0]])
    }

    @Test func `missing first entries are named`() throws {
        let (log, _) = try damaged(by: "DELETE FROM commits WHERE first < 5")
        #expect(failure(log, from: 1)?.numbers == SequenceNumber(1)...SequenceNumber(4))
    }

    @Test func `a damaged end prevents a claim`() throws {
        let (log, commits) = try damaged(
            by: "UPDATE commits SET bytes = zeroblob(10) WHERE first = 7")
        #expect(code { _ = try log.claim() } == .damaged)
        #expect(try folder.number("SELECT epoch FROM meta") == 1)
        #expect(try log.readAll() == Array(commits[..<3]))
    }

    @Test func `the schema itself keeps another writer from leaving a hole`() throws {
        let log = try SQLiteLog(directory: folder.path, settings: .small())
        try log.fill(2)
        try folder.run("INSERT INTO commits VALUES (6, 6, 1, 0, x'', NULL)")
        try folder.run("INSERT INTO commits VALUES (5, 5, 9, 0, x'', NULL)")
        #expect(try folder.number("SELECT count(*) FROM commits") == 2)
    }

    @Test func `a damaged page is damage`() throws {
        let log = try SQLiteLog(directory: folder.path, settings: .small())
        try log.fill(40, bytes: 12_000)
        log.close()
        // Otherwise the page would be read from the write-ahead log, where it is intact.
        try folder.run("PRAGMA wal_checkpoint(TRUNCATE)")
        let url = URL(fileURLWithPath: folder.database)
        let file = try FileHandle(forUpdating: url)
        try file.seek(toOffset: UInt64(16_384 * 20))
        try file.write(contentsOf: Data(repeating: 0xFF, count: 16_384 * 2))
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

    func run(_ statements: String) throws {
        try #require(sqlite3_exec(connection, statements, nil, nil, nil) == SQLITE_OK)
    }

    deinit { sqlite3_close_v2(connection) }
}
