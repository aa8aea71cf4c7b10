import Dispatch
import Foundation
import Synchronization
import Testing

@testable import Conflux

struct DeliveryTests {
    @Test func `a hundred senders reach every observer once and in one order`() {
        let sink = Sink<Int>()
        let first = Seen<Int>()
        let second = Seen<Int>()
        sink.signal.observe { first.add($0) }
        sink.signal.observe { second.add($0) }
        onThreads(100) { thread in
            for step in 0..<50 { sink.send(value: thread * 50 + step) }
        }
        #expect(first.values.count == 5_000)
        #expect(Set(first.values) == Set(0..<5_000))
        #expect(first.values == second.values)
        for thread in 0..<100 {
            let own = first.values.filter { $0 / 50 == thread }
            #expect(own == own.sorted(), "a sender's values keep its order")
        }
    }

    @Test func `an observer that joins during writes sees a suffix of the one history`() {
        let variable = Variable(0)
        let number = Atomic<Int>(0)
        let history = Seen<Int>()
        variable.signal.observe { history.add($0) }
        let joined = (0..<50).map { _ in Seen<Int>() }
        onThreads(100) { thread in
            if thread < 50 {
                for _ in 0..<100 {
                    variable.value = number.add(1, ordering: .relaxed).newValue
                }
            } else {
                variable.signal.observe { joined[thread - 50].add($0) }
            }
        }
        #expect(history.values.count == 5_001)
        #expect(Set(history.values).count == 5_001)
        #expect(history.values.last == variable.value)
        for seen in joined {
            #expect(seen.values == history.values.suffix(seen.values.count))
            #expect(seen.values.count > 0)
        }
    }

    @Test func `a value sent by an observer comes after the one being delivered`() {
        let sink = Sink<Int>()
        let first = Seen<Int>()
        let second = Seen<Int>()
        sink.signal.observe { value in
            first.add(value)
            if value < 3 { sink.send(value: value + 1) }
        }
        sink.signal.observe { second.add($0) }
        sink.send(value: 0)
        #expect(first.values == [0, 1, 2, 3])
        #expect(second.values == [0, 1, 2, 3])
    }

    @Test func `a variable that its observer changes is delivered up to its last value`() {
        let variable = Variable(0)
        let seen = Seen<Int>()
        variable.signal.observe { value in
            if value < 100_000 { variable.value += 1 }
            if value % 20_000 == 0 { seen.add(value) }
        }
        #expect(seen.values == [0, 20_000, 40_000, 60_000, 80_000, 100_000])
    }

    @Test func `an observer that joins inside an observer sees what is sent later`() {
        let sink = Sink<Int>()
        let inner = Seen<Int>()
        sink.signal.observe { value in
            if value == 1 { sink.signal.observe { inner.add($0) } }
        }
        sink.send(value: 1)
        sink.send(value: 2)
        #expect(inner.values == [2])
    }

    @Test func `later values wait for a first value that is still being delivered`() {
        let variable = Variable(0)
        let isShown = Happening()
        let goesOn = Happening()
        let ended = Happening()
        let slow = Seen<Int>()
        let other = Seen<Int>()
        Thread {
            variable.signal.observe { value in
                if value == 0 {
                    isShown.happen()
                    goesOn.wait()
                }
                slow.add(value)
            }
            ended.happen()
        }.start()
        isShown.wait()
        variable.signal.observe { other.add($0) }
        // Neither call waits for the blocked observer, and neither does the other observer.
        variable.value = 1
        variable.value = 2
        #expect(slow.values == [])
        #expect(other.values == [0, 1, 2])
        goesOn.happen()
        ended.wait()
        #expect(slow.values == [0, 1, 2])
        #expect(other.values == [0, 1, 2])
        variable.value = 3
        #expect(slow.values == [0, 1, 2, 3])
    }

    @Test func `at the bound other threads wait, and nested sends never do`() {
        let sink = Sink<Int>()
        let bound = ObserverLane.waitingMax
        let isTold = Happening()
        let goesOn = Happening()
        let ended = DispatchGroup()
        let seen = Seen<Int>()
        sink.signal.observe { value in
            seen.add(value)
            guard value == 0 else { return }
            for nested in 1...bound { sink.send(value: nested) }
            isTold.happen()
            goesOn.wait()
            sink.send(value: bound + 1)
        }
        DispatchQueue.global().async(group: ended) { sink.send(value: 0) }
        isTold.wait()
        let hasReturned = Atomic(false)
        DispatchQueue.global().async(group: ended) {
            sink.send(value: -1)
            hasReturned.store(true, ordering: .releasing)
        }
        awaitCondition { sink.broadcaster.waitingCount > bound }
        let returnedEarly = hasReturned.load(ordering: .acquiring)
        #expect(!returnedEarly)
        goesOn.happen()
        #expect(ended.wait(timeout: .now() + 30) == .success)
        #expect(seen.values == Array(0...bound) + [-1, bound + 1])
    }

    @Test func `no lock is held while an old value is released`() {
        let variable = Variable<Witness?>(nil)
        let ends = Seen<Bool>()
        variable.value = Witness { [weak variable] in ends.add(variable?.value == nil) }
        variable.value = nil
        #expect(ends.values == [true])
    }

    @Test func `a constant follows its variable`() {
        let variable = Variable("a")
        let constant = variable.constant
        let seen = Seen<String>()
        constant.signal.observe { seen.add($0) }
        variable.value = "b"
        #expect(constant.value == "b")
        #expect(seen.values == ["a", "b"])
        #expect(Constant(7).value == 7)
    }

    @Test func `a sender at the bound gets past an observer that waits for it`() {
        let sink = Sink<Int>()
        let (began, sent) = (Happening(), Happening())
        let seen = Seen<Int>()
        sink.signal.observe { value in
            if value == 0 {
                began.happen()
                sent.wait()
            }
            seen.add(value)
        }
        onThreads(2) { thread in
            if thread == 0 { return sink.send(value: 0) }
            began.wait()
            for value in 1...1_025 { sink.send(value: value) }
            sent.happen()
        }
        #expect(seen.values == Array(0...1_025))
    }
}
