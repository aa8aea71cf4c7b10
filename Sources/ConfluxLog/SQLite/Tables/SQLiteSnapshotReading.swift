import ConfluxVocabulary

/// The statements that read snapshots, prepared once.
struct SQLiteSnapshotReading {
    private let all: Statement
    private let one: Statement
    private let pieces: Statement

    init(_ database: Database) throws(DatabaseFailure) {
        all = try database.prepare(
            """
            SELECT \(SQLiteSnapshotRow.columns) FROM snapshots
            WHERE saved >= size AND sequence <= ?1 AND retired = 0
            """)
        one = try database.prepare(
            """
            SELECT \(SQLiteSnapshotRow.columns) FROM snapshots
            WHERE store = ?1 AND life = ?2 AND sequence = ?3 AND saved >= size AND retired = 0
            """)
        pieces = try database.prepare(
            """
            SELECT position, checksum, bytes FROM snapshot_pieces
            WHERE snapshot = ?1 AND position >= coalesce((
                SELECT max(position) FROM snapshot_pieces
                WHERE snapshot = ?1 AND position <= ?2), 0)
            ORDER BY position
            """)
    }

    func listed(through last: SequenceNumber) throws(LogError) -> [SavedSnapshot] {
        let rows = try SQLiteFormat.reading("Listing the snapshots") {
            () throws(DatabaseFailure) -> [SavedSnapshot?] in
            all.bind(Int64(clamping: last.rawValue), at: 1)
            defer { all.reset() }
            var rows: [SavedSnapshot?] = []
            while try all.step() { rows.append(SQLiteSnapshotRow(all)?.snapshot) }
            return rows
        }
        let found = rows.compactMap { $0 }
        guard found.count == rows.count else {
            throw LogError(
                .damaged,
                "The list of snapshots is not what was written. Restore the log from a backup.")
        }
        return found.sorted(by: SavedSnapshot.isAscending)
    }

    func read(
        _ key: SavedSnapshot.Key, from offset: UInt64, limitBytes: Int
    ) throws(LogError) -> Bytes? {
        let answer: Result<Bytes, LogError>?
        do throws(DatabaseFailure) {
            answer = try gather(key, from: offset, limitBytes: max(1, limitBytes))
        } catch {
            let reading = SQLiteFormat.readError(error, "Reading the snapshot of \(key)")
            throw reading.code == .damaged ? .damagedSnapshot(key, error.words) : reading
        }
        return try answer?.get()
    }

    private func gather(
        _ key: SavedSnapshot.Key, from offset: UInt64, limitBytes: Int
    ) throws(DatabaseFailure) -> Result<Bytes, LogError>? {
        one.bind(key.store.description, at: 1)
        one.bind(Int64(bitPattern: key.life.rawValue), at: 2)
        one.bind(Int64(bitPattern: key.sequence.rawValue), at: 3)
        // Until then both statements see the log as it is at one moment.
        defer { one.reset() }
        guard try one.step(), let row = SQLiteSnapshotRow(one) else { return nil }
        let size = row.snapshot.byteCount
        guard offset < size else { return .success([]) }
        pieces.bind(row.id, at: 1)
        pieces.bind(Int64(offset), at: 2)
        defer { pieces.reset() }
        let end = offset + min(UInt64(limitBytes), size - offset)
        var found: [UInt8] = []
        var next: UInt64?
        while next ?? 0 < end {
            guard try pieces.step() else {
                return .failure(.damagedSnapshot(key, "its end is missing"))
            }
            let position = UInt64(bitPattern: pieces.integer(0))
            let bytes = pieces.bytes(2)
            guard position == next ?? position, position <= max(offset, next ?? 0),
                SQLiteSnapshots.checksum(row.snapshot, at: position, bytes)
                    == UInt64(bitPattern: pieces.integer(1)),
                !bytes.isEmpty
            else {
                return .failure(
                    .damagedSnapshot(key, "its bytes are not those that were written"))
            }
            let skipped = Int(clamping: offset - min(offset, position))
            let wanted = Int(clamping: end - position)
            found.append(contentsOf: bytes.prefix(wanted).dropFirst(skipped))
            next = position + UInt64(bytes.count)
        }
        return .success(found[...])
    }
}
