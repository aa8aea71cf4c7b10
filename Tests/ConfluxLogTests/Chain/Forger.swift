import CSQLite
import ConfluxVocabulary
import Testing

@testable import ConfluxLog

/// An attacker who may write the file, and can compute checksums and hashes.
final class Forger {
    private let database: Database

    /// Opens the log's file.
    init(_ path: String) throws {
        database = try Database(path: path, vfs: nil, access: .write)
        database.setBusyTimeout(.seconds(5))
    }

    struct Row {
        var commit: LoggedCommit
        var hash: ChainHash?
    }

    /// All rows, in order.
    var rows: [Row] {
        get throws {
            let select = try database.prepare(
                "SELECT first, last, epoch, checksum, bytes, chain FROM commits ORDER BY first")
            defer { select.reset() }
            var rows: [Row] = []
            while try select.step() {
                rows.append(
                    Row(
                        commit: try #require(SQLiteLogRow(select).commit()),
                        hash: SQLiteLogRow.hash(select)))
            }
            return rows
        }
    }

    /// Replaces all rows by others, with correct checksums.
    func replace(by rows: [Row]) throws {
        // Otherwise the fence would reject rows of former tenures.
        let fence = try fence()
        try database.execute("DROP TRIGGER commits_follow; DELETE FROM commits")
        let insert = try database.prepare("INSERT INTO commits VALUES (?1, ?2, ?3, ?4, ?5, ?6)")
        for row in rows {
            insert.bind(Int64(row.commit.first.rawValue), at: 1)
            insert.bind(Int64(row.commit.last.rawValue), at: 2)
            insert.bind(Int64(row.commit.epoch.rawValue), at: 3)
            insert.bind(Int64(bitPattern: Checksum.of(row.commit)), at: 4)
            let hash = row.hash?.bytes ?? []
            try row.commit.bytes.withUnsafeBytes { bytes in
                try hash.withUnsafeBytes { hash in
                    insert.bind(bytes, at: 5)
                    if !hash.isEmpty { insert.bind(hash, at: 6) }
                    try insert.run()
                }
            }
        }
        try database.execute(fence)
    }

    private func fence() throws -> String {
        let select = try database.prepare(
            "SELECT sql FROM sqlite_schema WHERE name = 'commits_follow'")
        defer { select.reset() }
        try #require(try select.step())
        return select.text(0)
    }

    /// Makes the log claim that its present end is the highest that it ever had.
    func hideEnd() throws {
        try database.execute(
            """
            UPDATE meta SET reached =
                coalesce((SELECT last FROM commits ORDER BY first DESC LIMIT 1), 0)
            """)
    }
}

extension [Forger.Row] {
    /// Computes the hashes of all rows from an index on.
    func rehashed(from index: Int) -> [Forger.Row] {
        var rows = self
        for index in Swift.max(1, index)..<rows.count {
            rows[index].hash = rows[index - 1].hash?.next(rows[index].commit)
        }
        return rows
    }
}

extension LoggedCommit {
    /// The same commit at another place, or with other contents.
    func changed(by distance: Int64 = 0, bytes: Bytes? = nil) -> LoggedCommit {
        LoggedCommit(
            first: SequenceNumber(UInt64(Int64(first.rawValue) + distance)),
            last: SequenceNumber(UInt64(Int64(last.rawValue) + distance)), epoch: epoch,
            bytes: bytes ?? self.bytes)
    }
}

/// The result of following a whole chain.
enum Followed: Equatable {
    /// The chain is intact. The values say where it begins and ends.
    case whole(from: UInt64, LogAnchor)
    /// The chain is broken at this number.
    case broken(at: UInt64)

    /// Follows the chain of the log in a folder.
    init(_ folder: String) throws {
        let file = try SQLiteLogFile(directory: folder)
        defer { file.close() }
        var chain = try file.chain()
        let commits = try file.readChained(from: file.floor, through: file.last, limitBytes: .max)
        try #require(commits.last?.commit.last ?? .zero == file.last)
        for commit in commits where !chain.follow(commit) {
            self = .broken(at: commit.commit.first.rawValue)
            return
        }
        self = .whole(from: chain.first.rawValue, chain.end)
    }

    var end: LogAnchor? {
        if case .whole(_, let end) = self { end } else { nil }
    }
}
