import Conflux
import ConfluxProtocol
import Testing

@testable import ConfluxNode

struct SentBatchesTests {
    private func outcome(_ first: UInt64, _ count: UInt32) -> ActionOutcome {
        ActionOutcome(firstCounter: first, count: count, status: .unknown)
    }

    @Test func `late outcomes of an ended session do not affect actions of the next one`() {
        let former = OutcomeBlock()
        let present = OutcomeBlock()
        var sent = SentBatches()
        sent.add(former, firstCounter: 1, count: 6)
        sent.settle(outcome(1, 2))
        sent.beginSession()
        sent.add(present, firstCounter: 1, count: 3)
        #expect(sent.counter(of: 2, in: former) == nil)
        // The remaining outcomes of the former session, with counters that are in use again.
        sent.settle(outcome(3, 4))
        #expect(sent.counter(of: 2, in: present) == 3)
        sent.settle(outcome(1, 3))
        #expect(sent.counter(of: 2, in: present) == nil)
    }
}
