import Conflux
import ConfluxSimulation
import Synchronization
import Testing

/// Programs of which one at a time acts.
@Suite(.timeLimit(.minutes(5)))
struct LeaseHolderTests {
    /// Remembers which holders have acted, by the tokens of their leases.
    struct Till: Model {
        static let name = "till"
        var token: UInt64 = 0
        var holders = 0
        var fault: String?

        enum Action: Codable, Sendable { case act(token: UInt64) }

        mutating func apply(_ action: Action, _ context: ActionContext) {
            guard case .act(let token) = action else { return }
            if token < self.token { fault = "\(token) acted after \(self.token)" }
            if token > self.token { holders += 1 }
            self.token = max(self.token, token)
        }
    }

    final class MostHolders: Sendable { let count = Mutex(0) }

    /// Works for a while when it has the lease, and acts when the work is done. It does not look whether it still has the
    /// lease then, which would help only now and then.
    struct Cashier: SimulatedProgram {
        let isFenced: Bool
        /// How many processes have held it one after the other, at most.
        let mostHolders: MostHolders
        private var work: (lease: SimulatedLease, doneAt: Duration)?

        init(isFenced: Bool, _ mostHolders: MostHolders) {
            (self.isFenced, self.mostHolders) = (isFenced, mostHolders)
        }

        mutating func run(on process: inout SimulatedProcess) {
            if let holders = process.read(Till.self)?.value.holders {
                mostHolders.count.withLock { $0 = max($0, holders) }
            }
            guard let (lease, doneAt) = work else {
                let time = process.random.duration(in: .milliseconds(100)...(.seconds(2)))
                work = process.lease("cashier").map { ($0, process.time + time) }
                return
            }
            guard process.time >= doneAt else { return }
            work = nil
            let action = Till.Action.act(token: lease.token.rawValue)
            if isFenced {
                process.dispatch(action, to: Till.self, under: lease)
            } else {
                process.dispatch(action, to: Till.self)
            }
            if process.random.chance(0.2) { process.release("cashier") }
        }
    }

    private static func report(
        seed: UInt64, isFenced: Bool, _ mostHolders: MostHolders = MostHolders()
    ) -> SimulationReport {
        let till = SimulatedState.model(Till.self) { $0.fault }
        return Simulation(seed: seed, states: [till], lasting: .seconds(60)) { _ in
            Cashier(isFenced: isFenced, mostHolders)
        }.run()
    }

    @Test func `what is dispatched under a lease never comes after the next holder's`() {
        let mostHolders = MostHolders()
        for seed in UInt64(1)...20 {
            let report = Self.report(seed: seed, isFenced: true, mostHolders)
            #expect(report.violation == nil, "\(report)")
        }
        #expect(mostHolders.count.withLock { $0 } > 5)
    }

    @Test func `a holder that acts without its lease is found`() throws {
        let found = (1...20).lazy.compactMap { (seed: UInt64) -> Violation? in
            Self.report(seed: seed, isFenced: false).violation
        }.first
        let violation = try #require(found)
        #expect(violation.promise == "program")
        let pattern = /till\/shared at \d+, after act\(token: \d+\): \d+ acted after \d+/
        #expect(violation.message.wholeMatch(of: pattern) != nil, "\(violation)")
    }
}
