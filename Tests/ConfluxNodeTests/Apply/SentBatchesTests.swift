import Conflux
@testable import ConfluxProtocol
import ConfluxVocabulary
import Testing

@testable import ConfluxNode

struct SentBatchesTests {
    private let log = LogID(high: 1, low: 1)

    private func outcome(
        _ first: UInt64, _ count: UInt32, _ status: ActionOutcome.Status = .unknown
    ) -> ActionOutcome {
        ActionOutcome(firstCounter: first, count: count, status: status)
    }

    private func committed(at sequence: UInt64) -> ActionOutcome.Status {
        .committed(log, SequenceNumber(sequence), Epoch(5), Timestamp(0))
    }

    private func token(of index: Int, in block: OutcomeBlock) -> String? {
        let token = DispatchHandle(block: block, index: index).token
        #expect(token.map { $0.log == log } ?? true)
        return token.map { "\($0.origin)/\($0.since)" }
    }

    @Test func `late outcomes of an ended session do not affect actions of the next one`() {
        let former = OutcomeBlock()
        let present = OutcomeBlock()
        var sent = SentBatches()
        sent.beginSession(Incarnation(2), of: log, in: Epoch(4))
        sent.add(former, firstCounter: 1, count: 6)
        sent.settle(outcome(1, 2))
        sent.beginSession(Incarnation(9), of: log, in: Epoch(5))
        sent.add(present, firstCounter: 1, count: 3)
        #expect(sent.counter(of: 2, in: former) == nil)
        // The remaining outcomes of the former session, with counters that are in use again.
        sent.settle(outcome(3, 4, committed(at: 7)))
        #expect(sent.counter(of: 2, in: present) == 3)
        sent.settle(outcome(1, 3))
        #expect(sent.counter(of: 2, in: present) == nil)
        let last = OutcomeBlock()
        sent.add(last, firstCounter: 4, count: 1)
        #expect(token(of: 5, in: former) == "2:6/2@4")
        #expect(token(of: 2, in: present) == "9:3/9@5")
        #expect(token(of: 0, in: last) == "9:4/9@5")
    }

    @Test func `a token names the last entry of the session that is known`() {
        let first = OutcomeBlock()
        let second = OutcomeBlock()
        var sent = SentBatches()
        sent.beginSession(Incarnation(2), of: log, in: Epoch(4))
        #expect(token(of: 0, in: first) == nil)
        sent.add(first, firstCounter: 1, count: 3)
        sent.settle(outcome(1, 3, committed(at: 20)))
        sent.add(second, firstCounter: 4, count: 2)
        #expect(token(of: 2, in: first) == "2:3/2@4")
        #expect(token(of: 1, in: second) == "2:5/22@5")
    }
}
