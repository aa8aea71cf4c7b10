extension TemporaryFolder {
    /// Converts the closed log into one of a former format.
    func downgrade(to version: Int) throws {
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
}
