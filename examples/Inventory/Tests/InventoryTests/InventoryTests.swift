import Conflux
import ConfluxSimulation
import ConfluxTesting
import InventoryModel
import Testing

@Suite(.ownScope, .timeLimit(.minutes(5)))
struct InventoryTests {
    @Test func `nobody gets what is not there`() async {
        let stock = TestStore(ModelStore(Stock())) { $0.state.snapshot.left["pen"] ?? 0 }
        await stock.send(.deliver(item: "pen", amount: 5)) { $0 = 5 }
        await stock.send(.take(item: "pen", amount: 3)) { $0 = 2 }
        await stock.send(.take(item: "pen", amount: 3), failing: .refused) { error in
            #expect(error.reason as? StockRefusal == .outOfStock("pen", left: 2))
        }
        await stock.finish()
    }

    @Test func `an id belongs to one order`() async {
        let (pen, two) = (Order(item: "pen", amount: 1), Order(item: "pen", amount: 2))
        let orders = TestStore(ModelStore(Orders())) { $0.state.snapshot.orders }
        await orders.send(.record(id: "a", order: pen)) { $0 = ["a": pen] }
        await orders.send(.record(id: "a", order: two), failing: .refused) { error in
            #expect(error.reason as? IDTaken == IDTaken(id: "a"))
        }
        await orders.finish()
    }

    @Test func `an order is packed once`() async {
        let orders = TestStore(ModelStore(Orders())) { $0.state.snapshot.unpacked }
        await orders.send(.record(id: "b", order: Order(item: "pen", amount: 1))) { $0 = ["b"] }
        await orders.send(.record(id: "a", order: Order(item: "pen", amount: 1))) {
            $0 = ["b", "a"]
        }
        await orders.send(.pack(id: "b")) { $0 = ["a"] }
        await orders.send(.pack(id: "b"), failing: .refused) { error in
            #expect(error.reason as? NothingToPack == NothingToPack(id: "b"))
        }
        await orders.finish()
    }

    @Test func `the states are deterministic`() async {
        await DeterminismChecker(Stock.self).check { random in
            let amount = Int.random(in: 0...9, using: &random)
            return Bool.random(using: &random)
                ? .deliver(item: "pen", amount: amount) : .take(item: "pen", amount: amount)
        }
        await DeterminismChecker(Orders.self).check { random in
            let id = "\(Int.random(in: 0...99, using: &random))"
            return Bool.random(using: &random)
                ? .record(id: id, order: Order(item: "pen", amount: 1)) : .pack(id: id)
        }
    }

    @Test(arguments: UInt64(1)...5)
    func `every process has the same stock, whatever breaks`(seed: UInt64) {
        let stock = SimulatedState.model(
            Stock.self,
            invariant: { $0.left.values.allSatisfy { $0 >= 0 } ? nil : "oversold: \($0.left)" }
        ) { random, _ in
            let amount = random.int(in: 1...9)
            return random.chance(0.5)
                ? .deliver(item: "pen", amount: amount) : .take(item: "pen", amount: amount)
        }
        let report = Simulation(seed: seed, states: [stock]).run()
        #expect(report.violation == nil, "\(report)")
    }
}
