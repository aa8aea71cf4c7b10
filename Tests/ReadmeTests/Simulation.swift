import Conflux
import ConfluxSimulation
import Testing

/// A hundred coins in three accounts.
struct Accounts: Model {
    static let name = "accounts"
    var coins = ["a": 100, "b": 0, "c": 0]
    var total: Int { coins.values.reduce(0, +) }
    enum Action: Codable, Sendable { case pay(coins: Int, from: String, to: String) }
    struct TooFew: Error {}
    func check(_ action: Action, _ context: ActionContext) throws {
        guard case .pay(let count, let giver, _) = action else { return }
        if count > coins[giver] ?? 0 { throw TooFew() }
    }
    mutating func apply(_ action: Action, _ context: ActionContext) {
        guard case .pay(let count, let giver, let taker) = action else { return }
        coins[giver, default: 0] -= count
        coins[taker, default: 0] += count
    }
}

/// Orders, and whether the stock has what they need.
struct Orders: Model {
    static let name = "orders"
    var open: [Int] = []
    var placed = 0
    enum Action: Codable, Sendable { case place, ship(order: Int) }
    mutating func apply(_ action: Action, _ context: ActionContext) {
        switch action {
        case .place:
            placed += 1
            open.append(placed)
        case .ship(let order): open.removeAll { $0 == order }
        }
    }
}

struct Parcels: Model {
    static let name = "parcels"
    var sent: [Int] = []
    enum Action: Codable, Sendable { case send(order: Int) }
    mutating func apply(_ action: Action, _ context: ActionContext) {
        guard case .send(let order) = action else { return }
        sent.append(order)
    }
}

struct Fulfilment: SimulatedProgram {
    mutating func run(on process: inout SimulatedProcess) {
        if process.random.chance(0.1) { process.dispatch(.place, to: Orders.self) }
        guard let lease = process.lease("fulfilment") else { return }
        _ = try? process.transaction { tx in
            tx.require(lease)
            guard let order = try tx.read(Orders.self).open.first else { return }
            try tx.dispatch(.send(order: order), to: Parcels.self)
            try tx.dispatch(.ship(order: order), to: Orders.self)
        }
    }
}

@Suite(.timeLimit(.minutes(5)))
struct ReadmeSimulation {
    @Test(arguments: UInt64(1)...10)
    func `each order is sent once`(seed: UInt64) {
        let parcels = SimulatedState.model(
            Parcels.self,
            invariant: { Set($0.sent).count == $0.sent.count ? nil : "an order was sent twice" })
        let states = [.model(Orders.self), parcels]
        let report = Simulation(seed: seed, states: states, lasting: .seconds(60)) { _ in
            Fulfilment()
        }.run()
        #expect(report.violation == nil, "\(report)")
    }

    @Test(arguments: UInt64(1)...10)
    func `stock is the same everywhere`(seed: UInt64) {
        let stock = SimulatedState.model(Stock.self) { random in
            .add(amount: random.int(in: -5...9))
        }
        let report = Simulation(seed: seed, states: [stock]).run()
        #expect(report.violation == nil, "\(report)")
    }

    @Test(arguments: UInt64(1)...10)
    func `no coin is lost`(seed: UInt64) {
        let accounts = SimulatedState.model(
            Accounts.self,
            invariant: { $0.total == 100 ? nil : "\($0.total) coins, and not 100" }
        ) { random, accounts in
            let rich = accounts.coins.filter { $0.value > 0 }.keys.sorted()
            return .pay(coins: random.int(in: 1...9), from: random.pick(rich), to: "c")
        }
        let report = Simulation(seed: seed, states: [accounts], lasting: .seconds(60)).run()
        #expect(report.violation == nil, "\(report)")
    }
}
