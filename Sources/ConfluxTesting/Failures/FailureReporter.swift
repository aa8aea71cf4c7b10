import Foundation
import Synchronization
import Testing
import XCTest

/// Reports failures of a test to the framework that runs it.
///
/// Both frameworks let a failure pass without a word that is reported while the other one runs: so which
/// one it is must be known. Swift Testing says which test a task belongs to, though not in detached tasks
/// and not in a `deinit` that runs elsewhere; hence it is asked where the test is known, and remembered.
/// XCTest does not say it on every system, but tells observers of each failure: one that nobody was told of
/// went nowhere.
struct FailureReporter: Sendable {
    private static let hasSeenSwiftTesting = Atomic(false)
    private let isSwiftTesting: Bool

    /// Asks which framework runs the current task.
    init() {
        isSwiftTesting = Test.current != nil
        if isSwiftTesting { Self.hasSeenSwiftTesting.store(true, ordering: .relaxed) }
    }

    /// Reports a failure.
    ///
    /// Ends the program with the message where no test framework runs: else the failure would pass
    /// unseen.
    ///
    /// - Parameters:
    ///   - message: What is wrong, and what to do.
    ///   - place: Where the test says what was expected.
    func report(_ message: String, at place: SourcePlace) {
        if isSwiftTesting || Test.current != nil { return record(message, at: place) }
        if XCTestWatch.shared.fail(message, at: place) { return }
        guard Self.runsSwiftTesting else {
            fatalError(
                """
                \(place.filePath):\(place.line): \(message)
                Neither Swift Testing nor XCTest runs here, and so nobody else would hear of this: \
                ConfluxTesting is for tests.
                """)
        }
        record(message, at: place)
    }

    private func record(_ message: String, at place: SourcePlace) {
        Issue.record(
            Comment(rawValue: message),
            sourceLocation: SourceLocation(
                fileID: "\(place.fileID)", filePath: "\(place.filePath)", line: Int(place.line),
                column: Int(place.column)))
    }

    /// Whether Swift Testing runs in this process.
    static var runsSwiftTesting: Bool {
        hasSeenSwiftTesting.load(ordering: .relaxed)
            || CommandLine.arguments.contains("swift-testing")
    }
}

/// Sees whether a failure reaches a test of XCTest's.
private final class XCTestWatch: NSObject, XCTestObservation, Sendable {
    static let shared: XCTestWatch = {
        let watch = XCTestWatch()
        XCTestObservationCenter.shared.addTestObserver(watch)
        return watch
    }()

    private let failureCount = Mutex(0)

    /// Fails the test that runs.
    ///
    /// - Returns: false if none does.
    func fail(_ message: String, at place: SourcePlace) -> Bool {
        let before = failureCount.withLock { $0 }
        XCTFail(message, file: place.filePath, line: place.line)
        return failureCount.withLock { $0 } > before
    }

    #if canImport(Darwin)
        func testCase(_ testCase: XCTestCase, didRecord issue: XCTIssue) {
            failureCount.withLock { $0 += 1 }
        }

        func testCase(_ testCase: XCTestCase, didRecord expectedFailure: XCTExpectedFailure) {
            failureCount.withLock { $0 += 1 }
        }
    #else
        func testCase(
            _ testCase: XCTestCase, didFailWithDescription description: String,
            inFile filePath: String?, atLine lineNumber: Int
        ) {
            failureCount.withLock { $0 += 1 }
        }
    #endif
}
