import ConfluxSimulation
import Dispatch
import Foundation
import Synchronization

/// Many seeds, on several threads.
struct Campaign: Sendable {
    /// The first seed; the others follow it.
    var first: UInt64
    /// How many seeds.
    var count: UInt64
    /// When no further seed begins.
    var deadline: Date?
    var jobs: Int
    /// What happens in every one of them.
    var fault: ClusterFault?

    /// What came of it.
    struct Result: Sendable {
        var seeds = 0
        var steps = 0
        var marks = Marks()
        /// Of the violations the one with the lowest seed.
        var violation: SimulationReport?
        var seconds = 0.0
    }

    func simulation(of seed: UInt64) -> Simulation {
        var simulation = Simulation(seed: seed)
        if let fault { simulation.plan.include(fault) }
        return simulation
    }

    /// Runs until a violation is found, the seeds are used up, or the time is over.
    func run() -> Result {
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
                    if report.violation != nil,
                        total.violation.map({ $0.seed > report.seed }) ?? true
                    {
                        total.violation = report
                    }
                    return total.violation == nil
                }
                guard goesOn else { return }
            }
        }
        var result = total.withLock { $0 }
        result.seconds = Date().timeIntervalSince(started)
        return result
    }
}
