import ConfluxLog
import ConfluxVocabulary
import Foundation

/// Commits appended one after the other to a log on disk; beside writes of as many bytes into a file
/// that is there, each synced.
struct LogWorkload {
    let commitBytes: Int
    let count: Int

    func measure(_ settings: Settings) throws -> [Row] {
        var (ours, theirs): ([[UInt64]], [[UInt64]]) = ([], [])
        for round in 0..<settings.rounds {
            settings.note("log, \(commitBytes) bytes, round \(round + 1)")
            for side in settings.sides(of: round) {
                try Cluster.run(in: settings.folder) { cluster in
                    switch side {
                    case .conflux: ours.append(try append(at: cluster.path("log")).sorted())
                    case .partner: theirs.append(try write(to: cluster.path("file")).sorted())
                    }
                }
            }
        }
        let ranks = [(0.5, "p50"), (0.99, "p99"), (0.999, "p99.9"), (1, "at most")]
        return ranks.map { share, rank in
            Row(
                "log", "\(count) commits of \(commitBytes) bytes, \(rank)", "µs",
                ours.map { percentile(share, of: $0) / 1_000 },
                theirs.map { percentile(share, of: $0) / 1_000 })
        }
    }

    private func append(at folder: String) throws -> [UInt64] {
        let log = try SQLiteLog(directory: folder)
        let claim = try log.claim(raisingEpochBy: 1)
        let bytes = ArraySlice([UInt8](repeating: 7, count: commitBytes))
        return try (0..<count).map { _ in
            let next = log.last.next
            let commit = LoggedCommit(first: next, last: next, epoch: claim.epoch, bytes: bytes)
            let start = monotonicNanoseconds()
            try log.append([commit], expecting: log.last, forced: false)
            return monotonicNanoseconds() - start
        }
    }

    /// Into the same 16 MiB again and again.
    private func write(to path: String) throws -> [UInt64] {
        let fileBytes = 16 << 20
        try Data(count: fileBytes).write(to: URL(fileURLWithPath: path))
        let file = try FileHandle(forUpdating: URL(fileURLWithPath: path))
        defer { file.closeFile() }
        try file.synchronize()
        let bytes = [UInt8](repeating: 7, count: commitBytes)
        return try (0..<count).map { index in
            let start = monotonicNanoseconds()
            let offset = index * commitBytes % (fileBytes - commitBytes)
            guard pwrite(file.fileDescriptor, bytes, commitBytes, off_t(offset)) == commitBytes,
                fdatasync(file.fileDescriptor) == 0
            else { throw BenchError("\(path) can't be written") }
            return monotonicNanoseconds() - start
        }
    }
}
