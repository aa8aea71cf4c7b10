import ConfluxVocabulary

/// How much of the log concerns one store or state.
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

/// The entries of one batch for one target.
struct TargetLoad: Sendable, Equatable {
    var target: Target
    /// The schema version of the state in the batch's node.
    var schemaVersion: UInt32
    var byteCount: UInt64
    /// The place of the last of them in the batch, from 0.
    var last: UInt64

    fileprivate init(_ row: BatchTarget, _ target: Target, byteCount: UInt64, last: UInt64) {
        self.target = target
        schemaVersion = row.schemaVersion
        self.byteCount = byteCount
        self.last = last
    }
}

extension Batch {
    /// The load of its entries for each target: of an event, for each state that handles it. A target without an entry
    /// is left out.
    ///
    /// - Complexity: O(1) if there is one target, otherwise O(*n*) in the number of entries.
    func loads() -> [TargetLoad] {
        var loads: [TargetLoad] = []
        func add(_ row: BatchTarget, _ byteCount: UInt64, _ last: UInt64) {
            guard case .event(_, let states) = row.target else {
                return loads.append(
                    TargetLoad(row, row.target, byteCount: byteCount, last: last))
            }
            loads += states.map {
                TargetLoad(row, .state($0), byteCount: byteCount, last: last)
            }
        }
        if targets.count == 1 {
            add(targets[0], UInt64(entries.count), UInt64(count) - 1)
            return loads
        }
        var rows = [(bytes: UInt64, last: UInt64)](repeating: (0, 0), count: targets.count)
        var place: UInt64 = 0
        forEachEntry { row, payload in
            rows[row] = (rows[row].bytes + UInt64(payload.count) + 2, place)
            place += 1
        }
        for (target, row) in zip(targets, rows) where row.bytes > 0 {
            add(target, row.bytes, row.last)
        }
        return loads
    }
}

/// An entry that has no effect (rule 23).
struct SkippedEntry: Sendable, Hashable {
    var sequence: SequenceNumber
    /// The stores that it concerns.
    var target: Target
}

/// One life of a store, as far as the log and the snapshots tell of it.
struct StoreRecord: Sendable, Equatable {
    /// What an opener begins with.
    enum Base: Sendable, Equatable {
        /// The state with which the store was created, and its version.
        case initial(EncodedState, schemaVersion: UInt32)
        /// The newest confirmed snapshot. *Invariant*: no state of the log has this case, since snapshots are
        /// beside the log.
        case saved(SnapshotReference)
    }

    /// The number of its `created` entry.
    let life: SequenceNumber
    /// The size of its first state, which checkpoints contain while the store lives.
    let initialBytes: Int
    /// The name of the key that created it; nil if there were no keys.
    var creator: Name?
    var schemaVersion: UInt32
    var base: Base
    /// The confirmed snapshot before that, which the log keeps, too: the past begins there. *Invariant*: nil in a state
    /// of the log. A log with little room may have given it up.
    var former: SnapshotReference?
    /// What is kept aside of the entries that the log may discard (rule 21). *Invariant*: nil in a
    /// state of the log.
    var aside: Aside?
    /// The snapshot from which replicas of `schemaVersion` are migrated; zero if the store always
    /// had that version. *Invariant*: a snapshot of a lower version counts only up to this number.
    var migratedFrom = SequenceNumber.zero
    /// The digest of that snapshot's state in `schemaVersion`; nil if nobody had migrated it before the version rose.
    var migrated: Digest?
    var freezing: Freezing?
    /// The load of entries that name the store itself, including its own events.
    var own: StoreLoad
    /// The bytes of entries for the whole state that do not concern this store: those before it was
    /// created, and those while it was frozen.
    var globalBase: UInt64 = 0
    /// The newest digest point; the life's number if there is none.
    var lastPoint: SequenceNumber
    /// The store's load at that point.
    var pointLoad: UInt64 = 0

    /// The entries after its snapshot that are kept beside the log.
    struct Aside: Sendable, Equatable {
        /// All entries up to this number that concern the store are kept.
        var through: SequenceNumber
        /// The entries that are kept; nil if there are none.
        var reference: SnapshotReference?
    }

    /// Why no entry reaches the store, and from which number on (rule 21).
    struct Freezing: Sendable, Equatable {
        var sequence: SequenceNumber
        var reason: FreezeReason
        /// The bytes of entries for the whole state when the store was frozen.
        var globalBytes: UInt64
    }

    init(
        life: SequenceNumber, schemaVersion: UInt32, initial: EncodedState, creator: Name? = nil
    ) {
        self.life = life
        self.creator = creator
        self.schemaVersion = schemaVersion
        initialBytes = initial.bytes.count
        base = .initial(initial, schemaVersion: schemaVersion)
        own = StoreLoad(stamp: life, byteCount: 0)
        lastPoint = life
    }

    /// The number at which an opener begins.
    var baseSequence: SequenceNumber {
        switch base {
        case .initial: life
        case .saved(let reference): reference.sequence
        }
    }

    /// All entries up to this number that concern the store are in its snapshot, or kept aside.
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

    /// The digest that the offered state has in the store's version; nil if it has that version already.
    var offerMigrated: Digest? { baseSequence == migratedFrom ? migrated : nil }

    /// Whether openers may begin with this snapshot. It must be newer than the present base, and
    /// must not be of a version that the store had given up when it was taken (rule 35).
    func takes(_ reference: SnapshotReference) -> Bool {
        reference.sequence > baseSequence && reference.schemaVersion <= schemaVersion
            && (reference.schemaVersion == schemaVersion || reference.sequence <= migratedFrom)
    }

    /// The stamp: the highest number of an entry that concerns the store.
    func stamp(_ global: StoreLoad?) -> SequenceNumber {
        isFrozen ? own.stamp : max(own.stamp, global?.stamp ?? .zero)
    }

    /// The bytes of the entries that have concerned the store since it was created.
    func load(_ global: StoreLoad?) -> UInt64 {
        own.byteCount + ((freezing?.globalBytes ?? global?.byteCount ?? 0) - globalBase)
    }
}
