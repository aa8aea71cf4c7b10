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
    }
}
