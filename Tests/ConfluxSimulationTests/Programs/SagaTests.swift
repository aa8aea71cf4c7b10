import Conflux
import ConfluxSimulation
import Testing

/// Programs that move coins from one store to another, in steps.
@Suite(.timeLimit(.minutes(5)))
struct SagaTests {
    /// Coins, and those that were sent and may not have arrived yet.
    struct Checking: Model {
        static let name = "checking"
        var coins = 1_000
        var next = 0
        var underWay: [Int: Transfer] = [:]

        struct Transfer: Codable, Sendable {
            var coins: Int
            /// The place of the process that has to end it.
            var place: Int
        }
        enum Action: Codable, Sendable { case send(Transfer), end(number: Int) }
        struct TooFew: Error {}

        func check(_ action: Action, _ context: ActionContext) throws {
            if case .send(let transfer) = action, transfer.coins > coins { throw TooFew() }
        }

        mutating func apply(_ action: Action, _ context: ActionContext) {
            switch action {
            case .send(let transfer):
                coins -= transfer.coins
                underWay[next] = transfer
                next += 1
            case .end(let number): underWay[number] = nil
            }
        }
    }

    struct Savings: Model {
        static let name = "savings"
        var coins = 0
        var received: Set<Int> = []

        enum Action: Codable, Sendable { case receive(coins: Int, number: Int, once: Bool) }
        struct Received: Error {}

        func check(_ action: Action, _ context: ActionContext) throws {
            guard case .receive(_, let number, let once) = action else { return }
            if once, received.contains(number) { throw Received() }
        }

        mutating func apply(_ action: Action, _ context: ActionContext) {
            guard case .receive(let coins, let number, _) = action else { return }
            self.coins += coins
            received.insert(number)
        }
    }

    /// Sends coins, and ends the transfers of its place: also those that a former process there has begun.
    struct Transfers: SimulatedProgram {
        var isIdempotent = true
        /// The transfers whose coins it has sent on.
        private var sent: [Int: SimulatedDispatch] = [:]

        init(isIdempotent: Bool = true) { self.isIdempotent = isIdempotent }

        mutating func run(on process: inout SimulatedProcess) {
            guard let checking = process.read(Checking.self)?.value else { return }
            for (number, transfer) in checking.underWay.sorted(by: { $0.key < $1.key })
            where transfer.place == process.place {
                goOn(with: transfer, number, on: &process)
            }
            sent = sent.filter { checking.underWay[$0.key] != nil }
            if process.random.chance(0.3),
                !checking.underWay.values.contains(where: { $0.place == process.place })
            {
                let transfer = Checking.Transfer(
                    coins: process.random.int(in: 1...3), place: process.place)
                process.dispatch(.send(transfer), to: Checking.self)
            }
        }

        private mutating func goOn(
            with transfer: Checking.Transfer, _ number: Int, on process: inout SimulatedProcess
        ) {
            guard let dispatch = sent[number] else {
                sent[number] = process.dispatch(
                    .receive(coins: transfer.coins, number: number, once: isIdempotent),
                    to: Savings.self)
                return
            }
            switch process.outcome(of: dispatch) {
            case nil: break
            case .success: process.dispatch(.end(number: number), to: Checking.self)
            case .failure(let error) where error.code == .refused:
                // It has arrived before.
                process.dispatch(.end(number: number), to: Checking.self)
            case .failure: sent[number] = nil
            }
        }
    }

    private static func simulation(seed: UInt64, isIdempotent: Bool = true) -> Simulation {
        Simulation(
            seed: seed, states: [.model(Checking.self), .model(Savings.self)],
            lasting: .seconds(30)
        ) { _ in Audited(program: Transfers(isIdempotent: isIdempotent)) }
    }

    /// A program that also looks at both stores at one place of the log.
    struct Audited: SimulatedProgram {
        var program: any SimulatedProgram

        mutating func run(on process: inout SimulatedProcess) {
            program.run(on: &process)
            let total = try? process.transaction { tx in
                let (checking, savings) = (try tx.read(Checking.self), try tx.read(Savings.self))
                let underWay = checking.underWay.filter { !savings.received.contains($0.key) }
                return checking.coins + savings.coins
                    + underWay.values.reduce(0) { $0 + $1.coins }
            }.value
            if let total, total != 1_000 { process.fail("\(total) coins of 1000") }
        }
    }

    @Test(arguments: UInt64(1)...20)
    func `a saga with idempotent steps keeps all coins`(seed: UInt64) {
        let report = Self.simulation(seed: seed).run()
        #expect(report.violation == nil, "\(report)")
    }

    @Test func `a saga that repeats a step is found`() throws {
        let found = (1...20).lazy.compactMap { (seed: UInt64) -> Violation? in
            Self.simulation(seed: seed, isIdempotent: false).run().violation
        }.first
        let violation = try #require(found)
        #expect(violation.promise == "program")
        let pattern = /node \d \(process \d+\) at \d+\.\d+ s: \d+ coins of 1000/
        #expect(violation.message.wholeMatch(of: pattern) != nil, "\(violation)")
    }

    @Test(arguments: UInt64(1)...3)
    func `a seed decides what programs do`(seed: UInt64) {
        var simulation = Self.simulation(seed: seed)
        simulation.isTracing = true
        let trace = simulation.run().trace
        #expect(trace.contains { $0.contains("process") })
        #expect(simulation.run().trace == trace)
    }
}
