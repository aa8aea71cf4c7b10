import Conflux
import Synchronization
import Testing

struct SignalValuesTests {
    @Test func `values arrive in order from the call on, and end with the source`() async {
        var seen = [Int]()
        let values: AsyncStream<Int>
        do {
            let sink = Sink<Int>()
            sink.send(value: 0)
            values = sink.signal.values
            for value in 1...3 { sink.send(value: value) }
        }
        for await value in values { seen.append(value) }
        #expect(seen == [1, 2, 3])
    }

    @Test func `a slow reader gets the newest values`() async {
        var seen = [Int]()
        let values: AsyncStream<Int>
        let latest: AsyncStream<Int>
        do {
            let variable = Variable(0)
            values = variable.signal.values
            latest = variable.signal.values(keepingNewest: 1)
            for value in 1...100 { variable.value = value }
        }
        for await value in values { seen.append(value) }
        #expect(seen == Array(37...100))
        for await value in latest { seen.append(value) }
        #expect(seen.suffix(2) == [100, 100])
    }

    @Test func `cancellation ends the sequence and the observation`() async {
        let ends = Atomic<Int>(0)
        let sends = Seen<@Sendable (Int) -> Void>()
        let signal = Signal<Int> { send in
            sends.add(send)
            send(1)
            return AnyDisposable { ends.add(1, ordering: .relaxed) }
        }
        let (started, start) = AsyncStream.makeStream(of: Void.self)
        let task = Task {
            var seen = [Int]()
            for await value in signal.values {
                seen.append(value)
                start.finish()
            }
            return seen
        }
        for await _ in started {}
        task.cancel()
        #expect(await task.value == [1])
        #expect(ends.load(ordering: .relaxed) == 1)
    }

    @Test func `a sequence that is not read ends its observation on release`() {
        let ends = Atomic<Int>(0)
        let sends = Seen<@Sendable (Int) -> Void>()
        let signal = Signal<Int> { send in
            sends.add(send)
            return AnyDisposable { ends.add(1, ordering: .relaxed) }
        }
        _ = signal.values
        #expect(ends.load(ordering: .relaxed) == 1)
    }
}
