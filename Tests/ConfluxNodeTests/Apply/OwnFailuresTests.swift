import Conflux
import Testing

@testable import ConfluxNode
@testable import ConfluxProtocol

/// What is kept of this node's refused actions, until their outcome is told.
struct OwnFailuresTests {
    /// An applier with one store, and the commits of a log.
    private final class Setup {
        let applier = Applier(
            refusalsMax: 1_024, tell: { _ in }, resume: {}, clock: { .zero })
        let outbox = Outbox(bytesMax: 1 << 20, policy: .fail, wake: {})
        let store: Store<TallyState>
        let log = LogID(high: 1, low: 1)
        let own = Incarnation(2)
        var nextCounter: UInt64 = 1
        var nextSequence: UInt64 = 3

        init() throws {
            let scope = Scope()
            store = scope.run {
                Store(state: .init(), mutations: .init(), executor: .immediate)
            }
            let name = StoreName(state: try #require(Name("tally")), instance: .shared)
            applier.perform(.identified(own))
            applier.perform(
                .register(
                    .store(
                        store.core, name, route: OutboxRoute(outbox: outbox, target: .store(name)),
                        initial: Array("{\"count\":0}".utf8), request: 1, scope: scope,
                        payloadBytesMax: 1_024, completion: { _ in })))
            let state = EncodedState(coding: .json, bytes: Array("{\"count\":0}".utf8)[...])
            deliver(
                .restore(
                    name, life: SequenceNumber(2),
                    Snapshot(sequence: SequenceNumber(2), state: state)))
            deliver(.attach(name))
            deliver(.opened(request: 1, .opened(life: SequenceNumber(2))))
        }

        func deliver(_ delivery: Delivery) {
            applier.perform(.deliver(delivery, log: log))
        }

        /// Dispatches actions that are refused, and has them applied.
        ///
        /// - Returns: The handle of the first, and where it stands.
        func dispatchFailures(
            _ count: Int, isApplied: Bool = true
        ) throws -> (handle: DispatchHandle, counter: UInt64, sequence: SequenceNumber) {
            let block = OutcomeBlock()
            for _ in 0..<count { _ = block.reserve() }
            let (counter, sequence) = (nextCounter, SequenceNumber(nextSequence))
            applier.perform(.submitted(firstCounter: counter, count: count, block))
            var builder = BatchBuilder()
            for _ in 0..<count {
                builder.append(
                    target: BatchTarget(
                        target: try #require(Target("tally/shared")), schemaVersion: 1,
                        coding: .json),
                    payload: Array("{\"fail\":{}}".utf8))
            }
            let batch = builder.finish(firstCounter: counter, settled: 0)
            deliver(
                .commit(
                    Commit(
                        log: log, epoch: Epoch(1), predecessor: Epoch(1), first: sequence,
                        count: UInt32(count), timestamp: Timestamp(0),
                        blocks: [.batch(own, batch)]), byteCount: 100))
            nextCounter += UInt64(count)
            nextSequence += UInt64(count)
            return (DispatchHandle(block: block, index: 0), counter, sequence)
        }

        func settle(_ counter: UInt64, _ count: Int, _ fate: ActionOutcome.Fate) {
            deliver(
                .settle(
                    ActionOutcome(firstCounter: counter, count: UInt32(count), fate: fate)))
        }
    }

    @Test func `a refusal is told with its outcome, and kept no longer`() async throws {
        let setup = try Setup()
        let failed = try setup.dispatchFailures(3)
        #expect(setup.applier.ownFailures.count == 3)
        setup.settle(
            failed.counter, 3, .committed(setup.log, failed.sequence, Epoch(1), Timestamp(0)))
        let error = await #expect(throws: DispatchError.self) {
            try await failed.handle.receipt()
        }
        #expect(error?.code == .refused)
        #expect(setup.applier.ownFailures.isEmpty)
    }

    @Test func `a refusal whose outcome stays unknown is not kept`() throws {
        let setup = try Setup()
        let failed = try setup.dispatchFailures(3)
        setup.settle(failed.counter, 3, .unknown)
        #expect(setup.applier.ownFailures.isEmpty)
        // Nor is one that is applied after nobody waits for it any more.
        let late = try setup.dispatchFailures(2)
        setup.settle(late.counter, 2, .unknown)
        #expect(setup.applier.ownFailures.isEmpty)
    }

    @Test func `refusals whose outcomes stay unknown are bounded while others are awaited`() throws
    {
        let setup = try Setup()
        for _ in 0..<500 {
            let failed = try setup.dispatchFailures(1)
            let other = try setup.dispatchFailures(1)
            _ = try setup.dispatchFailures(1)
            setup.settle(failed.counter, 1, .unknown)
            setup.settle(
                other.counter, 1, .committed(setup.log, other.sequence, Epoch(1), Timestamp(0)))
            #expect(setup.applier.ownFailures.count <= OwnFailures.reviewMin + 2)
        }
    }
}
