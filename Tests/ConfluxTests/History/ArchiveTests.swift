import Conflux
import Foundation
import Synchronization
import Testing

@Suite(.timeLimit(.minutes(5)))
struct ArchiveTests {
    /// A folder that is removed after the test.
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

    @Test func `a store starts with the value that was saved once it was idle`() async throws {
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

    @Test func `the last change is saved when keeping or the store ends`() throws {
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

    @Test func `each space and name has its own file`() throws {
        let first = try Archive(folder: folder.url, space: "a")
        let second = try Archive(folder: folder.url, space: "b")
        let storage = Storage(0)
        let keeping = [
            try first.keep(storage, as: "x"), try first.keep(storage, as: "y"),
            try second.keep(storage, as: "x"),
        ]
        storage.replace(1)
        #expect(keeping.map(\.space) == ["a", "a", "b"] && keeping.map(\.name) == ["x", "y", "x"])
        for kept in keeping { try kept.save() }
        #expect(folder.names == ["a~x.archive", "a~y.archive", "b~x.archive"])
        for name in ["", "..", "a/b", "ä", String(repeating: "a", count: 65)] {
            let error = #expect(throws: StoreError.self) { try first.keep(storage, as: name) }
            #expect(error?.code == .invalidName)
        }
    }

    @Test func `a logger can be switched off and on`() async throws {
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

    @Test func `an incomplete file is an error, and neither the file nor the store changes`()
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
            let error = #expect(throws: StoreError.self) { try archive.keep(storage, as: "x") }
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
        let error = #expect(throws: StoreError.self) { try archive.keep(Storage(7), as: "x") }
        #expect(error?.code == .incompatible)
        #expect(error?.message.contains("start afresh") == true)
    }

    @Test func `a failed write is reported, and the file saved before stays`() async throws {
        let archive = try Archive(folder: folder.url)
        let storage = Storage(0)
        let kept = try archive.keep(storage, as: "x", idle: .milliseconds(1))
        storage.replace(1)
        try kept.save()
        // A folder where the new file would be written.
        try FileManager.default.createDirectory(
            at: folder.file("1~x.archive.new"), withIntermediateDirectories: false)
        var saves = kept.saves.values.makeAsyncIterator()
        storage.replace(2)
        let error = #expect(throws: StoreError.self) { try kept.save() }
        #expect(error?.code == .unwritable)
        #expect(error?.message.contains("Is a directory. It is a folder.") == true)
        await #expect(throws: StoreError.self) { try await saves.next()?.get() }
        let other = Storage(0)
        let second = try archive.keep(other, as: "x")
        #expect(other.value == 1)
        second.dispose()
        try FileManager.default.removeItem(at: folder.file("1~x.archive.new"))
        try kept.save()
    }

    @Test func `an archive below a file says that a part of its path is no folder`() throws {
        let file = folder.url.appendingPathComponent("plain")
        try FileManager.default.createDirectory(at: folder.url, withIntermediateDirectories: true)
        try Data().write(to: file)
        let error = #expect(throws: StoreError.self) {
            try Archive(folder: file.appendingPathComponent("archive"))
        }
        #expect(error?.code == .unreadable)
        let parts = [
            "plain/archive can't be made", "Not a directory. A part of the path is a file",
        ]
        for part in parts {
            #expect(error?.message.contains(part) == true, "\(error?.message ?? "")")
        }
    }

    @Test func `only the owner may read an archive's files`() throws {
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
        let error = #expect(throws: StoreError.self) {
            try archive.keep(ModelStore<First>(), as: "x")
        }
        #expect(error?.code == .incompatible)
        #expect(error?.message.contains("newer program") == true)
    }
    // MARK: When and by whom values are saved

    @Test func `changes from before the keeping are saved, too`() async throws {
        let archive = try Archive(folder: folder.url)
        func saved(_ name: String) throws -> Int {
            let storage = Storage(0)
            _ = try archive.keep(storage, as: name)
            return storage.value
        }
        let storage = Storage(0)
        storage.replace(7)
        let first = try archive.keep(storage, as: "called", idle: .seconds(3_600))
        try first.save()
        #expect(try saved("called") == 7)
        _ = try archive.keep(storage, as: "ended", idle: .seconds(3_600))
        #expect(try saved("ended") == 7)
        let third = try archive.keep(storage, as: "idle", idle: .milliseconds(1))
        var saves = third.saves.values.makeAsyncIterator()
        if !folder.names.contains("1~idle.archive") { try await saves.next()?.get() }
        #expect(try saved("idle") == 7)

        let untouched = Storage(3)
        _ = try archive.keep(untouched, as: "untouched")
        #expect(!folder.names.contains("1~untouched.archive"))
        let asked = try archive.keep(untouched, as: "asked")
        try asked.save()
        #expect(try saved("asked") == 3)
        withExtendedLifetime((first, third, asked)) {}
    }

