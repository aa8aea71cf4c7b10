import ConfluxVocabulary

/// How much of the log concerns something.
struct StoreLoad: Sendable, Equatable {
    /// The highest number of an entry that concerns it: its *stamp*.
    var stamp = SequenceNumber.zero
    /// The bytes of the entries that concern it.
    var byteCount: UInt64 = 0

    mutating func add(_ bytes: UInt64, at sequence: SequenceNumber) {
        stamp = max(stamp, sequence)
        byteCount += bytes
    }
}

/// What the entries of one batch for one target come to.
struct TargetLoad: Sendable, Equatable {
    var target: Target
    /// Of its node's state.
    var schemaVersion: UInt32
    var byteCount: UInt64
}

extension Batch {
    /// What its entries come to, target by target; a row without an entry is not among them.
    ///
    /// - Complexity: O(1) where there is one target, else O(n) of the entries.
    func loads() -> [TargetLoad] {
        if targets.count == 1 {
            return [TargetLoad(targets[0], byteCount: UInt64(entries.count))]
        }
        var bytes = [UInt64](repeating: 0, count: targets.count)
        forEachEntry { row, payload in bytes[row] += UInt64(payload.count) + 2 }
        return zip(targets, bytes).compactMap { row, bytes in
            bytes > 0 ? TargetLoad(row, byteCount: bytes) : nil
        }
    }
}

extension TargetLoad {
    fileprivate init(_ row: BatchTarget, byteCount: UInt64) {
        self.init(
            target: row.target, schemaVersion: row.schemaVersion, byteCount: byteCount)
    }
}

/// An entry that has no effect (rule 23).
struct SkippedEntry: Sendable, Hashable {
    var sequence: SequenceNumber
    /// What it concerns.
    var target: Target
}

/// One life of a store, as the sequencer knows it.
struct StoreRecord: Sendable, Equatable {
    /// What an opener begins with.
    enum Base: Sendable, Equatable {
        /// The state it was created with, and its version.
        case initial(EncodedState, schemaVersion: UInt32)
        /// The newest confirmed snapshot. *Invariant*: in no fold, since it is beside the log.
        case saved(SnapshotReference)
    }

    /// The number of its `created` entry.
    let life: SequenceNumber
    /// The size of its first state, which checkpoints have as long as it lives.
    let initialBytes: Int
    var schemaVersion: UInt32
    var base: Base
    /// What is kept of it that the log may give up (rule 21). *Invariant*: in no fold.
    var aside: Aside?
    /// The snapshot that replicas of `schemaVersion` are migrated from; zero where the store had
    /// that version from the beginning. *Invariant*: of lower versions no snapshot above it counts.
    var migratedFrom = SequenceNumber.zero
    var freezing: Freezing?
    /// What entries that name it make of the log, its own events among them.
    var own: StoreLoad
    /// The bytes of entries for its whole state that do not concern it: those before it began, or
    /// while it was frozen.
    var globalBase: UInt64 = 0
    /// The newest digest point, or its life.
    var lastPoint: SequenceNumber
    /// The load at that point.
    var pointLoad: UInt64 = 0

    /// The entries behind its snapshot that are kept beside the log.
    struct Aside: Sendable, Equatable {
        /// Up to here all that concern it are.
        var through: SequenceNumber
        /// Where they are; nil if there are none.
        var reference: SnapshotReference?
    }

    /// Why, and from where on, no entry reaches it (rule 21).
    struct Freezing: Sendable, Equatable {
        var sequence: SequenceNumber
        var reason: FreezeReason
        /// The bytes of entries for its state when it was frozen.
        var globalBytes: UInt64
    }

    init(life: SequenceNumber, schemaVersion: UInt32, initial: EncodedState) {
        self.life = life
        self.schemaVersion = schemaVersion
        initialBytes = initial.bytes.count
        base = .initial(initial, schemaVersion: schemaVersion)
        own = StoreLoad(stamp: life, byteCount: 0)
        lastPoint = life
    }

    /// The number that an opener begins at.
    var baseSequence: SequenceNumber {
        switch base {
        case .initial: life
        case .saved(let reference): reference.sequence
        }
    }

    /// What concerns the store up to here is in its snapshot, or kept aside.
    var keptThrough: SequenceNumber { max(baseSequence, aside?.through ?? .zero) }

    /// What an opener is told to begin with.
    var offer: SnapshotOffer {
        switch base {
        case .initial(let state, let schemaVersion):
            .whole(Snapshot(sequence: life, schemaVersion: schemaVersion, state: state))
        case .saved(let reference): .saved(reference)
        }
    }

    var isFrozen: Bool { freezing != nil }

    /// Whether the snapshot may be what openers begin with: it is newer, and not of a version that
    /// was over when it was taken (rule 35).
    func takes(_ reference: SnapshotReference) -> Bool {
        reference.sequence > baseSequence && reference.schemaVersion <= schemaVersion
            && (reference.schemaVersion == schemaVersion || reference.sequence <= migratedFrom)
    }

    /// The stamp: the highest number of an entry that concerns it.
    func stamp(_ global: StoreLoad?) -> SequenceNumber {
        isFrozen ? own.stamp : max(own.stamp, global?.stamp ?? .zero)
    }

    /// The bytes of the entries that concern it, since it began.
    func load(_ global: StoreLoad?) -> UInt64 {
        own.byteCount + ((freezing?.globalBytes ?? global?.byteCount ?? 0) - globalBase)
    }
}
