import Conflux
import Dispatch
import Synchronization
import Testing

struct ScopedObservationTests {
    @Test func `nothing is delivered once the object is gone`() {
        let sink = Sink<Int>()
        let seen = Seen<Int>()
        var object: Witness? = Witness()
        let disposable = sink.signal.observe(duringScopeOf: object!) { seen.add($0) }
        sink.send(value: 1)
        #expect(!disposable.isDisposed)
        object = nil
        #expect(disposable.isDisposed)
        sink.send(value: 2)
        #expect(seen.values == [1])
        #expect(object == nil)
    }

    @Test func `nothing is delivered in the object's deinit`() {
        let sink = Sink<Int>()
        let seen = Seen<Int>()
        var object: Witness? = Witness { sink.send(value: 2) }
        sink.signal.observe(duringScopeOf: object!) { seen.add($0) }
        sink.send(value: 1)
        object = nil
        #expect(seen.values == [1])
        #expect(object == nil)
    }

    @Test func `captures are freed at the next send`() {
        let sink = Sink<Int>()
        let released = Seen<Bool>()
        observeForAMoment(sink.signal, released)
        #expect(released.values == [])
        sink.send(value: 1)
        #expect(released.values == [true])
    }

    @Test func `captures are freed at the next observation`() {
        let sink = Sink<Int>()
        let released = Seen<Bool>()
        observeForAMoment(sink.signal.map { $0 }.observe(on: .queue(.global())), released)
        #expect(released.values == [])
        sink.signal.observe { _ in }
        #expect(released.values == [true])
    }

    private func observeForAMoment(_ signal: Signal<Int>, _ released: Seen<Bool>) {
        let object = Witness()
        let capture = Witness { released.add(true) }
        signal.observe(duringScopeOf: object) { _ in capture.stay() }
        withExtendedLifetime(object) {}
    }

    @Test func `the producer's disposable is disposed at the next send`() {
        let sends = Seen<@Sendable (Int) -> Void>()
        let ends = Atomic<Int>(0)
        let signal = Signal<Int> { send in
            sends.add(send)
            return AnyDisposable { ends.add(1, ordering: .relaxed) }
        }
        let seen = Seen<Int>()
        do {
            let object = Witness()
            signal.observe(duringScopeOf: object) { seen.add($0) }
            sends.values[0](1)
            withExtendedLifetime(object) {}
        }
        #expect(ends.load(ordering: .relaxed) == 0)
        sends.values[0](2)
        sends.values[0](3)
        #expect(ends.load(ordering: .relaxed) == 1)
        #expect(seen.values == [1])
    }

    @Test func `objects come and go while others send`() {
        let variable = Variable(0)
        let released = Atomic<Int>(0)
        onThreads(100) { thread in
            for step in 0..<20 {
                let object = Witness()
                let capture = Witness { released.add(1, ordering: .relaxed) }
                variable.signal.observe(duringScopeOf: object) { _ in capture.stay() }
                variable.value = thread * 20 + step
                withExtendedLifetime(object) {}
            }
        }
        variable.value = -1
        #expect(released.load(ordering: .relaxed) == 2_000)
    }

    @Test func `disposing explicitly releases at once`() {
        let sink = Sink<Int>()
        let released = Seen<Bool>()
        let object = Witness()
        let disposable: any Disposable
        do {
            let capture = Witness { released.add(true) }
            disposable = sink.signal.observe(duringScopeOf: object) { _ in capture.stay() }
        }
        disposable.dispose()
        #expect(released.values == [true])
        #expect(disposable.isDisposed)
        withExtendedLifetime(object) {}
    }
}

@MainActor
struct BindingTests {
    @MainActor
    final class Label {
        var text: String?
    }

    @Test func `a binding to a main actor's label runs on the main thread at once`() {
        let text = Variable("a")
        let label = Label()
        text.signal.bind(to: label) { label, text in
            label.text = text
        }
        #expect(label.text == "a")
        text.value = "b"
        #expect(label.text == "b")
    }

    @Test func `values of other threads reach the main actor in order`() async {
        let text = Variable("0")
        let label = Label()
        let seen = Seen<String>()
        let (done, end) = AsyncStream.makeStream(of: Void.self)
        text.signal.bind(to: label) { label, text in
            label.text = text
            seen.add(text)
            if text == "100" { end.finish() }
        }
        DispatchQueue.global().async {
            for number in 1...100 { text.value = "\(number)" }
        }
        for await _ in done {}
        #expect(seen.values == (0...100).map(String.init))
        #expect(label.text == "100")
    }

    @Test func `a binding ends with its target`() {
        let text = Variable("a")
        var label: Label? = Label()
        let disposable = text.signal.bind(to: label!, \.text)
        #expect(label?.text == "a")
        label = nil
        #expect(disposable.isDisposed)
        text.value = "b"
    }

    @Test func `a binding to a dead target is disposed at once`() {
        var label: Label? = Label()
        let binder = Binder<String>(target: label!) { _, _ in Issue.record("the target is gone") }
        label = nil
        let starts = Atomic<Int>(0)
        let signal = Signal<String> { send in
            starts.add(1, ordering: .relaxed)
            send("a")
            return AnyDisposable()
        }
        #expect(signal.bind(to: binder, on: .immediate).isDisposed)
        #expect(starts.load(ordering: .relaxed) == 0)
        #expect(label == nil)
    }
}
