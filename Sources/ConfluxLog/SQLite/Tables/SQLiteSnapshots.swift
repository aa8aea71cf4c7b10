import ConfluxVocabulary

/// Snapshots in the database: one row for each in `snapshots`, and one for each piece in `snapshot_pieces`.
///
/// A snapshot is complete when all of its bytes are saved. It is retired by a mark, which takes no time. Its
/// pieces are removed a few at a time with later writes, since removing hundreds of megabytes at once would
/// delay appends.
///
/// Each row stores its values twice, like that of ``SQLiteMeta``. Each row also has an entry in the index, so
/// that a missing row is noticed.
enum SQLiteSnapshots {
    static let tables = """
        \(list)
        CREATE TABLE snapshot_pieces (
            snapshot INTEGER NOT NULL,
            position INTEGER NOT NULL,
            checksum INTEGER NOT NULL,
            bytes BLOB NOT NULL,
            PRIMARY KEY (snapshot, position)
        ) STRICT;
        """
    private static let list = """
        CREATE TABLE snapshots (
            id INTEGER PRIMARY KEY,
            store TEXT NOT NULL,
            life INTEGER NOT NULL,
            sequence INTEGER NOT NULL,
            version INTEGER NOT NULL,
            digest BLOB NOT NULL,
            size INTEGER NOT NULL,
            kind INTEGER NOT NULL,
            saved INTEGER NOT NULL,
            retired INTEGER NOT NULL,
            copy TEXT NOT NULL DEFAULT ''
        ) STRICT;
        CREATE INDEX snapshots_by_store ON snapshots (store);
        \(trigger)
        """
    // A row is updated when its first piece is saved, in the same transaction that created it.
    private static let trigger = """
        CREATE TRIGGER snapshots_copied AFTER UPDATE OF
            store, life, sequence, version, digest, size, kind, saved, retired ON snapshots
        BEGIN
            UPDATE snapshots SET copy = \(values) WHERE id = NEW.id;
        END;
        """
    private static let values = """
        store || ' ' || life || ' ' || sequence || ' ' || version || ' ' || hex(digest) || ' ' || size
        || ' ' || kind || ' ' || saved || ' ' || retired
        """

    /// The condition for an intact row.
    static func isIntact() -> String { "copy = \(values)" }

    /// The checksum of a piece and of its snapshot's row. So a changed row of `snapshots` does not
    /// fit its pieces.
    static func checksum(
        _ snapshot: SavedSnapshot, at offset: UInt64, _ bytes: UnsafeRawBufferPointer
    ) -> UInt64 {
        var place = ChecksumHasher()
        var name = snapshot.store.description
        name.withUTF8 { place.update(UnsafeRawBufferPointer($0)) }
        for number in [
            snapshot.life.rawValue, snapshot.sequence.rawValue, UInt64(snapshot.schemaVersion),
            snapshot.byteCount, UInt64(snapshot.kind.rawValue), offset,
        ] { place.update(number) }
        snapshot.digest.withBytes { place.update($0) }
        return Checksum.hash(bytes, seed: place.finish())
    }
}

/// A row of `snapshots`.
struct SQLiteSnapshotRow {
    /// In the order in which they are read.
    static let columns = "id, store, life, sequence, version, digest, size, kind, saved, retired"

    let id: Int64
    let snapshot: SavedSnapshot
    let saved: UInt64
    let isRetired: Bool

    /// Whether readers may see it.
    var isWhole: Bool { saved >= snapshot.byteCount && !isRetired }

    /// nil if the row is not what was written. After the columns comes a flag that says whether it is intact.
    init?(_ statement: Statement) {
        guard statement.integer(10) == 1, let store = StoreName(statement.text(1)),
            let version = UInt32(exactly: statement.integer(4)),
            let kind = UInt8(exactly: statement.integer(7)).flatMap(SavedSnapshot.Kind.init),
            let digest = Digest(statement.bytes(5))
        else { return nil }
        func number(_ column: Int32) -> UInt64 { UInt64(bitPattern: statement.integer(column)) }
        id = statement.integer(0)
        snapshot = SavedSnapshot(
            store: store, life: SequenceNumber(number(2)), sequence: SequenceNumber(number(3)),
            schemaVersion: version, digest: digest, byteCount: number(6), kind: kind)
        saved = number(8)
        isRetired = number(9) != 0
    }
}

