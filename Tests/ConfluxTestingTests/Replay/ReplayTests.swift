import Conflux
import ConfluxNode
import ConfluxProtocol
import ConfluxTesting
import ConfluxVocabulary
import Foundation
import Testing

@Suite struct `Replaying a history` {
    private static let store = "ledger/shared"

    /// A history with a store that is created in it, and these actions in commits of three.
    private func history(_ amounts: [Int]) throws -> MadeHistory {
        let history = try MadeHistory()
        history.event(
            .created(
                try #require(StoreName(Self.store)), schemaVersion: 1,
                initial: MadeHistory.state(total: 0, count: 0)))
        for start in stride(from: 0, to: amounts.count, by: 3) {
            try history.actions(
                Array(amounts[start..<min(start + 3, amounts.count)]), for: Self.store)
        }
        return history
    }

    private func life(_ sequence: UInt64) -> SequenceNumber { SequenceNumber(sequence) }

    @Test func `the same code agrees with its recording`() throws {
        let history = try history([5, -9, 77, 1, -100, 2, 3])
        let recorded = try history.record()
        #expect(recorded.difference == nil && recorded.actions == 7 && recorded.refusals == 2)
        let report = try replay(history.recording, with: .model(Ledger.self))
        #expect(report.difference == nil, "\(report)")
        #expect(report.actions == 7 && report.refusals == 2 && report.states == recorded.states)
        // The state is small, so it was noted after each action.
        #expect(report.states == 7)
    }

    /// With more actions, in a release build, this shows how long a replay takes (docs/testing.md).
    @Test func `a long history agrees with its recording`() throws {
        let environment = ProcessInfo.processInfo.environment
        let count = environment["CONFLUX_HISTORY_ACTIONS"].flatMap(Int.init) ?? 2_000
        let history = try history([])
        for first in stride(from: 0, to: count, by: 100) {
            try history.actions(
                (first..<min(first + 100, count)).map { $0 % 7 - 2 }, for: Self.store)
        }
        let recorded = try history.record()
        let start = ContinuousClock.now
        let report = try replay(history.recording, with: .model(Ledger.self))
        print("replayed \(report.actions) actions in \(ContinuousClock.now - start)")
        #expect(report.difference == nil && report.actions == count, "\(report)")
        #expect(report.states == recorded.states)
    }

