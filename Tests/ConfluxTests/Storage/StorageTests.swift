import Conflux
import Synchronization
import Testing

@Suite(.timeLimit(.minutes(5)))
struct StorageTests {
    struct Screen: Codable, Sendable, Equatable {
        var count = 0
        var title = ""
        var countText: String { "\(count)" }
    }

    enum Notice: Equatable { case big(Int) }

    struct Broken: Error {}

    @Test func `parts are set, and set if changed, and the whole is replaced`() {
        let storage = Storage(Screen())
        let notices = Mutex(0)
        storage.observe { _ in notices.withLock { $0 += 1 } }
        storage.update(\.count, to: 1)
        storage.updateIfChanged(\.count, to: 1)
        storage.updateIfChanged(\.title, to: "A", isSame: { $0.lowercased() == $1.lowercased() })
        storage.updateIfChanged(\.title, to: "a", isSame: { $0.lowercased() == $1.lowercased() })
        storage.replace(Screen(count: 5))
        #expect(storage.value == Screen(count: 5))
        #expect(notices.withLock { $0 } == 3)
    }

    @Test func `a commit is one notice, however much it does`() {
        let storage = Storage(Screen())
        let seen = Mutex<[Screen]>([])
        storage.observe { value in seen.withLock { $0.append(value) } }
        storage.commit("both") { draft in
            draft.update(\.count, to: 2)
            draft.update(\.title, to: "\(draft.value.count)")
            #expect(storage.count == 0)
        }
        #expect(seen.withLock { $0 } == [Screen(count: 2, title: "2")])
    }

    @Test func `a commit that throws changes nothing, and its receipt says why`() async {
        let storage = Storage(Screen())
        let error = await #expect(throws: DispatchError.self) {
            try await storage.commit { draft in
                draft.update(\.count, to: 2)
                throw Broken()
            }.receipt()
        }
        #expect(error?.code == .refused && error?.reason is Broken)
        #expect(storage.value == Screen())
    }

    @Test func `computed properties are observed like others`() {
        let storage = Storage(Screen())
        let seen = Mutex<[String]>([])
        storage.changed(\.countText).observe { value in seen.withLock { $0.append(value) } }
        storage.update(\.title, to: "x")
        storage.update(\.count, to: 7)
        #expect(seen.withLock { $0 } == ["0", "7"])
    }

    @Test func `activities reach their observers, by type, and change nothing`() {
        let storage = Storage(Screen())
        let seen = Mutex<[Notice]>([])
        let notices = Mutex(0)
        storage.observe { _ in notices.withLock { $0 += 1 } }
        let observation = storage.activities(of: Notice.self)
            .observe { value in seen.withLock { $0.append(value) } }
        storage.emit(Notice.big(11))
        storage.emit("something else")
        observation.dispose()
        storage.emit(Notice.big(12))
        #expect(seen.withLock { $0 } == [.big(11)])
        #expect(notices.withLock { $0 } == 0)
    }

    @Test func `a function that takes its time doesn't keep the storage alive`() {
        let held = HeldExecutor()
        var storage: Storage<Screen>? = Storage(Screen())
        weak let gone = storage
        let late = Late<Int>()
        storage?.perform("increment") { context in
            held.executor.execute {
                context.store?.commit { $0.update(\.count, to: $0.value.count + 1) }
                late.value = context.store?.count ?? -1
            }
        }
        held.runOne()
        #expect(late.value == 1)
        storage?.perform { context in
            held.executor.execute { late.value = context.store == nil ? -1 : 1 }
        }
        storage = nil
        held.runOne()
        #expect(gone == nil && late.value == -1)
    }

    @Test func `middleware is told of each step, with the changes in detail`() async throws {
        let scope = Scope()
        let storage = scope.run { Storage(Screen()) }
        let lines = Mutex<[String]>([])
        scope.use(ActionLogger { line in lines.withLock { $0.append(line) } })
        try await scope.chain().change(storage) { $0.update(\.count, to: 3) }.react().receipt()
        storage.commit("refused") { _ in throw Broken() }
        storage.update(\.count, to: 4)
        let seen = lines.withLock { $0 }
        #expect(seen.contains { $0.hasPrefix("1 change ") && $0.hasSuffix(": 0 to 3") })
        #expect(seen.contains { $0.hasPrefix("2 refuse 2 ") })
        #expect(seen.contains { $0.hasPrefix("3 change ") && $0.hasSuffix(": 3 to 4") })
        #expect(!seen.contains { $0.hasPrefix("2 change") })
    }

    @Test func `commits of many threads follow each other`() async {
        let storage = Storage(Screen(), executor: .queue(.global()))
        await withTaskGroup(of: Void.self) { group in
            for _ in 0..<8 {
                group.addTask {
                    for _ in 0..<100 {
                        _ = try? await storage.commit {
                            $0.update(\.count, to: $0.value.count + 1)
                        }.receipt()
                    }
                }
            }
        }
        #expect(storage.count == 800)
    }

    @Test func `a transaction that reads a storage inside an observer disturbs no commit`() {
        let scope = Scope()
        let storage = scope.run { Storage(Screen()) }
        let lines = Mutex<[String]>([])
        scope.use(ActionLogger { line in lines.withLock { $0.append(line) } })
        storage.observe(\.count) { _ in
            let chain = scope.chain()
            _ = chain.read(storage)
            chain.change(storage) { $0.update(\.count, to: 99) }
            chain.abort()
        }
        storage.update(\.count, to: 3)
        let changes = lines.withLock { $0.filter { $0.contains("change ") && $0.contains(" to ") } }
        #expect(changes.count == 2 && changes[1].hasSuffix(": 0 to 3"))
        #expect(storage.count == 3)
    }
}
