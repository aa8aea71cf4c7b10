import CSQLite
import ConfluxVocabulary

/// The database's record of a file of entries.
struct EntryFileRecord: Hashable, Sendable {
    /// The first number that the file holds.
    let first: SequenceNumber
    /// How many bytes the file has, at least, whatever happens: it was made with them.
    let byteCount: Int
}

/// The list of the files of entries: one row for each.
///
/// A file is listed, durably, before its first entry is written, and is no longer listed before it is removed.
/// So a listed file that is absent or shorter was lost, and what an unlisted file holds belongs to another
/// database. Each row stores its values twice, like that of ``SQLiteMeta``.
enum SQLiteEntryFiles {
    static let table = """
        CREATE TABLE files (
            first INTEGER PRIMARY KEY,
            bytes INTEGER NOT NULL,
            copy TEXT NOT NULL
        ) STRICT;
        """
    fileprivate static let insert = "INSERT OR REPLACE INTO files (first, bytes, copy)"
    fileprivate static let values = "first || ' ' || bytes"
}

/// The statements that read and change the list, prepared once.
struct SQLiteEntryFileStatements {
    private let read: Statement
    private let insert: Statement
    private let remove: Statement

    init(_ database: Database) throws(DatabaseFailure) {
        read = try database.prepare(
            "SELECT first, bytes, copy = \(SQLiteEntryFiles.values) FROM files ORDER BY first")
        insert = try database.prepare(
            "\(SQLiteEntryFiles.insert) VALUES (?1, ?2, ?1 || ' ' || ?2)")
        remove = try database.prepare(
            """
            DELETE FROM files
            WHERE first < (SELECT max(first) FROM files WHERE first <= ?1)
            """)
    }

    /// All files, ascending.
    ///
    /// - Throws: SQLite's failure; `SQLITE_CORRUPT` if a row is not what was written.
    func list() throws(DatabaseFailure) -> [EntryFileRecord] {
        defer { read.reset() }
        var files: [EntryFileRecord] = []
        while try read.step() {
            guard read.integer(2) == 1, let first = UInt64(exactly: read.integer(0)), first > 0,
                let byteCount = Int(exactly: read.integer(1))
            else {
                throw DatabaseFailure(
                    code: SQLITE_CORRUPT,
                    words: "the list of the files of entries is not what was written")
            }
            files.append(
                EntryFileRecord(first: SequenceNumber(first), byteCount: byteCount))
        }
        return files
    }

    /// Lists a file.
    func add(_ file: EntryFileRecord) throws(DatabaseFailure) {
        insert.bind(Int64(clamping: file.first.rawValue), at: 1)
        insert.bind(Int64(file.byteCount), at: 2)
        try insert.run()
    }

    /// Removes the files whose entries are all below a number from the list.
    func remove(below floor: SequenceNumber) throws(DatabaseFailure) {
        remove.bind(Int64(clamping: floor.rawValue), at: 1)
        try remove.run()
    }
}
