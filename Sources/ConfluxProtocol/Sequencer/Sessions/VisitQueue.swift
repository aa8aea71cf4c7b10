import ConfluxVocabulary

/// The visits that are remembered, in the order in which they began (rule 42).
///
/// A visit is forgotten when enough others have begun since. That follows from the log alone, so no
/// entry says it, and ``forgotten`` tells of each that isn't here whether it can have been.
struct VisitQueue: Sendable, Equatable {
    /// The most that a log's fold remembers.
    static let most = 4_096

    /// Ascending. Those before `head` are forgotten.
    private var incarnations: [Incarnation] = []
    private var head = 0
    /// The last visit that was forgotten. *Invariant*: every visit that was forgotten is at or below
    /// it, and it never falls.
    private(set) var forgotten = Incarnation.none

    var count: Int { incarnations.count - head }

    mutating func append(_ incarnation: Incarnation) { incarnations.append(incarnation) }

    /// Forgets the oldest.
    mutating func forgetFirst() -> Incarnation {
        let first = incarnations[head]
        head += 1
        forget(through: first)
        if head > 64, head * 2 > incarnations.count {
            incarnations.removeFirst(head)
            head = 0
        }
        return first
    }

    /// It is remembered no longer, though it is not the oldest.
    mutating func remove(_ incarnation: Incarnation) {
        guard let index = incarnations[head...].firstIndex(of: incarnation) else { return }
        incarnations.remove(at: index)
    }

    /// Visits up to this one were forgotten, and they are not here.
    mutating func forget(through incarnation: Incarnation) {
        forgotten = max(forgotten, incarnation)
    }

    /// Equal in what is known, however it lies in memory.
    static func == (left: Self, right: Self) -> Bool {
        left.forgotten == right.forgotten
            && left.incarnations[left.head...] == right.incarnations[right.head...]
    }
}
