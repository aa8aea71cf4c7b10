import Conflux
import ConfluxTesting
import Dispatch
import Synchronization
import Testing

/// A test store whose store does what the test states.
@Suite(.ownScope, .timeLimit(.minutes(2)))
struct TestStoreTests {
    /// A seat that is reserved for half a minute.
    private struct Seat: Model, Equatable {
        static let name = "seat"
        var reservedAt: Timestamp?
        enum Action: Codable, Sendable { case reserve }
        struct Taken: Error {}

        func check(_ action: Action, _ context: ActionContext) throws {
            if let reservedAt, context.timestamp - reservedAt <= .seconds(30) { throw Taken() }
        }

        mutating func apply(_ action: Action, _ context: ActionContext) {
            reservedAt = context.timestamp
        }
    }

    @Test func `a test sets and advances the time`() async {
        let seat = TestStore(Seat())
        let other = TestStore(Seat())
        seat.time = Timestamp(7)
        await seat.send(.reserve) { $0.reservedAt = Timestamp(7) }
        seat.advance(by: .seconds(30))
        await seat.send(.reserve, failing: .refused)
        seat.advance(by: .nanoseconds(1))
        await seat.send(.reserve) { $0.reservedAt = Timestamp(30_000_000_008) }
        await other.send(.reserve) { seat, context in
            #expect(context.timestamp > Timestamp(1_000_000_000_000_000_000))
            seat.reservedAt = context.timestamp
        }
        await seat.finish()
        await other.finish()
    }

    @Test func `a store that does what the test states passes`() async {
        let stock = TestStore(Stock())
        await stock.send(.add("pear", 3)) { $0.counts["pear"] = 3 }
        await stock.send(.take("pear", 2)) { $0.counts["pear"] = 1 }
        await stock.send(.add("pear", 0))
        await stock.send(.take("pear", 2), failing: .refused) { error in
            #expect(error.reason as? Stock.NotEnough == Stock.NotEnough(there: 1))
        }
        #expect(stock.store.value == Stock(counts: ["pear": 1]))
        await stock.finish()
    }

    @Test func `a test receives what an observer dispatches`() async {
        let stock = TestStore(Stock())
        let store = stock.store
        let observation = store.changed(\.counts).observe { [weak store] counts in
            if counts["pear"] == 0 { store?.dispatch(.close) }
        }
        defer { observation.dispose() }
        await stock.send(.add("pear", 1)) { $0.counts["pear"] = 1 }
        await stock.send(.take("pear", 1)) { $0.counts["pear"] = 0 }
        await stock.receive(.close) { $0.isOpen = false }
        await stock.finish()
    }

    @Test func `finish waits for what another thread dispatches later`() async {
        let stock = TestStore(Stock())
        Scope.current.dispatch(.add("fig", 1), to: stock.store, mode: .async)
        await stock.receive(where: { $0 != .close }) { $0.counts["fig"] = 1 }
        Scope.current.dispatch(.take("fig", 2), to: stock.store, mode: .async)
        await stock.receive(.take("fig", 2), isRefused: true)
        await stock.finish()
    }

    @Test func `global actions reach the stores of the test's own scope`() async {
        let stock = TestStore(Stock())
        Store<ModelState<Stock>>.actions.dispatch(.close)
        await stock.receive(.close) { $0.isOpen = false }
        #expect(Scope.current !== Scope.process)
        await stock.finish()
    }

    @Test func `middleware may stop and replace actions`() async {
        let stock = TestStore(Stock())
        let interceptor = Interceptor()
        interceptor.register(Stock.Action.self) { action in
            switch action {
            case .close: .stop
            case .add(let name, _): .replace(.add(name, 10))
            case .take: .pass
            }
        }
        Scope.current.use(interceptor)
        await stock.send(.close, failing: .intercepted)
        await stock.send(.add("fig", 1)) { $0.counts["fig"] = 10 }
        await stock.send(.take("fig", 1)) { $0.counts["fig"] = 9 }
        await stock.finish()
    }

    @Test func `a transaction's results are known before they are visible`() async throws {
        let stock = TestStore(Stock())
        let chain = Scope.current.chain()
            .dispatch(.add("fig", 1), to: stock.store)
            .dispatch(.close, to: stock.store)
        try await chain.react().receipt()
        await stock.receive(.add("fig", 1)) { $0.counts["fig"] = 1 }
        await stock.receive(.close) { $0.isOpen = false }
        await stock.finish()
    }

    struct Screen: Equatable, Sendable { var count = 0, title = "" }
    enum Notice: Equatable, Sendable { case reached(Int) }

