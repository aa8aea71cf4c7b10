import ConfluxVocabulary

/// The statements that read snapshots, prepared once.
struct SQLiteSnapshotReading {
    private let count: Statement
    private let index: Statement
    private let all: Statement
    private let one: Statement
    private let pieces: Statement

    init(_ database: Database) throws(DatabaseFailure) {
        let columns = "\(SQLiteSnapshotRow.columns), \(SQLiteSnapshots.isIntact())"
        count = try database.prepare(
            "SELECT count(*) FROM snapshots INDEXED BY snapshots_by_store")
        index = try database.prepare(
            "SELECT id, store FROM snapshots INDEXED BY snapshots_by_store")
        all = try database.prepare("SELECT \(columns), copy FROM snapshots NOT INDEXED")
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
        let list = try list(through: last)
        if let damage = list.damage { throw LogError(.damaged, damage.message) }
        return list.intact
    }

    /// The list without damaged rows.
    func list(through last: SequenceNumber) throws(LogError) -> SnapshotList {
        var found = Found()
        do throws(DatabaseFailure) {
            try gather(into: &found)
        } catch {
            let error = SQLiteFormat.readError(error, "Listing the snapshots")
            guard error.code == .damaged else { throw error }
            // The unread rows may belong to any store.
            found.isAnyConcerned = true
        }
        return found.list(through: last)
    }

    private func gather(into found: inout Found) throws(DatabaseFailure) {
        // Until this reset, the other two statements see the log as it is at one moment, too.
        defer { count.reset() }
        guard try count.step() else { return }
        defer { index.reset() }
        while try index.step() { found.indexed[index.integer(0)] = index.text(1) }
        defer { all.reset() }
        while try all.step() { found.add(all) }
        if !found.indexed.isEmpty { found.isAnyConcerned = true }
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

    /// Reports that a snapshot is absent only if the list is intact: otherwise a damaged row would count as
    /// removed.
    private func confirmAbsent(_ key: SavedSnapshot.Key) throws(LogError) {
        guard try !listed(through: key.sequence).contains(where: { $0.key == key }) else {
            throw .damagedSnapshot(key, "the index of the list does not have it")
        }
    }

    private static func error(_ failure: DatabaseFailure, of key: SavedSnapshot.Key) -> LogError {
        let reading = SQLiteFormat.readError(failure, "Reading the snapshot of \(key)")
        return reading.code == .damaged ? .damagedSnapshot(key, failure.words) : reading
    }

    /// The caller must reset the statement afterwards.
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
        // Until this reset, both statements see the log as it is at one moment.
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

/// The rows of the list that were found so far.
private struct Found {
    private var rows: [SQLiteSnapshotRow] = []
    private var concerned: Set<StoreName> = []
    /// Rows that the index has, and that the table has not returned yet. At the end: rows that are lost.
    var indexed: [Int64: String] = [:]
    /// Whether there is a row whose store is unknown.
    var isAnyConcerned = false

    /// Adds a row. After the row's columns come a flag that says whether it is intact, and its copy.
    mutating func add(_ statement: Statement) {
        let name = statement.text(1)
        let inIndex = indexed.removeValue(forKey: statement.integer(0))
        let row = SQLiteSnapshotRow(statement)
        if let row { rows.append(row) }
        guard row == nil || inIndex != name else { return }
        let inCopy = statement.text(11).split(separator: " ").first.map { String($0) }
        // Each of these names may be the right one. If no two agree, any store may be concerned.
        let names = [name, inIndex, inCopy].compactMap { $0.flatMap { StoreName($0) } }
        concerned.formUnion(names)
        if Set(names).count == names.count { isAnyConcerned = true }
    }

    func list(through last: SequenceNumber) -> SnapshotList {
        let intact = rows.filter { $0.isWhole && $0.snapshot.sequence <= last }.map(\.snapshot)
        let isDamaged = isAnyConcerned || !concerned.isEmpty
        return SnapshotList(
            intact: intact.sorted(by: SavedSnapshot.isAscending),
            damage: isDamaged
                ? SnapshotList.Damage(stores: isAnyConcerned ? nil : concerned) : nil)
    }
}
