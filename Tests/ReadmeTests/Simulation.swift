import ConfluxSimulation
import Testing

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
}
