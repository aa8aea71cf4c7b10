import CSQLite
import ConfluxVocabulary
import Foundation
import Testing

@testable import ConfluxLog

extension TemporaryFolder {
    /// Converts the closed log into one of a former format, in which commits are rows.
    func downgrade(to version: Int) throws {
        try moveEntriesIntoRows()
        guard version < 4 else { return }
        let former = "format || ' ' || log || ' ' || epoch || ' ' || floor || ' ' || reached"
        let copied =
            """
            CREATE TRIGGER meta_copied AFTER UPDATE OF format, log, epoch, floor, reached ON meta
            BEGIN
                UPDATE meta SET copy = \(former);
            END;
            """
        let list =
            version > 1
            ? "DROP TRIGGER snapshots_copied; ALTER TABLE snapshots DROP COLUMN copy;"
            : "DROP TABLE snapshots; DROP TABLE snapshot_pieces;"
        let uncopied =
            """
            \(list)
            ALTER TABLE meta DROP COLUMN copy;
            ALTER TABLE meta DROP COLUMN reached;
            \(version > 1 ? "" : "ALTER TABLE meta DROP COLUMN floor;")
            """
        let isIntact = version > 2 ? "WHERE copy = \(former)" : ""
        try run(
            """
            DROP TRIGGER commits_follow; DROP TRIGGER meta_copied;
            ALTER TABLE commits DROP COLUMN chain;
            ALTER TABLE meta DROP COLUMN chained;
            ALTER TABLE meta DROP COLUMN base;
            \(version > 2 ? copied : uncopied)
            CREATE TRIGGER commits_follow BEFORE INSERT ON commits
            WHEN NEW.epoch IS NOT (SELECT epoch FROM meta \(isIntact))
                OR NEW.first <> 1 + coalesce(
                    (SELECT last FROM commits ORDER BY first DESC LIMIT 1), 0)
            BEGIN
                SELECT RAISE(IGNORE);
            END;
            UPDATE meta SET format = \(version); PRAGMA user_version = \(version);
            """)
    }

    /// Converts the closed log into one of the fourth format.
    private func moveEntriesIntoRows() throws {
        let values =
            """
            format || ' ' || log || ' ' || epoch || ' ' || floor || ' ' || reached
                || ' ' || chained || ' ' || hex(base)
            """
        let forger = try forger
        let commits = try forger.commits
        for path in try forger.paths { try FileManager.default.removeItem(atPath: path) }
        try run(
            """
            DROP TRIGGER meta_copied;
            ALTER TABLE meta DROP COLUMN salt;
            CREATE TRIGGER meta_copied
            AFTER UPDATE OF format, log, epoch, floor, reached, chained, base ON meta
            BEGIN
                UPDATE meta SET copy = \(values);
            END;
            CREATE TABLE commits (
                first INTEGER PRIMARY KEY,
                last INTEGER NOT NULL,
                epoch INTEGER NOT NULL,
                checksum INTEGER NOT NULL,
                bytes BLOB NOT NULL,
                chain BLOB
            ) STRICT;
            """)
        let database = try Database(path: database, vfs: nil, access: .write)
        let insert = try database.prepare("INSERT INTO commits VALUES (?1, ?2, ?3, ?4, ?5, ?6)")
        try database.execute("BEGIN")
        for commit in commits {
            insert.bind(Int64(commit.commit.first.rawValue), at: 1)
            insert.bind(Int64(commit.commit.last.rawValue), at: 2)
            insert.bind(Int64(commit.commit.epoch.rawValue), at: 3)
            insert.bind(Int64(bitPattern: Checksum.of(commit.commit)), at: 4)
            try commit.commit.bytes.withUnsafeBytes { bytes in
                try (commit.hash?.bytes ?? []).withUnsafeBytes { hash in
                    insert.bind(bytes, at: 5)
                    if !hash.isEmpty { insert.bind(hash, at: 6) }
                    try insert.run()
                }
            }
        }
        try database.execute(
            """
            COMMIT;
            CREATE TRIGGER commits_follow BEFORE INSERT ON commits
            WHEN NEW.epoch IS NOT (SELECT epoch FROM meta WHERE copy = \(values))
                OR NEW.first <> 1 + coalesce(
                    (SELECT last FROM commits ORDER BY first DESC LIMIT 1),
                    (SELECT floor - 1 FROM meta))
            BEGIN
                SELECT RAISE(IGNORE);
            END;
            UPDATE meta SET format = 4; PRAGMA user_version = 4;
            """)
    }
}
