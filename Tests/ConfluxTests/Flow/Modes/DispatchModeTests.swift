import Conflux
import Dispatch
import Foundation
import Synchronization
import Testing

@Suite(.timeLimit(.minutes(5)))
struct DispatchModeTests {
    let scope = Scope()

    @Test func `mode async commits on another thread, in the dispatching thread's order`()
        async throws
    {
        let places = Mutex<Set<UInt>>([])
        let store = scope.run {
            tallyStore { _ in
                let place = Self.thread
                places.withLock { _ = $0.insert(place) }
            }
        }
        // The results are passed under a lock, since the thread sanitizer does not understand a continuation that is
        // resumed before its task has suspended.
        let sent = Mutex<(last: DispatchHandle, thread: UInt)?>(nil)
        // The thread must not end before the comparison, since a new thread could get its identity.
        let mayEnd = DispatchSemaphore(value: 0)
        defer { mayEnd.signal() }
        await withCheckedContinuation { continuation in
            let thread = Thread { [scope] in
                var last = scope.dispatch(0, to: store)
                for number in 1..<100 { last = scope.dispatch(number, to: store) }
                sent.withLock { $0 = (last, Self.thread) }
                continuation.resume()
                mayEnd.wait()
            }
            thread.start()
        }
        let (last, own) = try #require(sent.withLock { $0 })
        try await last.receipt()
        #expect(store.computed.numbers == Array(0..<100))
        #expect(places.withLock { !$0.contains(own) })
    }

    private static var thread: UInt { UInt(bitPattern: pthread_self().hashValue) }

    @Test func `mode sync returns once the action is applied`() {
        let store = scope.run { tallyStore(on: .queue(DispatchQueue(label: "own"))) }
        for number in 0..<20 {
            scope.dispatch(number, to: store, mode: .sync)
            #expect(store.computed.numbers.last == number)
        }
    }

