import CSQLite
@testable import ConfluxLog
import ConfluxVocabulary
import Foundation

/// Changes the entries of a log on disk like a failing disk, or like an attacker who may write the files and
/// can compute checksums, hashes and seals.
package struct EntryForger {
    /// What went wrong here.
    package struct Failure: Error {
        let words: String
    }

    private let files: EntryFiles

    /// Reads what the database says of the entries.
    ///
    /// - Parameter folder: The folder of the log.
    /// - Throws: ``Failure`` if there is no such database.
    package init(_ folder: String) throws {
        var connection: OpaquePointer?
        var statement: OpaquePointer?
        defer {
            sqlite3_finalize(statement)
            sqlite3_close_v2(connection)
        }
        guard
            sqlite3_open_v2(folder + "/log.sqlite", &connection, SQLITE_OPEN_READONLY, nil)
                == SQLITE_OK,
            sqlite3_busy_timeout(connection, 5_000) == SQLITE_OK,
            sqlite3_prepare_v2(connection, "SELECT salt FROM meta", -1, &statement, nil)
                == SQLITE_OK,
            sqlite3_step(statement) == SQLITE_ROW
        else { throw Failure(words: "\(folder): \(String(cString: sqlite3_errmsg(connection)))") }
        files = EntryFiles(
            folder: folder, salt: UInt64(bitPattern: sqlite3_column_int64(statement, 0)), vfs: nil)
    }

    /// The paths of the files, in order.
    package var paths: [String] {
        get throws {
            try FileManager.default.contentsOfDirectory(atPath: files.folder)
                .filter { $0.hasPrefix("entries-") }.sorted().map { files.folder + "/" + $0 }
        }
    }

    /// All commits with their hashes, in order.
    package var commits: [ChainedCommit] {
        get throws {
            var commits: [ChainedCommit] = []
            try walk { _, _, header, bytes in
                let start = EntryHeader.byteCount
                commits.append(
                    ChainedCommit(
                        commit: LoggedCommit(
                            first: header.first, last: header.last, epoch: header.epoch,
                            bytes: [UInt8](bytes[start..<start + header.length])[...]),
                        hash: header.hash(in: bytes)))
            }
            return commits
        }
    }

    /// Where the headers of all commits are in their files, in order.
    package var places: [Int] {
        get throws {
            var places: [Int] = []
            try walk { _, place, _, _ in places.append(place) }
            return places
        }
    }

    /// Replaces all commits by others, whose checksums are right. Each is an append of its own. All are in the first
    /// file, and each file keeps its size.
    package func replace(by commits: [ChainedCommit]) throws {
        let former = try paths
        guard let path = former.first, let first = number(of: path) else {
            throw Failure(words: "there is no file of entries")
        }
        var bytes: [UInt8] = []
        for commit in commits {
            var record = [UInt8](
                repeating: 0, count: EntryHeader.size(commit.commit.bytes.count))
            record.withUnsafeMutableBytes { record in
                EntryHeader.write(
                    commit, durable: bytes.count, endsAppend: true,
                    at: files.place(first, bytes.count), into: record)
                UnsafeMutableRawBufferPointer(rebasing: record[EntryHeader.byteCount...])
                    .copyBytes(from: commit.commit.bytes)
            }
            bytes += record
        }
        for other in former {
            let size = try Data(contentsOf: URL(filePath: other)).count
            let content = other == path ? bytes : []
            try Data(content + [UInt8](repeating: 0, count: max(0, size - content.count)))
                .write(to: URL(filePath: other))
        }
    }

    /// The number in the name of a file.
    private func number(of path: String) -> SequenceNumber? {
        path.split(separator: "/").last?.split(separator: ".").first
            .flatMap { UInt64($0.dropFirst("entries-".count)) }.map { SequenceNumber($0) }
    }

    /// Changes all commits.
    package func change(_ change: (inout [ChainedCommit]) throws -> Void) throws {
        var commits = try commits
        try change(&commits)
        try replace(by: commits)
    }

    /// Flips a bit of a commit or of its header.
    ///
    /// - Parameters:
    ///   - first: The commit's first number.
    ///   - offset: The byte, counted from the header's beginning.
    /// - Throws: ``Failure`` if there is no such commit; errors of the files.
    package func flip(_ first: UInt64, at offset: Int) throws {
        var found: (path: String, place: Int)?
        try walk { path, place, header, _ in
            if header.first.rawValue == first { found = (path, place + offset) }
        }
        guard let found else { throw Failure(words: "there is no commit from \(first) on") }
        var bytes = try Data(contentsOf: URL(filePath: found.path))
        bytes[found.place] ^= 1
        try bytes.write(to: URL(filePath: found.path))
    }

    private func walk(
        _ body: (String, Int, EntryHeader, UnsafeRawBufferPointer) throws -> Void
    ) throws {
        for path in try paths {
            guard let first = number(of: path) else { continue }
            let bytes = [UInt8](try Data(contentsOf: URL(filePath: path)))
            try bytes.withUnsafeBytes { bytes in
                var offset = 0
                while offset + EntryHeader.byteCount <= bytes.count,
                    let header = EntryHeader(
                        UnsafeRawBufferPointer(rebasing: bytes[offset...]),
                        at: files.place(first, offset))
                {
                    try body(
                        path, offset, header, UnsafeRawBufferPointer(rebasing: bytes[offset...]))
                    offset += header.size
                }
            }
        }
    }
}
