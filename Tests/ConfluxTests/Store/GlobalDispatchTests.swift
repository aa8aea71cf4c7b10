import Conflux
import Dispatch
import Foundation
import Synchronization
import Testing

@Suite(.timeLimit(.minutes(5)))
struct GlobalDispatchTests {
    @Test func `a global action reaches every store of its state in the scope, and no other`() {
        let scope = Scope()
        let (first, second) = scope.run { (tallyStore(), tallyStore()) }
        let elsewhere = Scope().run { tallyStore() }
        scope.run { Store<TallyState>.actions.tell(1) }
        #expect(first.computed.numbers == [1])
        #expect(second.computed.numbers == [1])
        #expect(elsewhere.computed.numbers.isEmpty)
    }

    @Test func `actions belong to the scope in which they were read`() {
        let scope = Scope()
        let store = scope.run { tallyStore() }
        let actions = scope.run { Store<TallyState>.actions }
        actions.tell(1)
        #expect(store.computed.numbers == [1])
    }

    @Test func `without a bound scope, the process's scope is used`() {
        #expect(Scope.current === Scope.process)
        let scope = Scope()
        scope.run { #expect(Scope.current === scope) }
    }

    @Test func `asynchronous code stays in its scope`() async {
        let scope = Scope()
        await scope.run {
            await Task.yield()
            #expect(Scope.current === scope)
            await Task { #expect(Scope.current === scope) }.value
        }
    }

    @Test(arguments: [true, false])
    func `commits run in their store's scope`(isImmediate: Bool) async throws {
        let scope = Scope()
        let seen = Late<Scope>()
        let executor: Executor = isImmediate ? .immediate : .queue(.global())
        let store = scope.run { tallyStore(on: executor) { _ in seen.value = Scope.current } }
        try await store.actions.dispatch(1).receipt()
        #expect(seen.value === scope)
    }

    @Test(arguments: [false, true])
    func `a global action is in all free stores before any of them does other work`(
        isTracked: Bool
    ) {
        let scope = Scope()
        let (busy, other) = (Late<Store<TallyState>>(), Late<Store<TallyState>>())
        let store = scope.run {
            // Dispatches more actions as long as the other store doesn't have the action.
            tallyStore { number in
                let isWaiting = other.value?.computed.numbers.isEmpty == true
                if isWaiting, number < 1_000 { busy.value?.actions.tell(number + 1) }
            }
        }
        busy.value = store
        other.value = scope.run { tallyStore() }
        let actions = scope.run { Store<TallyState>.actions }
        if isTracked { _ = actions.dispatch(1) } else { actions.tell(1) }
        #expect(store.computed.numbers == [1, 2])
        #expect(other.value?.computed.numbers == [1])
        (busy.value, other.value) = (nil, nil)
    }

    @Test func `a global action completes while a thread keeps one of two stores busy`()
        async throws
    {
        let scope = Scope()
        let (slow, free) = scope.run {
            (tallyStore { _ in for _ in 0..<10 { sched_yield() } }, tallyStore())
        }
        let isOver = Atomic(false)
        let isAtWork = Happening()
        let thread = Thread {
            slow.actions.tell(-1)
            isAtWork.happen()
            while !isOver.load(ordering: .relaxed) { slow.actions.tell(0) }
        }
        thread.start()
        isAtWork.wait()
        for number in 1...20 { scope.run { Store<TallyState>.actions.tell(number) } }
        #expect(free.computed.numbers == Array(1...20))
        #expect(slow.computed.numbers.filter { $0 > 0 } == Array(1...20))
        isOver.store(true, ordering: .relaxed)
    }

    @Test func `stores that come and go are reached in their order, each once`() {
        let scope = Scope()
        let order = Seen<Int>()
        var stores: [Int: Store<TallyState>] = [:]
        func make(_ numbers: Range<Int>) {
            for number in numbers {
                stores[number] = scope.run { tallyStore { _ in order.add(number) } }
            }
        }
        make(0..<100)
        scope.run { Store<TallyState>.actions.tell(1) }
        for number in 0..<100 where number % 3 != 0 { stores[number] = nil }
        make(100..<150)
        for number in stride(from: 0, to: 150, by: 10) { stores[number] = nil }
        let living = stores.keys.sorted()
        #expect(scope.stores.count == living.count)
        scope.run { Store<TallyState>.actions.tell(2) }
        #expect(order.values == Array(0..<100) + living)
        for number in living { stores[number] = nil }
        #expect(scope.stores.isEmpty)
    }

    @Test func `a scope lists its stores with their names`() throws {
        let scope = Scope()
        let (first, second) = scope.run { (tallyStore(), tallyStore()) }
        let storage = scope.run { Storage(1) }
        try scope.register(second, as: "second")
        #expect(
            Set(scope.stores.map(\.description)) == [
                "TallyState", "TallyState second", "StorageState<Int>",
            ])
        #expect(scope.stores.filter { $0.name != nil }.count == 1)
        withExtendedLifetime((first, storage)) {}
    }

    @Test func `a global action from inside a commit follows that commit's action in every store`()
    {
        let scope = Scope()
        let first = scope.run {
            tallyStore { number in if number == 1 { Store<TallyState>.actions.tell(2) } }
        }
        let second = scope.run { tallyStore() }
        let third = scope.run { tallyStore() }
        scope.run { Store<TallyState>.actions.tell(1) }
        for store in [first, second, third] { #expect(store.computed.numbers == [1, 2]) }
    }

    @Test func `an action that a commit dispatches to another store follows the global one there`()
    {
        let scope = Scope()
        let later = Late<Store<TallyState>>()
        let first = scope.run {
            tallyStore { number in if number == 1 { later.value?.actions.tell(2) } }
        }
        let second = scope.run { tallyStore() }
        later.value = second
        scope.run { Store<TallyState>.actions.tell(1) }
        #expect(first.computed.numbers == [1])
        #expect(second.computed.numbers == [1, 2])
    }

    @Test func `all stores see the global actions of many threads in one order`() async throws {
        let scope = Scope()
        let stores = scope.run {
            [tallyStore(), tallyStore(on: .queue(.global())), tallyStore()]
        }
        let actions = scope.run { Store<TallyState>.actions }
        DispatchQueue.concurrentPerform(iterations: 4) { thread in
            for number in 0..<500 { actions.tell(thread * 500 + number) }
        }
        for store in stores { try await store.actions.dispatch(-1).receipt() }
        let order = stores[0].computed.numbers.filter { $0 >= 0 }
        #expect(order.count == 2_000)
        for store in stores { #expect(store.computed.numbers.filter { $0 >= 0 } == order) }
    }

    @Test func `more stores than a mask has bits are all reached once`() async throws {
        let scope = Scope()
        let stores = scope.run { (0..<100).map { _ in tallyStore() } }
        scope.run { Store<TallyState>.actions.tell(1) }
        try await scope.run { Store<TallyState>.actions.dispatch(2) }.receipt()
        for store in stores { #expect(store.computed.numbers == [1, 2]) }
    }

    @Test func `a released store leaves its scope`() {
        let scope = Scope()
        var store: Store<TallyState>? = scope.run { tallyStore() }
        let computed = store?.computed
        #expect(scope.lanes(of: TallyState.self).count == 1)
        store = nil
        #expect(scope.lanes(of: TallyState.self).isEmpty)
        scope.run { Store<TallyState>.actions.tell(1) }
        #expect(computed?.numbers == [])
    }

    @Test func `a global dispatch that reaches no store says so`() async {
        let handle = Scope().run { Store<TallyState>.actions.dispatch(1) }
        await #expect { try await handle.receipt() } throws: {
            ($0 as? DispatchError)?.code == .noStore
        }
    }

    @Test func `a global dispatch is refused only if every store refused it`() async throws {
        let scope = Scope()
        let empty = scope.run { ModelStore<Stock>(executor: .queue(.global())) }
        let full = scope.run { ModelStore(Stock(left: 5)) }
        let actions = scope.run { ModelStore<Stock>.actions }

        let receipt = try await actions.dispatch(.take(amount: 5)).receipt()
        #expect(receipt.log == nil)
        #expect(full.left == 0 && empty.left == 0)

        await #expect { try await actions.dispatch(.take(amount: 5)).receipt() } throws: {
            ($0 as? DispatchError)?.code == .refused
        }
    }
}
