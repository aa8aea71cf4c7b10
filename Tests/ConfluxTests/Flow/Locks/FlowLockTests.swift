import Conflux
import Synchronization
import Testing

@Suite(.timeLimit(.minutes(5)))
struct FlowLockTests {
    let scope = Scope()

    @Test func `only the holder's actions are committed while a lock is held`() {
        let store = scope.run { tallyStore() }
        let lock = scope.lock()
        store.actions.tell(1)
        scope.run { Store<TallyState>.actions.tell(2) }
        lock.run { store.actions.tell(3) }
        lock.run { scope.run { Store<TallyState>.actions.tell(4) } }
        #expect(store.computed.numbers == [3, 4])
        lock.release()
        #expect(store.computed.numbers == [3, 4, 1, 2])
        lock.release()
        store.actions.tell(5)
        #expect(store.computed.numbers == [3, 4, 1, 2, 5])
    }

    @Test func `a waiting action gets its receipt once it is committed`() async throws {
        let store = scope.run { ModelStore<Stock>() }
        let lock = scope.lock()
        let handle = store.dispatch(.add(amount: 2))
        #expect(store.left == 0)
        Task { lock.release() }
        try await handle.receipt()
        #expect(store.left == 2)
    }

    @Test func `the oldest of several locks is in force, and the flow resumes after the last`() {
        let store = scope.run { tallyStore() }
        let (first, second) = (scope.lock(), scope.lock())
        #expect(scope.lockInForce === first)
        store.actions.tell(1)
        second.run { store.actions.tell(2) }
        first.run { store.actions.tell(3) }
        #expect(store.computed.numbers == [3])
        first.release()
        #expect(scope.lockInForce === second)
        #expect(store.computed.numbers == [3, 2])
        second.run { store.actions.tell(4) }
        second.release()
        #expect(scope.lockInForce == nil)
        #expect(store.computed.numbers == [3, 2, 4, 1])
    }

    @Test func `a newer lock may be released first`() {
        let store = scope.run { tallyStore() }
        let (first, second) = (scope.lock(), scope.lock())
        second.run { store.actions.tell(1) }
        store.actions.tell(2)
        second.release()
        #expect(store.computed.numbers.isEmpty)
        first.release()
        #expect(store.computed.numbers == [1, 2])
    }

    @Test func `a lock ends with its last reference`() {
        let store = scope.run { tallyStore() }
        var lock: FlowLock? = scope.lock()
        store.actions.tell(1)
        #expect(lock != nil && store.computed.numbers.isEmpty)
        lock = nil
        #expect(store.computed.numbers == [1])
    }

    @Test func `code under a lock has exclusive use of the flow`() async throws {
        let store = scope.run { ModelStore<Stock>() }
        let older = scope.lock()
        let begun = Atomic(false)
        async let inside: Void = scope.withLock { _ in
            begun.store(true, ordering: .releasing)
            try await store.dispatch(.add(amount: 1)).receipt()
            try await store.dispatch(.take(amount: 1)).receipt()
        }
        let outside = store.dispatch(.add(amount: 10))
        let hasBegun = begun.load(ordering: .acquiring)
        #expect(!hasBegun)
        older.release()
        try await inside
        try await outside.receipt()
        #expect(store.left == 10)
        #expect(store.takings == 1)
    }

    @Test func `a lock ends by itself when the action has changed nothing`() throws {
        let store = scope.run { ModelStore<Stock>() }
        // The model draws a random number, so that each applied action changes it.
        let refused = try scope.lock(dispatching: .take(amount: 1), to: store)
        #expect(scope.lockInForce == nil)
        withExtendedLifetime(refused) {}

        let storage = scope.run { Storage(1) }
        let same = try scope.lock(dispatching: StorageCommit { $0.replace(1) }, to: storage)
        #expect(scope.lockInForce == nil)
        withExtendedLifetime(same) {}
    }

    @Test func `an observer of the change releases the lock, now or later`() throws {
        let store = scope.run { ModelStore<Stock>() }
        let found = Late<FlowLock>()
        store.observe(\.left) { [scope] _ in found.value = scope.lockInForce }
        let lock = try scope.lock(dispatching: .add(amount: 1), to: store)
        #expect(found.value === lock)
        store.dispatch(.add(amount: 1))
        #expect(store.left == 1)
        found.value?.release()
        #expect(store.left == 2)
    }

    @Test func `an action under a newer lock waits with it, and is checked in its turn`() throws {
        let store = scope.run { ModelStore<Stock>() }
        let older = scope.lock()
        let younger = try scope.lock(dispatching: .add(amount: 1), to: store)
        #expect(store.left == 0)
        older.release()
        #expect(store.left == 1)
        #expect(scope.lockInForce === younger)
        younger.release()
        #expect(scope.lockInForce == nil)
    }

