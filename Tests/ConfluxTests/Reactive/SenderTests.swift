@testable import Conflux
import Dispatch
import Foundation
import Synchronization
import Testing

/// Which thread delivers, for how long, and in which context.
struct SenderTests {
    @Test func `every value has been delivered when the last sender returns`() {
        let sink = Sink<[Int]>()
        let last = Mutex<[Int: Int]>([:])
        sink.signal.observe { value in last.withLock { $0[value[0]] = value[1] } }
        for _ in 1...20 {
            onThreads(3) { thread in
                for step in 1...200 { sink.send(value: [thread, step]) }
            }
            #expect(last.withLock { $0 } == [0: 200, 1: 200, 2: 200])
            last.withLock { $0 = [:] }
        }
    }

    @Test func `a single value is not delayed by threads that keep sending`() {
        let sink = Sink<Int>()
        let countMax = 5_000
        let sent = Atomic<Int>(0)
        let hasReturned = Atomic<Bool>(false)
        let isDelivered = Happening()
        sink.signal.observe { value in
            if value == 0 {
                isDelivered.happen()
                isDelivered.happen()
            }
        }
        onThreads(3) { thread in
            if thread == 0 {
                sink.send(value: 0)
                return hasReturned.store(true, ordering: .relaxed)
            }
            isDelivered.wait()
            for value in 1...countMax where !hasReturned.load(ordering: .relaxed) {
                sink.send(value: value)
                sent.add(1, ordering: .relaxed)
            }
        }
        let count = sent.load(ordering: .relaxed)
        #expect(count < 2 * countMax)
    }

    @Test func `values that wait for a first value keep their senders' scopes and locks`() {
        let variable = Variable(0)
        let (senders, observers) = (Scope(), Scope())
        let lock = senders.lock()
        let (isShown, goesOn, ended) = (Happening(), Happening(), Happening())
        let contexts = Seen<Context>()
        let slow = Seen<Context>()
        Thread {
            _ = observers.run {
                variable.signal.observe { value in
                    slow.add(Context(value))
                    guard value == 0 else { return }
                    isShown.happen()
                    goesOn.wait()
                }
            }
            ended.happen()
        }.start()
        isShown.wait()
        variable.signal.observe { contexts.add(Context($0)) }
        senders.run { lock.run { variable.value = 1 } }
        senders.run { variable.value = 2 }
        variable.value = 3
        #expect(contexts.values.map(\.value) == [0, 1, 2, 3] && slow.values.map(\.value) == [0])
        goesOn.happen()
        ended.wait()
        for seen in [slow.values, contexts.values] {
            #expect(seen.map(\.value) == [0, 1, 2, 3])
            #expect(seen[1].scope === senders && seen[1].lock === lock)
            #expect(seen[2].scope === senders && seen[2].lock == nil)
            #expect(seen[3].scope === Scope.process && seen[3].lock == nil)
        }
        #expect(slow.values[0].scope === observers)
        lock.release()
    }
}

/// A value, and the context of its observer.
private struct Context: Sendable {
    let value: Int
    let scope = Scope.current
    let lock: FlowLock?

    init(_ value: Int) {
        self.value = value
        lock = FlowLock.held
    }
}
