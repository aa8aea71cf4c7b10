import ConfluxHashing
import ConfluxVocabulary

/// A snapshot on its way to this node.
struct SnapshotLoad: Sendable {
    /// Where a store continues after its snapshot.
    struct Start: Sendable {
        /// The number from which the log may be read for the store, as it was when the snapshot was
        /// offered.
        var floor: SequenceNumber
        /// The entries behind the snapshot that the log no longer holds.
        var aside: SnapshotReference?
        var skipped: [SequenceNumber]
        /// The schema version from the snapshot on.
        var version: VersionInForce
    }

    /// What it is for.
    enum Purpose: Sendable {
        /// The store gets the snapshot.
        case opening(Start)
        /// The bytes are entries, which the store gets after this snapshot (rule 21).
        case following(Snapshot, Start)
        /// The snapshot is to be migrated to this schema version (rule 17).
        case migrating(UInt32)
        /// The store's own state at that point is compared with the snapshot (rule 22).
        case comparing(Divergence)
        /// Whoever asked gets the bytes.
        case reading(request: UInt64)
    }

    let place: SnapshotPlace
    let reference: SnapshotReference
    let purpose: Purpose
    var bytes: [UInt8] = []
    var hasher = DigestHasher()
    /// When to ask for the next part again; nil while the load waits for its turn.
    var deadline: Duration?

    init(_ place: SnapshotPlace, _ reference: SnapshotReference, for purpose: Purpose) {
        self.place = place
        self.reference = reference
        self.purpose = purpose
    }

    /// Takes the next part.
    ///
    /// - Returns: Whether it was the next part.
    mutating func take(_ chunk: SnapshotChunk) -> Bool {
        guard chunk.place == place, chunk.offset == UInt64(bytes.count),
            chunk.byteCount == reference.byteCount, !chunk.bytes.isEmpty
        else { return false }
        // The buffer grows with what arrives, not with what was announced.
        bytes.append(contentsOf: chunk.bytes)
        hasher.update(chunk.bytes)
        return true
    }

    var isWhole: Bool { UInt64(bytes.count) == reference.byteCount }
    /// Whether the bytes are what was announced.
    var isIntact: Bool { hasher.finish() == reference.digest }
}

/// The snapshots on their way to this node. Each asks for one part at a time.
struct SnapshotLoads: Sendable {
    /// By request. Each load keeps its request to its end.
    private(set) var loads: [UInt64: SnapshotLoad] = [:]

    subscript(request: UInt64) -> SnapshotLoad? {
        get { loads[request] }
        set { loads[request] = newValue }
    }

    /// Gives the next part to a load, in place: to copy what has arrived would cost more with each part.
    ///
    /// - Returns: Whether it was the next part.
    mutating func take(_ chunk: SnapshotChunk, for request: UInt64) -> Bool {
        loads[request]?.take(chunk) ?? false
    }

    var count: Int { loads.count }
    var activeCount: Int { loads.values.count { $0.deadline != nil } }

    /// The first load that waits for its turn.
    var waiting: UInt64? {
        loads.isEmpty ? nil : loads.filter { $0.value.deadline == nil }.keys.min()
    }

    /// Removes a load that is complete, or will never be.
    mutating func remove(_ request: UInt64) -> SnapshotLoad? {
        loads.removeValue(forKey: request)
    }

    /// Removes the loads of a store that is closed, or begins anew.
    mutating func remove(_ store: StoreName) {
        loads = loads.filter { _, load in
            if case .reading = load.purpose { return true }
            return load.place.store != store
        }
    }

    /// Removes the comparison of a store: a store is compared with one snapshot at a time.
    mutating func removeComparing(_ store: StoreName) {
        loads = loads.filter { _, load in
            guard load.place.store == store, case .comparing = load.purpose else { return true }
            return false
        }
    }

    /// Removes the load of a store's snapshot that is to be migrated: only the last request counts.
    mutating func removeMigrating(_ store: StoreName) {
        loads = loads.filter { _, load in
            guard load.place.store == store, case .migrating = load.purpose else { return true }
            return false
        }
    }

    /// Removes all loads.
    ///
    /// - Returns: The requests of callers who wait for the bytes.
    mutating func removeAll() -> [UInt64] {
        defer { loads = [:] }
        return loads.sorted { $0.key < $1.key }.compactMap { _, load in
            guard case .reading(let request) = load.purpose else { return nil }
            return request
        }
    }

    /// What was asked for on a connection that is gone is to be asked for again.
    mutating func repeatAll(at now: Duration) {
        for request in loads.keys where loads[request]?.deadline != nil {
            loads[request]?.deadline = now
        }
    }

    func overdue(at now: Duration) -> [UInt64] {
        loads.compactMap { request, load in
            load.deadline.map { now >= $0 } == true ? request : nil
        }.sorted()
    }

    var nextDeadline: Duration? { loads.values.lazy.compactMap(\.deadline).min() }
}
