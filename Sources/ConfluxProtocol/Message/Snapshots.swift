import ConfluxVocabulary

/// A store's state at one number.
public struct Snapshot: Sendable, Equatable {
    /// It includes every entry up to this number, and none above.
    public var sequence: SequenceNumber
    /// The schema version of its encoding.
    public var schemaVersion: UInt32
    /// The state.
    public var state: EncodedState

    /// Makes a snapshot.
    public init(sequence: SequenceNumber, schemaVersion: UInt32, state: EncodedState) {
        self.sequence = sequence
        self.schemaVersion = schemaVersion
        self.state = state
    }
}

/// Identifies a snapshot: a store has at most one at each number.
public struct SnapshotPlace: Sendable, Hashable {
    /// The store.
    public var store: StoreName
    /// Its life.
    public var life: SequenceNumber
    /// The number at which it is taken.
    public var sequence: SequenceNumber

    /// Makes a place.
    public init(store: StoreName, life: SequenceNumber, sequence: SequenceNumber) {
        self.store = store
        self.life = life
        self.sequence = sequence
    }
}

/// Describes a snapshot without its bytes. A node asks for the bytes by it, and checks them against
/// it.
public struct SnapshotReference: Sendable, Hashable {
    /// It includes every entry up to this number, and none above.
    public var sequence: SequenceNumber
    /// The schema version of its encoding.
    public var schemaVersion: UInt32
    /// The digest of its bytes.
    public var digest: Digest
    /// How many bytes it has.
    public var byteCount: UInt64

    /// Makes a reference.
    public init(
        sequence: SequenceNumber, schemaVersion: UInt32, digest: Digest, byteCount: UInt64
    ) {
        self.sequence = sequence
        self.schemaVersion = schemaVersion
        self.digest = digest
        self.byteCount = byteCount
    }
}

/// The state that an opener begins with.
public enum SnapshotOffer: Sendable, Equatable {
    /// The state that the store was created with.
    case whole(Snapshot)
    /// A snapshot that the sequencer keeps. The opener loads it in parts.
    case saved(SnapshotReference)
}

/// Asks for a part of a snapshot that the sequencer keeps (rule 19).
public struct Load: Sendable, Equatable {
    /// The node's number for this request, repeated in the answer.
    public var request: UInt64
    /// The snapshot.
    public var place: SnapshotPlace
    /// The first byte that is wanted, from 0.
    public var offset: UInt64
    /// The most bytes that the answer may carry.
    public var limitBytes: UInt32
    /// The delivery tag of the newest answer that was read on this connection; 0 if there is none.
    public var acknowledged: UInt64 = 0
}

/// Asks a replica for a part of its encoding at a digest point (rule 19).
public struct SnapshotRequest: Sendable, Hashable {
    /// The store and the digest point.
    public var place: SnapshotPlace
    /// The first byte that is wanted, from 0.
    public var offset: UInt64
    /// The most bytes that the answer may carry.
    public var limitBytes: UInt32
}

/// A part of a snapshot.
public struct SnapshotChunk: Sendable, Equatable {
    /// The snapshot.
    public var place: SnapshotPlace
    /// Where the bytes begin in the snapshot, from 0.
    public var offset: UInt64
    /// How many bytes the whole snapshot has; 0 if the peer no longer has it.
    public var byteCount: UInt64
    /// The bytes.
    public var bytes: Bytes

    /// Makes a part.
    public init(place: SnapshotPlace, offset: UInt64, byteCount: UInt64, bytes: Bytes) {
        self.place = place
        self.offset = offset
        self.byteCount = byteCount
        self.bytes = bytes
    }

    /// A part that says that there is no such snapshot, or no longer.
    public static func none(of place: SnapshotPlace) -> SnapshotChunk {
        SnapshotChunk(place: place, offset: 0, byteCount: 0, bytes: [])
    }

    /// Whether there is no such snapshot.
    public var isNone: Bool { byteCount == 0 }
}

/// Answers a load.
public struct SnapshotServed: Sendable, Equatable {
    /// The request that is answered.
    public var request: UInt64
    /// The tag that a later request acknowledges.
    public var deliveryTag: UInt64 = 0
    /// What was asked for.
    public var chunk: SnapshotChunk
}

/// Asks a replica to load the store's newest snapshot, if the replica stopped at or below its
/// number: others have passed it (rule 23).
public struct Reload: Sendable, Equatable {
    /// The snapshot.
    public var place: SnapshotPlace
}
