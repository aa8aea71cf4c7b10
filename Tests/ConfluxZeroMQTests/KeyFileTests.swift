import ConfluxZeroMQ
import Foundation
import Testing

/// Keys in files.
@Suite final class KeyFileTests {
    private let folder = FileManager.default.temporaryDirectory
        .appendingPathComponent("conflux-keys-\(UUID().uuidString)")
    private let pair = CurveKeyPair.random()

    init() throws {
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    }

    deinit { try? FileManager.default.removeItem(at: folder) }

    private func path(_ name: String) -> String { folder.appendingPathComponent(name).path }

    private func write(_ text: String, to name: String, mode: Int = 0o600) throws -> String {
        let path = path(name)
        try Data(text.utf8).write(to: URL(fileURLWithPath: path))
        try FileManager.default.setAttributes([.posixPermissions: mode], ofItemAtPath: path)
        return path
    }

    private func failure(_ body: () throws -> Void) -> KeyFileError.Code? {
        do {
            try body()
            return nil
        } catch {
            return (error as? KeyFileError)?.code
        }
    }

    @Test func `written keys can be read again, and the secret only by its owner`() throws {
        let paths = try KeyFile.write(pair, name: path("node"))
        #expect(try KeyFile.readPair(paths.secret) == pair)
        #expect(try KeyFile.readPublicKey(paths.public) == pair.publicKey)
        let mode = try FileManager.default.attributesOfItem(atPath: paths.secret)[.posixPermissions]
        #expect(mode as? Int == 0o600)
        let text = try String(contentsOfFile: paths.public, encoding: .utf8)
        #expect(!text.contains(pair.secretText))
    }

    @Test func `no file is overwritten, and no partial file is left`() throws {
        try KeyFile.write(pair, name: path("node"))
        #expect(failure { try KeyFile.write(.random(), name: path("node")) } == .exists)
        #expect(try KeyFile.readPair(path("node.secret")) == pair)
        _ = try write("mine", to: "other.public")
        #expect(failure { try KeyFile.write(pair, name: path("other")) } == .exists)
        #expect(!FileManager.default.fileExists(atPath: path("other.secret")))
        #expect(failure { try KeyFile.write(pair, name: path("no/such/folder")) } == .unwritable)
    }

    @Test func `a missing, damaged, swapped or too accessible key is reported`()
        throws
    {
        let paths = try KeyFile.write(pair, name: path("node"))
        #expect(failure { _ = try KeyFile.readPair(path("missing")) } == .unreadable)
        #expect(failure { _ = try KeyFile.readPair(folder.path) } != nil)
        #expect(failure { _ = try KeyFile.readPair(paths.public) } != nil)
        #expect(failure { _ = try KeyFile.readPublicKey(paths.secret) } == .notAKey)
        let secret = pair.secretText
        for text in [
            "", secret, "conflux-secret-key\n", "conflux-secret-key\n\(secret)",
            "conflux-secret-key\n\(secret.dropLast())\n", "conflux-secret-key\n\(secret)\n\n",
            "conflux-secret-key\n\(secret)x\n", String(repeating: "\0", count: 5_000),
            "conflux-public-key\n\(secret)\n",
        ] {
            let damaged = try write(text, to: "damaged.secret")
            #expect(failure { _ = try KeyFile.readPair(damaged) } == .notAKey, "\(text)")
        }
        for mode in [0o640, 0o604, 0o660, 0o602] {
            let open = try write("conflux-secret-key\n\(secret)\n", to: "open.secret", mode: mode)
            #expect(failure { _ = try KeyFile.readPair(open) } == .tooOpen)
        }
        let message = #expect(throws: KeyFileError.self) { try KeyFile.readPair(paths.public) }
        #expect(message?.message.contains(secret) == false)
    }

    @Test func `a key that an editor has saved anew is the same key`() throws {
        let title = "conflux-secret-key"
        for text in [
            "\(title)\r\n\(pair.secretText)\r\n", "\u{FEFF}\(title)\n\(pair.secretText)\n",
        ] {
            let file = try write(text, to: "edited.secret")
            #expect(try KeyFile.readPair(file) == pair)
        }
    }

    @Test func `a key file that is not UTF-8 is refused with the place`() throws {
        let file = path("wide.public")
        try Data("conflux-public-key\n".utf8 + [0xE9, 0x0A]).write(to: URL(filePath: file))
        let error = #expect(throws: KeyFileError.self) { try KeyFile.readPublicKey(file) }
        #expect(error?.code == .notAKey)
        #expect(error?.message.contains("line 2: byte 0xE9 at offset 0") == true)
        // As an editor of another system saves it: in UTF-16.
        try Data([0xFF, 0xFE, 0x63, 0x00]).write(to: URL(filePath: file))
        let other = #expect(throws: KeyFileError.self) { try KeyFile.readPublicKey(file) }
        #expect(other?.message.contains("line 1: byte 0xFF at offset 0") == true)
    }

    @Test func `a path that could be a key is refused while there is such a file`() throws {
        // Characters of Z85, 40 of them, with a slash: a key, and a path.
        let tail = UUID().uuidString.lowercased().filter { $0 != "-" }
        let path = "/tmp/key" + tail
        #expect(path.utf8.count == CurvePublicKey.textCount)
        let asKey = try #require(CurvePublicKey(path))
        #expect(try KeyFile.publicKey(path) == asKey, "there is no such file")
        let written = try KeyFile.write(pair, name: self.path("node"))
        try FileManager.default.copyItem(atPath: written.public, toPath: path)
        defer { try? FileManager.default.removeItem(atPath: path) }
        do {
            _ = try KeyFile.publicKey(path)
            Issue.record("it was taken for one of the two")
        } catch {
            #expect(error.code == .ambiguous && error.message.contains("/./tmp/key"))
        }
        #expect(KeyFile.unambiguous(path) == "/." + path)
        #expect(try KeyFile.publicKey(KeyFile.unambiguous(path)) == pair.publicKey)
        let key = pair.publicKey.description
        #expect(KeyFile.unambiguous(key).hasSuffix(key) && KeyFile.unambiguous(key) != key)
        #expect(try KeyFile.publicKey(key) == pair.publicKey)
        #expect(KeyFile.unambiguous(written.public) == written.public)
    }
}
