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

    @Test func `a commit notifies once, however much it changes`() {
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

    @Test func `a draft's parts are read and changed by their names`() {
        struct Board: Sendable, Equatable {
            var screen = Screen()
            var tags: [String] = []
            var changes = 0
            var countText: String { "\(screen.count)" }
        }
        let scope = Scope()
        let storage = scope.run { Storage(Board()) }
        let notices = Mutex(0)
        storage.observe { _ in notices.withLock { $0 += 1 } }
        storage.commit { draft in
            draft.screen.count += 1
            draft.tags.append(draft.countText)
            draft.changes = 7
        }
        scope.chain().change(storage) { $0.screen.count += 1 }
            .change(storage) { $0.screen.count += 1 }.react()
        #expect(storage.value == Board(screen: Screen(count: 3), tags: ["1"], changes: 7))
        storage.commit { draft in #expect(draft.screen.count == 3 && draft.tags.count == 1) }
        #expect(notices.withLock { $0 } == 2)
        storage.commit { draft in
            draft.screen.count += 1
            throw Broken()
        }
        #expect(storage.screen.count == 3)
    }

    @Test func `middleware gets each part that a draft changed`() {
        let scope = Scope()
        let storage = scope.run { Storage(Screen(count: 2)) }
        let lines = Mutex<[String]>([])
        scope.use(ActionLogger { line in lines.withLock { $0.append(line) } })
        storage.commit { draft in
            draft.count += 1
            draft.title.append("a")
        }
        let changes = lines.withLock { $0.filter { $0.hasPrefix("1 change ") } }
        #expect(changes.count == 2)
        #expect(changes.first?.hasSuffix(": 2 to 3") == true)
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

    @Test func `activities reach observers of their type, and change nothing`() {
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

    @Test func `a slow function doesn't keep the storage alive`() {
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

    @Test func `middleware gets each step, with the changes in detail`() async throws {
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

    /// Notes what middleware is told about commits, in order.
    private struct Notes: Middleware {
        let lines: Seen<String>

        func willDispatch<S: State>(_ dispatch: DispatchedAction<S>) -> Passage<S.Action> {
            lines.add("will dispatch at \(count(dispatch.value))")
            return .pass
        }
        func willCommit<S: State>(_ commit: CommittedAction<S>) {
            lines.add("will commit at \(count(commit.value))")
        }
        func didCommit<S: State>(_ commit: CommittedAction<S>, refusal: (any Error)?) {
            lines.add("did commit at \(count(commit.value))")
        }

        private func count(_ value: (any Sendable)?) -> String {
            (value as? Screen).map { "\($0.count)" } ?? "none"
        }
        func didChange<S: State>(_ commit: CommittedAction<S>, _ change: StorageChange) {
            lines.add("\(change.old) to \(change.new)")
        }
    }

    @Test func `middleware gets a commit's changes in order, and the value before and after`() {
        let scope = Scope()
        let storage = scope.run { Storage(Screen()) }
        let notes = Notes(lines: Seen())
        scope.use(notes)
        storage.observe { _ in notes.lines.add("observer") }
        storage.commit { draft in
            draft.count = 1
            draft.title = "a"
        }
        let alone = [
            "will dispatch at 0", "will commit at 0", "observer", "0 to 1", " to a",
            "did commit at 1",
        ]
        #expect(notes.lines.values == alone)
        scope.chain().change(storage) { $0.count = 2 }.change(storage) { $0.count = 3 }.react()
        let chain = [
            "will dispatch at 1", "will dispatch at 1", "will commit at 1", "will commit at 1",
            "observer", "1 to 2", "did commit at 2", "2 to 3", "did commit at 3",
        ]
        #expect(notes.lines.values == alone + chain)
        // A class state may be accessed only in its lane, so middleware doesn't get its value.
        let tally = scope.run { tallyStore() }
        tally.actions.tell(1)
        #expect(
            Array(notes.lines.values.dropFirst(alone.count + chain.count)) == [
                "will dispatch at none", "will commit at none", "did commit at none",
            ])
    }

    @Test func `a storage is changed in a mode, and under a lock, by a function`() async throws {
        let scope = Scope()
        let storage = scope.run { Storage(1) }
        let ends = Seen<Bool>()
        scope.dispatch(to: storage, mode: .sync) {
            $0.replace($0.value + 1)
        } then: {
            ends.add((try? $0.get()) != nil)
        }
        #expect(storage.value == 2 && ends.values == [true])
        let refused = scope.dispatch(to: storage, mode: .serial) { _ in throw Broken() }
        let error = await #expect(throws: DispatchError.self) { try await refused.receipt() }
        #expect(error?.reason is Broken)

        let observation = storage.observe { _ in scope.lockInForce?.release() }
        scope.lock(changing: storage) { $0.replace(3) }
        #expect(storage.value == 3 && scope.lockInForce == nil)
        observation.dispose()
        scope.lock(changing: storage) { $0.replace(3) }
        #expect(scope.lockInForce == nil)
        scope.lock(changing: storage) { $0.replace(4) }
        #expect(storage.value == 4)
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

    @Test func `a chain that is aborted inside an observer does not disturb commits`() {
        let scope = Scope()
        let storage = scope.run { Storage(Screen()) }
        let lines = Mutex<[String]>([])
        scope.use(ActionLogger { line in lines.withLock { $0.append(line) } })
        storage.observe(\.count) { _ in
            scope.chain().change(storage) { $0.update(\.count, to: 99) }.abort()
        }
        storage.update(\.count, to: 3)
        let changes = lines.withLock { $0.filter { $0.contains("change ") && $0.contains(" to ") } }
        #expect(changes.count == 2 && changes[1].hasSuffix(": 0 to 3"))
        #expect(storage.count == 3)
    }
}
