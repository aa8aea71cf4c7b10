import ConfluxHashing
import ConfluxLog
import ConfluxVocabulary

extension StoreName {
    /// The stores of these tests.
    static func sample(_ instance: String = "shared") -> StoreName {
        guard let name = StoreName("document/\(instance)") else {
            preconditionFailure("\(instance) is no name")
        }
        return name
    }
}

extension SavedSnapshot {
    /// A snapshot whose bytes are derived from its number.
    static func sample(
        _ sequence: UInt64, of store: StoreName = .sample(), life: UInt64 = 1, bytes: Int = 23,
        kind: SavedSnapshot.Kind = .confirmed
    ) -> SavedSnapshot {
        SavedSnapshot(
            store: store, life: SequenceNumber(life), sequence: SequenceNumber(sequence),
            schemaVersion: 3, digest: Digest(of: contents(sequence, bytes)),
            byteCount: UInt64(bytes), kind: kind)
    }

    private static func contents(_ sequence: UInt64, _ count: Int) -> [UInt8] {
        (0..<count).map { UInt8(truncatingIfNeeded: UInt64($0) &* 11 &+ sequence) }
    }

    var contents: [UInt8] { Self.contents(sequence.rawValue, Int(byteCount)) }

    func pieces(of size: Int) -> [SnapshotPiece] {
        let bytes = contents[...]
        return stride(from: 0, to: max(1, bytes.count), by: size).map { offset in
            SnapshotPiece(
                snapshot: self, offset: UInt64(offset), bytes: bytes.dropFirst(offset).prefix(size))
        }
    }
}

extension ActionLog {
    func keep(_ snapshot: SavedSnapshot, pieceBytes: Int = 7) throws(LogError) {
        for piece in snapshot.pieces(of: pieceBytes) { try save(piece) }
    }

    /// Reads all bytes of a snapshot, a few at a time.
    func contents(of snapshot: SavedSnapshot, limitBytes: Int = 5) throws -> [UInt8]? {
        var bytes: [UInt8] = []
        while bytes.count < Int(snapshot.byteCount) {
            guard
                let more = try readSnapshot(
                    of: snapshot.key, from: UInt64(bytes.count), limitBytes: limitBytes)
            else { return nil }
            guard !more.isEmpty else { return bytes }
            bytes += more
        }
        return bytes
    }

    /// Truncates until nothing is left to do.
    ///
    /// - Returns: The floor after each call.
    @discardableResult
    func truncateAll(below floor: UInt64, limitBytes: Int = 1) throws(LogError) -> [SequenceNumber]
    {
        var floors: [SequenceNumber] = []
        while try !truncate(below: SequenceNumber(floor), limitBytes: limitBytes) {
            if floors.last != self.floor { floors.append(self.floor) }
        }
        return floors
    }
}
