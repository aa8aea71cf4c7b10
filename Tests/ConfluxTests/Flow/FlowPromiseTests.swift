import Dispatch
import Foundation
import Synchronization
import Testing

@testable import Conflux

/// The promises of the flow's concepts where several concepts meet.
@Suite(.timeLimit(.minutes(5)))
struct FlowPromiseTests {
    let scope = Scope()

    // MARK: Locks

    @Test func `a thread's dispatches keep their order when locks end`() async {
        let scope = scope
        let store = scope.run { tallyStore() }
        let isOver = Late<Bool>()
        // These are threads, since a thread never suspends.
        for _ in 0..<2 {
            Thread {
                while isOver.value != true {
                    let lock = scope.lock()
                    lock.release()
                    // The last reference ends here, which releases the lock again.
                }
            }.start()
        }
        let count = await withCheckedContinuation { continuation in
            Thread {
                // One second is enough, since these threads take time from others.
                let end = ContinuousClock.now + .seconds(1)
                var count = 0
                while count < 20_000, .now < end {
                    store.actions.tell(count)
                    count += 1
                }
                isOver.value = true
                continuation.resume(returning: count)
            }.start()
        }
        await withCheckedContinuation { continuation in
            scope.whenSettled { _ in continuation.resume() }
        }
        let numbers = store.computed.numbers
        #expect(numbers.count == count)
        let slip = zip(numbers, 0...).first { $0 != $1 }
        #expect(slip == nil)
    }

    @MainActor
    @Test func `a body that holds a newer lock waits for that lock's turn`() async throws {
        let scope = scope
        let store = scope.run { tallyStore() }
        let (older, younger) = (scope.lock(), scope.lock())
        let body = Task { @MainActor in
            try await younger.run {
                try await scope.withLock { lock in
                    #expect(lock === younger)
                    try await store.actions.dispatch(1).receipt()
                }
            }
            younger.release()
        }
        // The body begins, and waits.
        await Task.yield()
        older.release()
        try await body.value
        #expect(store.computed.numbers == [1] && scope.lockInForce == nil)
    }

    @Test func `a released lock no longer covers a body that runs under it`() async {
        let scope = scope
        let former = scope.lock()
        former.release()
        await former.run {
            await scope.withLock { lock in
                #expect(lock !== former && scope.lockInForce === lock)
            }
        }
    }

    @Test func `an observed change keeps its lock, even if it was undone meanwhile`() throws {
        let scope = scope
        let storage = scope.run { Storage(1) }
        let told = Mutex<[Int]>([])
        storage.observe { value in
            told.withLock { $0.append(value) }
            if value == 2 { storage.replace(1) }
        }
        let lock = try scope.lock(dispatching: StorageCommit { $0.replace(2) }, to: storage)
        #expect(told.withLock { $0 } == [2, 1])
        #expect(scope.lockInForce === lock)
        lock.release()
    }

    private struct Follower: Middleware {
        let follow: @Sendable () -> Void

        func didCommit<S: State>(_ commit: CommittedAction<S>, refusal: (any Error)?) {
            if refusal != nil { follow() }
        }
    }

    @Test func `a refused action releases its lock, whatever follows from it`() throws {
        let scope = scope
        let storage = scope.run { Storage(1) }
        scope.use(Follower { storage.replace(3) })
        struct No: Error {}
        let lock = try scope.lock(dispatching: StorageCommit { _ in throw No() }, to: storage)
        #expect(scope.lockInForce == nil && storage.value == 3)
        withExtendedLifetime(lock) {}
    }

    @Test func `an event that changes no store releases its lock`() throws {
        let (account, storage) = scope.run { (ModelStore<Account>(), Storage(Guest())) }
        let lock = try scope.lock(sending: LoggedIn(user: "a"))
        #expect(scope.lockInForce === lock && account.user == "a" && storage.value.user == "a")
        lock.release()
        let same = try scope.lock(sending: LoggedIn(user: "a"))
        #expect(scope.lockInForce == nil)
        let unheard = try scope.lock(sending: Unheard())
        #expect(scope.lockInForce == nil)
        withExtendedLifetime((same, unheard)) {}
    }

    private struct Unheard: Event {}

    /// A value that is changed by functions and by events.
    private struct Guest: EventHandling, Equatable {
        var user = ""

        static var events: EventHandlers<StorageCommit<Guest>> {
            EventHandlers().on(LoggedIn.self) { event in
                StorageCommit { $0.updateIfChanged(\.user, to: event.user) }
            }
        }
    }

