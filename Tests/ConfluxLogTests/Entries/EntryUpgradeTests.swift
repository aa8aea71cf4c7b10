import ConfluxVocabulary
import Forging
import Foundation
import Testing

@testable import ConfluxLog

/// A log whose commits are rows of its database is moved into files.
@Suite struct EntryUpgradeTests {
    private let folder = TemporaryFolder(isQuick: true)

    private func open() throws -> SQLiteLog {
        try SQLiteLog(directory: folder.path, settings: .small())
    }

    /// A closed log of 1–2 … 39–40 in the fourth format.
    ///
    /// - Returns: Its commits, and the end of its chain.
    private func fill() throws -> ([LoggedCommit], Followed) {
        let log = try open()
        let commits = try log.fill(20, bytes: 1_000)
        for number in [36, 40] as [UInt64] { try log.save(.sample(number)) }
        try log.keep(.sample(38))
        log.close()
        let followed = try Followed(folder.path)
        try folder.downgrade(to: 4)
        #expect(try folder.number("SELECT count(*) FROM commits") == 20)
        return (commits, followed)
    }

    @Test func `a log of the fourth format keeps its commits, hashes and snapshots`() throws {
        let (commits, followed) = try fill()
        #expect(try Followed(folder.path) == followed)
        let log = try open()
        #expect(try log.readAll() == commits)
        #expect(try Followed(folder.path) == followed)
        #expect(try log.snapshots() == [.sample(38)])
        #expect(try log.checkpoint(through: log.last) == .sample(40))
        try log.fill(2)
        log.close()
        #expect(try open().readAll().count == 22)
    }

    @Test(arguments: [1, 7, 39])
    func `a log with a damaged row is not moved, and stays as it is`(first: Int) throws {
        let (commits, _) = try fill()
        try folder.run("UPDATE commits SET checksum = checksum + 1 WHERE first = \(first)")
        // Before it is moved, all other commits can be read.
        let file = try SQLiteLogFile(directory: folder.path)
        let damaged = #expect(throws: LogError.self) {
            try file.read(
                from: SequenceNumber(UInt64(first)), through: file.last, limitBytes: .max)
        }
        let numbers = SequenceNumber(UInt64(first))...SequenceNumber(UInt64(first + 1))
        #expect(damaged?.numbers == numbers)
        let rest = try file.read(
            from: numbers.upperBound.next, through: file.last, limitBytes: .max)
        #expect(rest == commits.filter { $0.first > numbers.upperBound })
        file.close()
        let error = #expect(throws: LogError.self) { try open() }
        #expect(error?.code == .damaged)
        #expect(error?.message.contains("Entries \(first) to \(first + 1)") == true)
        #expect(try folder.number("PRAGMA user_version") == 4)
        #expect(try folder.number("SELECT count(*) FROM commits") == 20)
        try folder.run("UPDATE commits SET checksum = checksum - 1 WHERE first = \(first)")
        #expect(try open().readAll() == commits)
    }

    @Test func `what an interrupted move left is replaced`() throws {
        let (commits, followed) = try fill()
        let path = "\(folder.path)/entries-0000000000000000001.log"
        try Data(repeating: 7, count: 100_000).write(to: URL(filePath: path))
        let log = try open()
        #expect(try log.readAll() == commits)
        #expect(try Followed(folder.path) == followed)
    }
}
