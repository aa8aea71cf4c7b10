import ConfluxProtocol
import Synchronization
import Testing

@testable import Conflux
@testable import ConfluxNode

/// The actions that were dispatched but not sent yet are bounded, however slow the sequencer is.
struct OutboxTests {
    @Test func `the bound holds while batches are taken one by one`() throws {
        let bytesMax = 4_000
        let outbox = Outbox(
            bytesMax: bytesMax, policy: .fail,
            limits: try WireLimits(batchBytesMax: 600, payloadBytesMax: 100), wake: {})
        let destination = Outbox.Destination(
            BatchTarget(
                target: try #require(Target("tally/*")), schemaVersion: 1, coding: .json))
        let payload: [UInt8] = [1, 2, 3, 4]
        var waiting = 0
        for _ in 0..<30 {
            for _ in 0..<(bytesMax / payload.count) {
                _ = outbox.submit(destination, payload, mayWait: false)
            }
            _ = outbox.take { _ in true }
        }
        while let batch = outbox.take(if: { _ in true }) { waiting += batch.builder.count }
        #expect(waiting <= bytesMax / payload.count)
        #expect(outbox.isEmpty)
    }

    @Test func `a batch of 255 KiB takes no further actions`() throws {
        let outbox = Outbox(bytesMax: 4 << 20, policy: .fail, wake: {})
        let destination = Outbox.Destination(
            BatchTarget(
                target: try #require(Target("tally/*")), schemaVersion: 1, coding: .json))
        let sizes = [Int](repeating: 1_000, count: 600) + [600_000, 1_000]
        for size in sizes {
            let payload = [UInt8](repeating: 1, count: size)
            #expect(outbox.submit(destination, payload, mayWait: false).outcome == nil)
        }
        var batches: [BatchBuilder] = []
        while let batch = outbox.take(if: { _ in true }) { batches.append(batch.builder) }
        #expect(batches.map(\.count) == [261, 261, 79, 1])
        #expect(batches.dropLast(2).allSatisfy { $0.byteCount < (255 << 10) + 1_100 })
    }

    private func makeOutbox(
        withdrawSent: @escaping @Sendable (Int, OutcomeBlock) -> Void = { _, _ in }
    ) -> Outbox {
        Outbox(bytesMax: 4_000, policy: .fail, wake: {}, withdrawSent: withdrawSent)
    }

    @Test func `a task never waits in a full outbox, and has room after waiting for it`()
        async throws
    {
        let outbox = Outbox(bytesMax: 100, policy: .wait, wake: {})
        let destination = Outbox.Destination(
            BatchTarget(
                target: try #require(Target("tally/*")), schemaVersion: 1, coding: .json))
        let payload = [UInt8](repeating: 1, count: 50)
        // There are more tasks than threads that run tasks.
        let codes = try await withThrowingTaskGroup(of: DispatchError.Code?.self) { group in
            for _ in 0..<64 {
                group.addTask {
                    guard
                        case .failed(let error)? = outbox.submit(
                            destination, payload, mayWait: true
                        )
                        .outcome
                    else { return nil }
                    return error.code
                }
            }
            return try await group.reduce(into: []) { $0.append($1) }
        }
        #expect(codes.count { $0 == nil } == 4)
        #expect(codes.count { $0 == .outboxFull } == 60)

        let waiting = Task { try await outbox.waitForRoom() }
        let cancelled = Task { try await outbox.waitForRoom() }
        cancelled.cancel()
        let error = await #expect(throws: NodeError.self) { try await cancelled.value }
        #expect(error?.code == .cancelled)
        _ = outbox.take { _ in true }
        try await waiting.value
        #expect(outbox.submit(destination, payload, mayWait: true).outcome == nil)
    }

    @Test func `a task that waits for room learns that the outbox is closed`() async throws {
        let outbox = Outbox(bytesMax: 1, policy: .wait, wake: {})
        let destination = Outbox.Destination(
            BatchTarget(
                target: try #require(Target("tally/*")), schemaVersion: 1, coding: .json))
        _ = outbox.submit(destination, [1, 2], mayWait: false)
        let waiting = Task { try await outbox.waitForRoom() }
        outbox.close()
        try await waiting.value
    }

    @Test func `skipped counters are taken between the actions around them`() throws {
        let outbox = makeOutbox()
        let target = BatchTarget(
            target: try #require(Target("tally/*")), schemaVersion: 1, coding: .json)
        let destination = Outbox.Destination(target)
        outbox.skip(2)
        outbox.skip(3)
        _ = outbox.submit(destination, [1], mayWait: false)
        outbox.skip(1)
        _ = outbox.submit(destination, [1], mayWait: false)
        outbox.endBatch()
        outbox.endBatch()
        _ = outbox.submit(destination, [1], mayWait: false)
        var taken: [(Int, UInt32)] = []
        while let gathered = outbox.take(if: { _ in true }) {
            taken.append((gathered.builder.count, gathered.skippedCount))
        }
        #expect(taken.map(\.0) == [0, 1, 0, 1, 1])
        #expect(taken.map(\.1) == [5, 0, 1, 0, 0])
        #expect(outbox.isEmpty)
    }

    @Test func `unsent actions are withdrawn at once, and requests for sent ones are passed on`()
        async throws
    {
        let passedOn = Mutex<[Int]>([])
        let outbox = makeOutbox { index, _ in passedOn.withLock { $0.append(index) } }
        let target = BatchTarget(
            target: try #require(Target("tally/*")), schemaVersion: 1, coding: .json)
        let destination = Outbox.Destination(target)
        let handles = (0..<3).map { _ in outbox.submit(destination, [1], mayWait: false) }
        #expect(try await handles[1].withdraw() == nil)
        let gathered = try #require(outbox.take { _ in true })
        #expect(gathered.count == 3)
        #expect(gathered.withdrawn == [1])
        let waiting = Task { try await handles[2].withdraw() }
        waiting.cancel()
        let error = await #expect(throws: DispatchError.self) { try await waiting.value }
        #expect(error?.code == .cancelled)
        #expect(passedOn.withLock { $0 } == [2])
    }

    @Test func `an outbox is freed though handles of its actions live`() throws {
        var outbox: Outbox? = makeOutbox()
        weak let gone = outbox
        let destination = Outbox.Destination(
            BatchTarget(
                target: try #require(Target("tally/*")), schemaVersion: 1, coding: .json))
        let handle = outbox?.submit(destination, [1], mayWait: false)
        outbox = nil
        #expect(gone == nil)
        #expect(handle?.outcome == nil)
    }
}
