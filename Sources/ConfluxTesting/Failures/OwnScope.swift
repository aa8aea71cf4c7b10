import Conflux
import Testing

/// Runs each test in a `Scope` of its own, so that global dispatches reach no other test's
/// stores.
public struct OwnScopeTrait: TestTrait, SuiteTrait, TestScoping {
    /// Whether the trait of a suite applies to each of its tests.
    public var isRecursive: Bool { true }

    /// Runs a test in a scope.
    ///
    /// - Parameters:
    ///   - test: The test or suite. A suite gets no scope of its own.
    ///   - testCase: The case; nil for a suite.
    ///   - function: Runs the test.
    /// - Throws: What the test throws.
    public func provideScope(
        for test: Test, testCase: Test.Case?,
        performing function: @Sendable () async throws -> Void
    ) async throws {
        if testCase == nil { return try await function() }
        try await Scope().run { try await function() }
    }
}

extension Trait where Self == OwnScopeTrait {
    /// Runs each test in a `Scope` of its own. Use it as the trait of a test or of a suite.
    ///
    /// Tests run in parallel: without it they share `Scope.process`, where a global action reaches the stores of
    /// all of them.
    ///
    /// ```swift
    /// @Test(.ownScope) func `all carts are emptied`() async {
    ///     let cart = TestStore(Cart())
    ///     Store<ModelState<Cart>>.actions.dispatch(.empty)   // reaches no other test
    ///     ...
    /// }
    /// ```
    public static var ownScope: OwnScopeTrait { OwnScopeTrait() }
}
