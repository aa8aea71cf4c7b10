import Conflux

/// Why actions of this node had no effect, by number, until their outcome is told.
///
/// Of some no outcome with a number is ever told: their session was forgotten. Outcomes that have
/// one are told in the order of numbers, so that what stands below one of them is waited for no
/// longer. That is looked at whenever the rest has doubled, so that it costs little.
struct OwnFailures {
    private var failures: [SequenceNumber: EntryFailure] = [:]
    private var reviewAt = Self.reviewMin

    /// How many may be left of which no outcome will be told, besides those that are waited for.
    static let reviewMin = 64

    var count: Int { failures.count }
    var isEmpty: Bool { failures.isEmpty }

    mutating func insert(_ failure: EntryFailure, at sequence: SequenceNumber) {
        failures[sequence] = failure
    }

    mutating func take(_ sequence: SequenceNumber) -> EntryFailure? {
        failures.removeValue(forKey: sequence)
    }

    /// An outcome with this number was told.
    mutating func told(_ sequence: SequenceNumber) {
        guard failures.count >= reviewAt else { return }
        failures = failures.filter { $0.key > sequence }
        reviewAt = max(Self.reviewMin, failures.count * 2)
    }

    mutating func removeAll() {
        failures.removeAll()
        reviewAt = Self.reviewMin
    }
}
