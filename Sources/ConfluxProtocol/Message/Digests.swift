import ConfluxVocabulary

/// A replica's report about its state at a digest point (rules 18 and 22).
public enum DigestReport: Sendable, Equatable {
    /// The digest of its state.
    case vote(Vote)
    /// The place where its state differs from the state that it was compared with.
    case located(Location)

    /// The place where two states differ.
    public struct Location: Sendable, Equatable {
        /// The store and the digest point.
        public var place: SnapshotPlace
        /// The first key path at which they differ, as a JSON pointer (RFC 6901).
        public var path: String

        /// Makes a report.
        public init(place: SnapshotPlace, path: String) {
            self.place = place
            self.path = path
        }
    }
}

/// A replica's vote: the digest of its state at a digest point (rule 18).
public struct Vote: Sendable, Hashable {
    /// The store and the digest point.
    public var place: SnapshotPlace
    /// The schema version of the replica's state.
    public var schemaVersion: UInt32
    /// The digest of the state's canonical encoding.
    public var digest: Digest
    /// The digest of the numbers of all entries that had no effect on the store, since the digest
    /// point before, or since the snapshot that the replica began with: eight bytes each,
    /// ascending.
    public var refusals: Digest
    /// How many bytes the encoding has.
    public var byteCount: UInt64

    /// Makes a vote.
    public init(
        place: SnapshotPlace, schemaVersion: UInt32, digest: Digest, refusals: Digest,
        byteCount: UInt64
    ) {
        self.place = place
        self.schemaVersion = schemaVersion
        self.digest = digest
        self.refusals = refusals
        self.byteCount = byteCount
    }
}

/// Tells every host of a store that its replicas differ at a digest point (rule 22). It is sent
/// once a state of that point can be loaded, so that each host can compare its own state with it.
public struct Divergence: Sendable, Equatable {
    /// The store.
    public var store: StoreName
    /// Its life.
    public var life: SequenceNumber
    /// The last digest point at which all replicas were equal, or the store's life.
    public var lastEqual: SequenceNumber
    /// The state to compare with. It is of the first point at which the replicas differed.
    public var reference: SnapshotReference
    /// Whether that state is the majority's.
    public var isMajority: Bool
    /// Whether the receiver's state is not the majority's: then it loads the majority's.
    public var mustReload: Bool

    /// The snapshot that holds the state to compare with.
    public var place: SnapshotPlace {
        SnapshotPlace(store: store, life: life, sequence: reference.sequence)
    }
}
