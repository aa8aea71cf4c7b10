import ConfluxSimulation
import Dispatch
import Foundation
import Synchronization

/// Runs many seeds on several threads.
struct Campaign: Sendable {
    /// The first seed; the others follow it.
    var first: UInt64
    /// The number of seeds.
    var count: UInt64
    /// No further seed begins after this time.
    var deadline: Date?
    var jobs: Int
    /// What the nodes host.
    var states = SampleStates.journal
    /// The shape of all worlds; by default each seed has its own.
    var world: SimulationWorld?
    /// A fault that happens in every seed.
    var fault: ClusterFault?
    /// The bound of each log in bytes.
    var logLimitBytes: UInt64?
    /// Whether the first violation ends the campaign.
    var endsWithFirst = false

    /// The result of a campaign.
    struct Result: Sendable {
        var seeds = 0
        var steps = 0
        var marks = Marks()
        var findings = Findings()
        var seconds = 0.0
    }

    func simulation(of seed: UInt64) -> Simulation {
        var simulation = Simulation(seed: seed, states: states.states, world: world)
        if let fault { simulation.plan.include(fault) }
        if let logLimitBytes { simulation.plan.boundLog(to: logLimitBytes) }
        return simulation
    }

    /// Runs seeds until there are none left, or the time is over.
    ///
    /// - Parameter tell: Called with each violation as it is found, one at a time.
    /// - Returns: What it found.
    func run(tell: @Sendable (SimulationReport) -> Void = { _ in }) -> Result {
        let started = Date()
        let next = Atomic<UInt64>(0)
        let total = Mutex(Result())
        DispatchQueue.concurrentPerform(iterations: jobs) { _ in
            while deadline.map({ Date() < $0 }) ?? true {
                let index = next.wrappingAdd(1, ordering: .relaxed).oldValue
                guard index < count else { return }
                let report = simulation(of: first &+ index).run()
                let goesOn = total.withLock { total in
                    total.seeds += 1
                    total.steps += report.steps
                    total.marks.add(report.marks)
                    if report.violation != nil {
                        tell(report)
                        total.findings.add(report)
                    }
                    return !endsWithFirst || total.findings.isEmpty
                }
                guard goesOn else { return }
            }
        }
        var result = total.withLock { $0 }
        result.seconds = Date().timeIntervalSince(started)
        return result
    }
}

extension Campaign {
    /// The options that repeat a seed exactly.
    var options: String {
        (states == .journal ? "" : " --states \(states)") + (world.map { " --world \($0)" } ?? "")
            + (fault.map { " --with \($0)" } ?? "")
            + (logLimitBytes.map { " --log-limit \($0)" } ?? "")
    }
}
