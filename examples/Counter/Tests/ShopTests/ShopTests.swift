import Conflux
import ConfluxTesting
import Shop
import Testing

/// Tests of the states, without processes and without a network.
@Suite(.ownScope)
struct ShopTests {
    @Test func `nobody takes what is not there`() async {
        let stock = TestStore(Stock())
        await stock.send(.add(amount: 5)) { $0.left = 5 }
        await stock.send(.take(amount: 3)) { $0.left = 2 }
        await stock.send(.take(amount: 3), failing: .refused) { error in
            #expect((error.reason as? OutOfStock)?.left == 2)
        }
        await stock.finish()
    }

    @Test func `who leaves has been there`() async {
        let store = Store<VisitState>(
            state: VisitState(), mutations: VisitState.mutations, executor: .immediate)
        let visits = TestStore(store) { $0.state.snapshot }
        await visits.send(.enter) {
            $0.inside = 1
            $0.total = 1
        }
        await visits.send(.leave) { $0.inside = 0 }
        await visits.send(.leave)
        await visits.finish()
    }

    @Test func `how many are inside is told, now and whenever that changes`() async {
        let store = Store<VisitState>(
            state: VisitState(), mutations: VisitState.mutations, executor: .immediate)
        let visits = TestStore(store) { $0.inside }
        await visits.hear(store.computed.insideValues)
        await visits.receive(activity: 0)
        await visits.send(.enter) { $0 = 1 }
        await visits.receive(activity: 1)
        await visits.finish()
    }

    @Test func `every process comes to the same`() async {
        await DeterminismChecker(Stock.self).check { random in
            Bool.random(using: &random)
                ? .add(amount: .random(in: 1...9, using: &random))
                : .take(amount: .random(in: 1...9, using: &random))
        }
        await DeterminismChecker(VisitState.self).check([.enter, .enter, .leave, .leave, .leave])
    }
}
