import Foundation

/// Something that must hold whatever bytes it is given.
struct FuzzTarget: Sendable {
    /// What `--target=` calls it, and its folder of the corpus.
    let name: String
    /// The longest input that is of use, in bytes.
    let lengthMax: Int
    /// Ends when all held, and traps where something did not.
    let run: @Sendable ([UInt8]) -> Void

    static let all =
        wireTargets + codingTargets + accessTargets + connectionTargets + clientTargets
        + sequencerTargets + replicaTargets
}

/// Whether the machines' targets print every input and what came of it: `CONFLUX_TRACE=1`.
let isTraced = ProcessInfo.processInfo.environment["CONFLUX_TRACE"] != nil

/// Traps, also in a build with optimisation, and says what did not hold.
func require(
    _ holds: @autoclosure () -> Bool, _ message: @autoclosure () -> String,
    file: StaticString = #fileID, line: UInt = #line
) {
    if !holds() { fail(message(), file: file, line: line) }
}

/// Traps, and says what did not hold.
func fail(_ message: String, file: StaticString = #fileID, line: UInt = #line) -> Never {
    fatalError(message, file: file, line: line)
}

/// What can't fail, since its input was made by this program.
func certain<Value>(
    _ body: () throws -> Value, file: StaticString = #fileID, line: UInt = #line
) -> Value {
    do {
        return try body()
    } catch {
        fail("what was said can't be read: \(error)", file: file, line: line)
    }
}
