import Conflux
import Testing

@testable import ConfluxNode
@testable import ConfluxProtocol

/// Actions for a whole state while stores of it are being opened.
struct WholeStateTests {
    private let setup: ApplierSetup
    private let other = StoreName(state: Name("tally")!, instance: Name("other")!)

    init() throws {
        setup = try ApplierSetup()
    }

    /// Opens another store of the state.
    private func restore(at sequence: UInt64, count: Int) -> Store<TallyState> {
        let store = setup.register(other)
        setup.restore(other, life: SequenceNumber(sequence), ApplierSetup.state(count))
        return store
    }

    /// Dispatches an action for every store of the state.
    ///
    /// - Returns: Its handle and its commit.
    private func dispatch(_ payload: String) throws -> (handle: DispatchHandle, commit: Commit) {
        let block = OutcomeBlock()
        _ = block.reserve()
        setup.applier.perform(
            .submitted(
                SubmittedBatch(
                    firstCounter: 1, count: 1, block: block,
                    spans: [SubmittedBatch.Span(target: .state(other.state), count: 1)])))
        var builder = BatchBuilder()
        builder.append(
            target: BatchTarget(target: .state(other.state), schemaVersion: 1, coding: .json),
            payload: Array(payload.utf8))
        let commit = Commit(
            log: setup.log, epoch: Epoch(1), predecessor: Epoch(1), first: SequenceNumber(3),
            count: 1, timestamp: Timestamp(0),
            blocks: [.batch(setup.own, builder.finish(firstCounter: 1, settled: 0))])
        return (DispatchHandle(block: block, index: 0), commit)
    }

    private func settle(_ commit: Commit) {
        setup.settle(1, 1, .committed(setup.log, commit.first, Epoch(1), Timestamp(0)))
    }

    @Test func `a refusal is reported even if a store was created after the action`() async throws {
        let store = restore(at: 4, count: 0)
        setup.deliver(.attach(.store(other)))
        let (handle, commit) = try dispatch("{\"fail\":{}}")
        setup.deliver(.commit(commit, byteCount: 100))
        settle(commit)
        let error = await #expect(throws: DispatchError.self) { try await handle.receipt() }
        #expect(error?.code == .refused)
        #expect(store.computed.count == 0)
    }

    @Test func `an action that one store took is not refused, though another refuses it later`()
        async throws
    {
        let full = restore(at: 2, count: 100)
        let (handle, commit) = try dispatch("{\"countOn\":{\"upTo\":10}}")
        setup.deliver(.commit(commit, byteCount: 100))
        setup.deliver(.catchUp(commit, byteCount: 100, to: [.store(other)]))
        setup.deliver(.attach(.store(other)))
        settle(commit)
        #expect(try await handle.receipt().sequence == commit.first)
        #expect(setup.store.computed.count == 1 && full.computed.count == 100)
    }

    @Test func `a store that is opened while an outcome waits is waited for, and counts`()
        async throws
    {
        let shared = StoreName(state: other.state, instance: .shared)
        setup.deliver(.passOver(SequenceNumber(2)))
        let (handle, commit) = try dispatch("{\"fail\":{}}")
        settle(commit)
        let store = restore(at: 2, count: 0)
        // The store for which the outcome waits is restored to a state after the action.
        let state = EncodedState(coding: .json, bytes: Array("{\"count\":0}".utf8)[...])
        setup.restore(shared, life: SequenceNumber(4), state)
        #expect(handle.outcome == nil)
        setup.deliver(.catchUp(commit, byteCount: 100, to: [.store(other)]))
        setup.workBehind()
        let error = await #expect(throws: DispatchError.self) { try await handle.receipt() }
        #expect(error?.code == .refused)
        #expect(store.computed.count == 0)
    }
}
