@testable import Conflux
import Foundation
import Synchronization
import Testing

@Suite(.timeLimit(.minutes(5)))
struct LaneTests {
    @Test(arguments: ["immediate", "global queue", "at once"])
    func `each thread's actions keep their order, and commits never overlap`(
        place: String
    ) async throws {
        let executor: Executor =
            switch place {
            case "immediate": .immediate
            case "global queue": .queue(.global())
            default: Executor { $0() }
            }
        let store = tallyStore(on: executor)
        let threads = 4
        let each = 2_000
        DispatchQueue.concurrentPerform(iterations: threads) { thread in
            for number in 0..<each { store.actions.tell(thread * each + number) }
        }
        // This comes after everything that was dispatched before.
        try await store.actions.dispatch(-1).receipt()

        let numbers = store.computed.numbers.filter { $0 >= 0 }
        #expect(numbers.count == threads * each)
        #expect(store.computed.overlaps == 0)
        for thread in 0..<threads {
            let own = numbers.filter { $0 / each == thread }
            #expect(own == Array(thread * each..<(thread + 1) * each))
        }
    }

    @Test func `an uncontended dispatch on immediate has been committed on return`() {
        let store = tallyStore()
        store.actions.tell(1)
        #expect(store.computed.numbers == [1])
    }

    @Test func `an action dispatched inside a commit comes after it`() {
        let actions = Late<Actions<TallyState>>()
        let store = tallyStore { number in
            if number < 3 { actions.value?.tell(number + 1) }
        }
        actions.value = store.actions
        store.actions.tell(0)
        #expect(store.computed.numbers == [0, 1, 2, 3])
        #expect(store.computed.overlaps == 0)
    }

    @Test
    func `a long chain of dispatches doesn't deepen the stack of an executor that runs at once`() {
        let actions = Late<Actions<TallyState>>()
        let store = tallyStore(on: Executor { $0() }) { number in
            if number < 100_000 { actions.value?.tell(number + 1) }
        }
        actions.value = store.actions
        store.actions.tell(0)
        #expect(store.computed.numbers.count == 100_001)
    }

    @Test func `an executor gets one run at a time, the next after it returned`() {
        let held = HeldExecutor()
        let store = tallyStore(on: held.executor)
        store.actions.tell(1)
        store.actions.tell(2)
        #expect(held.heldCount == 1)
        held.runOne()
        #expect(store.computed.numbers == [1, 2])
        #expect(held.heldCount == 0)
        store.actions.tell(3)
        #expect(held.heldCount == 1)
        held.runAll()
        #expect(store.computed.numbers == [1, 2, 3])
    }

    @Test func `a released store commits nothing of what is queued, and stays readable`() async {
        let held = HeldExecutor()
        var store: Store<TallyState>? = tallyStore(on: held.executor)
        let computed = store?.computed
        let actions = store?.actions
        store?.actions.tell(1)
        held.runAll()
        store?.actions.tell(2)
        let handle = store?.actions.dispatch(3)
        store = nil
        held.runAll()
        actions?.tell(4)
        held.runAll()

        #expect(computed?.numbers == [1])
        await #expect { try await handle?.receipt() } throws: {
            ($0 as? DispatchError)?.code == .storeClosed
        }
    }

    @Test func `a store released inside a run commits nothing more of that run`() {
        let held = HeldExecutor()
        let owner = Late<Store<TallyState>>()
        owner.value = tallyStore(on: held.executor) { number in
            if number == 1 { owner.value = nil }
        }
        let computed = owner.value?.computed
        let actions = owner.value?.actions
        actions?.tell(1)
        actions?.tell(2)
        held.runAll()
        #expect(computed?.numbers == [1])
    }

    @Test func `other threads wait at the bound until the lane has taken its line`() {
        let held = HeldExecutor()
        let (core, state) = tallyCore(on: held.executor, waitingMax: 2)
        core.dispatch(1)
        core.dispatch(2)
        let isDone = DispatchSemaphore(value: 0)
        let hasReturned = Atomic(false)
        DispatchQueue.global().async {
            core.dispatch(3)
            hasReturned.store(true, ordering: .releasing)
            isDone.signal()
        }
        // The third action is in the line before its sender waits.
        while core.waitingCount < 3 { sched_yield() }
        let returnedEarly = hasReturned.load(ordering: .acquiring)
        #expect(!returnedEarly)
        held.runAll()
        #expect(isDone.wait(timeout: .now() + 10) == .success)
        #expect(state.told == [1, 2, 3])
        core.close()
    }

    @Test func `work that bypasses the gate waits at the bound like a dispatch`() {
        let held = HeldExecutor()
        let (core, _) = tallyCore(on: held.executor, waitingMax: 2)
        core.dispatch(1)
        core.dispatch(2)
        let isDone = DispatchSemaphore(value: 0)
        DispatchQueue.global().async {
            core.runPastGate {}
            isDone.signal()
        }
        // A thread that does not wait would be done in far less time.
        #expect(isDone.wait(timeout: .now() + .milliseconds(50)) == .timedOut)
        held.runAll()
        #expect(isDone.wait(timeout: .now() + 10) == .success)
        core.close()
    }

    @Test func `a send from inside a lane never waits for room`() {
        let held = HeldExecutor()
        let (core, state) = tallyCore(on: held.executor, waitingMax: 2)
        let store = tallyStore { _ in
            // Each wait would take a second, and all of them together longer than the time limit.
            for number in 0..<100 { core.dispatch(number) }
        }
        store.actions.tell(0)
        held.runAll()
        #expect(state.told.count == 100)
        core.close()
    }

    @Test func `a thread that the lane itself needs may exceed the bound`() {
        let held = HeldExecutor()
        let (core, state) = tallyCore(on: held.executor, waitingMax: 1)
        core.dispatch(1)
        core.dispatch(2)
        held.runAll()
        #expect(state.told == [1, 2])
        core.close()
    }
}
