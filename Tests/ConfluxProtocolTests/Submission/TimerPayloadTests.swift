import ConfluxVocabulary
import Testing

@testable import ConfluxProtocol

/// The payloads of entries that set and end timers, and timers in checkpoints.
struct TimerPayloadTests {
    private func order(_ random: inout SplitMix64, key: String? = nil) -> TimerOrder {
        var actions = BatchBuilder()
        for _ in 0...random.next() % 3 {
            actions.append(
                target: BatchTarget(
                    target: Target("list/\(random.next() % 3)")!, schemaVersion: 1,
                    coding: .compact),
                payload: Array(repeating: 7, count: Int(random.next() % 20)))
        }
        let isRepeating = random.next().isMultiple(of: 2)
        return TimerOrder(
            key: key ?? (isRepeating ? "k" : nil),
            due: random.next().isMultiple(of: 2)
                ? .after(.nanoseconds(Int64(random.next() >> 2)))
                : .at(Timestamp(Int64(bitPattern: random.next()))),
            interval: isRepeating ? .nanoseconds(Int64(random.next() >> 2)) : nil,
            actions: actions.finish(firstCounter: 1, settled: 0, isAtomic: isRepeating))
    }

    @Test func `a request is decoded as it was, and no part of one is a request`() throws {
        var random = SplitMix64(seed: 26)
        for _ in 1...200 {
            let requests: [TimerRequest] = [
                .set(order(&random)), .cancel(TimerKey(target: Target("list")!, name: "k")),
            ]
            for request in requests {
                let payload = request.payload[...]
                #expect(try TimerRequest(payload: payload) == request)
                for count in payload.indices {
                    #expect(throws: WireError.self) {
                        try TimerRequest(payload: payload.prefix(count))
                    }
                }
                #expect(throws: WireError.self) { try TimerRequest(payload: payload + [0]) }
            }
        }
    }

    @Test func `damaged requests are refused, or are requests`() {
        var random = SplitMix64(seed: 27)
        for _ in 1...5_000 {
            var payload = TimerRequest.set(order(&random)).payload
            payload[Int(random.next() % UInt64(payload.count))] = UInt8(
                truncatingIfNeeded: random.next())
            guard let request = try? TimerRequest(payload: payload[...]) else { continue }
            guard case .set(let order) = request else { continue }
            // What the sequencer looks at before it admits one does not trap either.
            guard order.fault == nil else { continue }
            _ = try? order.actions.validate(payloadBytesMax: 1 << 20)
        }
    }

    @Test func `a checkpoint that has a timer or a key twice is refused`() throws {
        var random = SplitMix64(seed: 28)
        let (first, second) = (order(&random, key: "k"), order(&random, key: "k"))
        func checkpoint(_ timers: [(UInt64, TimerOrder)]) -> [UInt8] {
            var state = LogState(log: LogID(high: 1, low: 2))
            state.last = SequenceNumber(10)
            for (number, order) in timers {
                _ = state.timers.restore(
                    TimerTable.Timer(
                        number: SequenceNumber(number), owner: nil, order: order,
                        due: Timestamp(5)))
            }
            return state.encoded()
        }
        var one = first
        one.interval = .seconds(1)
        one.due = .after(.seconds(1))
        var other = second
        other.interval = nil
        other.due = .at(Timestamp(0))
        other.actions = one.actions
        let none = checkpoint([])
        let (a, b) = (checkpoint([(3, one)]), checkpoint([(4, other)]))
        #expect(try LogState(checkpoint: a[...]).timers.timers.count == 1)
        #expect(try LogState(checkpoint: b[...]).timers.timers.count == 1)
        for twice in [a + a[none.count...], a + b[none.count...]] {
            #expect(throws: WireError.self) { try LogState(checkpoint: twice[...]) }
        }
        // Timers of entries that the log does not have yet.
        #expect(throws: WireError.self) {
            try LogState(checkpoint: checkpoint([(11, one)])[...])
        }
    }
}
