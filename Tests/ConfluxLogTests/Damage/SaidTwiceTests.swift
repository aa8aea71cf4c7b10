import ConfluxLog
import ConfluxVocabulary
import Forging
import Foundation
import Testing

/// The log stores its metadata and those of its snapshots in two places. In these tests, one of them was
/// changed.
@Suite struct SaidTwiceTests {
    private let folder = TemporaryFolder(isQuick: true)

    /// A log of 1–2 … 19–20, with two snapshots, that begins at 7.
    private func fill() throws -> SQLiteLog {
        let log = try open()
        try log.fill(10)
        for number in [16, 18] as [UInt64] { try log.save(.sample(number)) }
        try log.truncateAll(below: 7)
        for number in [8, 10] as [UInt64] { try log.keep(.sample(number)) }
        return log
    }

    private func open() throws -> SQLiteLog {
        try SQLiteLog(directory: folder.path, settings: .small())
    }

    /// Changes a table without its trigger, as a failing disk would.
    private func change(_ table: String, _ change: String) throws {
        try folder.run(
            """
            CREATE TEMP TABLE held AS SELECT sql FROM main.sqlite_schema WHERE name = '\(table)_copied';
            DROP TRIGGER \(table)_copied; UPDATE \(table) SET \(change);
            PRAGMA writable_schema = ON;
            INSERT INTO main.sqlite_schema
            SELECT 'trigger', '\(table)_copied', '\(table)', 0, sql FROM held;
            """)
    }

    private static let changes = [
        "format = 2", "log = '00000000000000000000000000000001'", "epoch = 0", "floor = 9",
        "reached = 18", "chained = 9", "base = zeroblob(32)", "salt = salt + 1",
        "copy = copy || ' '", "copy = ''",
    ]

    @Test(arguments: changes)
    func `a log with contradictory metadata is not opened`(_ change: String) throws {
        try fill().close()
        try self.change("meta", change)
        let errors = [
            #expect(throws: LogError.self) { try open() },
            #expect(throws: LogError.self) { try SQLiteLogFile(directory: folder.path) },
        ]
        for error in errors {
            #expect(error?.code == .damaged)
            #expect(error?.message.contains(folder.path) == true)
            #expect(error?.message.contains("backup") == true)
        }
    }

    @Test(arguments: changes)
    func `an open log with contradictory metadata takes nothing more`(_ change: String) throws {
        let log = try fill()
        try self.change("meta", change)
        #expect(code { try log.confirm() } == .damaged)
        #expect(code { try log.append(.sample(21...21)) } == .damaged)
        #expect(code { try log.save(.sample(20)) } == .damaged)
        #expect(code { _ = try log.truncate(below: SequenceNumber(9), limitBytes: 1) } == .damaged)
        #expect(code { _ = try log.claim() } == .damaged)
        // The damage is not hidden by later writes, and intact entries are still read.
        #expect(code { try log.confirm() } == .damaged)
        #expect(try log.readAll().count == 7)
        log.close()
        #expect(code { _ = try open() } == .damaged)
    }

    @Test func `a former term appends nothing even if the epoch went back to its own`() throws {
        let former = try fill()
        try folder.run("UPDATE meta SET epoch = 2")
        try change("meta", "epoch = 1")
        #expect(code { try former.append(.sample(21...21)) } == .damaged)
        #expect(try former.readAll().last?.last == SequenceNumber(20))
    }

    @Test func `a missing end is reported`() throws {
        try fill().close()
        try folder.forger.change { $0.removeLast(2) }
        for error in [
            #expect(throws: LogError.self) { try open() },
            #expect(throws: LogError.self) { try SQLiteLogFile(directory: folder.path) },
        ] {
            #expect(error?.code == .damaged)
            #expect(error?.numbers == SequenceNumber(17)...SequenceNumber(20))
        }
    }

    @Test func `a header that names another format is reported`() throws {
        for version in [0, 1, 2] {
            try? FileManager.default.removeItem(atPath: folder.path)
            try fill().close()
            try folder.run("PRAGMA user_version = \(version)")
            #expect(code { _ = try open() } == .damaged)
            #expect(code { _ = try SQLiteLogFile(directory: folder.path) } == .damaged)
        }
    }

