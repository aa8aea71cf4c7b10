import ConfluxVocabulary
import Forging
import Foundation
import Synchronization
import Testing

@testable import ConfluxLog

/// The files of entries: how they follow each other, and what a crash or a disk may do to them.
@Suite final class EntryFileTests {
    private let folder = TemporaryFolder()
    private let other = TemporaryFolder()
    /// Keeps copies until the test ends.
    private var copies: [TemporaryFolder] = []

    /// Settings with which a file is full at 64 KiB.
    private static var settings: SQLiteLogSettings {
        var settings = SQLiteLogSettings.small()
        settings.limitBytes = 1 << 20
        return settings
    }

    private func open(_ folder: TemporaryFolder) throws -> SQLiteLog {
        try SQLiteLog(directory: folder.path, settings: Self.settings)
    }

    // MARK: Files

    @Test func `entries go on in another file when one is full, and are read across files`() throws
    {
        let log = try open(folder)
        var commits = try log.fill(50, bytes: 10_000)
        #expect(try folder.forger.paths.count == 9)
        // A reader finds files that were begun after its last read.
        #expect(try log.readAll() == commits)
        let more = LoggedCommit.sample(101...102, bytes: 60_000)
        try log.append(more)
        commits.append(more)
        #expect(try log.readAll() == commits)
        let reader = try log.makeReader()
        for limit in [1, 35_000, Int.max] {
            var next: UInt64 = 1
            while next <= 102 {
                let right = commits.drop { $0.last.rawValue < next }
                let found = try log.read(from: SequenceNumber(next), limitBytes: limit)
                let again = try reader.read(
                    from: SequenceNumber(next), through: log.last, limitBytes: limit)
                #expect(found == Array(right.prefix(found.count)) && !found.isEmpty)
                #expect(found == again)
                next = try #require(found.last).last.rawValue + 1
            }
        }
        // Backwards, so that nothing is where the last read stopped.
        for commit in commits.reversed() {
            #expect(
                try reader.read(from: commit.last, through: log.last, limitBytes: 1) == [commit])
        }
        reader.close()
        log.close()
        let again = try open(folder)
        #expect(try again.readAll() == commits)
        try again.fill(1)
        #expect(again.last == SequenceNumber(104))
    }

    @Test func `an append that is larger than a file has one of its own`() throws {
        let log = try open(folder)
        var commits = try log.fill(2)
        commits.append(.sample(5...5, bytes: 300_000))
        commits.append(.sample(6...6))
        for commit in commits[2...] { try log.append(commit) }
        #expect(try folder.forger.paths.count == 3)
        log.close()
        #expect(try open(folder).readAll() == commits)
    }

    @Test func `files below the floor are removed, and readers go on at the floor`() throws {
        let log = try open(folder)
        let commits = try log.fill(50, bytes: 10_000)
        let reader = try log.makeReader()
        #expect(
            try reader.read(from: SequenceNumber(1), through: log.last, limitBytes: 1).count == 1)
        for number in [90, 96] as [UInt64] { try log.save(.sample(number)) }
        try log.truncateAll(below: 81)
        #expect(try folder.forger.paths.count == 3)
        #expect(log.floor == SequenceNumber(81))
        let kept = Array(commits[40...])
        #expect(try log.readAll() == kept)
        #expect(
            try reader.read(from: SequenceNumber(1), through: log.last, limitBytes: .max) == kept)
        reader.close()
    }

    @Test func `a copy is whole even if its owner appends and discards meanwhile`() async throws {
        let log = try open(folder)
        try log.fill(20, bytes: 10_000)
        let isDone = Atomic(false)
        let target = other.path
        let source = folder.path
        async let whole = Self.copies(of: source, to: target, until: isDone)
        var rounds = 0
        while rounds < 40 || !isDone.load(ordering: .acquiring) {
            rounds += 1
            for _ in 0..<8 {
                let next = log.last.rawValue + 1
                try log.append(.sample(next...next, bytes: 10_000))
            }
            let end = log.last.rawValue
            for number in [end - 1, end] { try log.save(.sample(number)) }
            try log.truncateAll(below: end - 4)
        }
        #expect(try await whole == 5)
        log.close()
    }

    /// Makes copies, and verifies each one.
    @concurrent private static func copies(
        of source: String, to target: String, until isDone: borrowing Atomic<Bool>
    ) async throws -> Int {
        defer { isDone.store(true, ordering: .releasing) }
        var count = 0
        while count < 5 {
            let copy = "\(target)/\(count)"
            let file = try SQLiteLogFile(directory: source)
            defer { file.close() }
            do throws(LogError) { try file.copy(to: copy) } catch {
                // Nothing discards as fast as this test does.
                try #require(error.message.contains("truncated"))
                try FileManager.default.removeItem(atPath: copy)
                continue
            }
            let followed = try Followed(copy)
            try #require(followed.end != nil, "\(followed)")
            let opened = try SQLiteLog(directory: copy, settings: settings)
            _ = try opened.claim()
            opened.close()
            count += 1
        }
        return count
    }

    // MARK: Crashes

    private func killed(_ folder: TemporaryFolder) throws -> TemporaryFolder {
        let copy = try folder.copyAsAfterKill()
        copies.append(copy)
        return copy
    }

    /// A copy as after a crash of the machine that took some bytes of the last file.
    ///
    /// - Parameters:
    ///   - commit: The index of a commit.
    ///   - offset: From where on bytes are lost, counted from the commit's header.
    /// - Returns: The folder.
    /// - Throws: Errors of the files.
    private func crashed(losing commit: Int, from offset: Int) throws -> TemporaryFolder {
        let copy = try killed(folder)
        let forger = try copy.forger
        let file = URL(filePath: try #require(try forger.paths.last))
        var bytes = try Data(contentsOf: file)
        let start = try forger.places[commit] + offset
        bytes.replaceSubrange(start..<start + 8, with: Data(repeating: 0, count: 8))
        try bytes.write(to: file)
        return copy
    }

    @Test(arguments: [0, 40, 80, 88, 120])
    func `a torn append is removed by the next claim, and does not come back`(offset: Int) throws {
        let log = try open(folder)
        let commits = try log.fill(3, bytes: 100)
        let copy = try crashed(losing: 2, from: offset)
        let again = try open(copy)
        #expect(again.last == SequenceNumber(4))
        let claim = try again.claim()
        #expect(claim.last == SequenceNumber(4))
        // It is shorter, so that it would not cover what was there.
        let more = LoggedCommit.sample(5...5, epoch: claim.epoch.rawValue)
        try again.append(more)
        let once = try open(killed(copy))
        #expect(try once.readAll() == Array(commits[..<2]) + [more])
    }

    @Test(arguments: [2, 3, 4])
    func `the commits of one append are there together, or none is`(torn: Int) throws {
        let log = try open(folder)
        let commits = try log.fill(2, bytes: 100)
        let more = [5, 6, 7].map { LoggedCommit.sample($0...$0, bytes: 100) }
        try log.append(more, expecting: SequenceNumber(4), forced: false)
        #expect(try open(killed(folder)).readAll() == commits + more)
        for offset in [0, 96] {
            let again = try open(try crashed(losing: torn, from: offset))
            #expect(try again.readAll() == commits)
            let claim = try again.claim()
            #expect(claim.last == SequenceNumber(4))
            // It takes exactly the place of the first, and the others must not follow it.
            let next = LoggedCommit.sample(5...5, epoch: claim.epoch.rawValue, bytes: 100)
            try again.append(next)
            let copy = try #require(copies.last)
            #expect(try open(killed(copy)).readAll() == commits + [next])
        }
    }

    @Test(arguments: [0, 96])
    func `what was on disk before the last append counts, even if it is damaged`(
        offset: Int
    ) throws {
        let log = try open(folder)
        let commits = try log.fill(5, bytes: 100)
        let again = try open(try crashed(losing: 2, from: offset))
        #expect(try again.claim().last == SequenceNumber(10))
        #expect(try again.readAll() == Array(commits[..<2]))
        let error = #expect(throws: LogError.self) {
            try again.read(from: SequenceNumber(5), limitBytes: .max)
        }
        #expect(error?.numbers == SequenceNumber(5)...SequenceNumber(6))
        #expect(try again.read(from: SequenceNumber(7), limitBytes: .max) == Array(commits[3...]))
    }

    @Test func `what is not durable by its settings may be lost, and nothing after it counts`()
        throws
    {
        var settings = Self.settings
        settings.durability = .os
        let log = try SQLiteLog(directory: folder.path, settings: settings)
        let commits = try log.fill(5, bytes: 100)
        try log.append(.sample(11...11, bytes: 100), forced: true)
        try log.append(.sample(12...12, bytes: 100))
        // The forced append wrote all before it to the disk.
        let damaged = try open(try crashed(losing: 2, from: 96))
        #expect(try damaged.claim().last == SequenceNumber(12))
        let shorter = try open(try crashed(losing: 6, from: 96))
        #expect(try shorter.claim().last == SequenceNumber(11))
        #expect(try shorter.readAll() == commits + [.sample(11...11, bytes: 100)])
    }

    // MARK: Forgeries

    @Test func `what an action contains is not taken for an entry`() throws {
        let log = try open(folder)
        try log.fill(2, bytes: 100)
        // An entry as it would be written later, with the right seal for its own place.
        let copy = try killed(folder)
        let later = try open(copy)
        try later.fill(4, bytes: 100)
        let forger = try copy.forger
        let place = try #require(try forger.places.last)
        let entry = [UInt8](
            try Data(contentsOf: URL(filePath: try #require(try forger.paths.first)))[
                place..<place + 192])
        try log.append(
            LoggedCommit(
                first: SequenceNumber(5), last: SequenceNumber(5), epoch: Epoch(1),
                bytes: (0..<8).flatMap { entry + [UInt8](repeating: 0, count: $0) }[...]))
        let last = LoggedCommit.sample(6...6)
        try log.append(last)
        try folder.forger.flip(5, at: 16)
        let error = #expect(throws: LogError.self) {
            try log.read(from: SequenceNumber(5), limitBytes: .max)
        }
        #expect(error?.numbers == SequenceNumber(5)...SequenceNumber(5))
        #expect(try log.read(from: SequenceNumber(6), limitBytes: .max) == [last])
    }

    @Test func `a database that is older than the entries is named`() throws {
        let log = try open(folder)
        try log.fill(2)
        log.close()
        let former = try Data(contentsOf: URL(filePath: folder.database))
        let ahead = try Data(contentsOf: URL(filePath: folder.database + "-wal"))
        try open(folder).fill(2)
        try former.write(to: URL(filePath: folder.database))
        try ahead.write(to: URL(filePath: folder.database + "-wal"))
        let again = try open(folder)
        let error = #expect(throws: LogError.self) { try again.claim() }
        #expect(error?.code == .damaged)
        #expect(error?.message.contains("older than the entries") == true)
    }
}
