import Conflux
import Synchronization
import Testing

@Suite(.timeLimit(.minutes(5)))
struct TransactionTests {
    let scope = Scope()

    private func stocks(
        _ left: Int, _ right: Int, on executor: Executor = .immediate
    ) -> (ModelStore<Stock>, ModelStore<Stock>) {
        scope.run {
            (
                ModelStore(Stock(left: left), executor: executor),
                ModelStore(Stock(left: right), executor: executor)
            )
        }
    }

    @Test func `a chain that reacts changes all of its stores`() async throws {
        let (first, second) = stocks(5, 5)
        let storage = scope.run { Storage(["a"]) }
        let handle = scope.chain()
            .dispatch(.take(amount: 2), to: first)
            .dispatch(.add(amount: 2), to: second)
            .dispatch(.take(amount: 1), to: first)
            .change(storage) { $0.replace($0.value + ["b"]) }
            .react()
        #expect(first.left == 2 && second.left == 7 && storage.value == ["a", "b"])
        try await handle.receipt()
    }

    @Test func `a chain that is aborted, or released unresolved, changes nothing`() {
        let (first, second) = stocks(5, 5)
        let chain = scope.chain().dispatch(.take(amount: 2), to: first)
        chain.dispatch(.add(amount: 2), to: second)
        chain.abort()
        scope.chain().dispatch(.take(amount: 2), to: first)
        #expect(first.left == 5 && second.left == 5)
    }

