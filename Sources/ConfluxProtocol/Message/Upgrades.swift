import ConfluxVocabulary

/// The schema versions as which a program can host a store (rule 17).
public struct SupportedVersions: Sendable, Hashable {
    /// The oldest one.
    public var oldest: UInt32
    /// The newest one: the version of the program's own form of the state.
    public var newest: UInt32
    /// When the program wants the store's version to rise.
    public var policy: UpgradePolicy

    /// Makes versions; only one unless `oldest` is given.
    public init(
        _ newest: UInt32, oldest: UInt32? = nil, policy: UpgradePolicy = .whenAllUnderstand
    ) {
        self.newest = newest
        self.oldest = min(oldest ?? newest, newest)
        self.policy = policy
    }

    /// Whether the program can host a store of this version.
    public func contains(_ version: UInt32) -> Bool { version >= oldest && version <= newest }
}

/// Asks that a store's schema version rise (rule 17). It may be repeated.
public struct Upgrade: Sendable, Hashable {
    /// The node's number for this request, repeated in the answer.
    public var request: UInt64
    /// The store.
    public var store: StoreName
    /// The number of its `created` entry.
    public var life: SequenceNumber
    /// The version; zero for the newest one that every host understands.
    public var schemaVersion: UInt32
    /// Whether the newer program may judge the entries since the snapshot again if no program of the store's present
    /// version is there.
    public var mayReplay: Bool

    /// Makes a request.
    public init(
        request: UInt64, store: StoreName, life: SequenceNumber, schemaVersion: UInt32 = 0,
        mayReplay: Bool = false
    ) {
        self.request = request
        self.store = store
        self.life = life
        self.schemaVersion = schemaVersion
        self.mayReplay = mayReplay
    }
}

/// Asks a node to migrate a snapshot of a store that it hosts or opens, and to say what comes of it (rule 17).
public struct Migrate: Sendable, Equatable {
    /// The store.
    public var store: StoreName
    /// Its life.
    public var life: SequenceNumber
    /// The version that the snapshot is to get.
    public var schemaVersion: UInt32
    /// The snapshot.
    public var snapshot: SnapshotOffer
}

/// Answers ``Migrate``.
public struct Migrated: Sendable, Equatable {
    /// The snapshot.
    public var place: SnapshotPlace
    /// The version that it was to get.
    public var schemaVersion: UInt32
    /// What came of it.
    public var outcome: Outcome

    /// What came of a migration.
    public enum Outcome: Sendable, Equatable {
        /// The digest of the migrated state's canonical encoding.
        case migrated(Digest)
        /// The migration failed, for this reason.
        case failed(String)
    }

    /// Makes an answer.
    public init(place: SnapshotPlace, schemaVersion: UInt32, outcome: Outcome) {
        self.place = place
        self.schemaVersion = schemaVersion
        self.outcome = outcome
    }
}

/// Says that the node is about to leave. It is confirmed once each store that no other node can host has a snapshot
/// that includes all its entries, or can't get one.
public struct Leaving: Sendable, Hashable {
    /// The node's number for this request, repeated in the answer.
    public var request: UInt64
}
