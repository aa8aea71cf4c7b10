import Conflux
import Dispatch
import Testing

struct SetAmountAction: Codable, Sendable {
    let value: UInt
}
struct FetchAmountAction: Codable, Sendable {}

struct MyState: ReducedModel {
    static let name = "my"
    static let reducers = Reducers<MyState>()
        .with(SetAmountAction.self) { state, action, _ in state.amount = action.value }
    private(set) var amount: UInt = 0
}

func myMiddleware(for store: ModelStore<MyState>) -> Interceptor {
    let middleware = Interceptor()
    let store = StoreReference(store)
    middleware.register(FetchAmountAction.self) { _ in
        DispatchQueue.main.async { store.store?.dispatch(SetAmountAction(value: 7)) }
        return .stop
    }
    return middleware
}

@MainActor
final class AmountScreen {
    let store = ModelStore<MyState>()
    private(set) var texts: [String] = []

    init() {
        Scope.current.use(myMiddleware(for: store), for: store)
        store.observe(\.amount, duringScopeOf: self) { [weak self] state in
            self?.texts.append("\(state.amount)")
        }
    }
}

@Suite(.timeLimit(.minutes(5)))
struct ComingFromFluxfulAsAWhole {
    @MainActor
    @Test func `middleware fetches for an action, and the fetched value is shown`() async {
        let screen = AmountScreen()
        var amounts = screen.store.changed(\.amount).values.makeAsyncIterator()
        #expect(await amounts.next() == 0)
        screen.store.dispatch(FetchAmountAction())
        #expect(await amounts.next() == 7)
        #expect(screen.texts == ["7"])
    }
}
