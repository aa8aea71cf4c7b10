import ConfluxLog
import ConfluxVocabulary

/// Finds and reads checkpoints and snapshots.
extension EtcdReading {
    /// How often to look again for something that was removed while it was read.
    private static let looksMax = 8

    /// A listed checkpoint: the value at its key.
    struct CheckpointPlace: Equatable {
        let sequence: SequenceNumber
        let byteCount: UInt64
        let checksum: UInt64
        let id: Identifier

        init(sequence: SequenceNumber, byteCount: UInt64, checksum: UInt64, id: Identifier) {
            self.sequence = sequence
            self.byteCount = byteCount
            self.checksum = checksum
            self.id = id
        }

        init?(_ pair: EtcdPair) {
            guard let text = EtcdText(pair.value, at: pair.key),
                let sequence = EtcdLayout.number(endingIn: pair.key),
                let byteCount = text.number(0), let checksum = text.number(1),
                let id = text.identifier(2)
            else { return nil }
            self.init(
                sequence: SequenceNumber(sequence), byteCount: byteCount,
                checksum: checksum, id: id)
        }

        func value(at key: String) -> Bytes {
            EtcdText(["\(byteCount)", "\(checksum)", "\(id)"]).value(at: key)
        }
    }

    /// A listed snapshot: the value at its key.
    struct SnapshotPlace: Equatable {
        let snapshot: SavedSnapshot
        let id: Identifier

        init(_ snapshot: SavedSnapshot, id: Identifier) {
            self.snapshot = snapshot
            self.id = id
        }

        init?(_ pair: EtcdPair, in layout: EtcdLayout) {
            guard let text = EtcdText(pair.value, at: pair.key),
                let key = layout.snapshot(at: pair.key),
                let version = text.number(0).flatMap(UInt32.init(exactly:)),
                let digest = text.digest(1), let byteCount = text.number(2),
                let kind = text.number(3).flatMap(UInt8.init(exactly:))
                    .flatMap(SavedSnapshot.Kind.init), let id = text.identifier(4)
            else { return nil }
            self.init(
                SavedSnapshot(
                    store: key.store, life: key.life, sequence: key.sequence,
                    schemaVersion: version, digest: digest, byteCount: byteCount,
                    kind: kind), id: id)
        }

        func value(at key: String) -> Bytes {
            EtcdText([
                "\(snapshot.schemaVersion)", "\(snapshot.digest)",
                "\(snapshot.byteCount)", "\(snapshot.kind.rawValue)", "\(id)",
            ]).value(at: key)
        }
    }

    // MARK: Checkpoints

    /// The keys of the listed checkpoints, ascending, and the place of each; nil if its value is not what was
    /// written.
    func checkpoints() throws(LogError) -> [(SequenceNumber, CheckpointPlace?)] {
        let answer = try look(
            [.read(.below(layout.checkpoints))], "Reading the log's checkpoints")
        return answer.pairs[0].map { pair in
            let number = EtcdLayout.number(endingIn: pair.key) ?? 0
            return (SequenceNumber(number), CheckpointPlace(pair))
        }
    }

    /// Like `ActionLog.checkpoint(through:)`.
    func checkpoint(through last: SequenceNumber) throws(LogError) -> SavedCheckpoint? {
        for _ in 0..<Self.looksMax {
            let newest = try checkpoints().last { $0.0 <= last }
            guard let (sequence, place) = newest else { return nil }
            guard let place else {
                throw .damagedCheckpoint(sequence, "its description is not what was written")
            }
            if let bytes = try parts(layout.parts(place.id), from: 0, count: place.byteCount),
                Checksum.hash(bytes[...]) == place.checksum
            {
                return SavedCheckpoint(sequence: sequence, bytes: bytes[...])
            }
            // Newer checkpoints may have replaced it while it was read.
            guard try !checkpoints().contains(where: { $0.1 == place }) else {
                throw .damagedCheckpoint(sequence, "its bytes are not those that were written")
            }
        }
        throw LogError(
            .failed, "Checkpoints are saved faster than this program reads them. Try again.")
    }

    // MARK: Snapshots

    /// The listed snapshots that are not above a number, ascending, and the stores that damage concerns.
    func snapshotList(through last: SequenceNumber) throws(LogError) -> SnapshotList {
        let answer = try look(
            [.read(.below(layout.snapshots))], "Reading the list of the log's snapshots")
        var intact: [SavedSnapshot] = []
        var damaged: Set<StoreName>? = []
        for pair in answer.pairs[0] {
            if let place = SnapshotPlace(pair, in: layout) {
                intact.append(place.snapshot)
            } else if let store = layout.store(at: pair.key) {
                damaged?.insert(store)
            } else {
                damaged = nil
            }
        }
        return SnapshotList(
            intact: intact.filter { $0.sequence <= last }.sorted {
                ($0.store, $0.sequence) < ($1.store, $1.sequence)
            }, damage: damaged?.isEmpty == true ? nil : SnapshotList.Damage(stores: damaged))
    }

    /// The places of a store's complete snapshots.
    func places(of store: StoreName) throws(LogError) -> [SnapshotPlace] {
        let answer = try look(
            [.read(.below(layout.snapshots(of: store)))], "Reading the snapshots of \(store)")
        return answer.pairs[0].compactMap { SnapshotPlace($0, in: layout) }
    }

    /// The place of a snapshot; nil if there is none.
    ///
    /// - Throws: `damaged`, `failed`, `unreachable`, `denied`.
    func place(of key: SavedSnapshot.Key) throws(LogError) -> SnapshotPlace? {
        let answer = try look(
            [.read(.key(layout.snapshot(key)))], "Reading the snapshot of \(key)")
        guard let pair = answer.pair(0) else { return nil }
        guard let place = SnapshotPlace(pair, in: layout) else {
            throw .damagedSnapshot(key, "its description is not what was written")
        }
        return place
    }

    /// Like `ActionLog.readSnapshot(of:from:limitBytes:)`.
    func readSnapshot(
        of key: SavedSnapshot.Key, from offset: UInt64, limitBytes: Int
    ) throws(LogError) -> Bytes? {
        for _ in 0..<Self.looksMax {
            guard let place = try place(of: key) else { return nil }
            let total = place.snapshot.byteCount
            guard offset < total else { return [] }
            let count = min(total - offset, UInt64(max(1, limitBytes)))
            if let bytes = try parts(layout.parts(place.id), from: offset, count: count) {
                return bytes[...]
            }
            // It may have been replaced or removed while it was read.
            guard try self.place(of: key) != place else {
                throw .damagedSnapshot(key, "its bytes are not those that were written")
            }
        }
        throw LogError(
            .failed, "The snapshot of \(key) is saved faster than this program reads it. Try again."
        )
    }
}
