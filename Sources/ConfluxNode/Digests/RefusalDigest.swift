import Conflux

/// The digest of the numbers of entries that had no effect on a store, since its last digest point:
/// two replicas that refuse differently differ, though their states are the same (rule 18).
// Sendable: confined to whoever serves the store's lane.
final class RefusalDigest: @unchecked Sendable {
    private var hasher = DigestHasher()

    /// A run was committed, and these entries of it had no effect.
    func add(_ sequences: [SequenceNumber]) {
        guard !sequences.isEmpty else { return }
        for sequence in sequences.sorted() { hasher.update(sequence.rawValue) }
    }

    /// The digest up to here; what follows counts for the next point.
    func take() -> Digest {
        defer { begin() }
        return hasher.finish()
    }

    /// The store has a snapshot: nothing counts yet.
    func begin() { hasher = DigestHasher() }
}
