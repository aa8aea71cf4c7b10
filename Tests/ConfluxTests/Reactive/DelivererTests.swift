import Dispatch
import Foundation
import Synchronization
import Testing

@testable import Conflux

/// Which thread delivers, for how long, and in which context.
struct DelivererTests {
    @Test func `a sender that has delivered its value is relieved by the next one`() {
        let sink = Sink<Int>()
        let (isDelivering, isSent) = (Happening(), Happening())
        let (isFollowed, hasReturned) = (Happening(), Happening())
        let calls = Seen<Call>()
        sink.signal.observe { value in
            calls.add(Call(value))
            switch value {
            case 0:
                isDelivering.happen()
                isSent.wait()
            case 1:
                // The deliverer sent 0. It need not deliver this value, nor what follows from it.
                sink.send(value: 10)
                isFollowed.happen()
                awaitCondition { sink.broadcaster.isAwaited }
            case 10:
                hasReturned.wait()
            default:
                break
            }
        }
        onThreads(2) { thread in
            if thread == 0 {
                sink.send(value: 0)
                return hasReturned.happen()
            }
            isDelivering.wait()
            sink.send(value: 1)
            isSent.happen()
            isFollowed.wait()
            sink.send(value: 2)
        }
        let seen = calls.values
        #expect(seen.map(\.value) == [0, 1, 10, 2])
        #expect(seen[0].thread === seen[1].thread)
        #expect(seen[1].thread !== seen[2].thread)
        #expect(seen[2].thread === seen[3].thread)
    }

    @Test func `a queue continues the delivery where senders may not wait`() {
        let sink = Sink<Int>()
        let trigger = Sink<Int>()
        let count = 2 * Broadcaster<Int, Void>.shareMax + 500
        let scope = Scope()
        let (isDelivering, isSent) = (Happening(), Happening())
        let calls = Seen<Call>()
        sink.signal.observe { value in
            calls.add(Call(value))
            guard value == 0 else { return }
            isDelivering.happen()
            isSent.wait()
        }
        // A thread never waits inside a delivery.
        trigger.signal.observe { _ in
            for value in 1...count { sink.send(value: value) }
        }
        onThreads(2) { thread in
            if thread == 0 { return sink.send(value: 0) }
            isDelivering.wait()
            scope.run { trigger.send(value: 0) }
            isSent.happen()
        }
        awaitCondition { calls.values.count == count + 1 }
        let seen = calls.values
        #expect(seen.map(\.value) == Array(0...count))
        let own = seen.filter { $0.thread === seen[0].thread }
        #expect(own.count == 1 + Broadcaster<Int, Void>.shareMax)
        #expect(seen.dropFirst().allSatisfy { $0.scope === scope })
        awaitCondition { sink.broadcaster.isIdle }
    }

    @Test func `a single value is not delayed by threads that keep sending`() {
        let sink = Sink<Int>()
        let countMax = 5_000
        let sent = Atomic<Int>(0)
        let hasReturned = Atomic<Bool>(false)
        let isDelivered = Happening()
        sink.signal.observe { value in
            // Delivering must take longer than sending, without depending on other threads.
            if value > 0 { return (0..<1_000).forEach { _ in _ = sent.load(ordering: .relaxed) } }
            isDelivered.happen()
            isDelivered.happen()
            awaitCondition { sent.load(ordering: .relaxed) >= 2 }
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
        #expect(sent.load(ordering: .relaxed) < 2 * countMax)
    }

    @Test func `a sender that can't become the deliverer leaves its value to the one that is`() {
        let sink = Sink<Int>()
        let (isDelivering, isSent, hasReturned) = (Happening(), Happening(), Happening())
        let seen = Seen<Int>()
        sink.signal.observe { value in
            seen.add(value)
            if value == 0 {
                isDelivering.happen()
                isSent.wait()
            }
            // The thread that could relieve this one has to return first.
            if value == 1 { hasReturned.wait() }
        }
        onThreads(2) { thread in
            if thread == 0 { return sink.send(value: 0) }
            isDelivering.wait()
            sink.send(value: 1)
            isSent.happen()
            awaitCondition { seen.values == [0, 1] }
            for value in 2...100 { sink.send(value: value) }
            hasReturned.happen()
        }
        #expect(seen.values == Array(0...100))
    }

    @Test
    func `a thread that takes over parked values runs observers in their sender's scope and lock`()
    {
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

/// A value, the thread that delivered it, and its scope.
private struct Call: @unchecked Sendable {
    // Sendable: the thread is only compared. It is retained, so that no later thread has its address.
    let value: Int
    let thread = Thread.current
    let scope = Scope.current

    init(_ value: Int) { self.value = value }
}

/// A value, and the context of its observer.
private struct Context: Sendable {
    let value: Int
    let scope = Scope.current
    let lock = FlowLock.held

    init(_ value: Int) { self.value = value }
}

extension Broadcaster {
    fileprivate var isAwaited: Bool {
        locked { if case .waits = $0.successor { true } else { false } }
    }

    fileprivate var isIdle: Bool {
        locked { if case .idle = $0.phase { true } else { false } }
    }
}