    @Test func `a sync dispatch from inside a commit is refused`() async throws {
        let scope = scope
        let late = Late<Store<TallyState>>()
        let inner = Late<DispatchHandle>()
        let store = scope.run {
            tallyStore { number in
                if number == 1, let store = late.value {
                    inner.value = scope.dispatch(2, to: store, mode: .sync)
                }
            }
        }
        late.value = store
        try await store.actions.dispatch(1).receipt()
        let error = await #expect(throws: DispatchError.self) {
            try await inner.value?.receipt()
        }
        #expect(error?.code == .wouldBlock)
        #expect(store.computed.numbers == [1])
        late.value = nil
    }

    @Test func `an action dispatched in the completion comes next`() async throws {
        let scope = scope
        let store = scope.run { tallyStore() }
        let ends = Mutex<[String]>([])
        let second = Late<DispatchHandle>()
        let first = scope.dispatch(1, to: store) { result in
            ends.withLock { $0.append("\(result.map { $0.sequence.rawValue })") }
            second.value = scope.dispatch(2, to: store)
        }
        try await first.receipt()
        try await second.value?.receipt()
        #expect(store.computed.numbers == [1, 2])
        #expect(ends.withLock { $0 } == ["success(1)"])
    }

    @Test func `serial dispatches wait for the chains of earlier ones`() async throws {
        let scope = scope
        let (store, other) = scope.run { (tallyStore(), tallyStore(on: .queue(.global()))) }
        let order = Mutex<[Int]>([])
        var handles: [DispatchHandle] = []
        for number in 0..<50 {
            let target = number % 2 == 0 ? store : other
            handles.append(
                scope.dispatch(number, to: target, mode: .serial) { _ in
                    order.withLock { $0.append(number) }
                })
        }
        for handle in handles { try await handle.receipt() }
        #expect(order.withLock { $0 } == Array(0..<50))
    }

    @Test func `a running operation delays its dependents`() async throws {
        let store = scope.run { tallyStore() }
        let gate = AsyncStream.makeStream(of: Void.self)
        let operation = scope.perform {
            for await _ in gate.stream { break }
        }
        let dependent = scope.dispatch(1, to: store, after: operation)
        let serial = scope.performSerially { await operation.end() }
        let behind = scope.dispatch(2, to: store, mode: .serial)
        let free = scope.dispatch(3, to: store)
        try await free.receipt()
        #expect(store.computed.numbers == [3])
        #expect(!operation.hasEnded && !serial.hasEnded)
        gate.continuation.yield()
        try await dependent.receipt()
        try await behind.receipt()
        #expect(Set(store.computed.numbers) == [1, 2, 3])
        #expect(operation.hasEnded && serial.hasEnded)
    }

    @Test func `mode mainThread commits on the main queue, in the lane's order`() async throws {
        let places = Mutex<[Bool]>([])
        let store = scope.run {
            tallyStore(on: .queue(.global())) { number in
                let isMain = MainQueue.isCurrent
                if number % 2 == 1 { places.withLock { $0.append(isMain) } }
            }
        }
        var handles: [DispatchHandle] = []
        for number in 0..<20 {
            if number % 2 == 1 {
                handles.append(scope.dispatch(number, to: store, mode: .mainThread))
            } else {
                handles.append(store.actions.dispatch(number))
            }
        }
        for handle in handles { try await handle.receipt() }
        #expect(store.computed.numbers == Array(0..<20))
        #expect(places.withLock { $0 } == Array(repeating: true, count: 10))
        #expect(store.computed.overlaps == 0)
    }

    @Test func `mode mainThread commits at once on the main thread`() async {
        let store = scope.run { tallyStore() }
        await MainActor.run {
            _ = scope.dispatch(1, to: store, mode: .mainThread)
            #expect(store.computed.numbers == [1])
        }
    }

    @Test func `the label of a dispatch reaches middleware`() async throws {
        let store = scope.run { tallyStore() }
        let lines = Mutex<[String]>([])
        scope.use(ActionLogger { line in lines.withLock { $0.append(line) } })
        try await scope.dispatch(
            1, to: store, mode: .sync, name: "first", file: "F", function: "f", line: 7
        ).receipt()
        #expect(lines.withLock { $0.first } == "1 dispatch 1 to TallyState: first (F:7 f)")
    }

    @Test func `work dispatched in a completion under a lock is its holder's`() async throws {
        let scope = scope
        let store = scope.run { tallyStore() }
        let lock = scope.lock()
        let last = lock.run {
            scope.dispatch(1, to: store, mode: .serial) { _ in
                scope.dispatch(2, to: store) { _ in scope.dispatch(3, to: store, mode: .serial) }
            }
            return scope.dispatch(4, to: store, mode: .serial)
        }
        try await last.receipt()
        awaitCondition { store.computed.numbers.count == 4 }
        #expect(store.computed.numbers.first == 1 && scope.lockInForce === lock)
        lock.release()
    }

    @Test func `a series of completions that dispatch may be long`() async throws {
        let scope = scope
        let store = scope.run { tallyStore() }
        let ended = AsyncStream<Void>.makeStream()
        @Sendable func step(_ number: Int) {
            if number == 20_000 { return ended.continuation.finish() }
            scope.dispatch(number, to: store, mode: .serial) { _ in step(number + 1) }
        }
        step(0)
        for await _ in ended.stream {}
        try await scope.dispatch(20_000, to: store, mode: .serial).receipt()
        #expect(store.computed.numbers.count == 20_001)
    }

    @Test func `a completion never waits for another dispatch`() async throws {
        let scope = scope
        let store = scope.run { tallyStore() }
        let inner = Late<DispatchHandle>()
        try await scope.dispatch(1, to: store) { _ in
            let operation = scope.perform { _ = try? await scope.dispatch(2, to: store).receipt() }
            inner.value = scope.dispatch(3, to: store, mode: .sync, after: operation)
        }.receipt()
        let error = await #expect(throws: DispatchError.self) {
            try await inner.value?.receipt()
        }
        #expect(error?.code == .wouldBlock)
    }

    @Test func `settling includes actions dispatched serially under a lock`() async {
        let scope = scope
        let (held, goOn) = (HeldExecutor(), DispatchSemaphore(value: 0))
        let (first, second) = scope.run {
            (tallyStore(on: held.executor), tallyStore { _ in goOn.wait() })
        }
        let lock = scope.lock()
        lock.run {
            scope.dispatch(1, to: first, mode: .serial)
            scope.dispatch(2, to: second, mode: .serial)
        }
        lock.release()
        while held.heldCount == 0 { await Task.yield() }
        let seen = Late<[Int]>()
        await withCheckedContinuation { continuation in
            scope.whenSettled { _ in
                seen.value = second.computed.numbers
                continuation.resume()
            }
            held.runAll()
            goOn.signal()
        }
        #expect(seen.value == [2])
    }

    @Test(arguments: [DispatchMode.async, .serial, .mainThread])
    func `a dispatch that waits keeps no store, and one that was released commits nothing`(
        mode: DispatchMode
    ) async throws {
        let gate = AsyncStream<Void>.makeStream()
        let operation = scope.perform { for await _ in gate.stream {} }
        var store: Store<TallyState>? = scope.run { tallyStore() }
        let computed = store?.computed
        let handle = store.map { scope.dispatch(1, to: $0, mode: mode, after: operation) }
        store = nil
        gate.continuation.finish()
        let error = await #expect(throws: DispatchError.self) { try await handle?.receipt() }
        #expect(error?.code == .storeClosed)
        #expect(computed?.numbers == [])
    }

    @Test func `operations and dispatches wait for dispatches of any kind`() async throws {
        let scope = scope
        let (held, goOn) = (HeldExecutor(), HeldExecutor())
        let (slow, store) = scope.run {
            (tallyStore(on: held.executor), tallyStore(on: goOn.executor))
        }
        let first = slow.actions.dispatch(1)
        let second = scope.dispatch(1, to: store, after: first)
        let operation = scope.perform(after: first, second) {
            #expect(first.hasEnded && second.hasEnded)
        }
        #expect(!first.hasEnded && !second.hasEnded && !operation.hasEnded)
        #expect(goOn.heldCount == 0)
        held.runAll()
        await first.end()
        while goOn.heldCount == 0 { await Task.yield() }
        goOn.runAll()
        let receipt = try await operation.receipt()
        #expect(receipt.log == nil && receipt.sequence == .zero)
    }

    @Test func `work that waits for a failed dispatch still begins`() async throws {
        let store = scope.run { tallyStore() }
        let gate = AsyncStream<Void>.makeStream()
        let operation = scope.perform { for await _ in gate.stream {} }
        var released: Store<TallyState>? = scope.run { tallyStore() }
        let failing = released.map { scope.dispatch(1, to: $0, after: operation) }
        released = nil
        let next = scope.dispatch(1, to: store, after: try #require(failing))
        gate.continuation.finish()
        try await next.receipt()
        await #expect(throws: DispatchError.self) { try await failing?.receipt() }
    }
}