    @Test func `two archives of one name don't disturb each other`() throws {
        let archive = try Archive(folder: folder.url)
        let storages = (0..<4).map { Storage([$0]) }
        let kept = try storages.map { try archive.keep($0, as: "x", idle: .seconds(3_600)) }
        let failures = Seen<StoreError>()
        onThreads(4) { index in
            for round in 0..<50 {
                storages[index].replace(Array(repeating: index, count: round * 100))
                do throws(StoreError) { try kept[index].save() } catch { failures.add(error) }
            }
        }
        #expect(failures.values.map(\.message) == [])
        let other = Storage([7])
        _ = try archive.keep(other, as: "x")
        #expect(other.value.count == 4_900 && Set(other.value).count == 1)
        #expect(folder.names == ["1~x.archive"])
    }

    /// A value whose encoding waits until another thread has saved.
    struct Waiting: Codable, Sendable {
        static let hook = Late<@Sendable () -> Void>()
        var count = 0

        init() {}
        init(from decoder: any Decoder) throws {
            count = try decoder.singleValueContainer().decode(Int.self)
        }
        func encode(to encoder: any Encoder) throws {
            let hook = Self.hook.value
            Self.hook.value = nil
            hook?()
            var container = encoder.singleValueContainer()
            try container.encode(count)
        }
    }

    @Test func `a value is encoded under no lock, and the newest one stays`() throws {
        let archive = try Archive(folder: folder.url)
        let storage = Storage(Waiting())
        let kept = try archive.keep(storage, as: "x", idle: .seconds(3_600))
        let ended = Late<Bool>()
        storage.update(\.count, to: 1)
        Waiting.hook.value = {
            storage.update(\.count, to: 2)
            let semaphore = DispatchSemaphore(value: 0)
            Thread {
                try? kept.save()
                semaphore.signal()
            }.start()
            ended.value = semaphore.wait(timeout: .now() + 5) == .success
        }
        try kept.save()
        #expect(ended.value == true)
        let other = Storage(Waiting())
        _ = try archive.keep(other, as: "x")
        #expect(other.count == 2)
    }

    @Test func `names that differ in case have files that differ otherwise`() throws {
        let spaces = ["settings", "Settings"].map { space in
            Result { try Archive(folder: folder.url, space: space) }
        }
        for (index, space) in spaces.enumerated() {
            for (place, name) in ["ab", "Ab", "aB", "AB", "AB.9_-"].enumerated() {
                let storage = Storage(0)
                let kept = try space.get().keep(storage, as: name)
                #expect(storage.value == 0)
                storage.replace(10 * index + place + 1)
                kept.dispose()
            }
        }
        #expect(folder.names.count == 10 && Set(folder.names.map { $0.lowercased() }).count == 10)
        #expect(folder.names.contains("settings~ab.archive"))
        let storage = Storage(0)
        _ = try spaces[1].get().keep(storage, as: "aB")
        #expect(storage.value == 13)
        let long = String(repeating: "A", count: 64)
        let kept = try Archive(folder: folder.url, space: long).keep(storage, as: long)
        try kept.save()
    }

    // MARK: Values of other types

    /// The value of a former version of the program.
    struct Before: Codable, Sendable { var title = "", width = 1 }

    struct After: Codable, Sendable, Equatable {
        struct Place: Codable, Sendable, Equatable { var x = 0, y = 0 }
        var title = ""
        var place = Place()
        var colour = "black"
    }

    private func save(_ value: some Codable & Sendable, as name: String) throws {
        let storage = Storage(value)
        let kept = try Archive(folder: folder.url).keep(storage, as: name)
        try kept.save()
    }

    @Test func `a property that the saved value lacks keeps the storage's value`() throws {
        try save(Before(title: "a", width: 2), as: "x")
        let storage = Storage(After(title: "b", colour: "red"))
        let kept = try Archive(folder: folder.url).keep(storage, as: "x")
        #expect(storage.value == After(title: "a", colour: "red"))
        withExtendedLifetime(kept) {}
    }
    @Test func `a storage whose value has another form is migrated`() throws {
        struct Wide: Codable, Sendable, Equatable {
            struct Size: Codable, Sendable, Equatable { var width = 0 }
            var size = Size()
        }
        try save(Before(title: "a", width: 2), as: "x")
        let archive = try Archive(folder: folder.url)
        func keep(_ storage: Storage<Wide>, _ version: Int) throws -> Archived {
            try archive.keep(storage, as: "x", version: version) { old, version in
                #expect(version == 1)
                return Wide(size: Wide.Size(width: try old.decode(Before.self).width))
            }
        }
        let storage = Storage(Wide())
        let kept = try keep(storage, 2)
        #expect(storage.size.width == 2)
        storage.update(\.size.width, to: 3)
        kept.dispose()
        // A value of the present version is not migrated, and a value of a newer version is not read.
        let again = Storage(Wide())
        _ = try keep(again, 2)
        #expect(again.size.width == 3)
        let newer = #expect(throws: StoreError.self) { try archive.keep(again, as: "x") }
        #expect(newer?.code == .incompatible)
        #expect(newer?.message.contains("saved with version 2, and this program knows 1") == true)
        let failed = #expect(throws: StoreError.self) {
            try archive.keep(again, as: "x", version: 3) { _, _ in throw CancellationError() }
        }
        #expect(failed?.code == .incompatible && failed?.reason is CancellationError)
    }
}
