import Conflux
import ConfluxProtocol
import ConfluxVocabulary

/// Replicas of a store that differ although they applied the same entries. The code of the state is not
/// deterministic, or not the same everywhere.
public struct StateDivergence: Sendable, Hashable {
    /// The store.
    public let store: StoreName
    /// The last number at which all replicas were known to be equal.
    public let lastEqual: SequenceNumber
    /// The first number at which they differed. An entry between the two is the cause.
    public let firstUnequal: SequenceNumber
    /// The first place, as a JSON pointer (RFC 6901), at which this node's state differs from the
    /// one that it was compared with; nil if it does not differ, or can no longer be compared.
    public let path: String?
    /// Whether a majority of the replicas has one state.
    public let isMajority: Bool
    /// Whether this node differs from the majority, and loads the majority's state.
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
