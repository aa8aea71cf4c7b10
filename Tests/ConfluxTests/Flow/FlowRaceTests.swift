import Dispatch
import Foundation
import Synchronization
import Testing

@testable import Conflux

/// How two threads, or two concepts, could disturb each other.
@Suite(.timeLimit(.minutes(5)))
struct FlowRaceTests {
    let scope = Scope()

    // MARK: Nothing slips past a lock

    private struct Nothing: Middleware {}

    /// Lets one thread take locks, and under each lock run `first` and `second`, which dispatch a 1 and then a 2 to a
    /// store. Meanwhile `other` dispatches, again and again.
    private func contest(
        rounds: Int, first: @escaping @Sendable () -> Void, second: @escaping @Sendable () -> Void,
        against other: () -> DispatchHandle
    ) async {
        let isOver = Late<Bool>()
        let scope = scope
        // Not a task: if another test blocked the second of two task threads, the loop below would never end.
        Thread {
            for _ in 0..<rounds {
                let lock = scope.lock()
                lock.run(first)
                sched_yield()
                lock.run(second)
                lock.release()
            }
            isOver.value = true
        }.start()
        repeat { _ = try? await other().receipt() } while isOver.value != true
    }

    /// How often there is a number between a 1 and its 2.
    private func intruders(in numbers: [Int]) -> Int {
        var count = 0
        var isOpen = false
        for number in numbers {
            if number == 1 {
                isOpen = true
            } else if number == 2 {
                isOpen = false
            } else if isOpen {
                count += 1
            }
        }
        return count
    }

    @Test(arguments: [false, true])
    func `no global action slips past a lock`(isWatched: Bool) async throws {
        let stores = scope.run { (0..<100).map { _ in tallyStore() } }
        let store = try #require(stores.last)
        if isWatched { scope.use(Nothing()) }
        let scope = scope
        await contest(
            rounds: 200, first: { store.actions.tell(1) }, second: { store.actions.tell(2) }
        ) {
            scope.run { Store<TallyState>.actions.dispatch(3) }
        }
        try await store.actions.dispatch(4).receipt()
        #expect(intruders(in: store.computed.numbers) == 0)
        #expect(store.computed.numbers.contains(3) && store.computed.numbers.contains(2))
    }

    @Test(arguments: [false, true])
    func `a lock holder's dispatch waits for one that found the gate open and has no place yet`(
        isReleased: Bool
    ) async throws {
        let store = scope.run { tallyStore() }
        let (isIn, goOn, isDone) = (
            DispatchSemaphore(value: 0), DispatchSemaphore(value: 0), DispatchSemaphore(value: 0)
        )
        let scope = scope
        Thread {
            scope.gate.pass(holding: nil) { placed in
                isIn.signal()
                goOn.wait()
                var places = Reservation()
                places.place(store.core.job(3), in: store.core, ThreadMark.current)
                placed()
                places.serve(ThreadMark.current)
            }
            isDone.signal()
        }.start()
        isIn.wait()
        let lock = scope.lock()
        let (first, second) = lock.run { (store.actions.dispatch(1), store.actions.dispatch(2)) }
        if isReleased { lock.release() }
        #expect(store.computed.numbers == [])
        goOn.signal()
        isDone.wait()
        try await first.receipt()
        try await second.receipt()
        #expect(store.computed.numbers == [3, 1, 2])
        lock.release()
    }

    @Test func `a lock holder's dispatch comes after a global dispatch that is taking its places`()
        async throws
    {
        let store = scope.run { tallyStore() }
        let (isIn, goOn, isDone, isHolderDone) = (
            DispatchSemaphore(value: 0), DispatchSemaphore(value: 0), DispatchSemaphore(value: 0),
            DispatchSemaphore(value: 0)
        )
        let scope = scope
        Thread {
            // Like a global dispatch: it has checked the gate, and reserves a place in each lane.
            var places = Reservation()
            scope.channel(of: TallyState.self).withLanes { _ in
                isIn.signal()
                goOn.wait()
                places.place(store.core.job(3), in: store.core, ThreadMark.current)
            }
            places.serve(ThreadMark.current)
            isDone.signal()
        }.start()
        isIn.wait()
        let lock = scope.lock()
        Thread {
            lock.run { store.actions.tell(1) }
            isHolderDone.signal()
        }.start()
        // It must wait. If it did not, it would be done in far less time.
        let isThrough = isHolderDone.wait(timeout: .now() + .milliseconds(50)) == .success
        goOn.signal()
        isDone.wait()
        if !isThrough { isHolderDone.wait() }
        try await lock.run { store.actions.dispatch(2) }.receipt()
        #expect(store.computed.numbers == [3, 1, 2])
        lock.release()
    }

    @Test func `actions that follow from a lock holder's waiting dispatch are the holder's too`()
        async throws
    {
        let (store, other) = scope.run { (tallyStore(), Late<Store<TallyState>>()) }
        let following = scope.run { tallyStore { _ in other.value?.actions.tell(2) } }
        other.value = store
        let older = scope.lock()
        let younger = scope.lock()
        let handle = younger.run { following.actions.dispatch(1) }
        older.release()
        try await handle.receipt()
        // The younger lock is in force, so only the actions of its holder are committed.
        #expect(scope.lockInForce === younger)
        #expect(store.computed.numbers == [2])
        younger.release()
        other.value = nil
    }