    @Test func `a storage's commits and activities can be tested`() async {
        let screen = TestStore(storage: Screen())
        let store = screen.store
        let observation = store.changed(\.count).observe { [weak store] count in
            if count == 2 { store?.emit(Notice.reached(count)) }
        }
        defer { observation.dispose() }
        for count in 1...2 {
            store.commit("increment") { $0.update(\.count, to: $0.value.count + 1) }
            await screen.receive(commit: "increment") { $0.count = count }
        }
        await screen.receive(activity: Notice.reached(2))
        struct Failed: Error {}
        store.commit("fail") { _ in throw Failed() }
        await screen.receive(commit: "fail", isRefused: true)
        store.replace(Screen(count: 7, title: "seven"))
        await screen.receive(commit: "replace") { $0 = Screen(count: 7, title: "seven") }
        store.update(\.count, to: 8)
        await screen.receive(commit: "update") { $0.count = 8 }
        store.updateIfChanged(\.count, to: 9)
        await screen.receive(commit: "updateIfChanged") { $0.count = 9 }
        store.commit { $0.update(\.title, to: "nine") }
        await screen.receive(commit: "") { $0.title = "nine" }
        await screen.finish()
    }

    @Test func `a state that is a class is read in its lane`() async {
        let queue = DispatchQueue(label: "own")
        let store = Store<Counter>(state: Counter(), mutations: .init(), executor: .queue(queue))
        let counter = TestStore(store) { $0.count }
        await counter.send(.increment) { $0 = 1 }
        await counter.send(.increment) { $0 = 2 }
        await counter.finish()
    }

    @Test @MainActor func `a store of the main thread can be tested on the main actor`() async {
        let store = ModelStore(Stock(), executor: .mainThread)
        let stock = TestStore(store)
        var said = 0
        await stock.send(.close) { stock in
            said += 1
            stock.isOpen = false
        }
        await stock.send(.add("fig", 1)) { stock, _ in
            said += 1
            stock.counts["fig"] = 1
        }
        #expect(said == 2)
        await stock.finish()
    }

    @Test func `finish waits for a store's work in every mode`() async {
        for _ in 0..<20 {
            let stock = TestStore(Stock())
            let scope = Scope.current
            scope.dispatch(.add("fig", 1), to: stock.store, mode: .async) {
                [store = stock.store] _ in
                scope.dispatch(.close, to: store, mode: .serial)
            }
            let found = await failures { await stock.finish() }
            #expect(found.count == 1)
            #expect(found.first?.message.contains("committed .close") == true)
        }
    }

    @Test func `finish waits for effects that come through other stores`() async {
        let (scope, stock) = (Scope.current, TestStore(Stock()))
        let other = ModelStore(Stock(), executor: .queue(DispatchQueue(label: "other")))
        let next = ModelStore(Stock(), executor: .queue(DispatchQueue(label: "next")))
        @Sendable func hop(_ count: Int) {
            if count == 0 {
                other.dispatch(.add("pear", 1))
                return
            }
            scope.dispatch(.add("fig", 1), to: next, mode: .serial) { _ in hop(count - 1) }
        }
        // From one store to the other to the tested one, each on its own queue.
        other.observe { [next] _ in next.dispatch(.add("pear", 1)) }
        next.changed(\.counts["pear"]).observe { [store = stock.store] count in
            if count != nil { store.dispatch(.close) }
        }
        hop(200)
        let found = await failures { await stock.finish() }
        #expect(found.count == 1)
        #expect(found.first?.message.contains("committed .close") == true)
    }

    @Test func `a part of a value can be tested, even within a transaction`() async throws {
        let store = ModelStore(Stock())
        let counts = TestStore(store) { $0.counts }
        let whole = TestStore(store)
        try await Scope.current.chain().dispatch(.add("fig", 1), to: store)
            .dispatch(.add("pear", 1), to: store).react().receipt()
        for (index, name) in ["fig", "pear"].enumerated() {
            await counts.receive(.add(name, 1)) { $0[name] = 1 }
            await whole.receive(.add(name, 1)) { $0.counts[name] = 1 }
            #expect(index < 2)
        }
        await counts.send(.close)
        await whole.receive(.close) { $0.isOpen = false }
        await counts.finish()
        await whole.finish()
    }

    /// Dispatches another action before each action.
    private struct Forerunner: Middleware {
        let store: ModelStore<Stock>

        func willDispatch<S: State>(_ dispatch: DispatchedAction<S>) -> Passage<S.Action> {
            if case .close? = dispatch.action as? Stock.Action { store.dispatch(.add("fig", 1)) }
            return .pass
        }
    }

    @Test func `an action that precedes a sent one is received after it`() async {
        let stock = TestStore(Stock())
        let registration = Scope.current.use(Forerunner(store: stock.store))
        await stock.send(.close) { $0.isOpen = false }
        await stock.receive(.add("fig", 1)) { $0.counts["fig"] = 1 }
        await stock.finish()
        registration.dispose()
    }

