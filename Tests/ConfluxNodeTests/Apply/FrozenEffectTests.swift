import Conflux
import Testing

@testable import ConfluxNode
@testable import ConfluxProtocol

/// What is reported about actions for a whole state if one of its stores was frozen for them.
struct FrozenEffectTests {
    private let setup: ApplierSetup
    private let name = StoreName(state: Name("tally")!, instance: .shared)
    private let life = SequenceNumber(2)

    init() throws {
        setup = try ApplierSetup()
    }

    private func commit(at sequence: UInt64, _ block: Commit.Block) -> Commit {
        Commit(
            log: setup.log, epoch: Epoch(1), predecessor: Epoch(1),
            first: SequenceNumber(sequence), count: 1, timestamp: Timestamp(0), blocks: [block])
    }

    /// An action of this node, for the store alone or for its whole state.
    private func action(at sequence: UInt64, _ target: Target, _ payload: String) -> Commit {
        var builder = BatchBuilder()
        builder.append(
            target: BatchTarget(target: target, schemaVersion: 1, coding: .json),
            payload: Array(payload.utf8))
        return commit(at: sequence, .batch(setup.own, builder.finish(firstCounter: 1, settled: 0)))
    }

    /// Gives the store its initial state, followed by the entries that were kept aside.
    private func restore(_ kept: [Commit], through last: UInt64) {
        var aside = AsideEntries(name, life: life, after: life)
        for commit in kept { aside.add(commit) }
        setup.deliver(
            .restore(
                name, life: life,
                Snapshot(sequence: life, schemaVersion: 1, state: ApplierSetup.state(0)),
                in: VersionInForce(1), aside: aside.bytes[...], skipped: [],
                through: SequenceNumber(last), request: 7))
        setup.deliver(.begin(.store(name)))
        setup.deliver(.attach(.store(name)))
    }

    private func effect(of sequence: UInt64) throws -> String {
        switch try setup.progress(of: name).effect(of: SequenceNumber(sequence)) {
        case .applied: "applied"
        case .refused: "refused"
        case .stopped: "stopped"
        case .unknown: "unknown"
        case .nobody: "nobody"
        }
    }

    private var frozen: Commit.Block { .event(.frozen(name, life: life, reason: .asked)) }
    private var thawed: Commit.Block { .event(.thawed(name, life: life)) }
    private let add = "{\"add\":{\"_0\":1}}"

    @Test
    func `an action that skipped a frozen store is not applied there, though it is kept aside`()
        throws
    {
        let kept = [
            action(at: 3, .store(name), add), commit(at: 4, frozen), commit(at: 7, thawed),
            action(at: 8, .store(name), "{\"fail\":{}}"), commit(at: 9, frozen),
        ]
        restore(kept, through: 12)
        #expect(setup.store.computed.count == 1)
        #expect(try effect(of: 3) == "applied")
        #expect(try effect(of: 6) == "nobody")
        #expect(try effect(of: 8) == "refused")
        #expect(try effect(of: 11) == "nobody")
        // The store continues where it is thawed.
        setup.deliver(.commit(commit(at: 13, thawed), byteCount: 100))
        setup.deliver(.commit(action(at: 14, .state(name.state), add), byteCount: 100))
        #expect(setup.store.computed.count == 2)
        #expect(try effect(of: 11) == "nobody")
        #expect(try effect(of: 14) == "applied")
    }

    @Test
    func `an action that one store refused and a frozen one never got is reported as refused`()
        async throws
    {
        let other = StoreName(state: name.state, instance: try #require(Name("other")))
        let store = setup.register(other)
        defer { withExtendedLifetime(store) {} }
        setup.restore(other, life: SequenceNumber(3), ApplierSetup.state(0))
        let block = OutcomeBlock()
        _ = block.reserve()
        setup.applier.perform(
            .submitted(
                SubmittedBatch(
                    firstCounter: 1, count: 1, block: block,
                    spans: [SubmittedBatch.Span(target: .state(name.state), count: 1)])))
        let refused = action(at: 5, .state(name.state), "{\"fail\":{}}")
        setup.deliver(.passOver(SequenceNumber(2)))
        setup.deliver(.catchUp(refused, byteCount: 100, to: [.store(other)]))
        setup.settle(1, 1, .committed(setup.log, refused.first, Epoch(1), Timestamp(0)))
        restore([commit(at: 4, frozen)], through: 5)
        let error = await #expect(throws: DispatchError.self) {
            try await DispatchHandle(block: block, index: 0).receipt()
        }
        #expect(error?.code == .refused)
    }
}