    @Test func `no transaction slips past a lock`() async throws {
        let storages = scope.run { (0..<100).map { _ in Storage(0) } }
        let storage = try #require(storages.last)
        let seen = Mutex<[Int]>([])
        let observation = storage.observe { value in seen.withLock { $0.append(value) } }
        let scope = scope
        await contest(
            rounds: 150, first: { storage.replace(1) }, second: { storage.replace(2) }
        ) {
            let chain = scope.chain()
            for storage in storages { chain.change(storage) { $0.replace(3) } }
            return chain.react()
        }
        observation.dispose()
        #expect(intruders(in: seen.withLock { $0 }) == 0)
    }

    @Test func `taking a lock inside a body that holds it has no further effect`() async throws {
        let stock = scope.run { ModelStore<Stock>() }
        try await scope.withLock { outer in
            try await scope.withLock { inner in
                #expect(inner === outer)
                try await stock.dispatch(.add(amount: 1)).receipt()
            }
        }
        #expect(stock.left == 1 && scope.lockInForce == nil)
    }

    @Test func `a lock holder's serial dispatches don't wait for those that its lock pauses`()
        async throws
    {
        let store = scope.run { tallyStore() }
        let lock = scope.lock()
        let paused = scope.dispatch(1, to: store, mode: .serial)
        let own = lock.run { scope.dispatch(2, to: store, mode: .serial) }
        try await own.receipt()
        #expect(store.computed.numbers == [2])
        lock.release()
        try await paused.receipt()
        #expect(store.computed.numbers == [2, 1])
    }

    // MARK: Queues

    @Test func `functions run on their queue, even after another queue's executor was released`() {
        let first = DispatchQueue(label: "first")
        for number in 0..<200 {
            _ = Executor.within(first)
            let second = DispatchQueue(label: "second \(number)")
            let executor = Executor.within(second)
            second.suspend()
            let place = Late<Bool>()
            first.sync { executor.execute { place.value = true } }
            #expect(place.value == nil)
            second.resume()
            second.sync {}
            #expect(place.value == true)
        }
    }

    // MARK: Middleware and events

    /// Counts the dispatches that it saw begin and end.
    private final class Ends: Middleware {
        let begun = Atomic(0)
        let ended = Atomic(0)

        func willDispatch<S: State>(_ dispatch: DispatchedAction<S>) -> Passage<S.Action> {
            begun.add(1, ordering: .relaxed)
            return .pass
        }

        func didDispatch<S: State>(
            _ dispatch: DispatchedAction<S>, result: Result<Receipt, DispatchError>
        ) {
            ended.add(1, ordering: .relaxed)
        }

        var counts: [Int] {
            [begun.load(ordering: .relaxed), ended.load(ordering: .relaxed)]
        }
    }

    @Test func `middleware gets the end of a dispatch that it saw, even of a released store`() {
        let held = HeldExecutor()
        var store: Store<TallyState>? = scope.run { tallyStore(on: held.executor) }
        let ends = Ends()
        if let store { scope.use(ends, for: store) }
        let lock = scope.lock()
        let actions = store?.actions
        actions?.tell(1)
        store = nil
        lock.release()
        held.runAll()
        #expect(ends.counts == [1, 1])
    }

    @Test func `middleware registered after a dispatch began does not get its end`() async throws {
        let store = scope.run { tallyStore() }
        scope.use(Nothing())
        let lock = scope.lock()
        let handle = store.actions.dispatch(1)
        let ends = Ends()
        scope.use(ends)
        lock.release()
        try await handle.receipt()
        #expect(ends.counts == [0, 0])
    }

    private final class Road<S: State>: ActionRoute {
        let count = Atomic(0)

        func conditional(on version: StoreVersion) -> any ActionRoute<S> { self }

        func submit(_ action: S.Action, mayWait: Bool) -> DispatchHandle {
            count.add(1, ordering: .relaxed)
            return DispatchHandle(.failed(.withdrawn))
        }
    }

