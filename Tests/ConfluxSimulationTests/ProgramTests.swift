import Conflux
import ConfluxSimulation
import Synchronization
import Testing

/// What a program adds to a simulation: its own invariant, actions that depend on the state, and more time.
@Suite(.timeLimit(.minutes(5)))
struct ProgramTests {
    /// Coins in a till. Each tenth payment loses one.
    struct Till: Model {
        static let name = "till"
        var (coins, paid, payments) = (0, 0, 0)

        enum Action: Codable, Sendable { case pay(coins: Int) }

        mutating func apply(_ action: Action, _ context: ActionContext) {
            guard case .pay(let coins) = action else { return }
            payments += 1
            paid += coins
            self.coins += payments == 10 ? coins - 1 : coins
        }
    }

    @Test(arguments: UInt64(1)...3)
    func `a broken invariant of the program is found, with the action and its place`(
        seed: UInt64
    ) throws {
        let till = SimulatedState.model(
            Till.self, instances: 1,
            invariant: { $0.coins == $0.paid ? nil : "\($0.coins) coins, and \($0.paid) were paid" }
        ) { random in .pay(coins: random.int(in: 2...9)) }
        let report = Simulation(seed: seed, states: [till], plan: .calm).run()
        let violation = try #require(report.violation)
        #expect(violation.promise == "program")
        let pattern = /till\/shared at \d+, after pay\(coins: \d\): \d+ coins, and \d+ were paid/
        #expect(violation.message.wholeMatch(of: pattern) != nil, "\(report)")
    }

    /// Something that is reserved for half a minute.
    struct Seat: Model {
        static let name = "seat"
        var reservedAt: Timestamp?
        var reservations = 0

        enum Action: Codable, Sendable { case reserve(number: Int) }
        struct Taken: Error {}

        func check(_ action: Action, _ context: ActionContext) throws {
            if let reservedAt, context.timestamp - reservedAt <= .seconds(30) { throw Taken() }
        }

        mutating func apply(_ action: Action, _ context: ActionContext) {
            reservedAt = context.timestamp
            reservations += 1
        }
    }

    @Test(arguments: UInt64(1)...3)
    func `actions depend on the present state, and rules of time come to bear`(seed: UInt64) {
        let seen = Mutex<Set<Int>>([])
        let seat = SimulatedState.model(Seat.self, instances: 1) { _, seat in
            seen.withLock { _ = $0.insert(seat.reservations) }
            return .reserve(number: seat.reservations)
        }
        let simulation = Simulation(
            seed: seed, states: [seat], plan: .calm, lasting: .seconds(120))
        let report = simulation.run()
        #expect(report.violation == nil, "\(report)")
        #expect(report.simulated >= .seconds(120))
        #expect(seen.withLock { $0 }.isSuperset(of: 0...3))
    }

    @Test func `a long simulation under faults ends, too`() {
        let till = SimulatedState.model(Till.self) { random in .pay(coins: random.int(in: 2...9)) }
        for seed in UInt64(1)...3 {
            let report = Simulation(seed: seed, states: [till], lasting: .seconds(90)).run()
            #expect(report.violation == nil, "\(report)")
            #expect(report.simulated >= .seconds(90))
        }
    }
}
