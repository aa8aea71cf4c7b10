import ConfluxSystem
import Foundation
import Testing

struct FolderTests {
    @Test func `a folder is removed with all that is in it, and nothing else is`() throws {
        let files = FileManager.default
        let base = files.temporaryDirectory.appendingPathComponent("folder-\(UUID().uuidString)")
        try files.createDirectory(
            at: base.appendingPathComponent("gone/inner/deeper"), withIntermediateDirectories: true)
        defer { try? files.removeItem(at: base) }
        let kept = base.appendingPathComponent("kept").path
        for path in [kept] + ["a", "inner/b"].map({ base.path + "/gone/" + $0 }) {
            #expect(files.createFile(atPath: path, contents: Data("1".utf8)))
        }
        try files.createSymbolicLink(
            atPath: base.path + "/gone/link", withDestinationPath: base.path)

        try Folder.remove(base.path + "/gone")
        #expect(try files.contentsOfDirectory(atPath: base.path) == ["kept"])
        #expect(throws: SystemFailure(ENOENT, at: base.path + "/gone")) {
            try Folder.remove(base.path + "/gone")
        }
        #expect(throws: SystemFailure(ENOTDIR, at: kept)) { try Folder.remove(kept) }
    }

    @Test func `one folder is made, and none above it`() throws {
        let files = FileManager.default
        let base = files.temporaryDirectory.appendingPathComponent("folder-\(UUID().uuidString)")
        defer { try? files.removeItem(at: base) }
        #expect(throws: SystemFailure(ENOENT, at: base.path)) {
            try Folder.makeOne(base.path + "/inner")
        }
        #expect(!files.fileExists(atPath: base.path))
        try Folder.makeOne(base.path)
        let mode = try files.attributesOfItem(atPath: base.path)[.posixPermissions] as? Int
        #expect(mode == 0o700)
        #expect(throws: SystemFailure(EEXIST, at: base.path)) { try Folder.makeOne(base.path) }
    }
}