    @Test func `the first entry whose outcome differs is named`() throws {
        let history = try history([5, 1, 1, 1, -100, -9, 3])
        _ = try history.record()
        let report = try replay(history.recording, with: .model(LaxLedger.self))
        let difference = try #require(report.difference)
        #expect(difference.entries == life(6)...life(6) && difference.store == Self.store)
        #expect(
            difference.expected.hasPrefix("refused: ") && difference.expected.contains("TooPoor"))
        #expect(difference.found == "applied")
        #expect(difference.action == "LedgerAction(amount: -100)")
        #expect("\(report)".contains("ledger/shared differs at entry 6:"))
    }

    @Test func `the first entry whose state differs is named`() throws {
        let history = try history([5, 1, 1, 1, 77, 9, 3])
        _ = try history.record()
        let report = try replay(history.recording, with: .model(WrongLedger.self))
        let difference = try #require(report.difference)
        #expect(difference.entries == life(6)...life(6) && difference.count == 1)
        #expect(difference.action == "LedgerAction(amount: 77)")
        #expect(difference.expected.hasPrefix("the digest "))
        #expect(difference.found != difference.expected)
    }

    @Test func `a snapshot of the log is compared, and the difference located in the state`() throws
    {
        let history = try history([5, 1, 77, 1])
        let store = try #require(StoreName(Self.store))
        let place = SnapshotPlace(store: store, life: life(1), sequence: life(5))
        history.add(.check(place, MadeHistory.snapshot(life(5), total: 84, count: 4)))
        try history.write()
        #expect(try replay(history.path, with: .model(Ledger.self)).difference == nil)
        let report = try replay(history.path, with: .model(WrongLedger.self))
        let difference = try #require(report.difference)
        #expect(difference.path == "/total" && difference.expected == "84")
        #expect(difference.found == "85")
        #expect(difference.entries == life(2)...life(5) && difference.count == 4)
    }

    @Test func `a snapshot in the middle of a commit is compared there`() throws {
        let history = try history([5, 1, 77, 1, 1, 1])
        let store = try #require(StoreName(Self.store))
        let place = SnapshotPlace(store: store, life: life(1), sequence: life(3))
        history.add(.check(place, MadeHistory.snapshot(life(3), total: 6, count: 2)))
        try history.write()
        let report = try replay(history.path, with: .model(WrongLedger.self))
        #expect(report.difference == nil && report.states == 1)
    }

    @Test func `code that differs from the log's snapshot is not recorded`() throws {
        let history = try history([5])
        let store = try #require(StoreName(Self.store))
        let place = SnapshotPlace(store: store, life: life(1), sequence: life(2))
        history.add(.check(place, MadeHistory.snapshot(life(2), total: 6, count: 1)))
        #expect(try history.record().difference?.path == "/total")
        #expect(throws: HistoryError.self) {
            try replay(history.recording, with: .model(Ledger.self))
        }
    }

    @Test func `a store begins with its snapshot, and takes no entry before it`() throws {
        let history = try MadeHistory(from: 10)
        let store = try #require(StoreName(Self.store))
        history.add(
            .start(
                HistoryStart(
                    store: store, life: life(3),
                    snapshot: MadeHistory.snapshot(life(11), total: 50, count: 9),
                    version: VersionInForce(1), aside: nil,
                    skipped: [], through: life(11))))
        try history.actions([1, 2, 4, -53], for: Self.store)
        let place = SnapshotPlace(store: store, life: life(3), sequence: life(13))
        history.add(.check(place, MadeHistory.snapshot(life(13), total: 1, count: 11)))
        #expect(try history.record().difference == nil)
    }

    @Test func `lives, freezing, skipped entries and the whole state are honoured`() throws {
        let history = try history([5])
        let store = try #require(StoreName(Self.store))
        let north = try #require(StoreName("ledger/north"))
        history.event(.frozen(store, life: life(1), reason: .asked))
        try history.actions([1_000], for: Self.store)
        history.event(.thawed(store, life: life(1)))
        // In one commit: a store ends, and begins anew, and an action reaches both stores.
        history.commit { builder in
            builder.append(
                .created(north, schemaVersion: 1, initial: MadeHistory.state(total: 0, count: 0)))
        }
        try history.actions([7], for: "ledger/*")
        let skipped = try history.actions([900], for: Self.store)
        history.event(.skipped(skipped, .store(store)))
        let last = history.next
        let place = SnapshotPlace(store: store, life: life(1), sequence: last)
        let other = SnapshotPlace(store: north, life: life(6), sequence: last)
        history.event(.dropped(north, life: life(6)))
        history.add(.check(place, MadeHistory.snapshot(last, total: 12, count: 2)))
        let before = SequenceNumber(last.rawValue - 1)
        history.add(
            .check(
                SnapshotPlace(store: north, life: life(6), sequence: before),
                MadeHistory.snapshot(before, total: 7, count: 1)))
        // A dropped store has no state.
        history.add(.check(other, MadeHistory.snapshot(last, total: 0, count: 0)))
        history.event(
            .created(north, schemaVersion: 1, initial: MadeHistory.state(total: 1, count: 0)))
        try history.actions([7], for: "ledger/*")
        let recorded = try history.record()
        #expect(recorded.difference == nil, "\(recorded)")
        // The skipped entry is noted as one without effect.
        #expect(recorded.refusals == 1)
        #expect(try replay(history.recording, with: .model(Ledger.self)).difference == nil)
    }

    @Test func `a store is created, dropped and created anew within one commit`() throws {
        let history = try MadeHistory()
        let store = try #require(StoreName(Self.store))
        history.commit { builder in
            builder.append(
                .created(store, schemaVersion: 1, initial: MadeHistory.state(total: 1, count: 0)))
            builder.append(.dropped(store, life: life(1)))
            builder.append(
                .created(store, schemaVersion: 1, initial: MadeHistory.state(total: 5, count: 0)))
        }
        try history.actions([2], for: Self.store)
        history.add(
            .check(
                SnapshotPlace(store: store, life: life(3), sequence: life(4)),
                MadeHistory.snapshot(life(4), total: 7, count: 1)))
        #expect(try history.record().difference == nil)
    }

    @Test func `a program of a newer schema version is compared with migrated snapshots`() throws {
        let history = try history([5, -9, 1])
        let store = try #require(StoreName(Self.store))
        let place = SnapshotPlace(store: store, life: life(1), sequence: life(4))
        history.add(.check(place, MadeHistory.snapshot(life(4), total: 6, count: 2)))
        _ = try history.record()
        let report = try replay(history.recording, with: .model(NewLedger.self))
        #expect(report.difference == nil, "\(report)")
        #expect(report.refusals == 1 && report.states == 1 && report.uncompared == ["ledger"])
    }

    @Test func `an older program does not go on where the schema version rises`() throws {
        let history = try history([5])
        let store = try #require(StoreName(Self.store))
        history.event(
            .upgraded(store, life: life(1), schemaVersion: 2, base: life(2), digest: nil))
        let difference = try #require(try history.record().difference)
        #expect(difference.entries.upperBound == life(2))
        #expect(difference.found.contains("schema version 2"))
    }

    @Test func `actions are judged by the version that was in force`() throws {
        let history = try history([50])
        let store = try #require(StoreName(Self.store))
        history.event(
            .upgraded(
                store, life: life(1), schemaVersion: 2, base: life(2),
                digest: MadeHistory.digest(total: 50, count: 1)))
        try history.actions([50, 5], for: Self.store)
        let place = SnapshotPlace(store: store, life: life(1), sequence: life(5))
        history.add(.check(place, MadeHistory.snapshot(life(5), total: 55, count: 2, version: 2)))
        let report = try history.record(with: CappedLedger.self)
        #expect(report.difference == nil, "\(report)")
        #expect(report.actions == 3 && report.refusals == 1)
        let same = try replay(history.recording, with: .model(CappedLedger.self))
        #expect(same.difference == nil && same.uncompared.isEmpty, "\(same)")
    }

    @Test func `entries that were judged again when the version rose are judged by its rules`()
        throws
    {
        let history = try history([50, 50])
        let store = try #require(StoreName(Self.store))
        history.event(.upgraded(store, life: life(1), schemaVersion: 2, base: life(2), digest: nil))
        let place = SnapshotPlace(store: store, life: life(1), sequence: life(4))
        history.add(.check(place, MadeHistory.snapshot(life(4), total: 50, count: 1, version: 2)))
        let report = try history.record(with: CappedLedger.self)
        #expect(report.difference == nil && report.refusals == 1, "\(report)")
    }

    /// A history that begins with a store of the first version, whose total is at its cap in the second one.
    private func started(in version: VersionInForce) throws -> (MadeHistory, StoreName) {
        let history = try MadeHistory(from: 10)
        let store = try #require(StoreName(Self.store))
        history.add(
            .start(
                HistoryStart(
                    store: store, life: life(3),
                    snapshot: MadeHistory.snapshot(life(9), total: 50, count: 9),
                    version: version, aside: nil, skipped: [], through: life(9))))
        return (history, store)
    }

    /// Adds two actions, of which the rules of the second version refuse the first, and records the history.
    private func expectCapped(
        _ history: MadeHistory, _ store: StoreName, from first: UInt64
    ) throws {
        try history.actions([50, 4], for: Self.store)
        let last = life(first + 1)
        history.add(
            .check(
                SnapshotPlace(store: store, life: life(3), sequence: last),
                MadeHistory.snapshot(last, total: 54, count: 10, version: 2)))
        let report = try history.record(with: CappedLedger.self)
        #expect(report.difference == nil && report.refusals == 1, "\(report)")
    }

    @Test func `a start may be older than the version in force`() throws {
        let digest = MadeHistory.digest(total: 50, count: 9)
        let (history, store) = try started(in: VersionInForce(2, migrated: digest))
        try expectCapped(history, store, from: 10)
    }

    @Test
    func `a migration that makes another state than production's is found where the version rises`()
        throws
    {
        let history = try history([50])
        let store = try #require(StoreName(Self.store))
        history.event(
            .upgraded(
                store, life: life(1), schemaVersion: 2, base: life(2),
                digest: MadeHistory.digest(total: 51, count: 1)))
        let report = try history.record(with: CappedLedger.self)
        let difference = try #require(report.difference)
        #expect(difference.entries.upperBound == life(2))
        #expect(difference.found.contains("another state of the snapshot"), "\(difference)")
    }

    @Test func `a version rises from the very state that the history begins with`() throws {
        let (history, store) = try started(in: VersionInForce(1))
        history.event(
            .upgraded(
                store, life: life(3), schemaVersion: 2, base: life(9),
                digest: MadeHistory.digest(total: 50, count: 9)))
        try expectCapped(history, store, from: 11)
        // An older program stops at the entry.
        let difference = try #require(try history.record().difference)
        #expect(difference.entries.upperBound == life(10))
        #expect(difference.found.contains("schema version 2"))
    }
}
