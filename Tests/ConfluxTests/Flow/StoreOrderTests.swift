import Conflux
import Synchronization
import Testing

@Suite(.timeLimit(.minutes(5)))
struct StoreOrderTests {
    let scope = Scope()

    @Test func `a store applies a global action after the stores that it waits for`() throws {
        let order = Mutex<[String]>([])
        let total = scope.run { tallyStore { _ in order.withLock { $0.append("total") } } }
        let held = HeldExecutor()
        let prices = scope.run {
            tallyStore(on: held.executor) { _ in order.withLock { $0.append("prices") } }
        }
        let amounts = scope.run { tallyStore { _ in order.withLock { $0.append("amounts") } } }
        try scope.order(total, after: prices, amounts)
        scope.run { Store<TallyState>.actions.tell(1) }
        #expect(order.withLock { $0 } == ["amounts"])
        held.runAll()
        #expect(order.withLock { $0 } == ["amounts", "prices", "total"])
    }

    @Test func `a store waits for the earlier actions of another one`() throws {
        let held = HeldExecutor()
        let (first, second) = scope.run { (tallyStore(on: held.executor), tallyStore()) }
        let registration = try scope.order(second, after: first)
        second.actions.tell(1)
        #expect(second.computed.numbers == [1])
        first.actions.tell(2)
        second.actions.tell(3)
        first.actions.tell(4)
        #expect(second.computed.numbers == [1])
        held.runOne()
        #expect(first.computed.numbers == [2, 4])
        #expect(second.computed.numbers == [1, 3])
        registration.dispose()
        first.actions.tell(5)
        second.actions.tell(6)
        #expect(second.computed.numbers == [1, 3, 6])
    }

    @Test func `an event reaches stores in their order`() throws {
        let order = Mutex<[String]>([])
        let held = HeldExecutor()
        let account = scope.run { ModelStore<Account>(executor: held.executor) }
        let greeting = scope.run {
            Store<GreetingState>(state: .init(), mutations: .init(), executor: .immediate)
        }
        try scope.order(greeting, after: account)
        account.observe(\.user) { _ in order.withLock { $0.append("account") } }
        held.runAll()
        scope.send(LoggedIn(user: "foo"))
        #expect(greeting.computed.lines.isEmpty)
        held.runAll()
        #expect(order.withLock { $0 } == ["account"])
        #expect(greeting.computed.lines == ["Hello, foo"])
    }

