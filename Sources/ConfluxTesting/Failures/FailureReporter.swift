import ConfluxVocabulary
import Foundation
import Synchronization
import Testing
import XCTest

/// Reports a test's failures to the framework that runs the test.
///
/// Each framework silently ignores a failure that is reported to it while the other one runs a test. So the reporter
/// must know which framework runs the test. Swift Testing knows the test of a task, but not in detached tasks, nor in
/// a `deinit` that runs elsewhere; so the reporter asks when it is made, and remembers the answer. XCTest does not
/// provide this on every system, but it tells observers about each failure: if no observer is told, the failure was
/// ignored.
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
    /// If no test framework runs, it ends the program with the message: otherwise nobody would see
    /// the failure.
    ///
    /// - Parameters:
    ///   - message: What is wrong, and what to do.
    ///   - place: The place in the test that stated the expectation.
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
            || ProcessWords.arguments(UnsafePointer(CommandLine.unsafeArgv))
                .contains(.success("swift-testing"))
    }
}

/// Detects whether a failure reaches a test of XCTest.
private final class XCTestWatch: NSObject, XCTestObservation, Sendable {
    static let shared: XCTestWatch = {
        let watch = XCTestWatch()
        XCTestObservationCenter.shared.addTestObserver(watch)
        return watch
    }()

    private let failureCount = Mutex(0)

    /// Fails the running test of XCTest.
    ///
    /// - Returns: False if there is none.
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
