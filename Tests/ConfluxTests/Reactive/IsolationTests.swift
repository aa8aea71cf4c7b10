import Conflux
import Dispatch
import Synchronization
import Testing

/// Values that are sent on other threads reach an observer on the actor that it belongs to.
@Suite(.timeLimit(.minutes(5)))
struct IsolationTests {
    /// Code of the main actor. Every function of it uses the actor's state, and would end the program elsewhere.
    @MainActor
    final class Screen {
        private(set) var lines: [String] = []
        var number = 0 {
            didSet { note("number \(number)") }
        }
        private let (stream, continuation) = AsyncStream.makeStream(of: String.self)

        nonisolated init() {}

        func note(_ line: String) {
            MainActor.assertIsolated()
            lines.append(line)
            continuation.yield(line)
        }

        /// Waits until a line was noted.
        func wait(for line: String) async {
            for await noted in stream where noted == line { return }
        }

        func show(_ number: Int) { note("method \(number)") }

        func watch(_ stock: ModelStore<Stock>) {
            stock.observe(\.left, duringScopeOf: self) { [weak self] stock in
                self?.note("observed \(stock.left)")
            }
            stock.observe(\.left) { stock, changed in self.note("\(changed.count) of \(stock.left)")
            }
            stock.readOnly.observe(\.left) { self.note("read only \($0.left)") }
            stock.changed(\.left).observe { self.note("changed \($0)") }
            stock.changed(\.left).observe(on: .queue(.global())).observe {
                self.note("hopped \($0)")
            }
            stock.changed(\.left).map { self.lines.isEmpty ? $0 : $0 }.observe(show)
            stock.activities(of: Int.self).observe { self.note("activity \($0)") }
        }

        func bind(_ signal: Signal<Int>) {
            signal.bind(to: self, \.number, on: .immediate)
            signal.bind(to: self) { screen, number in screen.note("bound \(number)") }
            signal.bind(to: self, on: .immediate) { screen, number in
                screen.note("at once \(number)")
            }
            signal.bind(
                to: Binder(target: self) { screen, number in screen.note("binder \(number)") },
                on: .queue(.global()))
        }

        func signal() -> Signal<Int> {
            Signal { send in
                self.note("producing")
                send(self.lines.count)
                return AnyDisposable { self.note("ended") }
            }
        }

        func executor() -> Executor {
            Executor { function in
                self.note("executing")
                function()
            }
        }
    }

    @Test func `an observer of the main actor is called there, whoever commits`() async {
        let stock = Scope().run { ModelStore(Stock()) }
        let screen = Screen()
        await screen.watch(stock)
        let expected = [
            "observed 3", "1 of 3", "read only 3", "changed 3", "hopped 3", "method 3",
            "activity 7",
        ]
        DispatchQueue.global().async {
            stock.dispatch(.add(amount: 3))
            stock.emit(7)
        }
        await screen.wait(for: "activity 7")
        await screen.wait(forAll: expected)
    }

    @Test func `bindings, producers, disposables and executors keep to the main actor`() async {
        let sink = Sink<Int>()
        let screen = Screen()
        await screen.bind(sink.signal)
        let signal = await screen.signal()
        let executor = await screen.executor()
        DispatchQueue.global().async {
            sink.send(value: 5)
            let seen = Mutex(0)
            signal.observe { number in seen.withLock { $0 = number } }.dispose()
            signal.observe { number in
                seen.withLock { $0 = number }
            }
            executor.execute { seen.withLock { $0 += 1 } }
        }
        await screen.wait(forAll: [
            "number 5", "bound 5", "at once 5", "binder 5", "producing", "executing",
        ])
        let ending = await screen.signal().observe { _ in }
        await screen.wait(forAll: ["producing"])
        DispatchQueue.global().async { ending.dispose() }
        await screen.wait(forAll: ["ended"])
    }

    @MainActor
    @Test func `an observer of the main actor is called at once on main`() {
        let stock = Scope().run { ModelStore(Stock()) }
        var seen: [Int] = []
        stock.observe(\.left) { seen.append($0.left) }
        stock.dispatch(.add(amount: 1))
        stock.dispatch(.add(amount: 1))
        #expect(seen == [1, 2])
    }

    /// An actor that counts in its own state.
    actor Counter {
        private(set) var numbers: [Int] = []
        private let (stream, continuation) = AsyncStream.makeStream(of: Int.self)

        func watch(_ signal: Signal<Int>) {
            signal.observe { number in
                self.assertIsolated()
                self.numbers.append(number)
                self.continuation.yield(number)
            }
        }

        func wait(for number: Int) async {
            for await seen in stream where seen == number { return }
        }
    }

    @Test func `an observer of any actor gets every value in order on that actor`() async {
        let sink = Sink<Int>()
        let counter = Counter()
        await counter.watch(sink.signal)
        DispatchQueue.global().async {
            for number in 1...1_000 { sink.send(value: number) }
        }
        await counter.wait(for: 1_000)
        #expect(await counter.numbers == Array(1...1_000))
    }

    @Test func `a disposed observer of an actor is not called, though a value is on its way`() async
    {
        let sink = Sink<Int>()
        let screen = Screen()
        await MainActor.run {
            let observation = sink.signal.observe { screen.note("called \($0)") }
            let sent = DispatchSemaphore(value: 0)
            DispatchQueue.global().async {
                sink.send(value: 1)
                sent.signal()
            }
            sent.wait()
            observation.dispose()
        }
        await MainActor.run { screen.note("last") }
        await screen.wait(for: "last")
        await MainActor.run { #expect(screen.lines == ["last"]) }
    }

    @Test func `a sendable observer runs where the value is sent`() {
        let sink = Sink<Int>()
        let threads = Seen<Bool>()
        let key = DispatchSpecificKey<Bool>()
        let queue = DispatchQueue(label: "sender")
        queue.setSpecific(key: key, value: true)
        sink.signal.observe { _ in threads.add(DispatchQueue.getSpecific(key: key) == true) }
        queue.sync { sink.send(value: 1) }
        #expect(threads.values == [true])
    }
}

extension IsolationTests.Screen {
    /// Waits until all of these lines were noted.
    func wait(forAll expected: [String]) async {
        var missing = Set(expected).subtracting(lines)
        while let line = missing.first {
            await wait(for: line)
            missing.subtract(lines)
        }
    }
}
