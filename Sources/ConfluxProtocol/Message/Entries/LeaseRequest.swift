import ConfluxVocabulary

extension Target {
    /// The target of entries that claim and give up leases. No store takes them: the log itself keeps the leases
    /// (rule 42).
    public static let leases = Target.event(.leases)
}

/// What an entry for `Target.leases` says. It is the payload of the entry.
public enum LeaseRequest: Sendable, Equatable {
    /// The session claims a lease, and waits for its turn. The number of the entry is the claim's: the token of the lease
    /// once it is held.
    ///
    /// If `locks` is true, the lease is a lock on the store of that name: while it is held, others' actions for the store
    /// wait, and are rejected in the end.
    case claim(StoreName, locks: Bool)
    /// A claim ends, whether or not its lease is held.
    ///
    /// The version is the number and the epoch of its entry. Without an epoch, that of the present term is meant.
    case release(StoreVersion)
}

/// How a claim stands.
public enum LeaseState: Sendable, Hashable {
    /// Its lease is held. It stays so at least until the sequencer has heard nothing of the session for this long.
    case held(silenceMax: Duration)
    /// Others come before it.
    case waiting
    /// It was released, or its session has left, or there never was one.
    case over
}

/// A claim, as the sequencer lists it.
public struct LeaseStatus: Sendable, Hashable {
    /// The number of its entry.
    public var number: SequenceNumber
    /// The lease.
    public var name: StoreName
    /// The session that claims it.
    public var session: Incarnation
    /// The name of that session's node, if it has one.
    public var node: Name?
    /// Whether the lease is held. If not, the claim waits.
    public var isHeld: Bool
    /// Whether it is a lock on the store of that name.
    public var locks: Bool
}
