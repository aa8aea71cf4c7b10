import Conflux
import Dispatch
import Foundation
import Testing

/// Stands in for UIKit's view.
@MainActor
final class View {
    var isHidden = false
    var lastDuration: TimeInterval = 0
}

extension View {
    func setHiddenBinder(duration: TimeInterval) -> Binder<Bool> {
        return Binder(target: self) { view, isHidden in
            view.lastDuration = duration
            view.isHidden = isHidden
        }
    }
}

final class Screen {
    var seen = [Int]()

    func watch(_ signal: Signal<Int>, log: AtomicReference<[Int]>) {
        signal.observe(duringScopeOf: self) { value in
            log.modify { $0.append(value) }
        }
    }
}

extension ClientTests {
    @MainActor
    final class ReadmeReactiveTests {
        private var printed = [String]()

        @Test func `sink`() {
            let sink = Sink<Int>()
            let signal = sink.signal

            signal.observe { self.printed.append("\($0)") }

            sink.send(value: 100)

            #expect(printed == ["100"])
        }

        @Test func `signal`() {
            let sink = Sink<Int>()
            let signal = sink.signal

            signal.observe { self.printed.append("1: \($0)") }
            signal.observe { self.printed.append("2: \($0)") }

            sink.send(value: 100)
            sink.send(value: 200)

            #expect(printed == ["1: 100", "2: 100", "1: 200", "2: 200"])
        }

        @Test func `variable`() {
            let variable = Variable(0)

            variable.signal.observe { self.printed.append("\($0)") }

            variable.value = 1

            #expect(variable.value == 1)

            variable.signal.observe { self.printed.append("\($0)") }

            #expect(printed == ["0", "1", "1"])
        }

        @Test func `constant`() {
            let variable = Variable(0)
            let constant = variable.constant

            constant.signal.observe { self.printed.append("\($0)") }

            variable.value = 1

            #expect(constant.value == 1)

            constant.signal.observe { self.printed.append("\($0)") }

            #expect(printed == ["0", "1", "1"])
        }

        @Test func `map`() {
            let sink = Sink<Int>()
            let signal = sink.signal

            signal
                .map { "Value is \($0)" }
                .observe { self.printed.append($0) }

            sink.send(value: 100)
            sink.send(value: 200)

            #expect(printed == ["Value is 100", "Value is 200"])
        }

        @Test func `observe on main thread`() async {
            let sink = Sink<Int>()
            let signal = sink.signal

            signal
                .observe(on: .mainThread)
                .observe {
                    // On Linux the main queue leaves the main thread once an asynchronous `main` waits.
                    dispatchPrecondition(condition: .onQueue(.main))
                    self.printed.append("Value: \($0), isMainThread: true")
                }

            DispatchQueue.global().async {
                sink.send(value: 100)
                sink.send(value: 200)
            }

            await waitOnMain { self.printed.count == 2 }
            #expect(
                printed == ["Value: 100, isMainThread: true", "Value: 200, isMainThread: true"])
        }

        @Test func `observe on background queue`() async {
            let store = Store<CounterState>(
                state: .init(), mutations: .init(), executor: .queue(.global()))
            let texts = AtomicReference([String]())

            store.computed.countTextValues
                .observe(on: .queue(.global(qos: .background)))
                .observe { value in
                    texts.modify { $0.append(value) }
                }

            for _ in 0..<100 { store.actions.increment() }

            await waitOnMain { texts.value.count == 101 }
            #expect(texts.value == (0...100).map { "\($0)" })
        }

        @Test func `disposable`() {
            let sink = Sink<Int>()
            let disposable = sink.signal.observe { value in
                self.printed.append("\(value)")
            }

            disposable.dispose()

            sink.send(value: 1)
            #expect(disposable.isDisposed)
            #expect(printed == [])
        }

        @Test func `disposable scope`() {
            let sink = Sink<Int>()
            var disposableScope: DisposableScope? = DisposableScope()

            disposableScope += sink.signal.observe { value in
                self.printed.append("\(value)")
            }

            sink.send(value: 1)
            disposableScope = nil  // Be disposed
            sink.send(value: 2)

            #expect(disposableScope == nil)
            #expect(printed == ["1"])
        }

        @Test func `scoped observing`() {
            let sink = Sink<Int>()
            let log = AtomicReference([Int]())
            var screen: Screen? = Screen()

            screen?.watch(sink.signal, log: log)
            sink.send(value: 1)
            screen = nil
            sink.send(value: 2)

            #expect(log.value == [1])
        }

        @Test func `closure binding`() {
            let text = Variable("a")
            let label = Label()

            text.signal.bind(to: label) { label, text in
                label.text = text
            }

            #expect(label.text == "a")
            text.value = "b"
            #expect(label.text == "b")
        }

        @Test func `key path binding`() {
            let text = Variable("a")
            let label = Label()

            text.signal.bind(to: label, \.text)

            #expect(label.text == "a")
            text.value = "b"
            #expect(label.text == "b")
        }

        @Test func `binder`() {
            let isViewHidden = Variable(false)
            let view = View()

            isViewHidden.signal.bind(to: view.setHiddenBinder(duration: 0.3))

            isViewHidden.value = true
            #expect(view.isHidden)
            #expect(view.lastDuration == 0.3)
        }
    }
}
