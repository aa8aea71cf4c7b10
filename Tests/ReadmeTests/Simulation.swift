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

@Suite(.timeLimit(.minutes(5)))
struct ReadmeSimulation {
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