    @Test func `an event takes the route of a state as a global action does`() async throws {
        let store = scope.run { ModelStore<Account>() }
        let road = Road<ModelState<Account>>()
        let channel = scope.channel(of: ModelState<Account>.self)
        channel.setRoute(road)
        defer { channel.setRoute(nil) }
        let error = await #expect(throws: DispatchError.self) {
            try await scope.send(LoggedIn(user: "a")).receipt()
        }
        #expect(error?.code == .withdrawn)
        #expect(road.count.load(ordering: .relaxed) == 1 && store.user == nil)
    }

    @Test func `a store that waited for others keeps nothing of released ones`() throws {
        let store = scope.run { tallyStore() }
        for _ in 0..<10 {
            let other = scope.run { tallyStore() }
            try scope.order(store, after: other)
        }
        #expect(store.core.hooks.withLock { $0.isEmpty })
    }

    // MARK: Values

    @Test func `the whole value's changes are those that happened`() async {
        let storage = scope.run { Storage(0) }
        let changes = storage.changes
        var iterator = changes.makeAsyncIterator()
        storage.replace(7)
        #expect(await iterator.next() == Change(old: 0, new: 7))
        var late = changes.makeAsyncIterator()
        #expect(await late.next() == Change(old: 0, new: 7))
    }

    @Test func `a value that does not change reports no change`() async {
        var storage: Storage<Int>? = scope.run { Storage(0) }
        var iterator = storage?.changes.makeAsyncIterator()
        storage = nil
        #expect(await iterator?.next() == nil)
    }

    @Test func `a reader that begins after the release still gets the change before it`() async {
        var stock: ModelStore<Stock>? = scope.run { ModelStore<Stock>() }
        let changes = stock?.changes(of: \.left)
        stock?.dispatch(.add(amount: 5))
        stock = nil
        var iterator = changes?.makeAsyncIterator()
        #expect(await iterator?.next() == Change(old: 0, new: 5))
        #expect(await iterator?.next() == nil)
    }

    @Test func `a transaction that does not change a storage notifies no observer`() async throws {
        let (storage, other) = scope.run { (Storage(0), Storage(0)) }
        let seen = Mutex<[Int]>([])
        let observation = storage.observe { value in seen.withLock { $0.append(value) } }
        try await scope.chain().change(storage) { $0.updateIfChanged(\.self, to: 0) }
            .change(other) { $0.replace(1) }.react().receipt()
        #expect(seen.withLock { $0 } == [] && other.value == 1)
        try await scope.chain().change(storage) { $0.updateIfChanged(\.self, to: 5) }
            .change(other) { $0.replace(2) }.react().receipt()
        #expect(seen.withLock { $0 } == [5])
        observation.dispose()
    }

    /// Writes down what it is told.
    private final class Clerk: Middleware {
        let lines = Mutex<[String]>([])

        func didCommit<S: State>(_ commit: CommittedAction<S>, refusal: (any Error)?) {
            lines.withLock { $0.append("commit \(commit.context.sequence)") }
        }

        func didChange<S: State>(_ commit: CommittedAction<S>, _ change: StorageChange) {
            lines.withLock { $0.append("\(change.new) by \(commit.context.sequence)") }
        }
    }

    @Test func `middleware gets each change of a transaction with its own commit`() async throws {
        let clerk = Clerk()
        scope.use(clerk)
        let storage = scope.run { Storage(0) }
        try await scope.chain().change(storage) { $0.replace(7) }
            .change(storage) { $0.replace(8) }.react().receipt()
        #expect(
            clerk.lines.withLock { $0 } == ["7 by 1", "commit 1", "8 by 2", "commit 2"])
    }

    @Test func `a receipt of a typed action means an effect, even while reducers are unregistered`()
        async
    {
        let box = scope.run { ModelStore<Box>() }
        let isOver = Late<Bool>()
        let isDone = DispatchSemaphore(value: 0)
        Thread {
            while isOver.value != true {
                try? Box.reducers.unregister(Increment.self)
                try? Box.reducers.register(Increment.self) { box, _, _ in box.count += 1 }
            }
            isDone.signal()
        }.start()
        var receipts = 0
        for _ in 0..<5_000 {
            if (try? await box.dispatch(Increment()).receipt()) != nil { receipts += 1 }
        }
        isOver.value = true
        isDone.wait()
        #expect(box.count == receipts)
    }

    // MARK: The past

    @Test func `a recorder begins with the value after the queued actions`() async throws {
        let queue = DispatchQueue(label: "recorded")
        let storage = scope.run { Storage(0, executor: .queue(queue)) }
        let (isIn, goOn) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
        storage.commit { draft in
            isIn.signal()
            goOn.wait()
            draft.replace(1)
        }
        storage.replace(2)
        isIn.wait()
        let recorder = Recorder(storage)
        goOn.signal()
        try await storage.replace(3).receipt()
        #expect(recorder.steps.map(\.value) == [2, 3])
    }

    @Test func `a change that an observer makes to a restored value is saved`() throws {
        let folder = ArchiveTests.Folder()
        let archive = try Archive(folder: folder.url)
        func keep(_ use: (Storage<[Int]>) -> Void) throws -> [Int] {
            let storage = scope.run { Storage([0, 0]) }
            use(storage)
            let kept = try archive.keep(storage, as: "pair", idle: .seconds(3_600))
            if storage.value == [0, 0] { storage.replace([1, 0]) }
            kept.dispose()
            return storage.value
        }
        #expect(try keep { _ in } == [1, 0])
        let brought = try keep { storage in
            storage.observe(\.first) { [weak storage] value in
                if value.last == 0 { storage?.replace([1, 101]) }
            }
        }
        #expect(brought == [1, 101])
        #expect(try keep { _ in } == [1, 101])
    }
}

private struct Increment: Codable, Sendable {}

private struct Box: ReducedModel {
    static let name = "box"
    static let reducers = Reducers<Box>()
        .with(Increment.self) { box, _, _ in box.count += 1 }
    var count = 0
}
