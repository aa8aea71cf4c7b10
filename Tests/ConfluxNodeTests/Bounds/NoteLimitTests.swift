import ConfluxProtocol
import ConfluxZeroMQ
import Testing

@testable import ConfluxSequencer

/// How often a sequencer reports what any peer can cause.
struct NoteLimitTests {
    @Test func `reports about hostile peers are bounded, and then count the rest`() {
        var limit = NoteLimit()
        let told = (0..<12_345).filter { _ in limit.admits(.unreadable("x"), at: .seconds(1)) }
        #expect(told.count == 20)
        // An event that hostile peers can't cause is always reported, and each kind is limited separately.
        for note in [SequencerNote.resumed, .joined(Incarnation(1), name: nil, owner: nil)] {
            let isTold = limit.admits(note, at: .seconds(2))
            #expect(isTold)
        }
        let omissions = [10, 11, 12].map { limit.endSpans(at: .seconds($0)) }
        #expect(
            omissions == [[], [NoteLimit.Omission(kind: .unreadable, count: 12_325)], []])
        let isToldAgain = limit.admits(.unreadable("x"), at: .seconds(12))
        #expect(isToldAgain)
        // If nothing was left out, nothing is reported.
        let last = limit.endSpans(at: .seconds(30))
        #expect(last.isEmpty)
    }
}

/// What nodes send while the sequencer reads its log.
struct EarlyMessageTests {
    @Test func `messages before the term begins are kept within bounds`() {
        var early = EarlyMessages()
        let message = RouterInput.message(from: RoutingID(number: 1), body: [1])
        for _ in 0..<2 * EarlyMessages.countMax { early.add(message) }
        let kept = [early.takeAll().count, early.takeAll().count]
        #expect(kept == [EarlyMessages.countMax / 2, 0])
        let large = RouterInput.message(
            from: RoutingID(number: 1), body: [UInt8](repeating: 0, count: 1 << 20)[...])
        for _ in 0..<10 { early.add(large) }
        early.add(.malformed(from: RoutingID(number: 1), frames: 2))
        let keptOfLarge = early.takeAll().count
        #expect(keptOfLarge == 2)
    }

    @Test func `a key that sends before the term begins leaves room for others`() {
        var early = EarlyMessages()
        let greedy = CurveKeyPair.random().publicKey
        // From many connections: the share is the key's.
        for number in 1...2_000 as ClosedRange<UInt32> {
            early.add(.message(from: RoutingID(number: number), body: [1]), of: greedy)
        }
        early.add(
            .message(from: RoutingID(number: 3_000), body: [1]), of: CurveKeyPair.random().publicKey
        )
        let peers = early.takeAll().map(\.peer.number)
        #expect(peers.count == EarlyMessages.countMax / 2 + 1 && peers.last == 3_000)
        for number in 1...100 as ClosedRange<UInt32> {
            let body = [UInt8](repeating: 0, count: 100 << 10)[...]
            early.add(.message(from: RoutingID(number: number), body: body), of: greedy)
        }
        early.add(
            .message(
                from: RoutingID(number: 200), body: [UInt8](repeating: 0, count: 1 << 20)[...]),
            of: CurveKeyPair.random().publicKey)
        let senders = early.takeAll().map(\.peer.number)
        #expect(senders.count == 21 && senders.last == 200)
    }

    @Test func `messages of an ended connection are not kept`() {
        var early = EarlyMessages()
        for number in 1...2 as ClosedRange<UInt32> {
            let body = [UInt8](repeating: 0, count: 2 << 20)[...]
            early.add(.message(from: RoutingID(number: number), body: body))
        }
        early.add(.ended(RoutingID(number: 1)))
        // There is room for the same amount again.
        let next = RouterInput.message(
            from: RoutingID(number: 3), body: [UInt8](repeating: 0, count: 2 << 20)[...])
        early.add(next)
        let peers = early.takeAll().map(\.peer.number)
        #expect(peers == [2, 3])
    }
}
