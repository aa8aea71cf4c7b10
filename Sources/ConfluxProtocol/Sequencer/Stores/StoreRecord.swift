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
    var byteCount: UInt64
}

extension Batch {
    /// What its entries come to, target by target; a row without an entry is not among them.
    ///
    /// - Complexity: O(1) where there is one target, else O(n) of the entries.
    func loads() -> [TargetLoad] {
        if targets.count == 1 {
            return [TargetLoad(target: targets[0].target, byteCount: UInt64(entries.count))]
        }
        var bytes = [UInt64](repeating: 0, count: targets.count)
        forEachEntry { row, payload in bytes[row] += UInt64(payload.count) + 2 }
        return zip(targets, bytes).compactMap { row, bytes in
            bytes > 0 ? TargetLoad(target: row.target, byteCount: bytes) : nil
        }
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
        /// Where they are; nil where there are none.
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

    var initialBytes: Int {
        if case .initial(let state, _) = base { state.bytes.count } else { 0 }
    }

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
    /// was over when it was taken (rule 17).
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

/// What the log says of stores.
extension StoreDirectory {
    /// How many skipped entries are known. *At the bound* no further one is skipped.
    static let skipsMax = 1_024

    /// Entries are in the log, the last of them at a number.
    mutating func note(_ loads: [TargetLoad], through last: SequenceNumber) {
        for load in loads {
            switch load.target {
            case .store(let name): stores[name]?.own.add(load.byteCount, at: last)
            case .state(let state):
                see(state)
                globals[state, default: StoreLoad()].add(load.byteCount, at: last)
            case .event: break
            }
        }
    }

    /// An event of a store's present life is in the log; others change nothing.
    mutating func note(_ event: LogEvent, at sequence: SequenceNumber) {
        switch event {
        case .upgraded(let name, let life, let version, let base):
            update(name, life: life, at: sequence) { store, _ in
                store.schemaVersion = max(store.schemaVersion, version)
                store.migratedFrom = base
            }
        case .frozen(let name, let life, let reason):
            update(name, life: life, at: sequence) { store, global in
                store.own.stamp = max(store.own.stamp, global?.stamp ?? .zero)
                store.freezing = StoreRecord.Freezing(
                    sequence: sequence, reason: reason, globalBytes: global?.byteCount ?? 0)
            }
        case .thawed(let name, let life):
            update(name, life: life, at: sequence) { store, global in
                guard let freezing = store.freezing else { return }
                store.globalBase += (global?.byteCount ?? 0) - freezing.globalBytes
                store.freezing = nil
            }
        case .digestPoint(let name, let life):
            guard stores[name]?.life == life else { return }
            let load = load(of: name)
            stores[name]?.lastPoint = sequence
            stores[name]?.pointLoad = load
        case .skipped(let sequence, let target):
            let skip = SkippedEntry(sequence: sequence, target: target)
            guard !skips.contains(skip), skips.count < Self.skipsMax else { return }
            let index = skips.firstIndex { $0.sequence > sequence } ?? skips.count
            skips.insert(skip, at: index)
        case .claim, .joined, .left, .forgotten, .created, .dropped: break
        }
    }

    private mutating func update(
        _ name: StoreName, life: SequenceNumber, at sequence: SequenceNumber,
        _ change: (inout StoreRecord, StoreLoad?) -> Void
    ) {
        guard var store = stores[name], store.life == life else { return }
        change(&store, globals[name.state])
        store.own.stamp = max(store.own.stamp, sequence)
        stores[name] = store
    }

    /// A snapshot is there, and confirmed.
    ///
    /// - Returns: Whether openers begin with it from now on.
    mutating func take(_ reference: SnapshotReference, of place: SnapshotPlace) -> Bool {
        guard var store = stores[place.store], store.life == place.life, store.takes(reference)
        else { return false }
        forgetInitial(of: place.store)
        store.base = .saved(reference)
        if let aside = store.aside, aside.through <= reference.sequence { store.aside = nil }
        stores[place.store] = store
        return true
    }

    /// Entries of a store are kept aside.
    mutating func keep(_ aside: StoreRecord.Aside, of name: StoreName, life: SequenceNumber) {
        guard let store = stores[name], store.life == life, aside.through > store.keptThrough
        else { return }
        stores[name]?.aside = aside
    }

    /// What has a number below the floor is read by nobody any more, but where it is kept aside.
    mutating func forgetSkips(below floor: SequenceNumber) {
        skips.removeAll { skip in
            skip.sequence < floor
                && !stores.contains { name, store in
                    store.aside != nil && store.baseSequence < skip.sequence
                        && skip.target.concerns(name)
                }
        }
    }

    func stamp(of name: StoreName) -> SequenceNumber {
        stores[name]?.stamp(globals[name.state]) ?? .zero
    }

    func load(of name: StoreName) -> UInt64 {
        stores[name]?.load(globals[name.state]) ?? 0
    }

    /// The entries above a store's snapshot that have no effect on it.
    func skips(of name: StoreName) -> [SequenceNumber] {
        guard !skips.isEmpty, let base = stores[name]?.baseSequence else { return [] }
        return skips.lazy.filter { $0.sequence > base && $0.target.concerns(name) }
            .map(\.sequence)
    }
}

extension Target {
    /// Whether an entry with this target is for a store.
    package func concerns(_ store: StoreName) -> Bool {
        switch self {
        case .store(let name): name == store
        case .state(let state): store.state == state
        case .event: false
        }
    }
}