    @Test func `parked dispatches pass in order, whatever is dispatched meanwhile`() async {
        let store = scope.run { tallyStore() }
        for _ in 0..<50 {
            let lock = scope.lock()
            await withTaskGroup(of: Void.self) { group in
                for thread in 0..<4 {
                    group.addTask {
                        for number in 0..<25 { store.actions.tell(thread * 1_000 + number) }
                    }
                }
                group.addTask { lock.release() }
            }
        }
        let numbers = store.computed.numbers
        #expect(numbers.count == 50 * 100)
        for thread in 0..<4 {
            let own = numbers.filter { $0 / 1_000 == thread }.map { $0 % 1_000 }
            #expect(own == (0..<50).flatMap { _ in 0..<25 }, "thread \(thread)")
        }
    }

    @Test func `above the bound of waiting actions, dispatchers are slowed and nothing is lost`()
        async throws
    {
        let store = scope.run { ModelStore<Stock>() }
        let lock = scope.lock()
        let count = FlowGate.parkedMax + 2
        for _ in 0..<FlowGate.parkedMax { store.dispatch(.add(amount: 1)) }
        let late = Task.detached {
            for _ in 0..<2 { store.dispatch(.add(amount: 1)) }
        }
        // The first dispatch above the bound waits for this release, or for a second.
        lock.release()
        await late.value
        try await store.dispatch(.add(amount: 0)).receipt()
        #expect(store.left == count)
    }

    @Test func `a lock taken while parked dispatches pass parks the rest again`() {
        let scope = scope
        let late = Late<FlowLock>()
        let store = scope.run {
            tallyStore { number in if number == 2 { late.value = scope.lock() } }
        }
        let lock = scope.lock()
        for number in 1...4 { store.actions.tell(number) }
        lock.release()
        #expect(store.computed.numbers == [1, 2])
        late.value?.release()
        #expect(store.computed.numbers == [1, 2, 3, 4])
    }

    @Test func `a lock holder's dispatches pass in every mode, and so do its operations`()
        async throws
    {
        let store = scope.run { ModelStore<Stock>() }
        let before = scope.performSerially {}
        try await scope.withLock { _ in
            try await scope.dispatch(.add(amount: 1), to: store).receipt()
            try await scope.dispatch(.add(amount: 1), to: store, mode: .serial).receipt()
            try await scope.dispatch(.add(amount: 1), to: store, mode: .mainThread).receipt()
            let operation = scope.perform(after: before) {
                _ = try? await store.dispatch(.add(amount: 1)).receipt()
            }
            await operation.end()
        }
        #expect(store.left == 4)
    }

    @Test func `an operation that was requested outside of a lock does not pass it`() async throws {
        let store = scope.run { tallyStore() }
        let gate = AsyncStream.makeStream(of: Void.self)
        let lock = scope.lock()
        let inside = lock.run {
            scope.perform {
                for await _ in gate.stream { break }
            }
        }
        let outside = scope.perform(after: inside) { store.actions.tell(1) }
        gate.continuation.yield()
        await outside.end()
        #expect(store.computed.numbers.isEmpty)
        lock.release()
        #expect(store.computed.numbers == [1])
    }

    @Test func `a thread that releases a lock never waits for another dispatch`() async throws {
        let store = scope.run { tallyStore() }
        let scope = scope
        let inner = Late<DispatchHandle>()
        final class Nested: Middleware {
            let body: @Sendable () -> Void
            init(_ body: @escaping @Sendable () -> Void) { self.body = body }
            func didDispatch<S: State>(
                _ dispatch: DispatchedAction<S>, result: Result<Receipt, DispatchError>
            ) { if dispatch.store == nil { body() } }
        }
        let lock = scope.lock()
        scope.use(Nested { inner.value = scope.dispatch(2, to: store, mode: .sync) })
        scope.run { Store<TallyState>.actions.tell(1) }
        lock.release()
        let error = await #expect(throws: DispatchError.self) {
            try await inner.value?.receipt()
        }
        #expect(error?.code == .wouldBlock)
        #expect(store.computed.numbers == [1])
    }

    @Test func `a dispatch from before a lock never comes between those of its holder`() async {
        for _ in 0..<200 {
            let store = scope.run { tallyStore() }
            await withTaskGroup(of: Void.self) { group in
                for thread in 1...3 {
                    group.addTask { for _ in 0..<5 { store.actions.tell(thread) } }
                }
                group.addTask {
                    await scope.withLock { _ in
                        for _ in 0..<5 { store.actions.tell(9) }
                    }
                }
            }
            let numbers = store.computed.numbers
            let first = numbers.firstIndex(of: 9) ?? 0
            #expect(numbers.count == 20 && numbers[first..<first + 5].allSatisfy { $0 == 9 })
        }
    }
}
