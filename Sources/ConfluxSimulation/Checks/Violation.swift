/// A broken promise.
public struct Violation: Error, Sendable, CustomStringConvertible {
    /// The promise: `P1` to `P11`, `order`, `checkpoint`, `invariant` or `liveness`; `program` if it is the invariant of a
    /// state of yours, or a fault that a program of yours reports.
    public let promise: String
    /// What was observed.
    public let message: String

    init(_ promise: String, _ message: String) {
        self.promise = promise
        self.message = message
    }

    /// The promise and the observation.
    public var description: String { "\(promise): \(message)" }
}

/// Checks a promise.
///
/// - Throws: A violation of the promise, with the message, unless the condition holds.
func require(
    _ condition: Bool, _ promise: String, _ message: @autoclosure () -> String
) throws(Violation) {
    guard condition else { throw Violation(promise, message()) }
}
