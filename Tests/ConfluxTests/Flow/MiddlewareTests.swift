import Conflux
import Synchronization
import Testing

/// Writes down what it is told, and lets a function of the test decide.
final class Bystander: Middleware {
    private let seen = Mutex<[String]>([])
    private let decide: @Sendable (Int) -> Passage<Int>

    init(decide: @escaping @Sendable (Int) -> Passage<Int> = { _ in .pass }) {
        self.decide = decide
    }

    var lines: [String] { seen.withLock { $0 } }

    func note(_ line: String) { seen.withLock { $0.append(line) } }

    func willDispatch<S: State>(_ dispatch: DispatchedAction<S>) -> Passage<S.Action> {
        note("\(dispatch.id) dispatch \(dispatch.action) \(dispatch.store == nil ? "all" : "one")")
        guard let number = dispatch.action as? Int else { return .pass }
        switch decide(number) {
        case .pass: return .pass
        case .stop: return .stop
        case .replace(let other): return (other as? S.Action).map { .replace($0) } ?? .pass
        }
    }

    func didDispatch<S: State>(
        _ dispatch: DispatchedAction<S>, result: Result<Receipt, DispatchError>
    ) {
        note("\(dispatch.id) end \(dispatch.action) \(result.failure?.code.description ?? "done")")
    }

    func willCommit<S: State>(_ commit: CommittedAction<S>) {
        note("\(commit.id.map { "\($0)" } ?? "-") will \(commit.action)")
    }

    func didCommit<S: State>(_ commit: CommittedAction<S>, refusal: (any Error)?) {
        note(
            "\(commit.id.map { "\($0)" } ?? "-") did \(commit.action)\(refusal == nil ? "" : " refused")"
        )
    }
}

@Suite(.timeLimit(.minutes(5)))
struct MiddlewareTests {
    let scope = Scope()

