import Conflux
import ConfluxProtocol
import ConfluxVocabulary

/// Replicas of a store that are not the same, though they applied the same: some state's code is
/// not deterministic, or not the same everywhere.
public struct StateDivergence: Sendable, Hashable {
    /// The store.
    public let store: StoreName
    /// The last number at which all replicas were known to be equal.
    public let lastEqual: SequenceNumber
    /// The first number at which they were not: an entry between the two did it.
    public let firstUnequal: SequenceNumber
    /// The first place, as a JSON pointer (RFC 6901), at which this node's state differs from the
    /// one that it was compared with; nil where it does not, or can't be compared any more.
    public let path: String?
    /// Whether a majority of the replicas has one state.
    public let isMajority: Bool
    /// Whether this node has another one, and loads that.
    public let isReloading: Bool

    init(_ divergence: Divergence, path: String?) {
        store = divergence.store
        lastEqual = divergence.lastEqual
        firstUnequal = divergence.reference.sequence
        self.path = path
        isMajority = divergence.isMajority
        isReloading = divergence.mustReload
    }
}
