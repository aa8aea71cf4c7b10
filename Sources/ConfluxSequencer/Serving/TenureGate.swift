/// Decides which answers of the log go to the machine of the present tenure.
///
/// A process has one tenure after another, each with a machine of its own. Answers to the former tenure may
/// be on the way when it ends, and mean nothing to the next one. While the process stands by, no answer
/// counts.
package struct TenureGate: Sendable {
    /// The number of the tenure that was requested last: 1, 2 … If several sequencers may serve, number 1 is
    /// not requested.
    private var newest: UInt64 = 1
    /// Whether no tenure has been requested since the last one ended.
    package private(set) var isStandingBy = false

    /// Makes a gate for a process that requests its first tenure.
    package init() {}

    /// Notes that a further tenure is requested.
    package mutating func ask() {
        newest += 1
        isStandingBy = false
    }

    /// Notes that the tenure is over, and that none is requested yet.
    package mutating func standBy() { isStandingBy = true }

    /// Whether an answer to the tenure with this number counts.
    package func admits(_ tenure: UInt64) -> Bool { tenure == newest && !isStandingBy }
}