/// The statements that save snapshots, prepared once. Each method is for a transaction of its own.
struct SQLiteSnapshotStatements {
    private let database: Database
    private let ofStore: Statement
    private let insert: Statement
    private let advance: Statement
    private let insertPiece: Statement
    private let retire: Statement
    private let retireStore: Statement
    private let retireLost: Statement
    private let retireOne: Statement
    private let retireUnfinished: Statement
    private let retired: Statement
    private let piecesOfRetired: Statement
    private let deletePieces: Statement
    private let delete: Statement

    init(_ database: Database) throws(DatabaseFailure) {
        self.database = database
        ofStore = try database.prepare(
            """
            SELECT \(SQLiteSnapshotRow.columns), \(SQLiteSnapshots.isIntact()) FROM snapshots
            WHERE store = ?1 AND retired = 0
            """)
        insert = try database.prepare(
            """
            INSERT INTO snapshots
            (store, life, sequence, version, digest, size, kind, saved, retired)
            VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, 0, 0)
            """)
        advance = try database.prepare("UPDATE snapshots SET saved = saved + ?2 WHERE id = ?1")
        insertPiece = try database.prepare(
            """
            INSERT INTO snapshot_pieces (snapshot, position, checksum, bytes)
            VALUES (?1, ?2, ?3, ?4)
            """)
        retire = try database.prepare("UPDATE snapshots SET retired = 1 WHERE id = ?1")
        // A damaged row must stay damaged: an update would give it a new copy.
        let isIntact = SQLiteSnapshots.isIntact()
        retireStore = try database.prepare(
            "UPDATE snapshots SET retired = 1 WHERE store = ?1 AND retired = 0 AND \(isIntact)")
        retireLost = try database.prepare(
            """
            UPDATE snapshots SET retired = 1
            WHERE (sequence > ?1 OR saved < size) AND retired = 0 AND \(isIntact)
            """)
        retireUnfinished = try database.prepare(
            """
            UPDATE snapshots SET retired = 1
            WHERE store = ?1 AND saved < size AND retired = 0 AND \(isIntact)
            """)
        retireOne = try database.prepare(
            """
            UPDATE snapshots SET retired = 1
            WHERE store = ?1 AND life = ?2 AND sequence = ?3 AND kind = ?4 AND retired = 0 AND \(isIntact)
            """)
        retired = try database.prepare(
            "SELECT id FROM snapshots WHERE retired = 1 AND \(isIntact) LIMIT 1")
        piecesOfRetired = try database.prepare(
            """
            SELECT position, length(bytes) FROM snapshot_pieces WHERE snapshot = ?1
            ORDER BY position
            """)
        deletePieces = try database.prepare(
            "DELETE FROM snapshot_pieces WHERE snapshot = ?1 AND position <= ?2")
        delete = try database.prepare("DELETE FROM snapshots WHERE id = ?1")
    }

    /// Saves the piece.
    ///
    /// - Returns: Whether it follows the pieces that were saved before.
    func save(_ piece: SnapshotPiece) throws(DatabaseFailure) -> Bool {
        let snapshot = piece.snapshot
        let (unfinished, whole) = try rows(of: snapshot.store)
        let id: Int64
        if piece.offset == 0 {
            for row in unfinished { try mark(row.id) }
            id = try begin(snapshot)
        } else {
            guard let row = unfinished.first, row.snapshot == snapshot, row.saved == piece.offset
            else { return false }
            id = row.id
        }
        try piece.bytes.withUnsafeBufferPointer { buffer throws(DatabaseFailure) in
            let bytes = UnsafeRawBufferPointer(buffer)
            let checksum = SQLiteSnapshots.checksum(snapshot, at: piece.offset, bytes)
            insertPiece.bind(id, at: 1)
            insertPiece.bind(Int64(piece.offset), at: 2)
            insertPiece.bind(Int64(bitPattern: checksum), at: 3)
            insertPiece.bind(bytes, at: 4)
            try insertPiece.run()
        }
        advance.bind(id, at: 1)
        advance.bind(Int64(piece.bytes.count), at: 2)
        try advance.run()
        if piece.isLast, snapshot.gives(wayTo: whole.map(\.snapshot)) {
            try mark(id)
        } else if piece.isLast {
            let goes = Set(snapshot.retires(among: whole.map(\.snapshot)))
            for row in whole where goes.contains(row.snapshot) { try mark(row.id) }
        }
        return true
    }

