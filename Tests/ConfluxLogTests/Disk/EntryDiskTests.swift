import ConfluxVocabulary
import Foundation
import Testing

@testable import ConfluxLog

extension DiskTests {
    /// Files of entries on a disk that fails, is full, or loses power.
    struct EntryDiskTests {
        private let folder = TemporaryFolder(isQuick: true)

        private static func settings() -> SQLiteLogSettings {
            var settings = SQLiteLogSettings.small()
            settings.vfs = LosingDisk.name
            return settings
        }

        @Test func `what finds the disk full is not in the log later`() throws {
            let disk = LosingDisk()
            var refused = 0
            try disk.use {
                let log = try SQLiteLog(directory: folder.path, settings: Self.settings())
                var commits = try log.fill(2)
                // Its bytes need several writes, and one more fills them up to a multiple of 8.
                for call in 0..<8 {
                    let next = log.last.rawValue + 1
                    let commit = LoggedCommit.sample(next...next, bytes: 300_001)
                    disk.fault = (disk.callCount + call, .full)
                    switch code(of: { try log.append(commit) }) {
                    case nil: commits.append(commit)
                    case .full: refused += 1
                    case let other: Issue.record("\(String(describing: other))" as Comment)
                    }
                    disk.fault = nil
                    let copy = try folder.copyAsAfterKill()
                    let again = try SQLiteLog(directory: copy.path, settings: .small())
                    #expect(try again.readAll() == commits)
                    again.close()
                }
                log.close()
            }
            #expect(refused >= 4)
        }

        /// A log in the fourth format.
        ///
        /// - Returns: Its commits and its files.
        /// - Throws: Errors of the log and of the files.
        private func fill() throws -> ([LoggedCommit], [LosingDisk.Part: [UInt8]]) {
            let log = try SQLiteLog(directory: folder.path, settings: .small())
            let commits = try log.fill(100, bytes: 1_000)
            log.close()
            try folder.downgrade(to: 4)
            // The last connection that was closed has copied the write-ahead log into the database.
            let database = try Data(contentsOf: URL(filePath: folder.database))
            return (commits, [.database: [UInt8](database)])
        }

        @Test(arguments: LosingDisk.Fault.allCases)
        func `a move that fails leaves the log as it was, or moved`(
            fault: LosingDisk.Fault
        ) throws {
            let (commits, files) = try fill()
            var failures = 0
            for call in 0..<1_000 {
                let folder = try TemporaryFolder(holding: files)
                let disk = LosingDisk()
                disk.fault = (call, fault)
                try disk.use {
                    do throws(LogError) {
                        try SQLiteLog(directory: folder.path, settings: Self.settings()).close()
                    } catch {
                        failures += 1
                    }
                }
                let again = try SQLiteLog(directory: folder.path, settings: .small())
                try #require(try again.readAll() == commits, "call \(call)")
                again.close()
                try #require(try Followed(folder.path).end?.number == SequenceNumber(200))
                if !disk.hasFailed, disk.callCount < call { break }
            }
            #expect(failures > 5)
        }

        @Test(arguments: Survival.allCases)
        func `a move that loses power leaves the log as it was, or moved`(
            survival: Survival
        ) throws {
            let seed = UInt64.random(in: 0...UInt64.max)
            var random = SeededRandom(seed: seed)
            let (commits, files) = try fill()
            let disk = LosingDisk()
            disk.hold(files)
            var instants: [LosingDisk.Image] = []
            disk.beforeChange = { instants.append($0.image) }
            defer { disk.beforeChange = nil }
            try disk.use {
                try SQLiteLog(directory: folder.path, settings: Self.settings()).close()
            }
            instants.append(disk.image)
            for (index, instant) in instants.enumerated() {
                let folder = try TemporaryFolder(
                    holding: instant.files(after: survival, using: &random))
                let again = try SQLiteLog(directory: folder.path, settings: .small())
                try #require(try again.readAll() == commits, "instant \(index), seed \(seed)")
                again.close()
            }
        }
    }
}
