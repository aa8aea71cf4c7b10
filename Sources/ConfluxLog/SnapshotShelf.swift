import ConfluxVocabulary

/// The snapshots of a log in memory.
package struct SnapshotShelf {
    private struct Volume {
        let snapshot: SavedSnapshot
        var bytes: [UInt8] = []
    }

    /// The complete snapshots.
    private var whole: [SavedSnapshot.Key: Volume] = [:]
    /// The unfinished snapshot of each store.
    private var unfinished: [StoreName: Volume] = [:]
    /// How many bytes all of them have.
    package private(set) var byteCount = 0

    /// Makes an empty shelf.
    package init() {}

    /// Makes a shelf with these snapshots, all of them complete.
    package init(_ volumes: [(snapshot: SavedSnapshot, bytes: [UInt8])]) {
        for (snapshot, bytes) in volumes {
            whole[snapshot.key] = Volume(snapshot: snapshot, bytes: bytes)
        }
        count()
    }

    /// Like `ActionLog.snapshots()`.
    package func listed(through last: SequenceNumber) -> [SavedSnapshot] {
        whole.values.map(\.snapshot).filter { $0.sequence <= last }
            .sorted(by: SavedSnapshot.isAscending)
    }

    /// Like `LogReader.snapshot(of:)`.
    package func snapshot(of key: SavedSnapshot.Key) -> SavedSnapshot? { whole[key]?.snapshot }

    /// Like `ActionLog.readSnapshot(of:from:limitBytes:)`.
    package func read(_ key: SavedSnapshot.Key, from offset: UInt64, limitBytes: Int) -> Bytes? {
        guard let volume = whole[key] else { return nil }
        return volume.bytes.dropFirst(Int(clamping: offset)).prefix(max(1, limitBytes))
    }

    /// Removes snapshots above a number, and unfinished ones.
    package mutating func cut(to last: SequenceNumber) {
        whole = whole.filter { $0.key.sequence <= last }
        unfinished = [:]
        count()
    }

    /// Removes one snapshot.
    package mutating func lose(_ key: SavedSnapshot.Key) {
        whole[key] = nil
        count()
    }

    /// Removes the snapshots of a store.
    package mutating func remove(_ store: StoreName) {
        whole = whole.filter { $0.key.store != store }
        unfinished[store] = nil
        count()
    }

    /// Removes the unfinished snapshot of a store.
    package mutating func giveUp(_ store: StoreName) {
        unfinished[store] = nil
        count()
    }

    /// Removes the snapshots that newer ones supersede.
    package mutating func removeSuperseded() {
        for snapshot in SavedSnapshot.superseded(among: whole.values.map(\.snapshot)) {
            whole[snapshot.key] = nil
        }
        count()
    }

    /// Like `ActionLog.save(_:)`.
    ///
    /// - Throws: `invalidSnapshot`.
    package mutating func save(
        _ piece: SnapshotPiece, endingAt last: SequenceNumber
    ) throws(LogError) {
        try piece.validate(endingAt: last)
        defer { count() }
        let snapshot = piece.snapshot
        if piece.offset == 0 { unfinished[snapshot.store] = Volume(snapshot: snapshot) }
        guard var volume = unfinished[snapshot.store], volume.snapshot == snapshot,
            volume.bytes.count == Int(clamping: piece.offset)
        else { throw .outOfOrder(piece) }
        // Release the only other reference, or each append would copy the bytes before it.
        unfinished[snapshot.store] = nil
        volume.bytes += piece.bytes
        guard piece.isLast else {
            unfinished[snapshot.store] = volume
            return
        }
        let others = whole.values.map(\.snapshot).filter { $0.store == snapshot.store }
        guard !snapshot.gives(wayTo: others) else { return }
        for retired in snapshot.retires(among: others) { whole[retired.key] = nil }
        whole[snapshot.key] = volume
    }

    private mutating func count() {
        byteCount = [whole.values.map(\.bytes.count), unfinished.values.map(\.bytes.count)]
            .joined().reduce(0, +)
    }
}
