import Conflux
import Dispatch
import XCTest

/// Stands in for UIKit's label.
final class Label {
    var text: String?
}

final class CounterViewController {
    let counterLabel = Label()

    private let store = Store<CounterState>(
        state: .init(), mutations: .init(), executor: .queue(.global()))

    func viewDidLoad() {
        store.computed.countTextValues.bind(to: counterLabel, \.text)
    }

    func incrementButtonTapped() {
        store.actions.increment()
    }

    func decrementButtonTapped() {
        store.actions.decrement()
    }
}

final class ReadmeStoreTests: XCTestCase {
    func testViewControllerShowsTheCount() {
        let controller = CounterViewController()
        controller.viewDidLoad()
        XCTAssertEqual(controller.counterLabel.text, "0")
        controller.incrementButtonTapped()
        controller.incrementButtonTapped()
        controller.decrementButtonTapped()
        waitOnMain { controller.counterLabel.text == "1" }
    }

    func testSharedStore() {
        let texts = AtomicReference([String]())
        let told = expectation(description: "the shared store has counted")
        let disposable = CounterStore.shared.computed.countTextValues.observe { text in
            texts.modify { $0.append(text) }
            if text == "2" { told.fulfill() }
        }
        CounterStore.shared.actions.increment()
        CounterStore.shared.actions.increment()
        wait(for: [told], timeout: 10)
        disposable.dispose()
        XCTAssertEqual(texts.value, ["0", "1", "2"])
        CounterStore.shared.actions.decrement()
        CounterStore.shared.actions.decrement()
    }

    func testGlobalDispatch() {
        let store = Store<CounterState>(
            state: .init(), mutations: .init(), executor: .immediate)
        let other = Store<CounterState>(
            state: .init(), mutations: .init(), executor: .immediate)
        var printed = [String]()
        store.computed.countTextValues.observe { printed.append($0) }

        Store<CounterState>.actions.increment()

        XCTAssertEqual(printed, ["0", "1"])
        XCTAssertEqual(other.computed.count, 1)
        store.actions.increment()
        XCTAssertEqual(printed, ["0", "1", "2"])
        XCTAssertEqual(other.computed.count, 1)
    }
}

extension XCTestCase {
    /// Serves the main queue until a condition holds.
    func waitOnMain(
        file: StaticString = #filePath, line: UInt = #line, until condition: @escaping () -> Bool
    ) {
        let deadline = Date(timeIntervalSinceNow: 10)
        while !condition(), Date() < deadline {
            let turn = expectation(description: "the main queue has turned")
            DispatchQueue.main.async { turn.fulfill() }
            wait(for: [turn], timeout: 10)
        }
        XCTAssertTrue(condition(), file: file, line: line)
    }
}
