import ConfluxVocabulary

/// The statements that read snapshots, prepared once.
struct SQLiteSnapshotReading {
    private let count: Statement
    private let all: Statement
    private let one: Statement
    private let pieces: Statement

    init(_ database: Database, version: Int64) throws(DatabaseFailure) {
        let columns = "\(SQLiteSnapshotRow.columns), \(SQLiteSnapshots.isIntact(version))"
        count = try database.prepare(
            "SELECT count(*) FROM snapshots INDEXED BY snapshots_by_store")
        all = try database.prepare("SELECT \(columns) FROM snapshots NOT INDEXED")
        one = try database.prepare(
            """
            SELECT \(columns) FROM snapshots INDEXED BY snapshots_by_store
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
        let found = try SQLiteFormat.reading("Listing the snapshots") {
            () throws(DatabaseFailure) -> [SQLiteSnapshotRow]? in
            // Until then both statements see the log as it is at one moment.
            defer { count.reset() }
            guard try count.step() else { return nil }
            defer { all.reset() }
            var rows: [SQLiteSnapshotRow] = []
            while try all.step() {
                guard let row = SQLiteSnapshotRow(all) else { return nil }
                rows.append(row)
            }
            return rows.count == Int(count.integer(0)) ? rows : nil
        }
        guard let found else {
            throw LogError(
                .damaged,
                "The list of snapshots is not what was written. Restore the log from a backup.")
        }
        return found.filter { $0.isWhole && $0.snapshot.sequence <= last }.map(\.snapshot)
            .sorted(by: SavedSnapshot.isAscending)
    }

    func snapshot(of key: SavedSnapshot.Key) throws(LogError) -> SavedSnapshot? {
        do throws(DatabaseFailure) {
            defer { one.reset() }
            if let found = try row(of: key)?.snapshot { return found }
        } catch {
            throw Self.error(error, of: key)
        }
        try confirmAbsent(key)
        return nil
    }

    /// That one isn't there is said by a list that is whole, since it would be taken for given up.
    private func confirmAbsent(_ key: SavedSnapshot.Key) throws(LogError) {
        guard try !listed(through: key.sequence).contains(where: { $0.key == key }) else {
            throw .damagedSnapshot(key, "the index of the list does not have it")
        }
    }

    private static func error(_ failure: DatabaseFailure, of key: SavedSnapshot.Key) -> LogError {
        let reading = SQLiteFormat.readError(failure, "Reading the snapshot of \(key)")
        return reading.code == .damaged ? .damagedSnapshot(key, failure.words) : reading
    }

    /// The statement is to be reset behind it.
    private func row(
        of key: SavedSnapshot.Key
    ) throws(DatabaseFailure) -> SQLiteSnapshotRow? {
        one.bind(key.store.description, at: 1)
        one.bind(Int64(bitPattern: key.life.rawValue), at: 2)
        one.bind(Int64(bitPattern: key.sequence.rawValue), at: 3)
        guard try one.step(), let row = SQLiteSnapshotRow(one), row.snapshot.key == key else {
            return nil
        }
        return row
    }

    func read(
        _ key: SavedSnapshot.Key, from offset: UInt64, limitBytes: Int
    ) throws(LogError) -> Bytes? {
        let answer: Result<Bytes, LogError>?
        do throws(DatabaseFailure) {
            answer = try gather(key, from: offset, limitBytes: max(1, limitBytes))
        } catch {
            throw Self.error(error, of: key)
        }
        guard let answer else {
            try confirmAbsent(key)
            return nil
        }
        return try answer.get()
    }

    private func gather(
        _ key: SavedSnapshot.Key, from offset: UInt64, limitBytes: Int
    ) throws(DatabaseFailure) -> Result<Bytes, LogError>? {
        // Until then both statements see the log as it is at one moment.
        defer { one.reset() }
        guard let row = try row(of: key) else { return nil }
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
