import Testing

@testable import ConfluxSimulation

/// What the simulation must not wait for, since nothing in the world will bring it about.
struct LivenessTests {
    @Test(arguments: UInt64(1)...4)
    func `nobody waits for a snapshot whose encodings no node has room for`(seed: UInt64) {
        var plan = SimulationPlan.calm
        plan.keeping.encodingsBytesMax = 50
        let report = Simulation(seed: seed, plan: plan).run()
        #expect(report.violation == nil, "\(report)")
        #expect(report.marks.counts[.snapshotTaken] == nil)
    }

    @Test(arguments: UInt64(1)...12)
    func `a store that stopped is not waited for while it is frozen`(seed: UInt64) {
        var plan = SimulationPlan.calm
        plan.poisonEvery = .milliseconds(700)
        plan.freezeEvery = .milliseconds(900)
        let report = Simulation(seed: seed, plan: plan).run()
        #expect(report.violation == nil, "\(report)")
    }
}
