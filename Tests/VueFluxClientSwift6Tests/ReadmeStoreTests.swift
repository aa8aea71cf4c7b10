import Conflux
import Dispatch
import Testing

/// Stands in for UIKit's label.
@MainActor
final class Label {
    var text: String?
    var closureText: String?
    var shownText: String?
}

@MainActor
final class CounterViewController {
    let counterLabel = Label()

    private let store = Store<CounterState>(
        state: .init(), mutations: .init(), executor: .queue(.global()))

    func viewDidLoad() {
        store.computed.countTextValues.bind(to: counterLabel, \.text)
        store.computed.countTextValues.bind(to: counterLabel) { label, text in
            label.closureText = text
        }
        store.computed.countTextValues.observe(on: .mainThread).observe(duringScopeOf: self) {
            [weak self] text in
            self?.show(text)
        }
    }

    private func show(_ text: String) {
        counterLabel.shownText = text
    }

    func incrementButtonTapped() {
        store.actions.increment()
    }

    func decrementButtonTapped() {
        store.actions.decrement()
    }
}

extension ClientTests {
    @MainActor
    final class ReadmeStoreTests {
        @Test func `view controller shows the count`() async {
            let controller = CounterViewController()
            controller.viewDidLoad()
            #expect(controller.counterLabel.text == "0")
            controller.incrementButtonTapped()
            controller.incrementButtonTapped()
            controller.decrementButtonTapped()
            await waitOnMain { controller.counterLabel.text == "1" }
        }

        @Test func `shared store`() async {
            let texts = AtomicReference([String]())
            let disposable = CounterStore.shared.computed.countTextValues.observe { text in
                texts.modify { $0.append(text) }
            }
            CounterStore.shared.actions.increment()
            CounterStore.shared.actions.increment()
            await waitOnMain { texts.value.count == 3 }
            disposable.dispose()
            #expect(texts.value == ["0", "1", "2"])
            CounterStore.shared.actions.decrement()
            CounterStore.shared.actions.decrement()
        }

        @Test func `global dispatch`() {
            let store = Store<CounterState>(
                state: .init(), mutations: .init(), executor: .immediate)
            let other = Store<CounterState>(
                state: .init(), mutations: .init(), executor: .immediate)
            var printed = [String]()
            store.computed.countTextValues.observe { printed.append($0) }

            Store<CounterState>.actions.increment()

            #expect(printed == ["0", "1"])
            #expect(other.computed.count == 1)
            store.actions.increment()
            #expect(printed == ["0", "1", "2"])
            #expect(other.computed.count == 1)
        }
    }
}