    @Test func `an action is seen at dispatch, at commit and at its end, under one number`() {
        let store = scope.run { tallyStore() }
        let bystander = Bystander()
        scope.use(bystander)
        store.actions.tell(7)
        store.actions.tell(8)
        #expect(
            bystander.lines == [
                "1 dispatch 7 one", "1 will 7", "1 did 7", "1 end 7 done",
                "2 dispatch 8 one", "2 will 8", "2 did 8", "2 end 8 done",
            ])
    }

    @Test func `a global action is seen once at dispatch, and at the commit of each store`() {
        let stores = scope.run { [tallyStore(), tallyStore()] }
        let bystander = Bystander()
        scope.use(bystander)
        scope.run { Store<TallyState>.actions.tell(7) }
        #expect(
            bystander.lines == [
                "1 dispatch 7 all", "1 will 7", "1 did 7", "1 will 7", "1 did 7", "1 end 7 done",
            ])
        #expect(stores.allSatisfy { $0.computed.numbers == [7] })
    }

    @Test func `each middleware sees the action as the previous one left it`() {
        let store = scope.run { tallyStore() }
        let (first, second) = (Bystander { .replace($0 + 1) }, Bystander { .replace($0 * 10) })
        scope.use(first)
        scope.use(second)
        store.actions.tell(1)
        #expect(store.computed.numbers == [20])
        #expect(first.lines.first == "1 dispatch 1 one")
        #expect(second.lines.first == "1 dispatch 2 one")
    }

    @Test func `a stopped action reaches no store or later middleware, and its receipt says so`()
        async throws
    {
        let store = scope.run { tallyStore() }
        let last = Bystander()
        scope.use(Bystander { $0 == 2 ? .stop : .pass })
        scope.use(last)
        for number in 1...3 { store.actions.tell(number) }
        #expect(store.computed.numbers == [1, 3])
        #expect(!last.lines.contains { $0.contains("dispatch 2") })
        let error = await #expect(throws: DispatchError.self) {
            try await store.actions.dispatch(2).receipt()
        }
        #expect(error?.code == .intercepted)
        #expect(error?.message.contains("Dispatch an action that the middleware lets") == true)
        let global = scope.run { Store<TallyState>.actions.dispatch(2) }
        let other = await #expect(throws: DispatchError.self) { try await global.receipt() }
        #expect(other?.code == .intercepted)
    }

    @Test func `middleware may dispatch an action, which comes after the present one`() {
        let store = scope.run { tallyStore() }
        scope.use(
            Bystander { [weak store] number in
                if number < 3 { store?.actions.tell(number + 10) }
                return .pass
            })
        store.actions.tell(1)
        // The new action was dispatched before the first one went on.
        #expect(store.computed.numbers == [11, 1])
    }

    @Test func `middleware of one store sees nothing of others`() {
        let (store, other) = scope.run { (tallyStore(), tallyStore()) }
        let bystander = Bystander()
        scope.use(bystander, for: store)
        other.actions.tell(1)
        #expect(bystander.lines.isEmpty)
        scope.run { Store<TallyState>.actions.tell(2) }
        #expect(bystander.lines == ["1 will 2", "1 did 2"])
        store.actions.tell(3)
        #expect(bystander.lines.contains("2 dispatch 3 one"))
        #expect(other.computed.numbers == [1, 2])
    }

    @Test func `middleware sees nothing after its registration or its store has ended`() {
        let store = scope.run { tallyStore() }
        let bystander = Bystander()
        let registration = scope.use(bystander)
        store.actions.tell(1)
        registration.dispose()
        let count = bystander.lines.count
        store.actions.tell(2)
        #expect(bystander.lines.count == count)
        #expect(store.computed.numbers == [1, 2])

        var short: Store<TallyState>? = scope.run { tallyStore() }
        weak var kept: Bystander?
        do {
            let own = Bystander()
            kept = own
            if let short { scope.use(own, for: short) }
        }
        #expect(kept != nil)
        short = nil
        #expect(kept == nil)
    }

    @Test func `middleware gets a refusal at the commit and at the end`() {
        let stock = scope.run { ModelStore<Stock>() }
        let bystander = Bystander()
        scope.use(bystander)
        stock.dispatch(.take(amount: 1))
        #expect(
            bystander.lines == [
                "1 dispatch take(amount: 1) one", "1 will take(amount: 1)",
                "1 did take(amount: 1) refused", "1 end take(amount: 1) refused",
            ])
    }

    @Test func `middleware sees an action that a log has ordered only at its commit`() {
        let stock = scope.run { ModelStore<Stock>() }
        let bystander = Bystander()
        scope.use(bystander)
        stock.core.deliver([
            OrderedAction(
                action: .add(amount: 1), context: ActionContext(sequence: SequenceNumber(5)))
        ]) { _ in }
        #expect(bystander.lines == ["- will add(amount: 1)", "- did add(amount: 1)"])
        #expect(stock.left == 1)
    }

    @Test func `an interceptor handles actions by their type`() {
        let (tally, stock) = scope.run { (tallyStore(), ModelStore<Stock>()) }
        let interceptor = Interceptor()
        scope.use(interceptor)
        tally.actions.tell(0)
        interceptor.register(Int.self) { $0 > 9 ? .stop : .replace($0 + 1) }
        interceptor.register(Stock.Action.self) { action in
            if case .take = action { .stop } else { .pass }
        }
        tally.actions.tell(1)
        tally.actions.tell(10)
        stock.dispatch(.add(amount: 3))
        stock.dispatch(.take(amount: 2))
        #expect(tally.computed.numbers == [0, 2])
        #expect(stock.left == 3)
        interceptor.unregister(Int.self)
        tally.actions.tell(10)
        #expect(tally.computed.numbers == [0, 2, 10])
        interceptor.register(Int.self) { _ in .stop }
        tally.actions.tell(11)
        #expect(tally.computed.numbers == [0, 2, 10])
    }

    @Test func `an interceptor of other actions hides no commit or dispatch from other middleware`()
        async throws
    {
        let (tally, stock) = scope.run { (tallyStore(), ModelStore<Stock>()) }
        let interceptor = Interceptor()
        interceptor.register(String.self) { _ in .stop }
        scope.use(interceptor)
        let recorder = Recorder(stock)
        try await scope.dispatch(.add(amount: 1), to: stock, mode: .sync, name: "one").receipt()
        #expect(recorder.steps.map(\.value.left) == [0, 1])
        #expect(recorder.steps.last?.action == "one")
        let lines = Mutex<[String]>([])
        let all = Mutex(0)
        scope.use(ActionLogger { line in lines.withLock { $0.append(line) } }, for: stock)
        tally.actions.tell(1)
        scope.use(ActionLogger { _ in all.withLock { $0 += 1 } })
        stock.dispatch(.add(amount: 2))
        #expect(all.withLock { $0 } == 3)
        #expect(recorder.steps.map(\.value.left) == [0, 1, 3])
        let begun = lines.withLock { $0.map { $0.prefix(10) } }
        #expect(begun == ["3 dispatch", "3 commit 2", "3 done"])
    }

    @Test func `the logger writes a line for each step`() {
        let storage = scope.run { Storage(3) }
        let lines = Mutex<[String]>([])
        scope.use(ActionLogger { line in lines.withLock { $0.append(line) } })
        storage.commit("raise", "by one", file: "F", function: "f", line: 1) {
            $0.replace($0.value + 1)
        }
        storage.emit("full", file: "F", function: "f", line: 2)
        storage.perform("work", file: "F", function: "f", line: 3) { _ in }
        #expect(
            lines.withLock { $0 } == [
                "1 dispatch a change to StorageState<Int>: raise, by one (F:1 f)",
                "1 replace in StorageState<Int>: 4",
                "1 commit 1 in StorageState<Int>: a change",
                "1 done",
                "emit full from StorageState<Int> (F:2 f)",
                "perform for StorageState<Int>: work (F:3 f)",
            ])
    }

    @Test func `dispatches of many threads are each seen whole`() async {
        let store = scope.run { tallyStore(on: .queue(.global())) }
        let bystander = Bystander()
        scope.use(bystander)
        await withTaskGroup(of: Void.self) { group in
            for thread in 0..<8 {
                group.addTask {
                    for number in 0..<50 {
                        _ = try? await store.actions.dispatch(thread * 100 + number).receipt()
                    }
                }
            }
        }
        #expect(store.computed.numbers.count == 400)
        #expect(store.computed.overlaps == 0)
        #expect(bystander.lines.count { $0.contains(" end ") && $0.hasSuffix("done") } == 400)
        #expect(bystander.lines.count { $0.contains(" did ") } == 400)
    }
}

extension Result {
    /// Why it failed; nil if it did not.
    var failure: Failure? {
        if case .failure(let failure) = self { failure } else { nil }
    }
}
