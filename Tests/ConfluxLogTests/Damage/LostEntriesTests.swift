import ConfluxLog
import ConfluxVocabulary
import Forging
import Foundation
import Testing

#if canImport(Darwin)
    import Darwin
#else
    import Glibc
#endif

/// A log whose older file of entries is lost: whoever opens it refuses it, by the same words.
@Suite struct LostEntriesTests {
    /// What is in the place of the file.
    enum Loss: CaseIterable {
        case nothing, zeros, otherLog, laterFile, oneByteLess, folder, pipe

        /// What the message says of it.
        var words: String {
            switch self {
            case .nothing: "is missing"
            case .zeros, .otherLog, .laterFile: "has none of its entries"
            case .oneByteLess: "bytes, and had"
            case .folder: "is a folder"
            case .pipe: "is not a file"
            }
        }
    }

    private let folder = TemporaryFolder(isQuick: true)
    private let other = TemporaryFolder(isQuick: true)
    private let files = FileManager.default

    private func open(_ folder: TemporaryFolder) throws -> SQLiteLog {
        var settings = SQLiteLogSettings.small()
        // Files of 64 KiB.
        settings.limitBytes = 1 << 20
        return try SQLiteLog(directory: folder.path, settings: settings)
    }

    /// Makes a log with a checkpoint above its older files.
    private func fill(_ folder: TemporaryFolder) throws -> [LoggedCommit] {
        let log = try open(folder)
        let commits = try log.fill(20, bytes: 10_000)
        try log.save(.sample(40))
        log.close()
        return commits
    }

    /// The second file.
    private func older(in folder: TemporaryFolder) throws -> String {
        let paths = try folder.forger.paths
        try #require(paths.count > 3)
        return paths[1]
    }

    private func apply(_ loss: Loss, to path: String) throws {
        let bytes = try Data(contentsOf: URL(filePath: path))
        try files.removeItem(atPath: path)
        switch loss {
        case .nothing: break
        case .zeros: try Data(count: bytes.count).write(to: URL(filePath: path))
        case .otherLog: try files.copyItem(atPath: older(in: other), toPath: path)
        case .laterFile:
            // The removed file is not in the list.
            try files.copyItem(atPath: try folder.forger.paths[1], toPath: path)
        case .oneByteLess: try bytes.dropLast().write(to: URL(filePath: path))
        case .folder: try files.createDirectory(atPath: path, withIntermediateDirectories: false)
        case .pipe: try #require(mkfifo(path, 0o600) == 0)
        }
    }

    private func error(_ body: () throws -> Void) -> LogError? {
        do {
            try body()
            return nil
        } catch {
            return error as? LogError
        }
    }

    @Test(arguments: Loss.allCases)
    func `a log with a lost older file is refused, whoever opens it`(loss: Loss) throws {
        _ = try fill(folder)
        if loss == .otherLog { _ = try fill(other) }
        let path = try older(in: folder)
        try apply(loss, to: path)
        let read = try #require(error { _ = try SQLiteLogFile(directory: folder.path) })
        let owned = try #require(error { _ = try open(folder) })
        #expect(read == owned)
        #expect(owned.code == .damaged && owned.numbers != nil)
        #expect(owned.message.contains("\(path), which holds the entries from"), "\(owned)")
        #expect(owned.message.contains(loss.words), "\(owned)")
    }

    @Test func `a log that lost an older file while it was open is not claimed again`() throws {
        _ = try fill(folder)
        let log = try open(folder)
        _ = try log.claim()
        let path = try older(in: folder)
        try apply(.zeros, to: path)
        let error = try #require(error { _ = try log.claim() })
        #expect(error.code == .damaged && error.message.contains(path), "\(error)")
    }

    @Test(arguments: [0, 40, 80])
    func `an older file whose first header is damaged has its other entries`(offset: Int) throws {
        let commits = try fill(folder)
        let path = try older(in: folder)
        var bytes = try Data(contentsOf: URL(filePath: path))
        bytes[offset] ^= 1
        try bytes.write(to: URL(filePath: path))
        let file = try SQLiteLogFile(directory: folder.path)
        defer { file.close() }
        let log = try open(folder)
        #expect(try log.claim().last == commits.last?.last)
        let from = try #require(log.readAll().last).last.next
        let damage = try #require(error { _ = try log.read(from: from, limitBytes: .max) })
        #expect(damage.code == .damaged)
        let next = try #require(damage.numbers).upperBound.next
        #expect(try log.read(from: next, limitBytes: .max).last == commits.last)
    }

    @Test func `files that the owner discards meanwhile are not missed`() throws {
        let log = try open(folder)
        try log.fill(4, bytes: 10_000)
        let reading = Thread.Loop { [path = folder.path] in
            try SQLiteLogFile(directory: path).close()
        }
        for _ in 0..<60 {
            try log.fill(4, bytes: 10_000)
            let last = log.last.rawValue
            for number in [last - 1, last] { try log.save(.sample(number)) }
            try log.truncateAll(below: last)
        }
        let (rounds, error) = reading.end()
        #expect(error == nil && rounds > 0, "\(String(describing: error))")
    }
}

extension Thread {
    /// Repeats a function on a thread of its own until it is ended, or the function throws.
    fileprivate final class Loop: @unchecked Sendable {
        // The lock protects all that changes.
        private let condition = NSCondition()
        private var isEnding = false
        private var hasEnded = false
        private var rounds = 0
        private var error: (any Error)?

        init(_ body: @escaping @Sendable () throws -> Void) {
            Thread.detachNewThread { [self] in
                while goesOn {
                    do {
                        try body()
                        condition.withLock { rounds += 1 }
                    } catch {
                        condition.withLock {
                            self.error = error
                            isEnding = true
                        }
                    }
                }
                condition.withLock {
                    hasEnded = true
                    condition.broadcast()
                }
            }
        }

        private var goesOn: Bool { condition.withLock { !isEnding } }

        /// Waits until the last round is over.
        func end() -> (rounds: Int, error: (any Error)?) {
            condition.withLock {
                isEnding = true
                while !hasEnded { condition.wait() }
                return (rounds, error)
            }
        }
    }
}
