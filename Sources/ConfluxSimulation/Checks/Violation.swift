/// A promise that was not kept.
public struct Violation: Error, Sendable, CustomStringConvertible {
    /// The promise: `P1` to `P7`, `order`, `checkpoint` or `liveness`.
    public let promise: String
    /// What was seen.
    public let message: String

    /// The promise and what was seen.
    public var description: String { "\(promise): \(message)" }
}
