import Foundation

/// A property that must hold for any bytes.
struct FuzzTarget: Sendable {
    /// The name for `--target=`, and of the corpus's folder.
    let name: String
    /// The longest useful input, in bytes.
    let lengthMax: Int
    /// Returns if the property holds, and traps if it does not.
    let run: @Sendable ([UInt8]) -> Void

    static let all =
        wireTargets + codingTargets + accessTargets + connectionTargets + clientTargets
        + sequencerTargets + replicaTargets
}

/// Whether the targets of machines print every input and its effects: `CONFLUX_TRACE=1`.
let isTraced = ProcessInfo.processInfo.environment["CONFLUX_TRACE"] != nil

/// Traps if a condition does not hold, in an optimised build too, and prints a message.
func require(
    _ holds: @autoclosure () -> Bool, _ message: @autoclosure () -> String,
    file: StaticString = #fileID, line: UInt = #line
) {
    if !holds() { fail(message(), file: file, line: line) }
}

/// Traps, and prints a message.
func fail(_ message: String, file: StaticString = #fileID, line: UInt = #line) -> Never {
    fatalError(message, file: file, line: line)
}

/// Runs a function that can't fail, since this program made its input.
func certain<Value>(
    _ body: () throws -> Value, file: StaticString = #fileID, line: UInt = #line
) -> Value {
    do {
        return try body()
    } catch {
        fail("what was said can't be read: \(error)", file: file, line: line)
    }
}
