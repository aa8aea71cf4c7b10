import Conflux
import Dispatch
import Synchronization
import Testing

struct ObservationTests {
    @Test(.timeLimit(.minutes(1)))
    func `an observer may send any number of values while it gets its first one`() {
        let variable = Variable(0)
        nonisolated(unsafe) var last = -1
        let disposable = variable.signal.observe { value in
            last = value
            if value == 0 { for next in 1...5_000 { variable.value = next } }
        }
        #expect(last == 5_000)
        disposable.dispose()
    }

    @Test func `an observer disposes itself`() {
        let sink = Sink<Int>()
        let seen = Seen<Int>()
        let scope = DisposableScope()
        scope += sink.signal.observe { value in
            seen.add(value)
            scope.dispose()
        }
        sink.send(value: 1)
        sink.send(value: 2)
        #expect(seen.values == [1])
    }

    @Test func `an observer that another one disposes misses the value being delivered`() {
        let sink = Sink<Int>()
        let seen = Seen<Int>()
        let later = DisposableScope()
        sink.signal.observe { _ in later.dispose() }
        later += sink.signal.observe { seen.add($0) }
        sink.send(value: 1)
        #expect(seen.values == [])
    }

    @Test func `the observer of a first value may dispose earlier observations`() {
        let variable = Variable(0)
        let seen = Seen<Int>()
        let earlier = variable.signal.observe { seen.add($0) }
        variable.signal.observe { _ in earlier.dispose() }
        variable.value = 1
        #expect(seen.values == [0])
    }

    @Test func `a value queued on an executor does not reach a disposed observer`() {
        let queue = DispatchQueue(label: "observers")
        queue.suspend()
        let variable = Variable(0)
        let seen = Seen<Int>()
        let disposable = variable.signal.observe(on: .queue(queue)).observe { seen.add($0) }
        variable.value = 1
        disposable.dispose()
        queue.resume()
        queue.sync {}
        #expect(seen.values == [])
    }

    @Test func `nothing sent after dispose is seen while a hundred threads send`() {
        let sink = Sink<Int>()
        let before = Atomic<Int>(0)
        let after = Atomic<Int>(0)
        onThreads(100) { thread in
            for step in 0..<20 {
                let own = 1 + thread * 20 + step
                let disposable = sink.signal.observe { value in
                    if value == own { before.add(1, ordering: .relaxed) }
                    if value == -own { after.add(1, ordering: .relaxed) }
                }
                sink.send(value: own)
                disposable.dispose()
                sink.send(value: -own)
            }
        }
        #expect(after.load(ordering: .relaxed) == 0)
        // The delivering thread may still have a value when the value's observer is disposed.
        #expect(before.load(ordering: .relaxed) > 0)
    }

    @Test func `disposing releases the observer's captures`() {
        let sink = Sink<Int>()
        let seen = Seen<String>()
        let disposable: any Disposable
        do {
            let witness = Witness { seen.add("released") }
            disposable = sink.signal.map { $0 }.observe { _ in witness.stay() }
        }
        sink.send(value: 1)
        #expect(seen.values == [])
        disposable.dispose()
        #expect(seen.values == ["released"])
    }

    @Test func `observing takes as long beside ten thousand observers as alone`() {
        func shortest(beside count: Int) -> Duration {
            let variable = Variable(0)
            for _ in 0..<count { variable.signal.observe { _ in } }
            let durations = (0..<20).map { _ in
                ContinuousClock().measure {
                    for _ in 0..<50 { variable.signal.observe { _ in }.dispose() }
                }
            }
            return durations.min() ?? .zero
        }
        // To copy or search the list would take hundreds of times as long.
        #expect(shortest(beside: 10_000) < shortest(beside: 0) * 20)
    }

    @Test func `observers that end during a delivery are released with it`() {
        let sink = Sink<Int>()
        let released = Seen<Int>()
        let seen = Seen<Int>()
        let scope = DisposableScope()
        sink.signal.observe { value in
            guard value == 0 else { return }
            scope.dispose()
            #expect(released.values == [])
        }
        for index in 0..<3 {
            let capture = Witness { released.add(index) }
            scope += sink.signal.observe { _ in capture.stay() }
        }
        sink.signal.observe { seen.add($0) }
        sink.send(value: 0)
        sink.send(value: 1)
        #expect(released.values == [0, 1, 2])
        #expect(seen.values == [0, 1])
    }

    @Test func `observers that end in any order leave the others linked`() {
        let sink = Sink<Int>()
        var random = SystemRandomNumberGenerator()
        for _ in 0..<100 {
            let seen = Seen<Int>()
            let observations = (0..<8).map { index in sink.signal.observe { _ in seen.add(index) } }
            var left = Array(0..<8)
            for index in (0..<8).shuffled(using: &random) {
                observations[index].dispose()
                left.removeAll { $0 == index }
                let before = seen.values.count
                sink.send(value: 0)
                #expect(Array(seen.values.dropFirst(before)) == left)
            }
        }
    }

    @Test func `a producer's disposable is disposed once`() {
        let ends = Atomic<Int>(0)
        let signal = Signal<Int> { send in
            send(1)
            return AnyDisposable { ends.add(1, ordering: .relaxed) }
        }
        let disposable = signal.map { $0 + 1 }.observe { _ in }
        #expect(ends.load(ordering: .relaxed) == 0)
        onThreads(10) { _ in disposable.dispose() }
        #expect(ends.load(ordering: .relaxed) == 1)
    }

    @Test func `nothing is retained once the source is released`() {
        let seen = Seen<String>()
        do {
            let variable = Variable(0)
            let sink = Sink<Int>()
            let target = Target()
            let first = Witness { seen.add("observer") }
            let second = Witness { seen.add("map") }
            let third = Witness { seen.add("queue") }
            let fourth = Witness { seen.add("binding") }
            variable.signal.observe { _ in first.stay() }
            variable.constant.signal.map { value in
                second.stay()
                return value
            }.observe { _ in }
            sink.signal.observe(on: .queue(.global())).observe { _ in third.stay() }
            variable.signal.bind(to: target, on: .immediate) { target, value in
                fourth.stay()
                target.number = value
            }
            variable.value = 1
            #expect(target.number == 1)
        }
        #expect(Set(seen.values) == ["observer", "map", "queue", "binding"])
    }

    @Test func `a producer's resources are freed although they hold the send function`() {
        let released = Seen<Bool>()
        let signal = Signal<Int> { send in
            let resource = Resource(send: send, witness: Witness { released.add(true) })
            return AnyDisposable { resource.stop() }
        }
        signal.observe { _ in }
        #expect(released.values == [true])
    }
}

private final class Target: @unchecked Sendable {
    // Sendable: only one thread uses it.
    var number = 0
}

private final class Resource: Sendable {
    let send: @Sendable (Int) -> Void

    let witness: Witness

    init(send: @escaping @Sendable (Int) -> Void, witness: Witness) {
        self.send = send
        self.witness = witness
    }

    func stop() {}
}
