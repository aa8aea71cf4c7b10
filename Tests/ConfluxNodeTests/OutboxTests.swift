import ConfluxProtocol
import Testing

@testable import ConfluxNode

/// What was dispatched and not sent yet is bounded, however long the sequencer lags.
struct OutboxTests {
    @Test func `the bound holds while batches are taken one by one`() throws {
        let bytesMax = 4_000
        let outbox = Outbox(
            bytesMax: bytesMax, policy: .fail,
            limits: try WireLimits(batchBytesMax: 600, payloadBytesMax: 100), wake: {})
        let aim = Outbox.Aim(
            BatchTarget(
                target: try #require(Target("tally")), schemaVersion: 1, coding: .json))
        let payload: [UInt8] = [1, 2, 3, 4]
        var waiting = 0
        for _ in 0..<30 {
            for _ in 0..<(bytesMax / payload.count) {
                _ = outbox.submit(aim, payload, mayWait: false)
            }
            _ = outbox.take { _ in true }
        }
        while let batch = outbox.take(if: { _ in true }) { waiting += batch.builder.count }
        #expect(waiting <= bytesMax / payload.count)
        #expect(outbox.isEmpty)
    }
}
