import Foundation
import Testing

/// Logs whose bytes were changed after they were written.
extension Site {
    /// The database of the log in a folder.
    func database(_ folder: String) -> URL {
        URL(filePath: path("\(folder)/log.sqlite"))
    }

    /// Ends processes and makes a backup, `copy`, of the log in `log`. The backup is a single file.
    func backUp(ending children: [Child]) async throws {
        for child in children {
            child.signal(SIGTERM)
            _ = try await child.end()
        }
        let backup = try await run("backup", path("copy"), "--data", path("log"))
        #expect(backup.end == .exited(0), "\(backup.message)")
    }

    /// Copies the file of the backup to another folder's log, with one bit flipped in the given bytes.
    func flip(
        _ bytes: some Collection<UInt8>, of source: String = "copy", to name: String
    ) throws {
        var file = try Data(contentsOf: database(source))
        let place = try #require(file.range(of: Data(bytes)))
        file[place.lowerBound + place.count / 2] ^= 1
        try FileManager.default.createDirectory(
            atPath: path(name), withIntermediateDirectories: true)
        try file.write(to: database(name))
    }
}
