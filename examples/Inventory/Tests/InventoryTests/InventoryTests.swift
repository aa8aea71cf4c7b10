import Conflux
import ConfluxSimulation
import ConfluxTesting
import InventoryModel
import Testing

@Suite(.ownScope, .timeLimit(.minutes(5)))
struct InventoryTests {
    @Test func `nobody gets what is not there, and nobody gets it twice`() async {
        let stock = TestStore(ModelStore(Stock())) { $0.state.snapshot.left["pen"] ?? 0 }
        await stock.send(.deliver(item: "pen", amount: 5)) { $0 = 5 }
        await stock.send(.reserve(order: "a", item: "pen", amount: 3)) { $0 = 2 }
        await stock.send(.reserve(order: "a", item: "pen", amount: 3))
        await stock.send(.reserve(order: "b", item: "pen", amount: 3), failing: .refused) { error in
            #expect(error.reason as? StockRefusal == .outOfStock("pen", left: 2))
        }
        await stock.finish()
    }

    @Test func `orders are filled once, by however many workers`() async throws {
        let (stock, orders) = (ModelStore(Stock()), ModelStore(Orders()))
        stock.dispatch(.deliver(item: "pen", amount: 5))
        for id in ["a", "b", "c"] { orders.dispatch(.place(id: id, item: "pen", amount: 2)) }
        try await withThrowingTaskGroup { group in
            for _ in 0..<4 {
                group.addTask { try await Fulfilment(stock, orders).fillOpen() }
            }
            try await group.waitForAll()
        }
        #expect(orders.open.isEmpty)
        #expect(orders.orders.values.filter { $0.status == .confirmed }.count == 2)
        #expect(stock.left["pen"] == 1 && stock.reserved.count == 2)
    }

    @Test func `the states are deterministic`() async {
        await DeterminismChecker(Stock.self).check { random in
            Bool.random(using: &random)
                ? .deliver(item: "pen", amount: .random(in: 0...9, using: &random))
                : .reserve(
                    order: "\(Int.random(in: 0...99, using: &random))", item: "pen",
                    amount: .random(in: 0...9, using: &random))
        }
        await DeterminismChecker(Orders.self).check { random in
            let id = "\(Int.random(in: 0...9, using: &random))"
            return switch Int.random(in: 0...2, using: &random) {
            case 0: .place(id: id, item: "pen", amount: 1)
            case 1: .confirm(id: id)
            default: .reject(id: id, why: "none left")
            }
        }
    }

    @Test(arguments: UInt64(1)...5)
    func `every process has the same stock, whatever breaks`(seed: UInt64) {
        let stock = SimulatedState.model(Stock.self) { random in
            random.chance(0.5)
                ? .deliver(item: "pen", amount: random.int(in: 1...9))
                : .reserve(
                    order: "\(random.int(in: 0...999))", item: "pen", amount: random.int(in: 1...9))
        }
        let report = Simulation(seed: seed, states: [stock]).run()
        #expect(report.violation == nil, "\(report)")
    }
}