    private func rows(
        of store: StoreName
    ) throws(DatabaseFailure) -> (unfinished: [SQLiteSnapshotRow], whole: [SQLiteSnapshotRow]) {
        ofStore.bind(store.description, at: 1)
        defer { ofStore.reset() }
        var unfinished: [SQLiteSnapshotRow] = []
        var whole: [SQLiteSnapshotRow] = []
        while try ofStore.step() {
            guard let row = SQLiteSnapshotRow(ofStore) else { continue }
            if row.saved < row.snapshot.byteCount {
                unfinished.append(row)
            } else {
                whole.append(row)
            }
        }
        return (unfinished, whole)
    }

    private func begin(_ snapshot: SavedSnapshot) throws(DatabaseFailure) -> Int64 {
        insert.bind(snapshot.store.description, at: 1)
        insert.bind(Int64(bitPattern: snapshot.life.rawValue), at: 2)
        insert.bind(Int64(bitPattern: snapshot.sequence.rawValue), at: 3)
        insert.bind(Int64(snapshot.schemaVersion), at: 4)
        insert.bind(Int64(bitPattern: snapshot.byteCount), at: 6)
        insert.bind(Int64(snapshot.kind.rawValue), at: 7)
        try snapshot.digest.withBytes { bytes throws(DatabaseFailure) in
            insert.bind(bytes, at: 5)
            try insert.run()
        }
        return database.lastRow
    }

    private func mark(_ id: Int64) throws(DatabaseFailure) {
        retire.bind(id, at: 1)
        try retire.run()
    }

    func remove(_ store: StoreName) throws(DatabaseFailure) {
        retireStore.bind(store.description, at: 1)
        try retireStore.run()
    }

    /// Retires the unfinished snapshot of a store.
    func giveUp(_ store: StoreName) throws(DatabaseFailure) {
        retireUnfinished.bind(store.description, at: 1)
        try retireUnfinished.run()
    }

    /// Retires a snapshot.
    func remove(_ snapshot: SavedSnapshot) throws(DatabaseFailure) {
        retireOne.bind(snapshot.store.description, at: 1)
        retireOne.bind(Int64(bitPattern: snapshot.life.rawValue), at: 2)
        retireOne.bind(Int64(bitPattern: snapshot.sequence.rawValue), at: 3)
        retireOne.bind(Int64(snapshot.kind.rawValue), at: 4)
        try retireOne.run()
    }

    /// Retires snapshots above a number, and unfinished ones.
    func cut(to last: SequenceNumber) throws(DatabaseFailure) {
        retireLost.bind(Int64(clamping: last.rawValue), at: 1)
        try retireLost.run()
    }

    /// Removes pieces of retired snapshots, at least one piece.
    ///
    /// - Returns: Whether none was left before this call.
    func collect(limitBytes: Int) throws(DatabaseFailure) -> Bool {
        var left = limitBytes
        var isFirst = true
        while let id = try firstRetired() {
            let (through, bytes, isAll) = try pieces(of: id, limitBytes: left)
            deletePieces.bind(id, at: 1)
            deletePieces.bind(through, at: 2)
            try deletePieces.run()
            isFirst = false
            guard isAll else { break }
            delete.bind(id, at: 1)
            try delete.run()
            left -= bytes
            if left <= 0 { break }
        }
        return isFirst
    }

    private func firstRetired() throws(DatabaseFailure) -> Int64? {
        defer { retired.reset() }
        return try retired.step() ? retired.integer(0) : nil
    }

    /// The pieces to remove together.
    private func pieces(
        of id: Int64, limitBytes: Int
    ) throws(DatabaseFailure) -> (through: Int64, bytes: Int, isAll: Bool) {
        piecesOfRetired.bind(id, at: 1)
        defer { piecesOfRetired.reset() }
        var through: Int64 = -1
        var bytes = 0
        while try piecesOfRetired.step() {
            if bytes > 0, bytes >= limitBytes { return (through, bytes, false) }
            through = piecesOfRetired.integer(0)
            bytes += max(1, Int(piecesOfRetired.integer(1)))
        }
        return (through, bytes, true)
    }
}
