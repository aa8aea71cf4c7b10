import Conflux
import ConfluxSimulation
import Synchronization
import Testing

/// What a program gets of its process.
@Suite(.timeLimit(.minutes(5)))
struct SimulatedProcessTests {
    /// A number that is set, and how often it was.
    struct Counter: Model {
        static let name = "counter"
        var (value, changes) = (0, 0)

        enum Action: Codable, Sendable { case set(Int), refuse }
        struct Refused: Error {}

        func check(_ action: Action, _ context: ActionContext) throws {
            if case .refuse = action { throw Refused() }
        }

        mutating func apply(_ action: Action, _ context: ActionContext) {
            guard case .set(let value) = action else { return }
            self.value = value
            changes += 1
        }

        /// What is wrong if each change should add one.
        var fault: String? { value == changes ? nil : "\(value) after \(changes) changes" }
    }

    /// A program that is a function.
    struct Program<Memory>: SimulatedProgram {
        var memory: Memory
        let body: @Sendable (inout Memory, inout SimulatedProcess) -> Void

        init(
            _ memory: Memory,
            _ body: @escaping @Sendable (inout Memory, inout SimulatedProcess) -> Void
        ) {
            (self.memory, self.body) = (memory, body)
        }

        mutating func run(on process: inout SimulatedProcess) { body(&memory, &process) }
    }

    private static func count(seed: UInt64, isConditional: Bool) -> SimulationReport {
        let counter = SimulatedState.model(Counter.self) { $0.fault }
        return Simulation(seed: seed, states: [counter], lasting: .seconds(20)) { _ in
            Program(()) { _, process in
                guard let (counter, version) = process.read(Counter.self) else { return }
                process.dispatch(
                    .set(counter.value + 1), to: Counter.self,
                    ifUnchangedSince: isConditional ? version : nil)
            }
        }.run()
    }

    @Test(arguments: UInt64(1)...10)
    func `a program that reads and writes on condition loses no update`(seed: UInt64) {
        let report = Self.count(seed: seed, isConditional: true)
        #expect(report.violation == nil, "\(report)")
    }

    @Test func `a program that reads and writes without a condition is found`() {
        let violations = (1...20).lazy.map { Self.count(seed: $0, isConditional: false).violation }
        #expect(violations.contains { $0?.promise == "program" })
    }

    @Test(arguments: UInt64(1)...6)
    func `a program loses its memory in a crash, and another one goes on`(seed: UInt64) {
        struct Start: Hashable { var place, number: Int }
        let starts = Mutex<[Start]>([])
        var plan = SimulationPlan.calm
        plan.nodes = 2
        plan.nodeCrashEvery = .seconds(2)
        let report = Simulation(
            seed: seed, states: [.model(Counter.self)], plan: plan, lasting: .seconds(30)
        ) { _ in
            Program(false) { hasBegun, process in
                guard !hasBegun else { return }
                hasBegun = true
                starts.withLock {
                    $0.append(Start(place: process.place, number: process.number))
                }
            }
        }.run()
        #expect(report.violation == nil, "\(report)")
        let all = starts.withLock { $0 }
        #expect(Set(all.map(\.place)) == [0, 1])
        #expect(all.count > 4)
        #expect(Set(all.map(\.number)).count == all.count)
    }

    @Test func `a program hears what came of its dispatches`() {
        enum Outcome: Hashable { case receipt, error(DispatchError.Code) }
        let heard = Mutex<Set<Outcome>>([])
        let report = Simulation(
            seed: 1, states: [.model(Counter.self)], plan: .calm, lasting: .seconds(10)
        ) { _ in
            Program([SimulatedDispatch]()) { open, process in
                open.removeAll { dispatch in
                    switch process.outcome(of: dispatch) {
                    case .success: heard.withLock { _ = $0.insert(.receipt) }
                    case .failure(let error): heard.withLock { _ = $0.insert(.error(error.code)) }
                    case nil: return false
                    }
                    return true
                }
                guard open.isEmpty, let (_, version) = process.read(Counter.self) else { return }
                open = [
                    process.dispatch(.set(1), to: Counter.self, ifUnchangedSince: version),
                    process.dispatch(.set(2), to: Counter.self, ifUnchangedSince: version),
                    process.dispatch(.refuse, to: Counter.self),
                ]
                guard let lease = process.lease("counter") else { return }
                process.release("counter")
                open.append(process.dispatch(.set(3), to: Counter.self, under: lease))
            }
        }.run()
        #expect(report.violation == nil, "\(report)")
        let all: Set<Outcome> = [
            .receipt, .error(.conflict), .error(.refused), .error(.leaseLost),
        ]
        #expect(heard.withLock { $0 }.isSuperset(of: all))
    }

    @Test func `a fault that a program reports names the process and the time`() throws {
        let report = Simulation(seed: 1, states: [.model(Counter.self)], plan: .calm) { place in
            Program(()) { _, process in
                if process.time > .seconds(2), place == 1 { process.fail("It is late.") }
            }
        }.run()
        let violation = try #require(report.violation)
        #expect(violation.promise == "program")
        let pattern = /node 1 \(process \d+\) at 2\.\d+ s: It is late\./
        #expect(violation.message.wholeMatch(of: pattern) != nil, "\(violation)")
    }

    @Test(arguments: UInt64(1)...6)
    func `a transaction over two stores is taken as a whole`(seed: UInt64) {
        let states = [SimulatedState.model(Counter.self, instances: 2)]
        let report = Simulation(seed: seed, states: states, lasting: .seconds(20)) { _ in
            Program(()) { _, process in
                let difference = try? process.transaction { tx in
                    let (one, other) = (
                        try tx.read(Counter.self), try tx.read(Counter.self, named: "1")
                    )
                    try tx.dispatch(.set(one.value + 1), to: Counter.self)
                    try tx.dispatch(.set(other.value - 1), to: Counter.self, named: "1")
                    return one.value + other.value
                }.value
                if let difference, difference != 0 { process.fail("\(difference) apart") }
            }
        }.run()
        #expect(report.violation == nil, "\(report)")
        #expect((report.marks.counts[.transactionHeld] ?? 0) > 10)
    }
}
