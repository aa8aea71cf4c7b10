import Foundation
import Synchronization
import Testing

/// A failure that a test provoked on purpose.
struct Failure: Sendable, Equatable, CustomStringConvertible {
    let message: String
    let line: Int

    var description: String { "line \(line): \(message)" }
}

/// Runs code that should fail, and returns its failures instead of failing the test.
func failures(
    isolation: isolated (any Actor)? = #isolation, _ body: () async -> Void
) async -> [Failure] {
    let found = Mutex<[Failure]>([])
    await withKnownIssue(isIntermittent: true) {
        await body()
    } matching: { issue in
        let message = issue.comments.map(\.rawValue).joined(separator: "\n")
        let failure = Failure(message: message, line: issue.sourceLocation?.line ?? 0)
        found.withLock { $0.append(failure) }
        return true
    }
    return found.withLock { $0 }
}
