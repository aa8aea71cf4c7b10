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

    // MARK: The caller's own lock

    @Test func `sync is refused where the caller's own lock pauses the flow`() async throws {
        let store = scope.run { tallyStore() }
        let lock = scope.lock()
        let refused = scope.dispatch(1, to: store, mode: .sync)
        let error = await #expect(throws: DispatchError.self) { try await refused.receipt() }
        #expect(error?.code == .wouldBlock)
        #expect(error?.message.contains("inside the lock's run") == true)
        lock.run { _ = scope.dispatch(2, to: store, mode: .sync) }
        lock.release()
        scope.dispatch(3, to: store, mode: .sync)
        #expect(store.computed.numbers == [2, 3])
    }

    @Test func `sync on a thread is refused where that thread's lock pauses the flow`() {
        let scope = scope
        let store = scope.run { tallyStore() }
        let ends = Seen<DispatchError.Code?>()
        onThreads(1) { _ in
            let (older, younger) = (scope.lock(), scope.lock())
            younger.run {
                scope.dispatch(1, to: store, mode: .sync) { result in
                    if case .failure(let error) = result { ends.add(error.code) }
                }
            }
            older.release()
            younger.release()
        }
        #expect(ends.values == [.wouldBlock] && store.computed.numbers.isEmpty)
    }

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

    @Test func `withLock warns of an older lock of the same task, and keeps waiting`() async {
        let result = await #expect(
            processExitsWith: .success, observing: [\.standardErrorContent]
        ) {
            FlowLock.ownWaitSecondsMax.store(0, ordering: .relaxed)
            let scope = Scope()
            let lock = scope.lock()
            let (errors, original) = (Pipe(), dup(STDERR_FILENO))
            dup2(errors.fileHandleForWriting.fileDescriptor, STDERR_FILENO)
            Thread {
                // The older lock is released only after the warning was printed.
                let warning = errors.fileHandleForReading.availableData
                dup2(original, STDERR_FILENO)
                try? FileHandle.standardError.write(contentsOf: warning)
                lock.release()
            }.start()
            await scope.withLock { _ in }
        }
        let text = String(decoding: result?.standardErrorContent ?? [], as: UTF8.self)
        #expect(text.contains("Run code inside the older lock's run"))
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

    // MARK: The caller's own operation

    @Test func `a serial operation may wait for what it dispatches in series`() async throws {
        let scope = scope
        let store = scope.run { tallyStore() }
        let operation = scope.performSerially {
            _ = try? await scope.dispatch(1, to: store, mode: .serial).receipt()
            await scope.performSerially {
                _ = try? await scope.dispatch(2, to: store, mode: .serial).receipt()
            }.end()
            // The operation doesn't wait for this dispatch, but later undertakings do.
            scope.dispatch(3, to: store, mode: .serial)
        }
        try await scope.dispatch(4, to: store, mode: .serial).receipt()
        #expect(operation.hasEnded && store.computed.numbers == [1, 2, 3, 4])
    }
}
