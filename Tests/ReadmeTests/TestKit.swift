import ConfluxTesting
import Testing

@Suite(.timeLimit(.minutes(5)), .failsAsShown)
struct ReadmeFailure {
    @Test func `what is taken is gone`() async {
        let stock = TestStore(Stock())
        await stock.send(.add(amount: 5)) { $0.left = 5 }
        await stock.send(.add(amount: -2)) { $0.left = 4 }
        await stock.finish()
    }
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