    @Test func `a storage handles events and takes functions`() async throws {
        let storage = scope.run { Storage(Guest()) }
        try await scope.send(LoggedIn(user: "a")).receipt()
        #expect(storage.value.user == "a")
        storage.update(\.user, to: "b")
        #expect(storage.value.user == "b")
    }

    @Test func `work delayed by many waiting threads is not the lock holder's`() async throws {
        let scope = scope
        let store = scope.run { tallyStore() }
        let lock = scope.lock()
        let count = FlowGate.parkedMax + 2
        await withCheckedContinuation { continuation in
            Thread {
                for number in 1...count { scope.dispatch(number, to: store) }
                continuation.resume()
            }.start()
        }
        try await lock.run { scope.dispatch(0, to: store) }.receipt()
        #expect(store.computed.numbers == [0])
        lock.release()
        try await scope.dispatch(0, to: store).receipt()
        #expect(store.computed.numbers.count == count + 2)
    }

    @Test func `middleware may wait for a dispatch in didDispatch`() throws {
        let scope = scope
        let other = scope.run { tallyStore() }
        var gone: Store<TallyState>? = scope.run { tallyStore() }
        let actions = try #require(gone).actions
        gone = nil
        scope.use(
            Ender {
                let lock = scope.lock()
                lock.run { _ = scope.dispatch(1, to: other, mode: .sync) }
                lock.release()
            })
        actions.tell(0)
        #expect(other.computed.numbers == [1])
    }

    private struct Ender: Middleware {
        let end: @Sendable () -> Void

        func didDispatch<S: State>(
            _ dispatch: DispatchedAction<S>, result: Result<Receipt, DispatchError>
        ) {
            if result.failure?.code == .storeClosed { end() }
        }
    }

    @Test func `restoring by a recorder or an archive waits for a lock`() throws {
        let storage = scope.run { Storage(1) }
        let recorder = Recorder(storage)
        storage.replace(2)
        let folder = FileManager.default.temporaryDirectory
            .appendingPathComponent("conflux-\(UUID().uuidString)")
        defer { try? FileManager.default.removeItem(at: folder) }
        let archive = try Archive(folder: folder)
        let kept = scope.run { Storage(4) }
        let first = try archive.keep(kept, as: "kept")
        kept.replace(5)
        first.dispose()
        kept.replace(6)
        let lock = scope.lock()
        try recorder.back()
        let archived = try archive.keep(kept, as: "kept")
        #expect(storage.value == 2 && kept.value == 6)
        lock.release()
        #expect(storage.value == 1 && kept.value == 5)
        kept.replace(7)
        try archived.save()
        let other = scope.run { Storage(0) }
        let read = try archive.keep(other, as: "kept")
        #expect(other.value == 7)
        withExtendedLifetime(read) {}
    }

    @Test func `an action after a restored value is recorded as a change of it`() throws {
        let folder = FileManager.default.temporaryDirectory
            .appendingPathComponent("conflux-\(UUID().uuidString)")
        defer { try? FileManager.default.removeItem(at: folder) }
        let archive = try Archive(folder: folder)
        let held = HeldExecutor()
        let storage = scope.run { Storage([1], executor: held.executor) }
        for count in 1...3 {
            let archived = try archive.keep(storage, as: "kept")
            storage.commit { $0.replace($0.value + [count]) }
            held.runAll()
            archived.dispose()
        }
        #expect(storage.value == [1, 1, 2, 3])
        let other = scope.run { Storage([0]) }
        let read = try archive.keep(other, as: "kept")
        #expect(other.value == [1, 1, 2, 3])
        withExtendedLifetime(read) {}
    }

    // MARK: Middleware

    private final class Diary: Middleware {
        private let content = Mutex<[String]>([])

        var lines: [String] { content.withLock { $0 } }

        func willDispatch<S: State>(_ dispatch: DispatchedAction<S>) -> Passage<S.Action> {
            content.withLock { $0.append("will \(dispatch.action)") }
            return .pass
        }

        func didDispatch<S: State>(
            _ dispatch: DispatchedAction<S>, result: Result<Receipt, DispatchError>
        ) {
            content.withLock {
                $0.append("did \(dispatch.action) \(result.failure?.code.rawValue ?? "")")
            }
        }

        func didCommit<S: State>(_ commit: CommittedAction<S>, refusal: (any Error)?) {
            let label = commit.label.map { "\($0.name) \($0.line)" }
            content.withLock { $0.append("committed \(label ?? "")") }
        }
    }

    private struct Stopper: Middleware {
        func willDispatch<S: State>(_ dispatch: DispatchedAction<S>) -> Passage<S.Action> { .stop }
    }

