import ConfluxVocabulary

/// A snapshot on its way to this node.
struct SnapshotLoad: Sendable {
    /// Where a store continues behind its snapshot.
    struct Start: Sendable {
        /// The lowest number that the log held when the snapshot was offered.
        var floor: SequenceNumber
        /// The entries behind the snapshot that the log holds no longer.
        var aside: SnapshotReference?
        var skipped: [SequenceNumber]
    }

    /// What it is for.
    enum Purpose: Sendable {
        /// The store gets it.
        case opening(Start)
        /// They are entries, which the store gets behind this snapshot (rule 21).
        case following(Snapshot, Start)
        /// The store's own state at that point is compared with it (rule 22).
        case comparing(Divergence)
    }

    let place: SnapshotPlace
    let reference: SnapshotReference
    let purpose: Purpose
    var bytes: [UInt8] = []
    var hasher = DigestHasher()
    /// When the next part is asked for again; nil while it waits for its turn.
    var deadline: Duration?

    init(_ place: SnapshotPlace, _ reference: SnapshotReference, for purpose: Purpose) {
        self.place = place
        self.reference = reference
        self.purpose = purpose
    }

    /// Takes what comes next.
    ///
    /// - Returns: Whether it was that.
    mutating func take(_ chunk: SnapshotChunk) -> Bool {
        guard chunk.place == place, chunk.offset == UInt64(bytes.count),
            chunk.byteCount == reference.byteCount, !chunk.bytes.isEmpty
        else { return false }
        // It grows with what came, not with what was announced.
        bytes.append(contentsOf: chunk.bytes)
        hasher.update(chunk.bytes)
        return true
    }

    var isWhole: Bool { UInt64(bytes.count) == reference.byteCount }
    /// Whether it is what was announced.
    var isIntact: Bool { hasher.finish() == reference.digest }
}

/// The snapshots on their way to this node. Each asks for one part at a time.
struct SnapshotLoads: Sendable {
    /// By request, which each keeps to its end.
    private(set) var loads: [UInt64: SnapshotLoad] = [:]

    subscript(request: UInt64) -> SnapshotLoad? {
        get { loads[request] }
        set { loads[request] = newValue }
    }

    /// Gives the next part to a load, where it is: a copy of what has come would cost more with each
    /// part.
    ///
    /// - Returns: Whether it was that.
    mutating func take(_ chunk: SnapshotChunk, for request: UInt64) -> Bool {
        loads[request]?.take(chunk) ?? false
    }

    var count: Int { loads.count }
    var activeCount: Int { loads.values.count { $0.deadline != nil } }
    /// The bytes that are here. *Use*: what they may come to.
    var byteCount: Int { loads.values.reduce(0) { $0 + $1.bytes.count } }

    /// The next one that waits for its turn.
    var waiting: UInt64? { loads.filter { $0.value.deadline == nil }.keys.min() }

    /// One is whole, or will never be.
    mutating func remove(_ request: UInt64) -> SnapshotLoad? {
        loads.removeValue(forKey: request)
    }

    /// A store is closed, or begins anew.
    mutating func remove(_ store: StoreName) {
        loads = loads.filter { $0.value.place.store != store }
    }

    /// A store is compared with one snapshot at a time.
    mutating func removeComparing(_ store: StoreName) {
        loads = loads.filter { _, load in
            guard load.place.store == store, case .comparing = load.purpose else { return true }
            return false
        }
    }

    mutating func removeAll() { loads = [:] }

    /// What was asked for on a connection that is gone is asked for again.
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
