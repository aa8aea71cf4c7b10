import Conflux
import Synchronization
import Testing

enum CounterAction {
    case increment, decrement
}

final class CounterState: State {
    typealias Action = CounterAction
    typealias Mutations = CounterMutations

    fileprivate let count = Variable(0)
}

struct CounterMutations: Mutations {
    func commit(action: CounterAction, state: CounterState) {
        switch action {
        case .increment: state.count.value += 1
        case .decrement: state.count.value -= 1
        }
    }
}

extension Actions where State == CounterState {
    func increment() { dispatch(action: .increment) }
    func decrement() { dispatch(action: .decrement) }
}

extension Computed where State == CounterState {
    var countTextValues: Signal<String> { state.count.signal.map { String($0) } }
}

@Suite(.timeLimit(.minutes(5)))
struct ComingFromVueFlux {
    @Test func `a program keeps its text, and gets receipts`() async throws {
        try await Scope().run {
            let store = Store<CounterState>(
                state: .init(), mutations: .init(), executor: .immediate)
            let texts = Mutex<[String]>([])
            store.computed.countTextValues.observe { text in texts.withLock { $0.append(text) } }
            store.actions.increment()  // this store
            Store<CounterState>.actions.increment()  // every store of the state
            try await store.actions.dispatch(.decrement).receipt()
            #expect(texts.withLock { $0 } == ["0", "1", "2", "1"])
        }
    }
}