    @Test func `middleware that saw a dispatch begin is told that it was stopped`() {
        let (before, after) = (Diary(), Diary())
        let store = scope.run { tallyStore() }
        scope.use(before)
        scope.use(Stopper())
        scope.use(after)
        store.actions.tell(1)
        #expect(before.lines == ["will 1", "did 1 intercepted"])
        #expect(after.lines.isEmpty)
    }

    @Test func `a storage's changes and a chain's actions carry their source location`() {
        let diary = Diary()
        let storage = scope.run { Storage(Guest()) }
        scope.use(diary)
        let line = UInt(#line)
        storage.replace(Guest())
        storage.update(\.user, to: "a")
        storage.updateIfChanged(\.user, to: "b")
        scope.chain("both").change(storage) { $0.update(\.user, to: "c") }.react()
        #expect(
            diary.lines.filter { $0.hasPrefix("committed") } == [
                "committed replace \(line + 1)", "committed update \(line + 2)",
                "committed updateIfChanged \(line + 3)", "committed both \(line + 4)",
            ])
    }

    // MARK: Events

    @Test func `states take an event in the order in which they were used first`() {
        struct Wave: Event {}
        final class Ring<Place>: State, EventHandling {
            typealias Action = String
            typealias Mutations = RingMutations<Place>
            static var events: EventHandlers<String> {
                EventHandlers().on(Wave.self) { _ in "\(Place.self)" }
            }
        }
        struct RingMutations<Place>: Mutations {
            let tell: @Sendable (String) -> Void
            func commit(action: String, state: Ring<Place>) { tell(action) }
        }
        let told = Mutex<[String]>([])
        func ring<Place>(_ place: Place.Type) -> Any {
            scope.run {
                Store<Ring<Place>>(
                    state: .init(),
                    mutations: .init { place in told.withLock { $0.append(place) } },
                    executor: .immediate)
            }
        }
        let rings = [
            ring(Int.self), ring(String.self), ring(Bool.self), ring(Double.self), ring(UInt8.self),
            ring(Character.self),
        ]
        scope.send(Wave())
        #expect(
            told.withLock { $0 } == ["Int", "String", "Bool", "Double", "UInt8", "Character"])
        withExtendedLifetime(rings) {}
    }

    // MARK: Values

    @Test func `internal members can't be reached, even by name`() {
        struct Settings: Codable {
            var _scroll = 0
            var info = ["_draft": 0, "title": 0]
        }
        let storage = scope.run { Storage(Settings()) }
        let told = Mutex<[String]>([])
        for path: JSONPointer in ["/_scroll", "/info/_draft", "/info/title"] {
            storage.changes(at: path).observe { _ in
                told.withLock { $0.append(path.description) }
            }
        }
        storage.update(\._scroll, to: 1)
        storage.update(\.info["_draft"], to: 1)
        storage.update(\.info["title"], to: 1)
        #expect(told.withLock { $0 } == ["/info/title"])
    }

    @Test func `a commit in progress when its store is released counts as a change`()
        async throws
    {
        let (begun, goOn) = (AsyncStream<Void>.makeStream(), DispatchSemaphore(value: 0))
        let queue = DispatchQueue(label: "own")
        var storage: Storage<Int>? = scope.run { Storage(1, executor: .queue(queue)) }
        var changes = try #require(storage).changes.makeAsyncIterator()
        let handle = try #require(storage).commit { draft in
            begun.continuation.yield()
            goOn.wait()
            draft.replace(2)
        }
        for await _ in begun.stream { break }
        storage = nil
        goOn.signal()
        try await handle.receipt()
        let change = await changes.next()
        #expect(change == Change(old: 1, new: 2))
        #expect(await changes.next() == nil)
    }

    /// A value that looks at a recorder when it is freed.
    private final class Nosy: Codable, Sendable {
        let look: @Sendable () -> Void

        init(_ look: @escaping @Sendable () -> Void) { self.look = look }

        init(from decoder: any Decoder) throws { look = {} }

        func encode(to encoder: any Encoder) throws {}

        deinit { look() }
    }

    @Test func `values that a recorder forgets are freed outside of its lock`() throws {
        let storage = scope.run { Storage(Nosy {}) }
        let found = Late<Recorder<StorageState<Nosy>>>()
        let looks = Atomic(0)
        let recorder = Recorder(storage, capacity: 2)
        found.value = recorder
        for _ in 0..<4 {
            storage.replace(
                Nosy {
                    _ = found.value?.position
                    looks.add(1, ordering: .relaxed)
                })
        }
        try recorder.back()
        storage.replace(Nosy {})
        #expect(looks.load(ordering: .relaxed) >= 3)
        found.value = nil
    }
}
