import Conflux
import ConfluxSimulation
import Testing

/// The simulator, as its users see it. `script/simulate` runs thousands of seeds.
struct SimulationTests {
    @Test func `a seed decides everything`() {
        func run(_ seed: UInt64) -> SimulationReport {
            var simulation = Simulation(seed: seed)
            simulation.plan.faultsFor = .seconds(3)
            simulation.isTracing = true
            return simulation.run()
        }
        let first = run(11)
        #expect(!first.trace.isEmpty)
        #expect(run(11).trace == first.trace)
        #expect(run(12).trace != first.trace)
    }

    @Test(arguments: UInt64(1)...8)
    func `every promise is kept, whatever fails`(seed: UInt64) {
        let report = Simulation(seed: seed).run()
        #expect(report.violation == nil, "\(report)")
    }

    @Test(arguments: UInt64(1)...6)
    func `sequencers that share a log keep every promise`(seed: UInt64) {
        let report = Simulation(seed: seed, world: .standbys).run()
        #expect(report.violation == nil, "\(report)")
        #expect((report.marks.counts[.takeOverTried] ?? 0) > 0)
    }

    /// These worlds once revealed snapshots that replaced others, votes that were late or included skipped
    /// entries, and loads that never ended.
    @Test(arguments: [UInt64](arrayLiteral: 19, 84, 189, 496, 603, 1_958, 2_014))
    func `a violation found before is not found again`(seed: UInt64) {
        let report = Simulation(seed: seed, world: .mixed).run()
        #expect(report.violation == nil, "\(report)")
    }

    @Test func `a world without faults needs no recovery`() {
        let report = Simulation(seed: 5, plan: .calm).run()
        #expect(report.violation == nil, "\(report)")
        let counts = report.marks.counts
        #expect((counts[.receipt] ?? 0) > 100)
        for mark in [
            Mark.feedLost, .connectionBroken, .unknownOutcome, .historyLost, .deduplicated,
            .expectedGap,
        ] {
            #expect(counts[mark] == nil, "\(mark)")
        }
    }

    /// A user's own model, in a world with faults.
    struct Stock: Model {
        static let name = "stock"
        var left = 0

        enum Action: Codable, Sendable { case add(amount: Int), take(amount: Int) }
        struct OutOfStock: Error {}

        func check(_ action: Action, _ context: ActionContext) throws {
            if case .take(let amount) = action, amount > left { throw OutOfStock() }
        }

        mutating func apply(_ action: Action, _ context: ActionContext) {
            switch action {
            case .add(let amount): left += amount
            case .take(let amount): left -= amount
            }
        }
    }

    private static let stock = SimulatedState.model(Stock.self) { random in
        random.chance(0.5) ? .add(amount: random.int(in: 1...9)) : .take(amount: 3)
    }

    /// In these worlds, refusals that depend on the state were once reported wrongly: one store refused
    /// an action for the whole state while another one caught up with it.
    @Test(arguments: [UInt64](arrayLiteral: 87))
    func `a user's model keeps the promises that were broken once`(seed: UInt64) {
        let report = Simulation(seed: seed, states: [Self.stock], world: .mixed).run()
        #expect(report.violation == nil, "\(report)")
    }

    @Test(arguments: UInt64(1)...4)
    func `a user's model keeps every promise`(seed: UInt64) {
        let report = Simulation(seed: seed, states: [Self.stock]).run()
        #expect(report.violation == nil, "\(report)")
    }

    @Test func `a user's model keeps every promise in worlds of fresh seeds`() {
        let first = UInt64.random(in: 0...1 << 48)
        print("user states: seeds from \(first)")
        for seed in first..<first + 6 {
            let report = Simulation(seed: seed, states: [Self.stock]).run()
            #expect(report.violation == nil, "\(report)")
        }
    }

    /// A state that is a class, in the style of VueFlux.
    final class Tally: ReplicatedState, @unchecked Sendable {
        static let name = "tally"
        var count = 0

        enum Action: Codable, Sendable { case up, down }

        typealias Mutations = TallyMutations

        static var mutations: TallyMutations { TallyMutations() }
        var snapshot: Int {
            get { count }
            set { count = newValue }
        }
    }

    @Test func `a state as a class keeps every promise, beside others`() {
        let tally = SimulatedState.replicated(Tally.self, instances: 1) { _, random in
            random.chance(0.6) ? .up : .down
        }
        for seed in UInt64(1)...2 {
            let report = Simulation(seed: seed, states: [tally, .journal]).run()
            #expect(report.violation == nil, "\(report)")
        }
    }

    /// A reducer whose result differs from process to process.
    struct Careless: Model {
        static let name = "careless"
        var numbers: [Int] = []

        enum Action: Codable, Sendable { case draw }

        mutating func apply(_ action: Action, _ context: ActionContext) {
            numbers = [.random(in: 0...1_000_000)]
        }
    }

    @Test func `a reducer that is not deterministic is found`() {
        let careless = SimulatedState.model(Careless.self) { _ in .draw }
        let report = Simulation(seed: 1, states: [careless], plan: .calm).run()
        #expect(report.violation?.promise == "P1", "\(report)")
        #expect(report.description.contains("careless/"))
    }

    @Test func `a world that never recovers is found`() {
        var plan = SimulationPlan.calm
        plan.recoveryMax = .milliseconds(1)
        plan.faultsFor = .seconds(1)
        plan.pauseEvery = .milliseconds(100)
        let reports = (UInt64(1)...20).map { Simulation(seed: $0, plan: plan).run() }
        #expect(reports.contains { $0.violation?.promise == "liveness" })
    }
}

struct TallyMutations: Mutations {
    func commit(action: SimulationTests.Tally.Action, state: SimulationTests.Tally) {
        state.count += action == .up ? 1 : -1
    }
}
