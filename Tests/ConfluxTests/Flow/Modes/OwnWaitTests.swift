import Conflux
import Dispatch
import Foundation
import Synchronization
import Testing

/// Code that would wait for itself.
@Suite(.timeLimit(.minutes(5)))
struct OwnWaitTests {
    let scope = Scope()

    // MARK: Mode sync on the queue that it needs

    @Test(arguments: ["queue", "within", "target"])
    func `a sync dispatch on the store's own queue commits there, after earlier ones`(
        place: String
    ) async {
        let scope = scope
        let queue = DispatchQueue(label: "store")
        let store = scope.run {
            tallyStore(on: place == "within" ? .within(queue) : .queue(queue))
        }
        let caller = place == "target" ? DispatchQueue(label: "caller", target: queue) : queue
        // The queue is also the executor of another store.
        let other = scope.run { tallyStore(on: .queue(caller)) }
        let told = await withCheckedContinuation { continuation in
            caller.async {
                store.actions.tell(1)
                scope.dispatch(2, to: store, mode: .sync)
                continuation.resume(returning: store.computed.numbers)
            }
        }
        #expect(told == [1, 2] && other.computed.numbers.isEmpty)
    }

    @Test func `a sync dispatch on a queue also completes the work there that its store waits for`()
        async throws
    {
        let scope = scope
        let queue = DispatchQueue(label: "both")
        let (store, before) = scope.run {
            (tallyStore(on: .queue(queue)), tallyStore(on: .queue(queue)))
        }
        try scope.order(store, after: before)
        let told = await withCheckedContinuation { continuation in
            queue.async {
                before.actions.tell(1)
                scope.dispatch(2, to: store, mode: .sync)
                continuation.resume(returning: before.computed.numbers + store.computed.numbers)
            }
        }
        #expect(told == [1, 2])
    }

    @MainActor
    @Test(arguments: ["mainThread", "queue", "within"])
    func `a sync dispatch from the main thread to a store of that thread commits at once`(
        place: String
    ) {
        let executor: Executor =
            switch place {
            case "queue": .queue(.main)
            case "within": .within(.main)
            default: .mainThread
            }
        let store = scope.run { tallyStore(on: executor) }
        scope.dispatch(1, to: store, mode: .sync)
        #expect(store.computed.numbers == [1])
    }

    @MainActor
    @Test func `a sync dispatch from the main thread comes after another thread's dispatch there`()
    {
        let scope = scope
        let store = scope.run { tallyStore() }
        onThreads(1) { _ in scope.dispatch(1, to: store, mode: .mainThread) }
        #expect(store.computed.numbers.isEmpty)
        scope.dispatch(2, to: store, mode: .sync)
        #expect(store.computed.numbers == [1, 2])
    }

    @MainActor
    @Test func `a waiting thread runs others' work outside its own scope and lock`() async {
        let seen = Late<Scope>()
        let executor = Executor.mainThread
        onThreads(1) { _ in executor.execute { seen.value = Scope.current } }
        let other = Scope()
        let store = other.run { tallyStore(on: executor) }
        other.run { _ = other.dispatch(1, to: store, mode: .sync) }
        #expect(seen.value === Scope.process && store.computed.numbers == [1])
    }

    @Test func `functions given to a queue keep their order while one of its threads waits`() async
    {
        let scope = scope
        let queue = DispatchQueue(label: "order")
        let seen = Seen<Int>()
        let store = scope.run { tallyStore(on: .queue(queue)) { seen.add($0) } }
        let executor = Executor.queue(queue)
        await withCheckedContinuation { continuation in
            queue.async {
                for number in 0..<10 { executor.execute { seen.add(number) } }
                scope.dispatch(10, to: store, mode: .sync)
                for number in 11..<20 { executor.execute { seen.add(number) } }
                executor.execute { continuation.resume() }
            }
        }
        #expect(seen.values == Array(0..<20))
    }

    // MARK: Locks

    @Test func `mode sync waits for a lock that another thread has taken`() async {
        let scope = scope
        let store = scope.run { tallyStore() }
        let lock = scope.lock()
        let waits = Happening()
        let told = Seen<Int>()
        let thread = Thread {
            waits.happen()
            scope.dispatch(1, to: store, mode: .sync)
            told.add(1)
        }
        thread.start()
        waits.wait()
        #expect(told.values.isEmpty)
        lock.release()
        awaitCondition { told.values == [1] }
        #expect(store.computed.numbers == [1])
    }

    @Test func `withLock waits for a lock of the same task that another one releases`() async {
        let scope = scope
        let lock = scope.lock()
        let isReleased = Late<Bool>()
        async let released: Void = {
            isReleased.value = true
            lock.release()
        }()
        await scope.withLock { _ in #expect(isReleased.value == true) }
        await released
    }
}
