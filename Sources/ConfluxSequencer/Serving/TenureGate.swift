/// Which answers of the log the machine of the present tenure is given.
///
/// A process has one tenure after the other, and each has a machine of its own. Answers to the one before may be
/// under way when it ends: they say nothing of the next one. While a process stands by none counts.
package struct TenureGate: Sendable {
    /// Which tenure was asked for last: 1, 2 … Where several sequencers may serve, 1 is none.
    private var newest: UInt64 = 1
    /// Whether none was asked for since the last one.
    package private(set) var isStandingBy = false

    /// Makes one for a process that asks for its first tenure.
    package init() {}

    /// The log is asked for a further tenure.
    package mutating func ask() {
        newest += 1
        isStandingBy = false
    }

    /// The tenure is over, and none is asked for yet.
    package mutating func standBy() { isStandingBy = true }

    /// Whether an answer counts that is to the tenure with this number.
    package func admits(_ tenure: UInt64) -> Bool { tenure == newest && !isStandingBy }
}
