import ConfluxVocabulary
import Forging
import Testing

@testable import ConfluxLog

extension TemporaryFolder {
    /// Changes the log's entries like a failing disk or an attacker.
    var forger: EntryForger {
        get throws { try EntryForger(path) }
    }

    /// Makes the log claim that its present end is the highest that it ever had.
    func hideEnd() throws {
        let last = try forger.commits.last?.commit.last ?? .zero
        try run("UPDATE meta SET reached = \(last)")
    }
}

extension [ChainedCommit] {
    /// Computes the hashes of all rows from an index on.
    func rehashed(from index: Int) -> [ChainedCommit] {
        var rows = self
        for index in Swift.max(1, index)..<rows.count {
            rows[index] = rows[index].rehashed(rows[index - 1].hash?.next(rows[index].commit))
        }
        return rows
    }
}

extension ChainedCommit {
    /// The same commit with another hash.
    func rehashed(_ hash: ChainHash?) -> ChainedCommit {
        ChainedCommit(commit: commit, hash: hash)
    }

    /// The same hash with another commit.
    func changed(by distance: Int64 = 0, bytes: Bytes? = nil) -> ChainedCommit {
        ChainedCommit(commit: commit.changed(by: distance, bytes: bytes), hash: hash)
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
