import ConfluxLog
import ConfluxProtocol
import ConfluxVocabulary

/// Snapshots and the floor, as the log keeps them.
extension LogWorker {
    func readSnapshots() throws(LogError) {
        let found = try log.snapshots()
        snapshots = SnapshotCache(found)
        answer(
            .snapshotsRead(
                found.filter { $0.kind != .compared }.map { SnapshotIndexEntry($0) }))
    }

    /// What the log has no room for is no reason to end the tenure.
    func save(_ part: SnapshotPart) throws(LogError) {
        var failure: String?
        do throws(LogError) {
            try save(
                SnapshotPiece(
                    snapshot: SavedSnapshot(part), offset: part.offset, bytes: part.bytes))
        } catch {
            guard Self.isPassing(error) else { throw error }
            failure = error.message
        }
        answer(.snapshotSaved(part.place, offset: part.offset, failure: failure))
    }

    func save(_ piece: SnapshotPiece) throws(LogError) {
        try log.save(piece)
        if piece.isLast { snapshots.remember(piece.snapshot) }
    }

    func readPart(_ job: LoadJob) -> SnapshotChunk {
        let key = SavedSnapshot.Key(job.place)
        guard let size = snapshots.size(of: key), job.offset < size else {
            return .none(of: job.place)
        }
        if let bytes = snapshots.part(of: key, at: job.offset) {
            return SnapshotChunk(
                place: job.place, offset: job.offset, byteCount: size,
                bytes: bytes.prefix(Int(job.limitBytes)))
        }
        let bytes: Bytes?
        do throws(LogError) {
            bytes = try log.readSnapshot(
                of: key, from: job.offset, limitBytes: Int(job.limitBytes))
        } catch {
            // A snapshot that is damaged is as good as none: there are replicas.
            bytes = nil
        }
        guard let bytes else { return .none(of: job.place) }
        snapshots.keep(bytes, of: key, at: job.offset)
        return SnapshotChunk(
            place: job.place, offset: job.offset, byteCount: size, bytes: bytes)
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

    /// Whether nothing was changed, and the log is as good as before.
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
