import ConfluxLog
import ConfluxProtocol
import ConfluxVocabulary

/// The jobs that concern snapshots and the floor.
extension LogWorker {
    func readSnapshots() throws(LogError) {
        let list = try log.snapshotList()
        answer(
            .snapshotsRead(
                list.intact.filter { $0.kind != .compared }.map { SnapshotIndexEntry($0) },
                damage: list.damage.map {
                    SnapshotIndexDamage(stores: $0.stores, message: $0.message)
                }))
    }

    /// Saves a part of a snapshot. If the log has no room for it, the term goes on.
    func save(_ part: SnapshotPart) throws(LogError) {
        let piece = SnapshotPiece(
            snapshot: SavedSnapshot(part), offset: part.offset, bytes: part.bytes)
        var saved = SnapshotSaved(
            place: part.place, whole: piece.isLast ? part.reference : nil)
        do throws(LogError) {
            try log.save(piece)
        } catch {
            guard Self.isPassing(error) else { throw error }
            saved = SnapshotSaved(place: part.place, whole: nil, failure: error.message)
        }
        answer(.snapshotSaved(saved))
    }

    /// - Returns: Whether it is done.
    func truncate(below floor: SequenceNumber) throws(LogError) -> Bool {
        do throws(LogError) {
            return try log.truncate(below: floor, limitBytes: Self.truncateBytes)
        } catch {
            guard Self.isPassing(error) else { throw error }
            answer(.truncateFailed(message: error.message))
            return true
        }
    }

    /// Whether the error left the log unchanged and usable.
    static func isPassing(_ error: LogError) -> Bool {
        switch error.code {
        case .failed, .full, .invalidSnapshot, .invalidFloor: true
        default: false
        }
    }
}

extension SavedSnapshot.Key {
    init(_ place: SnapshotPlace) {
        self.init(store: place.store, life: place.life, sequence: place.sequence)
    }
}

extension SavedSnapshot {
    fileprivate init(_ part: SnapshotPart) {
        self.init(
            store: part.place.store, life: part.place.life, sequence: part.place.sequence,
            schemaVersion: part.reference.schemaVersion, digest: part.reference.digest,
            byteCount: part.reference.byteCount, kind: part.isConfirmed ? .confirmed : .compared)
    }
}

extension SnapshotReference {
    init(_ snapshot: SavedSnapshot) {
        self.init(
            sequence: snapshot.sequence, schemaVersion: snapshot.schemaVersion,
            digest: snapshot.digest, byteCount: snapshot.byteCount)
    }
}

extension SnapshotIndexEntry {
    fileprivate init(_ snapshot: SavedSnapshot) {
        self.init(
            place: SnapshotPlace(
                store: snapshot.store, life: snapshot.life, sequence: snapshot.sequence),
            reference: SnapshotReference(snapshot), isAside: snapshot.kind == .aside)
    }
}
