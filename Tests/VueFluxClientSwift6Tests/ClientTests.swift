import Dispatch
import Testing

/// All suites of this program, one test after another: stores of one state in one process get
/// each other's global dispatches.
@Suite(.serialized)
enum ClientTests {}

/// Serves the main queue until a condition holds.
@MainActor
func waitOnMain(
    sourceLocation: SourceLocation = #_sourceLocation, until condition: () -> Bool
) async {
    let deadline = ContinuousClock.now + .seconds(10)
    while !condition(), ContinuousClock.now < deadline {
        await withCheckedContinuation { turned in
            DispatchQueue.main.async { turned.resume() }
        }
    }
    #expect(condition(), sourceLocation: sourceLocation)
}
