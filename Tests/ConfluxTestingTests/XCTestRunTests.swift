#if os(Linux)
    import Conflux
    import ConfluxTesting
    import Foundation
    import Spawning
    import Testing
    import XCTest

    /// Tests of XCTest that fail on purpose. Only ``XCTestRunTests`` runs them.
    final class FailingOnPurpose: XCTestCase {
        static let variable = "CONFLUX_TESTING_FAIL_ON_PURPOSE"

        override func setUpWithError() throws {
            let isMeant = ProcessInfo.processInfo.environment[Self.variable] != nil
            try XCTSkipUnless(isMeant, "run by another test")
        }

        func testUnsaidChange() async {
            let stock = TestStore(Stock())
            await stock.send(.close)  // fails here
            await stock.finish()
        }

        func testUnsaidAtTheEnd() {
            let stock = TestStore(Stock())  // fails at the end
            stock.store.dispatch(.close)
        }

        func testDetached() async {
            let stock = TestStore(Stock())
            await Task.detached { await stock.send(.close) }.value  // fails detached
        }

        func testNothingWrong() async {
            let stock = TestStore(Stock())
            await stock.send(.close) { $0.isOpen = false }
            await stock.finish()
        }

        func testOwnScope() async {
            await Scope().run {
                let stock = TestStore(Stock())
                await stock.send(.close) { $0.isOpen = false }
                await stock.finish()
                XCTAssert(Scope.current !== Scope.process && stock.store.value.isOpen == false)
            }
        }

        func testDeterministic() async {
            await DeterminismChecker(Stock.self).check([.add("fig", 1), .close])
        }

        func testClock() async {
            await DeterminismChecker(ClockedStock.self).check([0])  // fails: clock
        }
    }

    private struct ClockedStock: Model {
        static let name = "clocked"
        var time = 0.0

        mutating func apply(_ action: Int, _ context: ActionContext) {
            time = Date().timeIntervalSince1970
        }
    }

    /// Failures in tests of XCTest: they must fail these tests.
    @Suite(.timeLimit(.minutes(10)))
    struct XCTestRunTests {
        /// Runs a test of XCTest in a new process, on a thread that may wait for it.
        private func run(_ name: String) async throws -> (status: Int32, output: String) {
            let program = try #require(Bundle.main.executablePath)
            let environment = ProcessInfo.processInfo.environment
                .merging([FailingOnPurpose.variable: "1"]) { $1 }
            let ended = try await withCheckedThrowingContinuation { continuation in
                Thread {
                    continuation.resume(
                        with: Result {
                            try Spawning.run(
                                program, ["ConfluxTestingTests.FailingOnPurpose/\(name)"],
                                environment)
                        })
                }.start()
            }
            return (ended.status, ended.output + ended.errors)
        }

        /// The number of the line in this file that ends with this comment.
        private func line(_ comment: String) throws -> Int {
            let text = try String(contentsOfFile: #filePath, encoding: .utf8)
            let lines = text.split(separator: "\n", omittingEmptySubsequences: false)
            return try #require(lines.firstIndex { $0.hasSuffix("// \(comment)") }) + 1
        }

        @Test(arguments: [
            ("testUnsaidChange", "fails here", "`.close` changed the value"),
            ("testUnsaidAtTheEnd", "fails at the end", "The store did more than the test says"),
            ("testDetached", "fails detached", "`.close` changed the value"),
            ("testClock", "fails: clock", "clocked differs at /time after action 1 of 1."),
        ])
        func `a failure fails the test, at its line`(
            test: String, comment: String, message: String
        ) async throws {
            let (status, output) = try await run(test)
            #expect(status == 1)
            let place =
                "XCTestRunTests.swift:\(try line(comment)): error: FailingOnPurpose.\(test) : failed - "
            #expect(output.contains(place + message), "\(output)")
            #expect(output.contains("Executed 1 test, with 1 failure"))
        }

        @Test(arguments: ["testNothingWrong", "testOwnScope", "testDeterministic"])
        func `a correct compact form passes`(test: String) async throws {
            let (status, output) = try await run(test)
            #expect(status == 0, "\(output)")
            #expect(output.contains("Executed 1 test, with 0 failures"))
        }
    }
#endif
