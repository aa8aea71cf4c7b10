import Conflux
import Dispatch
import Synchronization
import Testing

struct SetAmount: Codable, Sendable { let value: UInt }
struct FetchAmount: Codable, Sendable {}
struct ClearAmount: Codable, Sendable {}

struct Wallet: ReducedModel {
    static let name = "wallet"
    static let reducers = Reducers<Wallet>()
        .with(SetAmount.self) { wallet, action, _ in wallet.amount = action.value }
    var amount: UInt = 0
}

@Suite(.timeLimit(.minutes(5)))
struct ComingFromFluxful {

    @Test func `reducers are registered by the type of an action`() {
        let wallet = ModelStore<Wallet>()
        wallet.dispatch(SetAmount(value: 5))
        #expect(wallet.amount == 5)
    }

    @Test func `after a reducer is unregistered, its actions are refused`() async throws {
        let store = ModelStore<Wallet>()
        store.dispatch(SetAmount(value: 5))
        try Wallet.reducers.register(ClearAmount.self) { wallet, _, _ in wallet.amount = 0 }
        store.dispatch(ClearAmount())
        #expect(store.amount == 0)
        store.dispatch(SetAmount(value: 5))
        try Wallet.reducers.unregister(ClearAmount.self)
        let failure = await #expect(throws: DispatchError.self) {
            try await store.dispatch(ClearAmount()).receipt()
        }
        #expect(failure?.code == .refused && store.amount == 5)
    }

    @Test func `an action is wrapped where a state's action is expected`() async throws {
        let scope = Scope()
        let store = scope.run { ModelStore<Wallet>() }
        scope.dispatch(SetAmount(value: 5), to: store, mode: .sync)
        #expect(store.amount == 5)
    }

    @Test func `middleware intercepts, works elsewhere, and dispatches later`() async throws {
        let scope = Scope()
        let store = scope.run { ModelStore<Wallet>() }
        let interceptor = Interceptor()
        let wallet = StoreReference(store)
        interceptor.register(FetchAmount.self) { _ in
            DispatchQueue.global().async { wallet.store?.dispatch(SetAmount(value: 7)) }
            return .stop
        }
        let registration = scope.use(interceptor, for: store)
        var amounts = store.changed(\.amount).values.makeAsyncIterator()
        #expect(await amounts.next() == 0)
        store.dispatch(FetchAmount())
        #expect(await amounts.next() == 7)
        registration.dispose()
    }

    @Test func `observers of any change or of some properties are notified until cancelled`() {
        let store = ModelStore<Wallet>()
        let seen = Mutex<[UInt]>([])
        let subscription = store.observe(\.amount) { wallet in
            seen.withLock { $0.append(wallet.amount) }
        }
        store.dispatch(SetAmount(value: 1))
        subscription.dispose()
        store.dispatch(SetAmount(value: 2))
        var subscriptions: DisposableScope? = DisposableScope()
        subscriptions += store.observe { wallet in seen.withLock { $0.append(wallet.amount) } }
        store.dispatch(SetAmount(value: 3))
        subscriptions = nil
        store.dispatch(SetAmount(value: 4))
        #expect(subscriptions == nil && seen.withLock { $0 } == [1, 3])
    }

    @Test func `a store commits on a queue, without a hop when already there`() async throws {
        let queue = DispatchQueue(label: "wallet")
        let store = ModelStore<Wallet>(executor: .within(queue))
        try await store.dispatch(SetAmount(value: 5)).receipt()
        queue.sync {
            _ = store.dispatch(SetAmount(value: 6))
            #expect(store.amount == 6)
        }
    }
}
