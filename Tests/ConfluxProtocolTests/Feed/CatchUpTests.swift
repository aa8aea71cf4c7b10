import ConfluxVocabulary
import Testing

@testable import ConfluxProtocol

/// Which runner a store follows when several stores catch up.
struct CatchUpTests {
    private func subject(_ text: String) -> HostingSubject { .store(StoreName(text)!) }

    private func catchUps(_ positions: [(String, UInt64)]) -> CatchUps {
        var catchUps = CatchUps()
        for (text, position) in positions {
            catchUps.join(subject(text), at: SequenceNumber(position))
        }
        return catchUps
    }

    @Test func `a store that joins below a cursor takes nothing from its runner`() {
        var catchUps = catchUps([("a", 100)])
        let fetch = ReplicaMachine.PendingFetch(
            request: 7, from: SequenceNumber(101), deadline: .seconds(1))
        catchUps.runners[0].fetch = fetch
        catchUps.join(subject("b"), at: SequenceNumber(50))
        #expect(catchUps.runners.map(\.cursor) == [SequenceNumber(100), SequenceNumber(50)])
        #expect(catchUps.runners[0].fetch?.request == 7)
        #expect(catchUps.runners[0].members == [subject("a")])
    }

    @Test func `a store that joins at or above a cursor follows the nearest runner`() {
        let catchUps = catchUps([("a", 100), ("b", 50), ("c", 120), ("d", 99)])
        #expect(
            catchUps.runners.map(\.members)
                == [[subject("a"), subject("c")], [subject("b"), subject("d")]])
    }

    @Test func `at the limit of runners, a store below all of them waits for its turn`() {
        var catchUps = catchUps([("a", 100), ("b", 90), ("c", 80), ("d", 70)])
        #expect(catchUps.runners.count == CatchUps.runnersMax)
        #expect(catchUps.waiting.map(\.subject) == [subject("d")])
        catchUps.leave(subject("b"))
        #expect(
            catchUps.runners.map(\.members) == [[subject("a")], [subject("c")], [subject("d")]])
        #expect(catchUps.waiting.isEmpty)
    }

    @Test(arguments: [100, 110] as [UInt64])
    func `a runner that reaches another's cursor merges with it`(reached: UInt64) {
        var catchUps = catchUps([("b", 100), ("a", 90)])
        var runner = catchUps.runners.remove(at: 1)
        let former = runner.cursor
        runner.cursor = SequenceNumber(reached)
        catchUps.putBack(runner, from: former)
        #expect(catchUps.runners.map(\.members) == [[subject("b"), subject("a")]])
        // It has the lower cursor, so that no store misses an entry.
        #expect(catchUps.runners[0].cursor == SequenceNumber(100))
    }
}
