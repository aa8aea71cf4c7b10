import CSQLite
import ConfluxLog
import ConfluxVocabulary
import Foundation
import Testing

/// A new folder, which is removed with this object.
final class TemporaryFolder {
    let path: String

    /// - Parameter isQuick: Whether the folder may be in memory, where a sync takes no time.
    init(isQuick: Bool = false) {
        let memory = URL(fileURLWithPath: "/dev/shm")
        let parent =
            isQuick && FileManager.default.isWritableFile(atPath: memory.path)
            ? memory : FileManager.default.temporaryDirectory
        path = parent.appendingPathComponent("conflux-log-\(Identifier.random())").path
    }

    var database: String { path + "/log.sqlite" }

    /// Copies the files while the log is open, as a crash of the process would leave them.
    func copyAsAfterKill() throws -> TemporaryFolder {
        let copy = TemporaryFolder()
        try FileManager.default.createDirectory(
            atPath: copy.path, withIntermediateDirectories: true)
        let entries = try FileManager.default.contentsOfDirectory(atPath: path)
            .filter { $0.hasPrefix("entries-") }
        for name in ["log.sqlite", "log.sqlite-wal"] + entries {
            try FileManager.default.copyItem(
                atPath: "\(path)/\(name)", toPath: "\(copy.path)/\(name)")
        }
        return copy
    }

    /// Runs SQL like another program.
    func run(_ statements: String, flags: Int32 = SQLITE_OPEN_READWRITE) throws {
        var connection: OpaquePointer?
        try #require(sqlite3_open_v2(database, &connection, flags, nil) == SQLITE_OK)
        defer { sqlite3_close_v2(connection) }
        sqlite3_busy_timeout(connection, 5_000)
        let code = sqlite3_exec(connection, statements, nil, nil, nil)
        try #require(code == SQLITE_OK, "\(String(cString: sqlite3_errmsg(connection)))")
    }

    /// The first number of a query, run like another program that only reads.
    func number(_ query: String) throws -> Int64 {
        var connection: OpaquePointer?
        try #require(
            sqlite3_open_v2(database, &connection, SQLITE_OPEN_READONLY, nil) == SQLITE_OK)
        defer { sqlite3_close_v2(connection) }
        var statement: OpaquePointer?
        try #require(sqlite3_prepare_v2(connection, query, -1, &statement, nil) == SQLITE_OK)
        defer { sqlite3_finalize(statement) }
        try #require(sqlite3_step(statement) == SQLITE_ROW)
        return sqlite3_column_int64(statement, 0)
    }

    deinit {
        do {
            if FileManager.default.fileExists(atPath: path) {
                try FileManager.default.removeItem(atPath: path)
            }
        } catch {
            Issue.record("\(path) was left behind: \(error)")
        }
    }
}

extension SQLiteLogSettings {
    /// Settings with small files, so that a test is fast.
    static func small(_ durability: Durability = .fsync) -> SQLiteLogSettings {
        var settings = SQLiteLogSettings(durability: durability)
        settings.writeAheadBytes = 1 << 20
        return settings
    }
}

extension LoggedCommit {
    static func sample(
        _ numbers: ClosedRange<UInt64>, epoch: UInt64 = 1, bytes: Int = 10
    ) -> LoggedCommit {
        let contents = (0..<bytes).map {
            UInt8(truncatingIfNeeded: UInt64($0) &+ numbers.lowerBound)
        }
        return LoggedCommit(
            first: SequenceNumber(numbers.lowerBound), last: SequenceNumber(numbers.upperBound),
            epoch: Epoch(epoch), bytes: contents[...])
    }
}

extension ActionLog {
    func append(_ commit: LoggedCommit, forced: Bool = false) throws(LogError) {
        try append(
            commit, expecting: SequenceNumber(commit.first.rawValue - 1), forced: forced)
    }

    func readAll() throws(LogError) -> [LoggedCommit] {
        try read(from: SequenceNumber(1), limitBytes: .max)
    }

    /// Makes the log release the write lock that it keeps after an append: truncates, and discards nothing.
    func releaseWriteLock() throws { _ = try truncate(below: floor, limitBytes: 1) }

    /// Claims the log, and appends commits of two entries each: 1–2, 3–4 …
    @discardableResult
    func fill(_ count: Int, bytes: Int = 10) throws -> [LoggedCommit] {
        let claim = try claim()
        var commits: [LoggedCommit] = []
        for index in 0..<UInt64(count) {
            let first = claim.last.rawValue + 1 + 2 * index
            let commit = LoggedCommit.sample(
                first...first + 1, epoch: claim.epoch.rawValue, bytes: bytes)
            try append(commit)
            commits.append(commit)
        }
        return commits
    }
}

/// The code of the error that a function throws.
func code(of body: () throws -> Void) -> LogError.Code? {
    do {
        try body()
        return nil
    } catch {
        return (error as? LogError)?.code
    }
}