    @Test func `typed actions are sent and received unwrapped`() async {
        let wallet = TestStore(Wallet())
        await wallet.send(Earn(amount: 3)) { wallet, context in
            wallet = Wallet(amount: 3, earnedAt: context.timestamp.rawValue)
        }
        await wallet.send(Lose(), failing: .refused)
        wallet.store.dispatch(Earn(amount: 1))
        await wallet.receive(Earn(amount: 1)) { wallet, context in
            wallet = Wallet(amount: 4, earnedAt: context.timestamp.rawValue)
        }
        wallet.exhaustivity = .off
        await wallet.send(Earn(amount: 1)) { $0.amount = 5 }
        wallet.store.dispatch(Earn(amount: 1))
        await wallet.receive(Earn(amount: 1)) { $0.amount = 6 }
        await wallet.finish()
    }

    /// The effect of a roll on the dice.
    private func roll(_ dice: inout Dice, _ context: ActionContext) {
        var random = context.random
        dice.last = Int.random(in: 1...1_000_000_000, using: &random)
        dice.rolledAt = context.timestamp.rawValue
    }

    @Test func `a state that uses an action's time and random numbers can be tested`() async {
        let dice = TestStore(Dice())
        await dice.send(.roll) { dice, context in
            var random = context.random
            dice.last = Int.random(in: 1...1_000_000_000, using: &random)
            dice.rolledAt = context.timestamp.rawValue
        }
        dice.store.dispatch(.roll)
        await dice.receive(.roll) { roll(&$0, $1) }
        dice.store.dispatch(.roll)
        await dice.receive(where: { $0 == .roll }) { roll(&$0, $1) }
        dice.exhaustivity = .off
        await dice.send(.roll) { dice, context in dice.rolledAt = context.timestamp.rawValue }
        await dice.finish()
    }

    @Test func `values that a state sends are received once its signal is observed`() async {
        let store = Store<Counter>(state: Counter(), mutations: .init(), executor: .immediate)
        let counter = TestStore(store) { $0.count }
        for count in 1...2 { await counter.send(.increment) { $0 = count } }
        await counter.hear(store.computed.pairs)
        for count in 3...4 { await counter.send(.increment) { $0 = count } }
        await counter.receive(activity: 2)
        await counter.finish()
    }

    @Test func `an observed variable first sends its present value`() async {
        struct Count: Equatable { var value: Int }
        let store = Store<Counter>(state: Counter(), mutations: .init(), executor: .immediate)
        let counter = TestStore(store) { $0.count }
        await counter.hear(store.computed.counts.map { Count(value: $0) })
        await counter.receive(activity: Count(value: 0))
        await counter.send(.increment) { $0 = 1 }
        await counter.receive(activity: Count(value: 1))
        counter.exhaustivity = .off
        await counter.hear(store.computed.pairs)
        for count in 2...4 { await counter.send(.increment) { $0 = count } }
        await counter.receive(activity: Count(value: 4))
        await counter.receive(activity: 2)
        await counter.finish()
    }

    @Test func `a signal is no longer observed once its test store is released`() async {
        final class Token: Sendable {}
        let sink = Sink<Token>()
        weak var sent: Token?
        do {
            let stock = TestStore(Stock())
            await stock.hear(sink.signal)
            await stock.finish()
        }
        do {
            let token = Token()
            sent = token
            sink.send(value: token)
        }
        #expect(sent == nil)
    }

    @Test @MainActor func `a store whose queue runs later can be tested`() async {
        let stock = TestStore(ModelStore(Stock(), executor: .queue(.main)))
        await stock.send(.close) { $0.isOpen = false }
        await stock.finish()
    }

    @Test func `earlier commits belong to the first value`() async {
        let store = ModelStore(Stock())
        store.dispatch(.add("fig", 1))
        let stock = TestStore(store)
        await stock.send(.add("fig", 1)) { $0.counts["fig"] = 2 }
        await stock.finish()
    }

    @Test func `a change without an action is stated by expect`() async throws {
        let stock = TestStore(Stock())
        let recorder = Recorder(stock.store)
        await stock.send(.close) { $0.isOpen = false }
        try recorder.back()
        await stock.expect { $0.isOpen = true }
        await stock.finish()
    }

    @Test func `without exhaustivity the test may leave out steps`() async {
        let stock = TestStore(Stock())
        stock.exhaustivity = .off
        await stock.send(.add("fig", 1))
        stock.store.dispatch(.add("pear", 2))
        stock.store.emit(Notice.reached(1))
        stock.store.emit(Notice.reached(2))
        stock.store.dispatch(.close)
        await stock.receive(.close) { $0.isOpen = false }
        await stock.receive(activity: Notice.reached(2))
        stock.store.dispatch(.add("pear", 2))
        await stock.send(.add("fig", 1)) { $0.counts["fig"] = 2 }
        await stock.finish()
    }

    @Test func `the store is released with its test store`() async {
        weak var store: ModelStore<Stock>?
        do {
            let stock = TestStore(Stock())
            store = stock.store
            await stock.send(.close) { $0.isOpen = false }
            await stock.finish()
        }
        #expect(store == nil)
    }
}
