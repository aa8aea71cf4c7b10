import Conflux
import Dispatch
import Foundation
import Testing

/// A state whose action carries a value, and whose mutations have a witness made of a dispatch.
final class ListState: State {
    typealias Action = String
    typealias Mutations = ListMutations

    fileprivate(set) var items = [String]()
    init() {}
}

final class ListMutations: Mutations {
    func commit(action: String, state: ListState) {
        state.items.append(action)
    }
}

extension Computed where State == ListState {
    var items: [String] { return state.items }
}

class ListStore: Store<ListState> {
    // A subclass may use these names: the store has no such members.
    let value = 1
    var changes = [String]()
    func dispatch(_ text: String) { actions.dispatch(action: text) }
}

protocol Dispatching {
    associatedtype Action
    func send(_ action: Action)
    var dispatcher: (Action) -> Void { get }
}

struct ListDispatcher: Dispatching {
    let store: Store<ListState>
    func send(_ action: String) { store.actions.dispatch(action: action) }
    var dispatcher: (String) -> Void { return store.actions.dispatch(action:) }
}

protocol ActionReceiving {
    associatedtype Action
    func dispatch(action: Action)
}

extension Actions: ActionReceiving {}

private struct Counted: Disposable {
    let count: AtomicReference<Int>
    var isDisposed: Bool { return count.value > 0 }
    func dispose() { count.modify { $0 += 1 } }
}

extension ClientTests {
    @MainActor
    final class InterfaceTests {
        private func makeStore() -> ListStore {
            return ListStore(state: .init(), mutations: .init(), executor: .immediate)
        }

        @Test func `dispatch as a function`() {
            let store = makeStore()
            let dispatch: (String) -> Void = store.actions.dispatch(action:)
            dispatch("a")
            ["b", "c"].forEach(store.actions.dispatch)
            _ = ["d"].map(store.actions.dispatch)
            Optional("e").map(store.actions.dispatch)
            let dispatcher = ListDispatcher(store: store)
            dispatcher.send("f")
            dispatcher.dispatcher("g")
            let result: Void = store.actions.dispatch(action: "h")
            #expect(result == ())
            store.dispatch("i")
            func receive<Receiver: ActionReceiving>(_ receiver: Receiver, _ action: Receiver.Action)
            {
                receiver.dispatch(action: action)
            }
            receive(store.actions, "j")
            #expect(store.computed.items == ["a", "b", "c", "d", "e", "f", "g", "h", "i", "j"])
            #expect(store.computed.state.items.count == 10)
            #expect(store.value == 1)
        }

        @Test func `store types are nameable`() {
            let actions: Actions<ListState> = Store<ListState>.actions
            let store: Store<ListState> = makeStore()
            let computed: Computed<ListState> = store.computed
            actions.dispatch(action: "all")
            #expect(computed.items == ["all"])
        }

        @Test func `executors`() async {
            var order = [String]()
            let inPlace: Executor.Context = { function in function() }
            Executor(inPlace).execute { order.append("context") }
            nonisolated func run(_ function: @escaping () -> Void) { function() }
            Executor(run).execute { order.append("function") }
            Executor.immediate.execute { order.append("immediate") }
            Executor.mainThread.execute { order.append("main") }
            #expect(order == ["context", "function", "immediate", "main"])

            let queue = DispatchQueue(label: "client")
            let key = DispatchSpecificKey<Int>()
            queue.setSpecific(key: key, value: 7)
            let done = AtomicReference(false)
            // A closure of the main actor would be called on main.
            @Sendable nonisolated func check() {
                #expect(DispatchQueue.getSpecific(key: key) == 7)
                done.value = true
            }
            Executor.queue(queue).execute(check)
            await waitOnMain { done.value }
        }

