import ConfluxNode
import ConfluxSequencer
import Testing

struct BarrierTests {
    @Test func `after a barrier a read is as new as every receipt before it`() async throws {
        try await withWorld { world in
            let writer = try await world.node()
            let reader = try await world.node()
            let mine = try await writer.store(TallyState.self)
            let theirs = try await reader.store(TallyState.self)
            for count in 1...50 {
                try await mine.actions.dispatch(.add(1)).receipt()
                try await reader.barrier()
                #expect(theirs.computed.count >= count)
            }
            await writer.close()
            await reader.close()
        }
    }

    @Test func `another node waits for a receipt`() async throws {
        try await withWorld { world in
            let writer = try await world.node()
            let reader = try await world.node()
            let mine = try await writer.store(TallyState.self)
            let theirs = try await reader.store(TallyState.self)
            for count in 1...50 {
                let receipt = try await mine.actions.dispatch(.add(1)).receipt()
                try await reader.wait(for: receipt)
                #expect(theirs.computed.count >= count)
            }
            let none = Receipt(
                log: nil, epoch: .none, sequence: SequenceNumber(1), timestamp: Timestamp(0))
            let other = Receipt(
                log: .random(), epoch: Epoch(1), sequence: SequenceNumber(1),
                timestamp: Timestamp(0))
            for receipt in [none, other] {
                let error = await #expect(throws: NodeError.self) {
                    try await reader.wait(for: receipt)
                }
                #expect(error?.code == .otherLog)
            }
            await writer.close()
            await reader.close()
        }
    }

    @Test func `a barrier without a sequencer ends by its patience, by cancelling, or by closing`()
        async throws
    {
        let world = try World()
        let node = try await world.node()
        _ = try await node.store(TallyState.self)
        await world.sequencer.stop()
        let late = await #expect(throws: NodeError.self) {
            try await node.barrier(patience: .milliseconds(50))
        }
        #expect(late?.code == .timedOut)
        let waiting = Task { try await node.barrier(patience: .seconds(80)) }
        waiting.cancel()
        let cancelled = await #expect(throws: NodeError.self) { try await waiting.value }
        #expect(cancelled?.code == .cancelled)
        let open = Task { try await node.barrier(patience: .seconds(80)) }
        await node.close()
        let closed = await #expect(throws: NodeError.self) { try await open.value }
        #expect(closed?.code == .closed)
        let after = await #expect(throws: NodeError.self) { try await node.barrier() }
        #expect(after?.code == .closed)
    }
}
