import ConfluxVocabulary

/// The remembered visits, in the order in which they began (rule 42).
///
/// A visit is forgotten once enough later visits have begun. This follows from the log alone, so no
/// entry records it. For a visit that is not remembered, ``forgotten`` shows whether it may have
/// been forgotten.
struct VisitQueue: Sendable, Equatable {
    /// The most visits that a log's fold remembers.
    static let most = 4_096

    /// Ascending. The visits before `head` are forgotten.
    private var incarnations: [Incarnation] = []
    private var head = 0
    /// The last visit that was forgotten. *Invariant*: every forgotten visit is at or below it, and
    /// it never decreases.
    private(set) var forgotten = Incarnation.none

    var count: Int { incarnations.count - head }

    mutating func append(_ incarnation: Incarnation) { incarnations.append(incarnation) }

    /// Forgets the oldest visit.
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

    /// Removes a visit that need not be the oldest.
    mutating func remove(_ incarnation: Incarnation) {
        guard let index = incarnations[head...].firstIndex(of: incarnation) else { return }
        incarnations.remove(at: index)
    }

    /// Records that visits up to this one were forgotten. They are not in the queue.
    mutating func forget(through incarnation: Incarnation) {
        forgotten = max(forgotten, incarnation)
    }

    /// Compares what is remembered, regardless of how it is stored.
    static func == (left: Self, right: Self) -> Bool {
        left.forgotten == right.forgotten
            && left.incarnations[left.head...] == right.incarnations[right.head...]
    }
}
