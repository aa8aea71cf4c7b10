import ConfluxHashing
import ConfluxVocabulary
import Synchronization
import Testing

@testable import Conflux
@testable import ConfluxNode
@testable import ConfluxProtocol

/// A replica that starts from a snapshot of another version of its state.
struct MigrationTests {
    /// The second version: the first one had `left` instead of `count`.
    private struct Shelf: Model {
        static let name = "shelf"
        static let schemaVersion = 2
        var count = 0
        enum Action: Codable, Sendable { case add(amount: Int) }

        mutating func apply(_ action: Action, _ context: ActionContext) {
            if case .add(let amount) = action { count += amount }
        }

        static func migrate(_ old: SnapshotReader, from version: Int) throws -> Shelf {
            struct First: Decodable { var left: Int }
            return Shelf(count: try old.decode(First.self).left)
        }
    }

    private let store = ModelStore<Shelf>()

    /// Restores the store, and returns the error if that fails.
    private func restore(
        _ json: String, version: UInt32, in inForce: VersionInForce = VersionInForce(2)
    ) throws -> (any Error)? {
        let name = try #require(StoreName("shelf"))
        let replica = Replica(
            name, lane: ReplicaLane(of: store.core),
            progress: StoreProgress(.store(name), refusalBytesMax: 1_024) { _ in })
        replica.begin(
            with: Snapshot(
                sequence: SequenceNumber(7), schemaVersion: version,
                state: EncodedState(coding: .json, bytes: Array(json.utf8)[...])),
            in: inForce, life: SequenceNumber(2), log: LogID(high: 1, low: 1), epoch: Epoch(1),
            request: 1,
            crashes: nil,
            background: { $0() }, inPlaceBytesMax: .max)
        guard case .restored(request: 1, let error)? = replica.progress.reports.take().first else {
            Issue.record("it was not restored")
            return nil
        }
        return error
    }

    @Test func `a snapshot of an older version is migrated`() throws {
        #expect(try restore(#"{"left":5}"#, version: 1) == nil)
        #expect(store.count == 5)
        #expect(store.core.position == SequenceNumber(7))
    }

    @Test func `a migrated state must be the one of the log`() throws {
        let right = VersionInForce(2, migrated: Digest(of: Array(#"{"count":5}"#.utf8)))
        #expect(try restore(#"{"left":5}"#, version: 1, in: right) == nil)
        #expect(store.schemaVersion == 2)
        let wrong = VersionInForce(2, migrated: Digest(of: Array(#"{"count":6}"#.utf8)))
        let failure = try restore(#"{"left":5}"#, version: 1, in: wrong) as? StoreError
        #expect(failure?.code == .migrationFailed)
        #expect(failure?.message.contains("another state") == true)
    }

    @Test func `migrations behind one that never ends fail, and do not pile up`() throws {
        let setup = try ApplierSetup()
        let name = try #require(StoreName("tally"))
        func migrate(at number: Int) -> [Migrated.Outcome] {
            let snapshot = Snapshot(
                sequence: SequenceNumber(UInt64(number)), schemaVersion: 1,
                state: ApplierSetup.state(7))
            setup.deliver(.migrate(name, life: SequenceNumber(2), snapshot, to: 1))
            return setup.told.inputs.withLock { inputs in
                inputs.compactMap {
                    guard case .reported(.migrated(let migrated), _) = $0 else { return nil }
                    return migrated.outcome
                }
            }
        }
        // A repeated one is answered by the first.
        for _ in 0..<3 {
            for number in 1...Applier.migrationsMax { #expect(migrate(at: number).isEmpty) }
        }
        guard case .failed(let reason)? = migrate(at: 99).first else {
            Issue.record("it waits for those before it")
            return
        }
        #expect(reason.contains("have not ended"))
        let waiting = setup.told.apart.withLock { bodies in
            defer { bodies = [] }
            return bodies
        }
        // Each is done twice, and compared.
        #expect(waiting.count == 2 * Applier.migrationsMax)
        for body in waiting { body() }
        #expect(migrate(at: 1).count == 1 + Applier.migrationsMax)
        #expect(setup.store.computed.count == 0)
    }

    @Test func `stores behind migrations that never end fail, and do not pile up`() throws {
        let name = try #require(StoreName("shelf"))
        let replica = Replica(
            name, lane: ReplicaLane(of: store.core),
            progress: StoreProgress(.store(name), refusalBytesMax: 1_024) { _ in })
        let loads = MigrationLoads(run: { _ in }, after: { _, _ in })
        func begin(_ request: UInt64) -> [LaneReport] {
            replica.begin(
                with: Snapshot(
                    sequence: SequenceNumber(7), schemaVersion: 1,
                    state: EncodedState(coding: .json, bytes: Array(#"{"left":5}"#.utf8)[...])),
                in: VersionInForce(2), life: SequenceNumber(2), log: LogID(high: 1, low: 1),
                epoch: Epoch(1), request: request, crashes: nil, background: { $0() }, loads: loads,
                inPlaceBytesMax: .max)
            return replica.progress.reports.take()
        }
        for request in 1...UInt64(Applier.migrationsMax) { #expect(begin(request).isEmpty) }
        guard case .decoded(request: 99, .failure(let error))? = begin(99).first else {
            Issue.record("it waits for those before it")
            return
        }
        #expect((error as? StoreError)?.code == .migrationFailed)
    }

    @Test func `a snapshot of the state's own version is not migrated`() throws {
        #expect(try restore(#"{"count":6}"#, version: 2) == nil)
        #expect(store.count == 6)
        let failure = try restore(#"{"left":5}"#, version: 2) as? StoreError
        #expect(failure?.code == .formChanged)
        #expect(store.count == 6)
    }

    @Test func `a snapshot that can't be migrated or is newer is an error and changes nothing`()
        throws
    {
        let failure = try restore(#"{"count":6}"#, version: 1) as? StoreError
        #expect(failure?.code == .migrationFailed)
        let newer = try restore(#"{"count":6}"#, version: 3) as? StoreError
        #expect(newer?.code == .newerSnapshot)
        #expect(store.count == 0)
    }
}
