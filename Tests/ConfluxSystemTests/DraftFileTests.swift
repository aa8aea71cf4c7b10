import ConfluxSystem
import Foundation
import Testing

/// Each test has a folder of its own, which is removed with this object.
final class DraftFileTests {
    private let folder = NSTemporaryDirectory() + "draft-\(UUID().uuidString)"
    private let files = FileManager.default

    init() throws {
        try files.createDirectory(atPath: folder + "/inner", withIntermediateDirectories: true)
    }

    deinit { try? files.removeItem(atPath: folder) }

    private func write(_ text: String, to name: String) throws {
        let file = try DraftFile(folder + "/" + name)
        try file.write(text.utf8)
        try file.complete()
    }

    private func text(_ name: String) -> String? {
        files.contents(atPath: folder + "/" + name).map { String(decoding: $0, as: UTF8.self) }
    }

    private func link(_ name: String, to target: String) throws {
        try files.createSymbolicLink(
            atPath: folder + "/" + name, withDestinationPath: target)
    }

    private func target(of name: String) throws -> String {
        try files.destinationOfSymbolicLink(atPath: folder + "/" + name)
    }

    @Test func `a file appears whole, or not at all`() throws {
        try write("old", to: "file")
        do {
            let file = try DraftFile(folder + "/file")
            try file.write("new".utf8)
        }
        #expect(text("file") == "old")
        try write("new", to: "file")
        #expect(text("file") == "new")
        #expect(try files.contentsOfDirectory(atPath: folder).sorted() == ["file", "inner"])
    }

    @Test func `what a link leads to is replaced, and the link stays`() throws {
        try write("old", to: "inner/file")
        try link("near", to: "inner/file")
        try link("inner/far", to: "\(folder)/near")
        try link("both", to: "inner/../inner/far")
        for name in ["near", "inner/far", "both"] {
            let before = try target(of: name)
            try write("by \(name)", to: name)
            #expect(try target(of: name) == before)
            #expect(text("inner/file") == "by \(name)")
        }
    }

    @Test func `a link to nothing gets its file`() throws {
        try link("link", to: "inner/new")
        try write("new", to: "link")
        #expect(text("inner/new") == "new")
        #expect(try target(of: "link") == "inner/new")
    }

    @Test func `links in a circle, and links to folders, are refused`() throws {
        try link("one", to: "other")
        try link("other", to: "one")
        #expect(throws: SystemFailure(ELOOP, at: folder)) { try write("", to: "one") }
        try link("folder", to: "inner")
        #expect(throws: SystemFailure(EISDIR, at: folder)) { try write("", to: "folder") }
        try link("lost", to: "nowhere/file")
        #expect(throws: SystemFailure(ENOENT, at: folder)) { try write("", to: "lost") }
    }
}
