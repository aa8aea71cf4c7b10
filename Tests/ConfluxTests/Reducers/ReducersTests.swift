import Conflux
import Testing

struct SetAmount: Codable, Sendable, Equatable { var value: Int }
struct Spend: Codable, Sendable { var value: Int }
struct FetchAmount: Codable, Sendable {}

struct Wallet: ReducedModel, Equatable {
    static let name = "wallet"
    static let reducers = Reducers<Wallet>()
        .with(SetAmount.self) { wallet, action, _ in wallet.amount = action.value }
        .with(Spend.self, named: "spend") { wallet, action, _ in wallet.amount -= action.value }
    var amount = 0
}

/// A model whose reducers are changed by a test.
struct Purse: ReducedModel {
    static let name = "purse"
    static let reducers = Reducers<Purse>()
    var amount = 0
}

@Suite(.timeLimit(.minutes(5)))
struct ReducersTests {
    @Test func `the reducer of an action's type changes the model`() {
        let wallet = ModelStore<Wallet>()
        wallet.dispatch(SetAmount(value: 5))
        wallet.dispatch(Spend(value: 2))
        wallet.actions.dispatch(action: Spend(value: 1))
        #expect(wallet.amount == 2)
    }

    @Test func `modes, transactions and locks take actions of the reducers' types`() async throws {
        let scope = Scope()
        let wallet = scope.run { ModelStore<Wallet>() }
        try await scope.dispatch(SetAmount(value: 5), to: wallet, mode: .serial).receipt()
        try await scope.dispatch(TypedAction(Spend(value: 1)), to: wallet).receipt()
        scope.chain().dispatch(Spend(value: 1), to: wallet)
            .dispatch(TypedAction(Spend(value: 1)), to: wallet).react()
        #expect(wallet.amount == 2)
        let lock = try scope.lock(dispatching: Spend(value: 1), to: wallet)
        #expect(wallet.amount == 1 && scope.lockInForce === lock)
        lock.release()
        try scope.lock(dispatching: TypedAction(SetAmount(value: 1)), to: wallet)
        #expect(scope.lockInForce == nil)
    }

    @Test func `an action without a reducer is refused`() async {
        let wallet = ModelStore<Wallet>()
        let error = await #expect(throws: DispatchError.self) {
            try await wallet.dispatch(FetchAmount()).receipt()
        }
        #expect((error?.reason as? StoreError)?.code == .noReducer)
        #expect(error?.message.contains("no reducer for actions of type FetchAmount") == true)
    }

    @Test func `reducers can be registered and unregistered until the model is replicated`() throws
    {
        let purse = ModelStore<Purse>()
        purse.dispatch(SetAmount(value: 1))
        #expect(purse.amount == 0)
        try Purse.reducers.register(SetAmount.self) { purse, action, _ in
            purse.amount = action.value
        }
        purse.dispatch(SetAmount(value: 1))
        #expect(purse.amount == 1)
        let taken = #expect(throws: StoreError.self) {
            try Purse.reducers.register(Spend.self, named: "SetAmount") { _, _, _ in }
        }
        #expect(taken?.code == .nameTaken)
        try Purse.reducers.unregister(SetAmount.self)
        purse.dispatch(SetAmount(value: 2))
        #expect(purse.amount == 1)
        ModelState<Purse>._willReplicate()
        let frozen = #expect(throws: StoreError.self) {
            try Purse.reducers.register(SetAmount.self) { _, _, _ in }
        }
        #expect(frozen?.code == .frozen)
        #expect(throws: StoreError.self) { try Purse.reducers.unregister(SetAmount.self) }
    }

    @Test(arguments: [PayloadCoding.json, .compact])
    func `actions are encoded by their names`(coding: PayloadCoding) throws {
        let coder = ActionCoder<TypedAction<Wallet>>()
        for action in [TypedAction<Wallet>(SetAmount(value: 5)), TypedAction(Spend(value: 2))] {
            let bytes = try coder.encode(action, as: coding)
            let decoded = try coder.decode(bytes[...], as: coding)
            #expect("\(decoded)" == "\(action)")
        }
        let bytes = try coder.encode(TypedAction(Spend(value: 2)), as: .json)
        #expect(String(decoding: bytes, as: UTF8.self) == #"{"spend":{"value":2}}"#)
        let unknown = #expect(throws: CodingFailure.self) {
            try coder.decode(commandLine: #"{"steal":{"value":2}}"#)
        }
        let message = unknown.map(String.init(describing:)) ?? ""
        #expect(message.contains("expected one of: SetAmount, spend; found steal"))
    }

    @Test func `middleware intercepts actions by their type`() {
        let scope = Scope()
        let wallet = scope.run { ModelStore<Wallet>() }
        let interceptor = Interceptor()
        interceptor.register(FetchAmount.self) { [weak wallet] _ in
            wallet?.dispatch(SetAmount(value: 7))
            return .stop
        }
        interceptor.register(Spend.self) { .replace(Spend(value: $0.value * 2)) }
        scope.use(interceptor)
        wallet.dispatch(FetchAmount())
        wallet.dispatch(Spend(value: 1))
        #expect(wallet.amount == 5)
    }
}
