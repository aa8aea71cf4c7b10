import Conflux
import Dispatch
import Foundation
import XCTest

/// Stands in for UIKit's view.
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

final class ReadmeReactiveTests: XCTestCase {
    private var printed = [String]()

    func testSink() {
        let sink = Sink<Int>()
        let signal = sink.signal

        signal.observe { self.printed.append("\($0)") }

        sink.send(value: 100)

        XCTAssertEqual(printed, ["100"])
    }

    func testSignal() {
        let sink = Sink<Int>()
        let signal = sink.signal

        signal.observe { self.printed.append("1: \($0)") }
        signal.observe { self.printed.append("2: \($0)") }

        sink.send(value: 100)
        sink.send(value: 200)

        XCTAssertEqual(printed, ["1: 100", "2: 100", "1: 200", "2: 200"])
    }

    func testVariable() {
        let variable = Variable(0)

        variable.signal.observe { self.printed.append("\($0)") }

        variable.value = 1

        XCTAssertEqual(variable.value, 1)

        variable.signal.observe { self.printed.append("\($0)") }

        XCTAssertEqual(printed, ["0", "1", "1"])
    }

    func testConstant() {
        let variable = Variable(0)
        let constant = variable.constant

        constant.signal.observe { self.printed.append("\($0)") }

        variable.value = 1

        XCTAssertEqual(constant.value, 1)

        constant.signal.observe { self.printed.append("\($0)") }

        XCTAssertEqual(printed, ["0", "1", "1"])
    }

    func testMap() {
        let sink = Sink<Int>()
        let signal = sink.signal

        signal
            .map { "Value is \($0)" }
            .observe { self.printed.append($0) }

        sink.send(value: 100)
        sink.send(value: 200)

        XCTAssertEqual(printed, ["Value is 100", "Value is 200"])
    }

    func testObserveOnMainThread() {
        let sink = Sink<Int>()
        let signal = sink.signal
        let told = expectation(description: "both values have come")
        told.expectedFulfillmentCount = 2

        signal
            .observe(on: .mainThread)
            .observe {
                self.printed.append("Value: \($0), isMainThread: \(Thread.isMainThread)")
                told.fulfill()
            }

        DispatchQueue.global().async {
            sink.send(value: 100)
            sink.send(value: 200)
        }

        wait(for: [told], timeout: 10)
        XCTAssertEqual(
            printed, ["Value: 100, isMainThread: true", "Value: 200, isMainThread: true"])
    }

    func testObserveOnBackgroundQueue() {
        let store = Store<CounterState>(
            state: .init(), mutations: .init(), executor: .queue(.global()))
        let texts = AtomicReference([String]())
        let told = expectation(description: "all values have come")

        store.computed.countTextValues
            .observe(on: .queue(.global(qos: .background)))
            .observe { value in
                texts.modify { $0.append(value) }
                if value == "100" { told.fulfill() }
            }

        for _ in 0..<100 { store.actions.increment() }

        wait(for: [told], timeout: 10)
        XCTAssertEqual(texts.value, (0...100).map { "\($0)" })
    }

    func testDisposable() {
        let sink = Sink<Int>()
        let disposable = sink.signal.observe { value in
            self.printed.append("\(value)")
        }

        disposable.dispose()

        sink.send(value: 1)
        XCTAssertTrue(disposable.isDisposed)
        XCTAssertEqual(printed, [])
    }

    func testDisposableScope() {
        let sink = Sink<Int>()
        var disposableScope: DisposableScope? = DisposableScope()

        disposableScope += sink.signal.observe { value in
            self.printed.append("\(value)")
        }

        sink.send(value: 1)
        disposableScope = nil  // Be disposed
        sink.send(value: 2)

        XCTAssertNil(disposableScope)
        XCTAssertEqual(printed, ["1"])
    }

    func testScopedObserving() {
        let sink = Sink<Int>()
        let log = AtomicReference([Int]())
        var screen: Screen? = Screen()

        screen?.watch(sink.signal, log: log)
        sink.send(value: 1)
        screen = nil
        sink.send(value: 2)

        XCTAssertEqual(log.value, [1])
    }

    func testClosureBinding() {
        let text = Variable("a")
        let label = Label()

        text.signal.bind(to: label) { label, text in
            label.text = text
        }

        XCTAssertEqual(label.text, "a")
        text.value = "b"
        XCTAssertEqual(label.text, "b")
    }

    func testKeyPathBinding() {
        let text = Variable("a")
        let label = Label()

        text.signal.bind(to: label, \.text)

        XCTAssertEqual(label.text, "a")
        text.value = "b"
        XCTAssertEqual(label.text, "b")
    }

    func testBinder() {
        let isViewHidden = Variable(false)
        let view = View()

        isViewHidden.signal.bind(to: view.setHiddenBinder(duration: 0.3))

        isViewHidden.value = true
        XCTAssertTrue(view.isHidden)
        XCTAssertEqual(view.lastDuration, 0.3)
    }
}
