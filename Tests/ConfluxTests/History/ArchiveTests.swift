import Conflux
import Foundation
import Synchronization
import Testing

@Suite(.timeLimit(.minutes(5)))
struct ArchiveTests {
    /// A folder that goes with the test.
    final class Folder: Sendable {
        let url = FileManager.default.temporaryDirectory
            .appendingPathComponent("conflux-archive-\(UUID().uuidString)")
        deinit { try? FileManager.default.removeItem(at: url) }

        func file(_ name: String) -> URL { url.appendingPathComponent(name) }
        var names: [String] {
            ((try? FileManager.default.contentsOfDirectory(atPath: url.path)) ?? []).sorted()
        }
    }

    let folder = Folder()

    @Test func `a store begins with what was saved after it was idle`() async throws {
        let archive = try Archive(folder: folder.url)
        let stock = ModelStore<Stock>()
        let kept = try archive.keep(stock, as: "stock", idle: .milliseconds(1))
        var saves = kept.saves.values.makeAsyncIterator()
        stock.dispatch(.add(amount: 3))
        try await saves.next()?.get()
        kept.dispose()
        #expect(folder.names == ["1~stock.archive"])

        let other = ModelStore<Stock>()
        let again = try archive.keep(other, as: "stock")
        #expect(other.left == 3)
        withExtendedLifetime(again) {}
    }

    @Test func `the last change is saved with the end of the keeping, or of the store`() throws {
        let archive = try Archive(folder: folder.url)
        for round in 1...4 {
            var storage: Storage<Int>? = Storage(0)
            if let store = storage {
                let kept = try archive.keep(store, as: "number", idle: .seconds(3_600))
                #expect(store.value == round - 1)
                store.replace(round)
                switch round {
                case 1: kept.dispose()
                case 2: try kept.save()
                case 3: storage = nil
                default: break
                }
                withExtendedLifetime(kept) {}
            }
            storage = nil
        }
        let last = Storage(0)
        _ = try archive.keep(last, as: "number")
        #expect(last.value == 4)
    }

    @Test func `spaces and names are apart`() throws {
        let first = try Archive(folder: folder.url, space: "a")
        let second = try Archive(folder: folder.url, space: "b")
        let storage = Storage(0)
        let keeping = [
            try first.keep(storage, as: "x"), try first.keep(storage, as: "y"),
            try second.keep(storage, as: "x"),
        ]
        storage.replace(1)
        for kept in keeping { try kept.save() }
        #expect(folder.names == ["a~x.archive", "a~y.archive", "b~x.archive"])
        for name in ["", "..", "a/b", "ä", String(repeating: "a", count: 65)] {
            let error = #expect(throws: ArchiveError.self) { try first.keep(storage, as: name) }
            #expect(error?.code == .invalidName)
        }
    }

    @Test func `it is switched off and on`() async throws {
        let archive = try Archive(folder: folder.url)
        let storage = Storage(0)
        let kept = try archive.keep(storage, as: "x", idle: .milliseconds(1))
        var saves = kept.saves.values.makeAsyncIterator()
        kept.isEnabled = false
        storage.replace(1)
        #expect(folder.names.isEmpty)
        kept.isEnabled = true
        try await saves.next()?.get()
        #expect(folder.names == ["1~x.archive"])
        kept.isEnabled = false
        storage.replace(2)
        kept.dispose()
        let other = Storage(0)
        _ = try archive.keep(other, as: "x")
        #expect(other.value == 1)
    }

    @Test func `a file that is not whole is an error, and neither it nor the store is touched`()
        throws
    {
        let archive = try Archive(folder: folder.url)
        let file = folder.file("1~x.archive")
        let source = Storage([1, 2, 3])
        let kept = try archive.keep(source, as: "x")
        source.replace([1, 2, 3, 4])
        try kept.save()
        kept.dispose()
        let whole = try Data(contentsOf: file)
        var broken = (0..<whole.count).map { whole.prefix($0) }
        for index in whole.indices {
            var bytes = whole
            bytes[index] ^= 1
            broken.append(bytes)
        }
        for bytes in broken {
            try bytes.write(to: file)
            let storage = Storage([7])
            let error = #expect(throws: ArchiveError.self) { try archive.keep(storage, as: "x") }
            #expect(error?.code == .damaged || error?.code == .incompatible)
            #expect(storage.value == [7])
            #expect(try Data(contentsOf: file) == bytes)
        }
    }

    @Test func `a value of another type is an error`() throws {
        let archive = try Archive(folder: folder.url)
        let text = Storage("")
        let kept = try archive.keep(text, as: "x")
        text.replace("seven")
        try kept.save()
        kept.dispose()
        let error = #expect(throws: ArchiveError.self) { try archive.keep(Storage(7), as: "x") }
        #expect(error?.code == .incompatible)
        #expect(error?.message.contains("begin anew") == true)
    }

    @Test func `what can't be written is told, and what was saved before stays`() async throws {
        let archive = try Archive(folder: folder.url)
        let storage = Storage(0)
        let kept = try archive.keep(storage, as: "x", idle: .milliseconds(1))
        storage.replace(1)
        try kept.save()
        // A folder where the new content would stand.
        try FileManager.default.createDirectory(
            at: folder.file("1~x.archive.new"), withIntermediateDirectories: false)
        var saves = kept.saves.values.makeAsyncIterator()
        storage.replace(2)
        let error = #expect(throws: ArchiveError.self) { try kept.save() }
        #expect(error?.code == .unwritable)
        await #expect(throws: ArchiveError.self) { try await saves.next()?.get() }
        let other = Storage(0)
        let second = try archive.keep(other, as: "x")
        #expect(other.value == 1)
        second.dispose()
        try FileManager.default.removeItem(at: folder.file("1~x.archive.new"))
        try kept.save()
    }

    @Test func `nobody else may read what an archive keeps`() throws {
        let archive = try Archive(folder: folder.url)
        let storage = Storage(0)
        let kept = try archive.keep(storage, as: "x")
        storage.replace(1)
        try kept.save()
        kept.dispose()
        let permissions = try [folder.url, folder.file("1~x.archive")].map { url in
            try FileManager.default.attributesOfItem(atPath: url.path)[.posixPermissions] as? Int
        }
        #expect(permissions == [0o700, 0o600])
    }

    @Test func `an older program's value is migrated`() throws {
        struct First: Model {
            static let name = "thing"
            var left = 0
            enum Action: Codable, Sendable { case set(Int) }
            mutating func apply(_ action: Action, _ context: ActionContext) {
                if case .set(let left) = action { self.left = left }
            }
        }
        struct Second: Model {
            static let name = "thing"
            static let schemaVersion = 2
            var count = 0
            enum Action: Codable, Sendable { case set(Int) }
            mutating func apply(_ action: Action, _ context: ActionContext) {}
            static func migrate(_ old: SnapshotReader, from version: Int) throws -> Second {
                Second(count: try old.decode(First.self).left)
            }
        }
        let archive = try Archive(folder: folder.url)
        let old = ModelStore<First>()
        let kept = try archive.keep(old, as: "x")
        old.dispatch(.set(7))
        kept.dispose()
        let new = ModelStore<Second>()
        let again = try archive.keep(new, as: "x")
        #expect(new.count == 7)
        try again.save()
        new.dispatch(.set(1))
        again.dispose()
        let error = #expect(throws: ArchiveError.self) {
            try archive.keep(ModelStore<First>(), as: "x")
        }
        #expect(error?.code == .incompatible)
        #expect(error?.message.contains("newer program") == true)
    }
}
