import Conflux
import Dispatch
import Foundation
import XCTest

final class BehaviourTests: XCTestCase {
    private func makeStore(_ executor: Executor) -> Store<CounterState> {
        return Store(state: .init(), mutations: .init(), executor: executor)
    }

    func testAReleasedStoreCommitsNothing() {
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
        XCTAssertEqual(computed.count, 0)
        XCTAssertNil(store)
    }

    func testDispatchSubscribeAndDisposeInsideAnObserver() {
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
        XCTAssertEqual(seen, ["0", "1", "2"])
        XCTAssertEqual(inner.first, "1")
        XCTAssertEqual(store.computed.count, 3)
    }

    func testMainThreadKeepsTheOrderAmongThreads() {
        let executor = Executor.mainThread
        var order = [Int]()
        let given = DispatchSemaphore(value: 0)
        DispatchQueue.global().async {
            executor.execute { order.append(1) }
            given.signal()
        }
        given.wait()
        executor.execute { order.append(2) }
        XCTAssertEqual(order, [])
        waitOnMain { order.count == 2 }
        XCTAssertEqual(order, [1, 2])
        executor.execute {
            executor.execute { order.append(4) }
            order.append(3)
        }
        XCTAssertEqual(order, [1, 2, 3])
        waitOnMain { order.count == 4 }
    }

    func testADisposedObserverIsNotCalledThoughAValueIsOnItsWay() {
        let queue = DispatchQueue(label: "observers")
        queue.suspend()
        let variable = Variable(0)
        let disposable = variable.signal.observe(on: .queue(queue)).observe { _ in
            XCTFail("disposed before the queue ran")
        }
        variable.value = 1
        disposable.dispose()
        queue.resume()
        queue.sync {}
    }

    func testAHundredThreads() {
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
        XCTAssertEqual(received.value, 100)
    }
}
