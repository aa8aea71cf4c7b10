import Foundation
import Testing

/// Logs that are not what was written.
extension Site {
    /// The database of the log in a folder.
    func database(_ folder: String) -> URL {
        URL(filePath: path("\(folder)/log.sqlite"))
    }

    /// Ends processes and makes a backup, `copy`, of the log in `log`: one file has all of it.
    func backUp(ending children: [Child]) async throws {
        for child in children {
            child.signal(SIGTERM)
            _ = try await child.end()
        }
        let backup = try await run("backup", path("copy"), "--data", path("log"))
        #expect(backup.end == .exited(0), "\(backup.message)")
    }

    /// The file of the copy, with a bit flipped in some bytes of it, as the log of another folder.
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
