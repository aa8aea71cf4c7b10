import Conflux
import ConfluxTesting
import Testing

enum FromComposableArchitecture {
    struct Counter: Model, Equatable {
        static let name = "counter"
        var count = 0
        var fact: String?

        enum Action: Codable, Sendable, Equatable {
            case increment
            case factArrived(String)
        }

        mutating func apply(_ action: Action, _ context: ActionContext) {
            switch action {
            case .increment:
                count += 1
                fact = nil
            case .factArrived(let text): fact = text
            }
        }
    }

    struct Facts: Sendable {
        var fact: @Sendable (Int) async throws -> String
    }

    /// What a feature does besides its state: it gets its dependencies as values.
    struct Feature: Sendable {
        let store: ModelStore<Counter>
        let facts: Facts

        func askForFact() async throws {
            let text = try await facts.fact(store.count)
            try await store.dispatch(.factArrived(text)).receipt()
        }
    }

    /// A feature that contains another one.
    struct TwoCounters: Model, Equatable {
        static let name = "two-counters"
        var left = Counter()
        var right = Counter()

        enum Action: Codable, Sendable, Equatable {
            case left(Counter.Action)
            case right(Counter.Action)
        }

        mutating func apply(_ action: Action, _ context: ActionContext) {
            switch action {
            case .left(let action): left.apply(action, context)
            case .right(let action): right.apply(action, context)
            }
        }
    }
}

@Suite(.ownScope, .timeLimit(.minutes(5)))
struct ComingFromComposableArchitecture {
    typealias Counter = FromComposableArchitecture.Counter
    typealias Feature = FromComposableArchitecture.Feature
    typealias Facts = FromComposableArchitecture.Facts

    @Test func `a test states every change`() async throws {
        let counter = TestStore(Counter())
        await counter.send(.increment) { $0.count = 1 }
        let feature = Feature(store: counter.store, facts: Facts { "\($0) is a number" })
        try await feature.askForFact()
        await counter.receive(.factArrived("1 is a number")) { $0.fact = "1 is a number" }
        await counter.finish()
    }

    @Test func `a feature contains another one`() async {
        let two = TestStore(FromComposableArchitecture.TwoCounters())
        await two.send(.left(.increment)) { $0.left.count = 1 }
        await two.finish()
    }
}