    @Test func `a cycle is refused, and changes nothing`() throws {
        let stores = scope.run { (0..<3).map { _ in tallyStore() } }
        try scope.order(stores[1], after: stores[0])
        try scope.order(stores[2], after: stores[1])
        let error = #expect(throws: StoreError.self) {
            try scope.order(stores[0], after: stores[2])
        }
        #expect(error?.code == .cycle)
        #expect(error?.message.contains("neither would ever continue") == true)
        #expect(throws: StoreError.self) { try scope.order(stores[0], after: stores[0]) }
        for store in stores { store.actions.tell(1) }
        #expect(stores.allSatisfy { $0.computed.numbers == [1] })
    }

    @Test func `nothing waits for a store that is gone`() throws {
        let held = HeldExecutor()
        let second = scope.run { tallyStore() }
        var first: Store<TallyState>? = scope.run { tallyStore(on: held.executor) }
        if let first { try scope.order(second, after: first) }
        first?.actions.tell(1)
        second.actions.tell(2)
        #expect(second.computed.numbers.isEmpty)
        first = nil
        #expect(second.computed.numbers == [2])
        second.actions.tell(3)
        #expect(second.computed.numbers == [2, 3])
    }

    @Test func `transactions, events and ordered stores of many threads never wait for each other`()
        async throws
    {
        let first = scope.run { ModelStore(Stock(left: 500), executor: .queue(.global())) }
        let second = scope.run { ModelStore(Stock(left: 500)) }
        let account = scope.run { ModelStore<Account>(executor: .queue(.global())) }
        try scope.order(second, after: first)
        try scope.order(first, after: account)
        await withTaskGroup(of: Void.self) { group in
            for thread in 0..<4 {
                group.addTask {
                    for number in 0..<50 {
                        let handle = scope.chain().dispatch(.take(amount: 1), to: first)
                            .dispatch(.add(amount: 1), to: second).react()
                        scope.send(LoggedIn(user: "\(thread) \(number)"))
                        second.dispatch(.add(amount: 0))
                        scope.run {
                            Store<ModelState<Stock>>.actions.dispatch(action: .add(amount: 0))
                        }
                        first.dispatch(.add(amount: 0))
                        _ = try? await handle.receipt()
                    }
                }
            }
        }
        try await scope.chain().dispatch(.add(amount: 0), to: first)
            .dispatch(.add(amount: 0), to: second).react().receipt()
        #expect(first.left == 300 && second.left == 700)
    }

    @Test func `stores are found by their identifier, with their type`() throws {
        let store = scope.run { tallyStore() }
        let registration = try scope.register(store, as: "tally")
        #expect(try scope.store("tally", of: TallyState.self) === store)
        let other = #expect(throws: StoreError.self) {
            try scope.store("tally", of: ModelState<Stock>.self)
        }
        #expect(other?.code == .otherState && other?.description.contains("TallyState") == true)
        let unknown = #expect(throws: StoreError.self) {
            try scope.store("nobody", of: TallyState.self)
        }
        #expect(unknown?.code == .unknown)
        let second = scope.run { tallyStore() }
        let taken = #expect(throws: StoreError.self) {
            try scope.register(second, as: "tally")
        }
        #expect(taken?.code == .nameTaken)
        registration.dispose()
        try scope.register(second, as: "tally")
        #expect(try scope.store("tally", of: TallyState.self) === second)
    }

    @Test func `an identifier is free when its store is gone`() throws {
        var store: Store<TallyState>? = scope.run { tallyStore() }
        if let store { try scope.register(store, as: "tally") }
        store = nil
        #expect(throws: StoreError.self) { try scope.store("tally", of: TallyState.self) }
        let other = scope.run { ModelStore<Stock>() }
        try scope.register(other, as: "tally")
    }

    @Test func `a wait between stores ends when either store is released`() throws {
        var (first, second): (Store<TallyState>?, Store<TallyState>?) = scope.run {
            (tallyStore(), tallyStore())
        }
        let third = scope.run { tallyStore() }
        if let first, let second { try scope.order(second, after: first, third) }
        #expect(scope.isWatched)
        second = nil
        #expect(!scope.isWatched)
        if let first { try scope.order(third, after: first) }
        first = nil
        #expect(!scope.isWatched)
    }

    @Test func `waiting for a store of another scope ends the program with a message`() async {
        let result = await #expect(
            processExitsWith: .failure, observing: [\.standardErrorContent]
        ) {
            let scope = Scope()
            let store = scope.run { tallyStore() }
            try scope.order(store, after: Scope().run { tallyStore() })
        }
        let text = String(decoding: result?.standardErrorContent ?? [], as: UTF8.self)
        #expect(text.contains("TallyState's store belongs to another scope"))
    }

    @Test func `actions may outlive their scope`() async {
        let actions = Scope().run { Store<TallyState>.actions }
        actions.tell(1)
        let error = await #expect(throws: DispatchError.self) {
            try await actions.dispatch(1).receipt()
        }
        #expect(error?.code == .noStore)
    }

    @Test func `the cost of many layers of waiting stores depends only on their edges`()
        throws
    {
        let scope = Scope()
        // From the last layer to the first, there are 2 to the power of 40 paths.
        let layers = scope.run { (0..<40).map { _ in [tallyStore(), tallyStore()] } }
        for (before, after) in zip(layers, layers.dropFirst()) {
            for store in after { try scope.order(store, after: before[0], before[1]) }
        }
        scope.run { Store<TallyState>.actions.tell(1) }
        #expect(layers.allSatisfy { $0.allSatisfy { $0.computed.numbers == [1] } })
    }
}
