import ConfluxLog
import ConfluxVocabulary
import Foundation
import Testing

/// Files of a log that the system refuses to open or to examine: the message names the file and the reason, and nothing
/// says that the log was lost.
@Suite struct RefusedPlaceTests {
    private let folder = TemporaryFolder()
    private let files = FileManager.default

    private func open() throws -> SQLiteLog {
        try SQLiteLog(directory: folder.path, settings: .small())
    }

    private func path(_ name: String) -> String { "\(folder.path)/\(name)" }

    private func link(_ path: String) throws {
        try files.createSymbolicLink(atPath: path, withDestinationPath: path)
    }

    private func expectRefused(
        _ parts: String..., sourceLocation: SourceLocation = #_sourceLocation,
        by body: () throws -> Void
    ) {
        let error = #expect(throws: LogError.self, sourceLocation: sourceLocation, performing: body)
        #expect(error?.code == .unusableFolder, sourceLocation: sourceLocation)
        let message = error?.message ?? ""
        for part in parts {
            #expect(message.contains(part), "\(message)", sourceLocation: sourceLocation)
        }
        #expect(!message.contains("backup"), "\(message)", sourceLocation: sourceLocation)
    }

    @Test(arguments: ["log.sqlite", "log.sqlite-wal", "log.sqlite-shm", "lock"])
    func `a folder in the place of a file of the log is called so`(name: String) throws {
        let log = try open()
        try log.fill(3)
        log.close()
        if files.fileExists(atPath: path(name)) { try files.removeItem(atPath: path(name)) }
        try files.createDirectory(atPath: path(name), withIntermediateDirectories: false)
        expectRefused(path(name), "It is a folder.") { _ = try open() }
        if name == "log.sqlite" {
            expectRefused(path(name), "It is a folder.") {
                _ = try SQLiteLogFile(directory: folder.path)
            }
        }
    }

    @Test func `a database that is a link to itself is not called lost`() throws {
        let log = try open()
        try log.fill(3)
        log.close()
        try files.removeItem(atPath: folder.database)
        try link(folder.database)
        expectRefused(folder.database, "Symbolic links in the path form a circle.") {
            _ = try SQLiteLogFile(directory: folder.path)
        }
        expectRefused(folder.database, "Symbolic links in the path form a circle.") {
            _ = try open()
        }
        // The same, beside what an interrupted copy left.
        try Data().write(to: URL(filePath: folder.database + ".partial"))
        expectRefused(folder.database, "Symbolic links in the path form a circle.") {
            _ = try SQLiteLogFile(directory: folder.path)
        }
    }

    @Test func `a copy does not replace a file that can't be examined`() throws {
        let other = TemporaryFolder()
        let log = try open()
        try log.fill(3)
        try files.createDirectory(atPath: other.path, withIntermediateDirectories: true)
        try link(other.database)
        let file = try SQLiteLogFile(directory: folder.path)
        defer { file.close() }
        expectRefused(other.database, "Symbolic links in the path form a circle.") {
            try file.copy(to: other.path)
        }
        #expect(try files.destinationOfSymbolicLink(atPath: other.database) == other.database)
    }

    @Test(arguments: ["", "/lock", "/log.sqlite", "/entries-0000000000000000001.conflux"])
    func `a file that can't be examined for a while does not end the log`(name: String) throws {
        let log = try open()
        try log.fill(3)
        let path = folder.path + name
        let aside = TemporaryFolder()
        try files.moveItem(atPath: path, toPath: aside.path)
        try link(path)
        expectRefused(path, "Symbolic links in the path form a circle.") {
            try log.append(.sample(7...7))
        }
        expectRefused(path, "Symbolic links in the path form a circle.") { try log.confirm() }
        expectRefused(path, "Symbolic links in the path form a circle.") {
            try log.save(.sample(2))
        }
        try files.removeItem(atPath: path)
        try files.moveItem(atPath: aside.path, toPath: path)
        try log.append(.sample(7...7))
        try log.confirm()
        try log.save(.sample(2))
        #expect(try log.readAll().last == .sample(7...7))
    }
}
