import Conflux
import ConfluxTesting
import Testing

@Suite(.timeLimit(.minutes(5)), .failsAsShown)
struct ReadmeFailure {
    @Test(.ownScope) func `what is taken is gone`() async {
        let stock = TestStore(Stock())
        await stock.send(.add(amount: 5)) { $0.left = 5 }
        await stock.send(.add(amount: -2)) { $0.left = 4 }
        await stock.finish()
    }
}

/// Is only compiled: it names a file of production.
func agreeWithProduction() throws {
    let report = try replay("Histories/may.recording", with: .model(Stock.self))
    #expect(report.difference == nil, "\(report)")
}

@Suite(.timeLimit(.minutes(5)))
struct ReadmeTestKit {
    struct Dice: Model, Equatable {
        static let name = "dice"
        var last = 0
        enum Action: Codable, Sendable, Equatable { case roll }
        mutating func apply(_ action: Action, _ context: ActionContext) {
            var random = context.random
            last = Int.random(in: 1...6, using: &random)
        }
    }

    struct Seat: Model, Equatable {
        static let name = "seat"
        var reservedAt: Timestamp?
        enum Action: Codable, Sendable, Equatable { case reserve }
        struct Taken: Error {}
        func check(_ action: Action, _ context: ActionContext) throws {
            if let reservedAt, context.timestamp - reservedAt <= .seconds(30) { throw Taken() }
        }
        mutating func apply(_ action: Action, _ context: ActionContext) {
            reservedAt = context.timestamp
        }
    }

    @Test(.ownScope) func `a seat is reserved for half a minute`() async {
        let seat = TestStore(Seat())
        seat.time = Timestamp(0)
        await seat.send(.reserve) { $0.reservedAt = Timestamp(0) }
        await seat.send(.reserve, failing: .refused)
        seat.advance(by: .seconds(31))
        await seat.send(.reserve) { $0.reservedAt = seat.time }
        await seat.finish()
    }

    final class Ticker: State, @unchecked Sendable {
        enum Action: Sendable, Equatable { case add(amount: Int) }
        struct Mutations: Conflux.Mutations {
            func commit(action: Action, state: Ticker) {
                switch action {
                case .add(let amount): state.count += amount
                }
                if state.count >= 100 { state.milestones.send(value: 100) }
            }
        }
        fileprivate var count = 0
        fileprivate let milestones = Sink<Int>()
    }

    func testWhatIsTakenIsGone() async {
        await Scope().run {
            let stock = TestStore(Stock())
            await stock.send(.add(amount: 5)) { $0.left = 5 }
            await stock.finish()
        }
    }

    @Test func `with XCTest it is the same`() async {
        await testWhatIsTakenIsGone()
    }

    @Test(.ownScope) func `actions that the test does not send are received`() async {
        let (stock, dice) = (TestStore(Stock()), TestStore(Dice()))
        let store = Store<Ticker>(state: Ticker(), mutations: .init(), executor: .immediate)
        let counter = TestStore(store) { $0.count }
        await stock.send(.add(amount: 3)) { $0.left = 3 }
        stock.store.dispatch(.add(amount: 1))

        await stock.receive(.add(amount: 1)) { $0.left = 4 }  // an observer dispatched it
        await dice.send(.roll) { dice, context in
            var random = context.random
            dice.last = Int.random(in: 1...6, using: &random)
        }
        await counter.hear(store.computed.milestones)
        await counter.send(.add(amount: 100)) { $0 = 100 }
        await counter.receive(activity: 100)
        await stock.finish()
        await dice.finish()
        await counter.finish()
    }
}

extension Computed where State == ReadmeTestKit.Ticker {
    var count: Int { state.count }
    var milestones: Signal<Int> { state.milestones.signal }
}

@Suite(.timeLimit(.minutes(5)))
struct ReadmeDeterminism {
    @Test func `stock is deterministic`() async {
        await DeterminismChecker(Stock.self).check { random in
            .add(amount: .random(in: 1...9, using: &random))
        }
    }
}

/// Expects a test to fail, with what the page shows.
struct FailsAsShown: TestTrait, SuiteTrait, TestScoping {
    var isRecursive: Bool { true }

    func provideScope(
        for test: Test, testCase: Test.Case?,
        performing function: @Sendable () async throws -> Void
    ) async throws {
        if testCase == nil { return try await function() }
        try await withKnownIssue {
            try await function()
        } matching: { issue in
            let message = issue.comments.map(\.rawValue).joined(separator: "\n")
            return ["`.add(amount: -2)`", "-   left: 4,", "+   left: 3,"].allSatisfy {
                message.contains($0)
            }
        }
    }
}

extension Trait where Self == FailsAsShown {
    static var failsAsShown: FailsAsShown { FailsAsShown() }
}