    @Test func `one refused action voids the transaction, and no observer is called`() async {
        let (first, second) = stocks(5, 0)
        let heard = Mutex(0)
        first.observe { _ in heard.withLock { $0 += 1 } }
        let error = await #expect(throws: DispatchError.self) {
            try await scope.chain()
                .dispatch(.take(amount: 2), to: first)
                .dispatch(.take(amount: 1), to: second)
                .react().receipt()
        }
        #expect(error?.code == .refused)
        #expect(error?.reason as? OutOfStock == OutOfStock(left: 0))
        #expect(first.left == 5 && first.takings == 0)
        #expect(heard.withLock { $0 } == 0)
        // The next action gets the next number, and its own context.
        first.dispatch(.take(amount: 1))
        #expect(first.lastContext?.sequence == 1)
    }

    @Test func `observers are notified once the whole transaction is applied`() {
        let (first, second) = stocks(5, 5)
        let seen = Mutex<[Int]>([])
        first.observe(\.left) { [second] value in
            let other = second.left
            seen.withLock { $0 += [value.left, other] }
        }
        scope.chain().dispatch(.take(amount: 2), to: first)
            .dispatch(.add(amount: 2), to: second).react()
        #expect(seen.withLock { $0 } == [3, 7])
    }

    @Test func `chains of many threads lose and create nothing`() async throws {
        let (first, second) = stocks(1_000, 1_000, on: .queue(.global()))
        let third = scope.run { ModelStore(Stock(left: 1_000)) }
        try await withThrowingTaskGroup(of: Void.self) { group in
            for (source, target) in [(first, second), (second, third), (third, first)] {
                group.addTask {
                    for amount in 1...100 {
                        try await scope.chain().dispatch(.take(amount: amount % 5), to: source)
                            .dispatch(.add(amount: amount % 5), to: target).react().receipt()
                    }
                }
                group.addTask {
                    for _ in 0..<100 {
                        scope.chain().dispatch(.add(amount: 1), to: source)
                            .dispatch(.take(amount: 1), to: source).react()
                    }
                }
            }
            try await group.waitForAll()
        }
        // These come behind all chains.
        for stock in [first, second, third] {
            try await stock.dispatch(.add(amount: 0)).receipt()
        }
        #expect([first.left, second.left, third.left] == [1_000, 1_000, 1_000])
    }

    @Test func `middleware sees each action, and stops all by stopping one`() async throws {
        let (first, second) = stocks(5, 5)
        let bystander = Bystander()
        scope.use(bystander)
        let interceptor = Interceptor()
        interceptor.register(Stock.Action.self) { action in
            if case .add(let amount) = action, amount > 9 { .stop } else { .pass }
        }
        scope.use(interceptor)
        try await scope.chain().dispatch(.take(amount: 2), to: first)
            .dispatch(.add(amount: 2), to: second).react().receipt()
        #expect(
            bystander.lines == [
                "1 dispatch take(amount: 2) one", "2 dispatch add(amount: 2) one",
                "1 will take(amount: 2)", "2 will add(amount: 2)",
                "1 did take(amount: 2)", "2 did add(amount: 2)",
                "1 end take(amount: 2) done", "2 end add(amount: 2) done",
            ])
        let error = await #expect(throws: DispatchError.self) {
            try await scope.chain().dispatch(.take(amount: 2), to: first)
                .dispatch(.add(amount: 10), to: second).react().receipt()
        }
        #expect(error?.code == .intercepted)
        #expect(first.left == 3)
    }

    @Test func `a lane that waits for another one's turn needs no thread`() async throws {
        let held = HeldExecutor()
        let slow = scope.run { ModelStore(Stock(left: 1), executor: held.executor) }
        let quick = scope.run { ModelStore(Stock(left: 1)) }
        let handle = scope.chain().dispatch(.add(amount: 1), to: quick)
            .dispatch(.add(amount: 1), to: slow).react()
        let behind = quick.dispatch(.add(amount: 10))
        #expect(quick.left == 1)
        held.runAll()
        #expect(quick.left == 12 && slow.left == 2)
        try await handle.receipt()
        try await behind.receipt()
    }

    @Test func `a chain without stores ends at once`() async throws {
        try await scope.chain().react().receipt()
    }

    @Test func `observers run on their store's executor`() async throws {
        let held = HeldExecutor()
        let slow = scope.run { ModelStore(Stock(left: 1), executor: held.executor) }
        let seen = Mutex<[String]>([])
        slow.observe(\.left) { value in seen.withLock { $0.append("slow \(value.left)") } }
        held.runAll()
        let gate = Late<DispatchHandle>()
        let quick = scope.run { ModelStore(Stock(left: 1)) }
        quick.observe(\.left) { [scope] value in
            seen.withLock { $0.append("quick \(value.left)") }
            // The slow store comes first, and waits. This store follows when its observer has returned.
            if value.left == 2 {
                gate.value = scope.chain().dispatch(.add(amount: 1), to: slow)
                    .dispatch(.add(amount: 1), to: quick).react()
                held.runAll()
            }
        }
        quick.dispatch(.add(amount: 1))
        #expect(slow.left == 2 && quick.left == 3)
        #expect(seen.withLock { $0 } == ["quick 2", "quick 3"])
        held.runAll()
        #expect(seen.withLock { $0 } == ["quick 2", "quick 3", "slow 2"])
        try await gate.value?.receipt()
    }

    @Test func `a value that is being released may read a store of the same transaction`() {
        final class Reader: Sendable {
            let read: @Sendable () -> Void
            init(_ read: @escaping @Sendable () -> Void) { self.read = read }
            deinit { read() }
        }
        let (first, second) = scope.run { (Storage<Reader?>(nil), Storage<Reader?>(nil)) }
        let count = Mutex(0)
        for (one, other) in [(first, second), (second, first)] {
            one.replace(
                Reader { [weak other] in
                    count.withLock { $0 += 1 }
                    _ = other?.value
                })
        }
        scope.chain().change(first) { $0.replace(nil) }.change(second) { $0.replace(nil) }.react()
        #expect(count.withLock { $0 } == 2)
    }

    @Test func `middleware gets the end of an action it passed when a later action is stopped`() {
        let (first, second) = stocks(5, 5)
        let bystander = Bystander()
        scope.use(bystander)
        let interceptor = Interceptor()
        interceptor.register(Stock.Action.self) { action in
            if case .add = action { .stop } else { .pass }
        }
        scope.use(interceptor)
        scope.chain().dispatch(.take(amount: 1), to: first)
            .dispatch(.take(amount: 1), to: second).dispatch(.add(amount: 1), to: second).react()
        #expect(
            bystander.lines.filter { $0.contains(" end ") } == [
                "3 end add(amount: 1) intercepted", "1 end take(amount: 1) intercepted",
                "2 end take(amount: 1) intercepted",
            ])
    }
}