        @Test func `atomic reference`() throws {
            let reference = AtomicReference(1)
            reference.value = 2
            #expect(reference.value == 2)
            #expect(reference.swap(3) == 2)
            reference.swap(4)
            #expect(reference.synchronized { $0 + 1 } == 5)
            #expect(
                reference.modify { value -> String in
                    value += 1
                    return "\(value)"
                } == "5")
            reference.modify { $0 += 1 }
            struct Failure: Error {}
            #expect(throws: (any Error).self) { try reference.modify { _ in throw Failure() } }
            #expect(throws: (any Error).self) {
                try reference.synchronized { _ in throw Failure() }
            }
            let recursive = AtomicReference("a", recursive: true)
            recursive.synchronized { _ in recursive.value = "b" }
            #expect(recursive.value == "b")
        }

        @Test func `disposables`() {
            var count = 0
            let some: Disposable = AnyDisposable { count += 1 }
            #expect(!some.isDisposed)
            some.dispose()
            some.dispose()
            #expect(some.isDisposed)
            #expect(count == 1)
            let empty = AnyDisposable()
            empty.dispose()
            #expect(empty.isDisposed)

            let ownCount = AtomicReference(0)
            let scope = DisposableScope([AnyDisposable { count += 1 }])
            scope.add(disposable: Counted(count: ownCount))
            scope += AnyDisposable { count += 1 }
            #expect(!scope.isDisposed)
            scope.dispose()
            #expect(scope.isDisposed)
            #expect(count == 3)
            #expect(ownCount.value == 1)
            scope += AnyDisposable { count += 1 }
            #expect(count == 4)
            var temporary: DisposableScope? = DisposableScope()
            temporary += AnyDisposable { count += 1 }
            temporary = nil
            #expect(temporary == nil)
            #expect(count == 5)
            let disposables: [Disposable] = [AnyDisposable(), Counted(count: ownCount)]
            DisposableScope(disposables).dispose()
            DisposableScope([]).dispose()
            let observations = (0..<3).map { _ in Variable(0).signal.observe { _ in } }
            DisposableScope(observations).dispose()
            #expect(observations[2].isDisposed)
            #expect(ownCount.value == 2)
        }

        @Test func `signal from producer`() {
            var ends = 0
            let producer: Signal<Int>.Producer = { send in
                send(1)
                send(2)
                return AnyDisposable { ends += 1 }
            }
            let signal = Signal<Int>(producer)
            var values = [Int]()
            let disposable = signal.observe { values.append($0) }
            #expect(values == [1, 2])
            disposable.dispose()
            disposable.dispose()
            #expect(ends == 1)
            Signal<String> { send in
                send("a")
                return AnyDisposable()
            }.observe { #expect($0 == "a") }
        }

        @Test func `bindings`() {
            let texts = Variable("a")
            let label = Label()
            texts.signal.bind(to: label, on: .immediate) { label, text in label.text = text }
            #expect(label.text == "a")
            let optional = Variable<String?>(nil)
            optional.signal.bind(to: label, \.text, on: .immediate)
            #expect(label.text == nil)
            let hidden = Variable(true)
            let view = View()
            hidden.signal.bind(to: view, \.isHidden)
            #expect(view.isHidden)
            let binder = Binder<Bool>(target: view) { view, value in view.isHidden = !value }
            binder.bind(signal: hidden.signal, on: .immediate)
            #expect(!view.isHidden)
            hidden.signal.bind(to: binder, on: .mainThread).dispose()
            var calls = 0
            hidden.signal.bind(to: view, binding: { _, _ in calls += 1 })
            #expect(calls == 1)
        }

        @Test func `binding to a dead target is disposed`() {
            var view: View? = View()
            let binder = Binder<Bool>(target: view!) { _, _ in Issue.record("the target is gone") }
            view = nil
            let disposable = Variable(true).signal.bind(to: binder, on: .immediate)
            #expect(disposable.isDisposed)
            #expect(view == nil)
        }

        @Test func `constants`() {
            let fixed = Constant("a")
            #expect(fixed.value == "a")
            let variable = Variable("b")
            let following = Constant(variable: variable)
            variable.value = "c"
            #expect(following.value == "c")
            fixed.signal.map { $0 + "!" }.observe { #expect($0 == "a!") }
        }
    }
}
