/// Decides which answers of the log go to the machine of the present term.
///
/// A process has one term after another, each with a machine of its own. Answers to the former term may
/// be on the way when it ends, and mean nothing to the next one. While the process stands by, no answer
/// counts.
package struct TermGate: Sendable {
    /// The number of the term that was requested last: 1, 2 … If several sequencers may serve, number 1 is
    /// not requested.
    private var newest: UInt64 = 1
    /// Whether no term has been requested since the last one ended.
    package private(set) var isStandingBy = false

    /// Makes a gate for a process that requests its first term.
    package init() {}

    /// Notes that a further term is requested.
    package mutating func ask() {
        newest += 1
        isStandingBy = false
    }

    /// Notes that the term is over, and that none is requested yet.
    package mutating func standBy() { isStandingBy = true }

    /// Whether an answer to the term with this number counts.
    package func admits(_ term: UInt64) -> Bool { term == newest && !isStandingBy }
}
