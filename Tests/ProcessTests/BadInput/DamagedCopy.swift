import Foundation
import Testing

/// Logs whose bytes were changed after they were written.
extension Site {
    /// The database of the log in a folder.
    func database(_ folder: String) -> URL {
        URL(filePath: path("\(folder)/log.sqlite"))
    }

    /// Ends processes and makes a backup, `copy`, of the log in `log`.
    func backUp(ending children: [Child]) async throws {
        for child in children {
            // A worker that ends in good order leaves a snapshot, and then no entry is needed any more.
            child.signal(child === children.last ? SIGTERM : SIGKILL)
            _ = try await child.end()
        }
        let backup = try await run("backup", path("copy"), "--data", path("log"))
        #expect(backup.end == .exited(0), "\(backup.message)")
    }

    /// Copies the files of the backup to another folder, with one bit flipped in the given bytes.
    func flip(
        _ bytes: some Collection<UInt8>, of source: String = "copy", to name: String
    ) throws {
        let target = URL(filePath: path(name))
        try FileManager.default.createDirectory(at: target, withIntermediateDirectories: true)
        var isFlipped = false
        for file in try FileManager.default.contentsOfDirectory(
            at: URL(filePath: path(source)), includingPropertiesForKeys: nil)
        where file.lastPathComponent != "lock" {
            var contents = try Data(contentsOf: file)
            if let place = contents.range(of: Data(bytes)) {
                contents[place.lowerBound + place.count / 2] ^= 1
                isFlipped = true
            }
            try contents.write(to: target.appending(path: file.lastPathComponent))
        }
        try #require(isFlipped)
    }
}