    @Test func `a schema that is not a log's is reported`() throws {
        try fill().close()
        try folder.run(
            """
            PRAGMA writable_schema = ON;
            UPDATE sqlite_schema SET sql = replace(sql, 'checksum', 'checksun')
            WHERE name = 'checkpoints';
            """)
        #expect(code { _ = try open() } == .damaged)
        #expect(code { _ = try SQLiteLogFile(directory: folder.path) } == .damaged)
    }

    @Test(arguments: [
        "store = 'document/b'", "life = 2", "sequence = 9", "version = 9", "digest = zeroblob(32)",
        "size = 22", "kind = 0", "saved = 0", "retired = 1", "copy = ''",
    ])
    func `a snapshot with contradictory metadata is reported`(_ change: String) throws {
        let log = try fill()
        try self.change("snapshots", "\(change) WHERE sequence = 10")
        let reader = try log.makeReader()
        let key = SavedSnapshot.sample(10).key
        #expect(code { _ = try log.snapshots() } == .damaged)
        // The damaged row is left out of the list, and the list says which stores are affected.
        let list = try log.snapshotList()
        #expect(list.intact == [.sample(8)])
        #expect(list.damage?.stores?.contains(key.store) == true)
        #expect(list.damage?.message.contains(key.store.description) == true)
        #expect(code { _ = try log.readSnapshot(of: key, from: 0, limitBytes: 9) } == .damaged)
        #expect(code { _ = try reader.snapshot(of: key) } == .damaged)
        #expect(
            try log.readSnapshot(of: SavedSnapshot.sample(8).key, from: 0, limitBytes: 9) != nil)
        // A claim doesn't copy the damaged metadata.
        _ = try log.claim()
        #expect(code { _ = try log.snapshots() } == .damaged)
        #expect(try log.readAll().count == 7)
        reader.close()
    }

    @Test(arguments: [true, false])
    func `a snapshot that its table or its index lost is reported`(_ isOfTable: Bool) throws {
        try fill().close()
        let whole = try folder.number("SELECT count(*) FROM snapshots")
        // The index is hidden while the table is changed.
        try folder.run(
            """
            PRAGMA writable_schema = ON;
            CREATE TABLE held AS SELECT * FROM sqlite_schema WHERE name = 'snapshots_by_store';
            DELETE FROM sqlite_schema WHERE name = 'snapshots_by_store';
            """)
        let copied = "INSERT INTO snapshots SELECT * FROM kept"
        try folder.run(
            isOfTable
                ? "DELETE FROM snapshots WHERE sequence = 10"
                : "CREATE TABLE kept AS SELECT * FROM snapshots WHERE sequence = 10")
        try folder.run(
            """
            PRAGMA writable_schema = ON;
            INSERT INTO sqlite_schema SELECT * FROM held;
            """)
        if !isOfTable {
            // First both lose it. Then it is added to the table only.
            try folder.run("DELETE FROM snapshots WHERE sequence = 10")
            try folder.run(
                """
                PRAGMA writable_schema = ON;
                DELETE FROM sqlite_schema WHERE name = 'snapshots_by_store';
                """)
            try folder.run(copied)
            try folder.run(
                """
                PRAGMA writable_schema = ON;
                INSERT INTO sqlite_schema SELECT * FROM held;
                """)
        }
        try #require(
            try folder.number("SELECT count(*) FROM snapshots NOT INDEXED")
                == (isOfTable ? whole - 1 : whole))
        let log = try open()
        let key = SavedSnapshot.sample(10).key
        #expect(code { _ = try log.snapshots() } == .damaged)
        // A row that the table lost may belong to any store.
        let list =
            isOfTable
            ? SnapshotList(intact: [.sample(8)], damage: .init(stores: nil))
            : SnapshotList(
                intact: [.sample(8), .sample(10)], damage: .init(stores: [key.store]))
        #expect(try log.snapshotList() == list)
        #expect(code { _ = try log.readSnapshot(of: key, from: 0, limitBytes: 9) } == .damaged)
        #expect(try log.readAll().count == 7)
    }

    @Test func `a row's owner is the one that two of three places state, or is unknown`() throws {
        let log = try fill()
        let store = SavedSnapshot.sample(10).store
        try change("snapshots", "copy = 'document/b 1' WHERE sequence = 10")
        #expect(try log.snapshotList().damage?.stores?.contains(store) == true)
        try change("snapshots", "store = 'a b', copy = 'document/b 1' WHERE sequence = 10")
        #expect(try log.snapshotList().damage == .init(stores: nil))
        log.close()
    }
}
