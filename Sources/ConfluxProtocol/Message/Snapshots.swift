import ConfluxVocabulary

/// A store's state at one number.
public struct Snapshot: Sendable, Equatable {
    /// Every entry up to this number is in it, none above.
    public var sequence: SequenceNumber
    /// The schema version that it is encoded in.
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

/// Which snapshot is meant: a store has one at a number at most.
public struct SnapshotPlace: Sendable, Hashable {
    /// The store.
    public var store: StoreName
    /// Its life.
    public var life: SequenceNumber
    /// The number that it is taken at.
    public var sequence: SequenceNumber

    /// Makes a place.
    public init(store: StoreName, life: SequenceNumber, sequence: SequenceNumber) {
        self.store = store
        self.life = life
        self.sequence = sequence
    }
}

/// A snapshot without its bytes: by it they are asked for, and checked when they are there.
public struct SnapshotReference: Sendable, Hashable {
    /// Every entry up to this number is in it, none above.
    public var sequence: SequenceNumber
    /// The schema version that it is encoded in.
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

/// What an opener begins with.
public enum SnapshotOffer: Sendable, Equatable {
    /// The state that the store was created with.
    case whole(Snapshot)
    /// A snapshot that the sequencer keeps: to be loaded piece by piece.
    case saved(SnapshotReference)
}

/// Asks for a part of a snapshot that the sequencer keeps (rule 19).
public struct Load: Sendable, Equatable {
    /// The node's number for this request, repeated in the answer.
    public var request: UInt64
    /// Which one.
    public var place: SnapshotPlace
    /// The first byte that is wanted, from 0.
    public var offset: UInt64
    /// The most bytes that the answer may carry.
    public var limitBytes: UInt32
    /// The delivery tag of the newest answer that was read on this connection; 0 for none.
    public var acknowledged: UInt64

    /// Makes a request.
    public init(
        request: UInt64, place: SnapshotPlace, offset: UInt64, limitBytes: UInt32,
        acknowledged: UInt64 = 0
    ) {
        self.request = request
        self.place = place
        self.offset = offset
        self.limitBytes = limitBytes
        self.acknowledged = acknowledged
    }
}

/// Asks a replica for a part of its encoding at a digest point (rule 19).
public struct SnapshotRequest: Sendable, Hashable {
    /// Which one.
    public var place: SnapshotPlace
    /// The first byte that is wanted, from 0.
    public var offset: UInt64
    /// The most bytes that the answer may carry.
    public var limitBytes: UInt32

    /// Makes a request.
    public init(place: SnapshotPlace, offset: UInt64, limitBytes: UInt32) {
        self.place = place
        self.offset = offset
        self.limitBytes = limitBytes
    }
}

/// A part of a snapshot.
public struct SnapshotChunk: Sendable, Equatable {
    /// Which one.
    public var place: SnapshotPlace
    /// Where in it the bytes begin, from 0.
    public var offset: UInt64
    /// How many bytes the whole has; 0 when who was asked has it no longer.
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

    /// Says that there is no such snapshot, or no longer.
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
    /// What a later request acknowledges.
    public var deliveryTag: UInt64
    /// What was asked for.
    public var chunk: SnapshotChunk

    /// Makes an answer.
    public init(request: UInt64, deliveryTag: UInt64 = 0, chunk: SnapshotChunk) {
        self.request = request
        self.deliveryTag = deliveryTag
        self.chunk = chunk
    }
}

/// The replica is to load the store's newest snapshot, if it has stopped at or below that number:
/// others have passed it (rule 23).
public struct Reload: Sendable, Equatable {
    /// The snapshot.
    public var place: SnapshotPlace

    /// Makes a message.
    public init(place: SnapshotPlace) {
        self.place = place
    }
}
