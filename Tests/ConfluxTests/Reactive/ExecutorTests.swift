import Conflux
import Dispatch
import Synchronization
import Testing

struct ExecutorTests {
    @Test func `the immediate executor runs in place`() {
        let seen = Seen<Int>()
        Executor.immediate.execute { seen.add(1) }
        #expect(seen.values == [1])
        #expect(Executor.immediate.isImmediate)
        #expect(!Executor.mainThread.isImmediate)
        #expect(!Executor { $0() }.isImmediate)
    }

    @MainActor
    @Test func `on the main thread nothing waits unless it has work in progress`() async {
        let executor = Executor.mainThread
        let seen = Seen<Int>()
        await withCheckedContinuation { done in
            executor.execute {
                executor.execute {
                    seen.add(3)
                    done.resume()
                }
                Executor.mainThread.execute { seen.add(1) }
                seen.add(2)
            }
            #expect(seen.values == [1, 2])
        }
        #expect(seen.values == [1, 2, 3])
        executor.execute { seen.add(4) }
        #expect(seen.values == [1, 2, 3, 4])
    }

    @MainActor
    @Test func `the main thread does not overtake another thread's call`() async {
        let executor = Executor.mainThread
        let seen = Seen<Int>()
        let given = Happening()
        DispatchQueue.global().async {
            executor.execute {
                dispatchPrecondition(condition: .onQueue(.main))
                seen.add(1)
            }
            given.happen()
        }
        given.wait()
        await withCheckedContinuation { done in
            executor.execute {
                seen.add(2)
                done.resume()
            }
            #expect(seen.values == [])
        }
        #expect(seen.values == [1, 2])
    }

    @Test func `values keep their order on a concurrent queue`() {
        let sink = Sink<Int>()
        let seen = Seen<Int>()
        let done = Happening()
        sink.signal.observe(on: .queue(.global())).observe { value in
            seen.add(value)
            if value == 9_999 { done.happen() }
        }
        for value in 0..<10_000 { sink.send(value: value) }
        done.wait()
        #expect(seen.values == Array(0..<10_000))
    }

    @Test func `an executor has one function of an observer at a time`() {
        let functions = Seen<@Sendable () -> Void>()
        let executor = Executor { functions.add($0) }
        let sink = Sink<Int>()
        let seen = Seen<Int>()
        let isTold = Happening()
        let goesOn = Happening()
        let returned = Happening()
        sink.signal.observe(on: executor).observe { value in
            seen.add(value)
            guard value == 1 else { return }
            isTold.happen()
            goesOn.wait()
        }
        sink.send(value: 0)
        sink.send(value: 1)
        #expect(functions.values.count == 1)
        DispatchQueue.global().async {
            functions.values[0]()
            returned.happen()
        }
        isTold.wait()
        sink.send(value: 2)
        #expect(functions.values.count == 1)
        goesOn.happen()
        returned.wait()
        #expect(seen.values == [0, 1])
        #expect(functions.values.count == 2)
        functions.values[1]()
        #expect(seen.values == [0, 1, 2])
        #expect(functions.values.count == 2)
    }

    @Test func `a context that runs at once needs no deeper stack for nested values`() {
        let sink = Sink<Int>()
        let count = Atomic<Int>(0)
        sink.signal.observe(on: Executor { $0() }).observe { value in
            count.add(1, ordering: .relaxed)
            if value < 100_000 { sink.send(value: value + 1) }
        }
        sink.send(value: 1)
        #expect(count.load(ordering: .relaxed) == 100_000)
    }

    @Test func `a hundred threads through one executor lose nothing`() {
        let queue = DispatchQueue(label: "observers", attributes: .concurrent)
        let sink = Sink<Int>()
        let direct = Seen<Int>()
        let moved = Seen<Int>()
        let done = Happening()
        sink.signal.observe { direct.add($0) }
        sink.signal.observe(on: .queue(queue)).observe { value in
            moved.add(value)
            if moved.values.count == 1_000 { done.happen() }
        }
        onThreads(100) { thread in
            for step in 0..<10 { sink.send(value: thread * 10 + step) }
        }
        done.wait()
        #expect(moved.values == direct.values)
    }
}
