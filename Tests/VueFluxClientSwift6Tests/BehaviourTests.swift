import Conflux
import Dispatch
import Foundation
import Testing

extension ClientTests {
    @MainActor
    final class BehaviourTests {
        private func makeStore(_ executor: Executor) -> Store<CounterState> {
            return Store(state: .init(), mutations: .init(), executor: executor)
        }

        @Test func `a released store commits nothing`() {
            let queue = DispatchQueue(label: "lane")
            queue.suspend()
            var store: Store<CounterState>? = makeStore(.queue(queue))
            let actions = store!.actions
            let computed = store!.computed
            actions.increment()
            store = nil
            actions.increment()
            Store<CounterState>.actions.increment()
            queue.resume()
            queue.sync {}
            #expect(computed.count == 0)
            #expect(store == nil)
        }

        @Test func `dispatch subscribe and dispose inside an observer`() {
            let store = makeStore(.immediate)
            var seen = [String]()
            var inner = [String]()
            let scope = DisposableScope()
            scope += store.computed.countTextValues.observe { text in
                seen.append(text)
                if text == "1" {
                    store.actions.increment()
                    scope += store.computed.countTextValues.observe { inner.append($0) }
                }
                if text == "2" { scope.dispose() }
            }
            store.actions.increment()
            store.actions.increment()
            #expect(seen == ["0", "1", "2"])
            #expect(inner.first == "1")
            #expect(store.computed.count == 3)
        }

        @Test func `main thread keeps the order among threads`() async {
            let executor = Executor.mainThread
            let order = AtomicReference([Int]())
            let given = DispatchSemaphore(value: 0)
            DispatchQueue.global().async {
                executor.execute { order.modify { $0.append(1) } }
                given.signal()
            }
            given.wait()
            executor.execute { order.modify { $0.append(2) } }
            #expect(order.value == [])
            await waitOnMain { order.value.count == 2 }
            #expect(order.value == [1, 2])
            executor.execute {
                executor.execute { order.modify { $0.append(4) } }
                order.modify { $0.append(3) }
            }
            #expect(order.value == [1, 2, 3])
            await waitOnMain { order.value.count == 4 }
        }

        @Test func `a disposed observer is not called though a value is on its way`() {
            let queue = DispatchQueue(label: "observers")
            queue.suspend()
            let variable = Variable(0)
            let disposable = variable.signal.observe(on: .queue(queue)).observe { _ in
                Issue.record("disposed before the queue ran")
            }
            variable.value = 1
            disposable.dispose()
            queue.resume()
            queue.sync {}
        }

        // An observer of the main actor would be called on main.
        @Test nonisolated func `a hundred threads`() {
            let variable = Variable(0)
            let sink = Sink<Int>()
            let received = AtomicReference(0)
            sink.signal.observe { _ in received.modify { $0 += 1 } }
            DispatchQueue.concurrentPerform(iterations: 100) { index in
                variable.value = index
                let disposable = variable.signal.observe { _ in }
                sink.send(value: index)
                disposable.dispose()
            }
            #expect(received.value == 100)
        }
    }
}
