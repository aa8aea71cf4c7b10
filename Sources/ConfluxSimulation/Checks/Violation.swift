/// A broken promise.
public struct Violation: Error, Sendable, CustomStringConvertible {
    /// The promise: `P1` to `P11`, `order`, `checkpoint`, `invariant` or `liveness`; `program` if it is the invariant of a
    /// state of yours, or a fault that a program of yours reports.
    public let promise: String
    /// What was observed.
    public let message: String

    /// The promise and the observation.
    public var description: String { "\(promise): \(message)" }
}
