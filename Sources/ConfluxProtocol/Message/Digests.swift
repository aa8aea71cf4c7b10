import ConfluxVocabulary

/// What a replica says of its state at a digest point (rules 18 and 22).
public enum DigestReport: Sendable, Equatable {
    /// What its state is.
    case vote(Vote)
    /// Where its state differs from the one that it was compared with.
    case located(Location)

    /// Where two states differ.
    public struct Location: Sendable, Equatable {
        /// The digest point, of a store.
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

/// A replica's state at a digest point, as a hash (rule 18).
public struct Vote: Sendable, Hashable {
    /// The digest point, of a store.
    public var place: SnapshotPlace
    /// The schema version of the replica's state.
    public var schemaVersion: UInt32
    /// Of the state's canonical encoding.
    public var digest: Digest
    /// Of the numbers of the entries since the point before (or since the snapshot that the replica
    /// began with) that had no effect on the store: eight bytes each, ascending.
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

/// Replicas of a store differ at a digest point (rule 22). Said to every host of the store, once a
/// state of that point can be loaded, with which each compares its own.
public struct Divergence: Sendable, Equatable {
    /// The store.
    public var store: StoreName
    /// Its life.
    public var life: SequenceNumber
    /// The last digest point at which all were equal, or the store's life.
    public var lastEqual: SequenceNumber
    /// The state to compare with, at the first point at which they were not.
    public var reference: SnapshotReference
    /// Whether that state is the majority's.
    public var isMajority: Bool
    /// Whether the receiver has another state than a majority: it loads that one.
    public var mustReload: Bool

    /// Makes a message.
    public init(
        store: StoreName, life: SequenceNumber, lastEqual: SequenceNumber,
        reference: SnapshotReference, isMajority: Bool, mustReload: Bool
    ) {
        self.store = store
        self.life = life
        self.lastEqual = lastEqual
        self.reference = reference
        self.isMajority = isMajority
        self.mustReload = mustReload
    }

    /// Where the state to compare with is.
    public var place: SnapshotPlace {
        SnapshotPlace(store: store, life: life, sequence: reference.sequence)
    }
}
