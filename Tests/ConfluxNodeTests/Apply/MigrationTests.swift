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
    private func restore(_ json: String, version: UInt32) throws -> (any Error)? {
        let name = try #require(StoreName("shelf"))
        let outbox = Outbox(bytesMax: 1 << 20, policy: .fail, wake: {})
        let replica = Replica(
            name,
            lane: ReplicaLane(
                of: store.core, route: OutboxRoute(outbox: outbox, target: .store(name))),
            progress: StoreProgress(.store(name), refusalBytesMax: 1_024) { _ in })
        replica.begin(
            with: Snapshot(
                sequence: SequenceNumber(7), schemaVersion: version,
                state: EncodedState(coding: .json, bytes: Array(json.utf8)[...])),
            life: SequenceNumber(2), log: LogID(high: 1, low: 1), request: 1, crashes: nil,
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

    @Test func `a snapshot of the state's own version is not migrated`() throws {
        #expect(try restore(#"{"count":6}"#, version: 2) == nil)
        #expect(store.count == 6)
        #expect(try restore(#"{"left":5}"#, version: 2) is CodingFailure)
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
