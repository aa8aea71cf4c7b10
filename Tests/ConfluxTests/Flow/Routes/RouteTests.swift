import Dispatch
import Foundation
import Synchronization
import Testing

@testable import Conflux

/// A route to a log may have no room. Nobody else waits because of it.
@Suite(.timeLimit(.minutes(5)))
struct RouteTests {
    let scope = Scope()

    /// A route without room until it is opened. A thread that may wait does so.
    private final class Narrows<S: State>: ActionRoute where S.Action == Int {
        private let gate = DispatchSemaphore(value: 0)
        private let taken = Mutex<[Int]>([])
        /// The actions that arrived, and the actions that got through.
        let (arrivals, departures) = (AsyncStream<Int>.makeStream(), AsyncStream<Int>.makeStream())

        var numbers: [Int] { taken.withLock { $0 } }

        func open() { gate.signal() }

        func conditional(on version: StoreVersion) -> any ActionRoute<S> { self }

        func submit(_ action: Int, mayWait: Bool) -> DispatchHandle {
            arrivals.continuation.yield(action)
            if mayWait {
                gate.wait()
                gate.signal()
            }
            taken.withLock { $0.append(action) }
            departures.continuation.yield(action)
            return DispatchHandle(.failed(.withdrawn))
        }
    }

    @Test func `a route without room blocks no thread that others need`() async throws {
        let scope = scope
        let (far, near) = scope.run { (tallyStore(), Storage(0)) }
        let road = Narrows<TallyState>()
        far.core.setRoute(road)
        // The thread that releases a lock dispatches parked actions of others.
        let lock = scope.lock()
        let first = far.actions.dispatch(1)
        near.replace(1)
        lock.release()
        #expect(near.value == 1 && road.numbers == [1])
        // So does the queue of the modes, and the thread that calls a completion there.
        let sent = Late<DispatchHandle>()
        try await scope.dispatch(StorageCommit { $0.replace(2) }, to: near) { _ in
            sent.value = far.actions.dispatch(2)
        }.receipt()
        _ = try? await scope.dispatch(3, to: far, mode: .serial).receipt()
        #expect(near.value == 2 && road.numbers == [1, 2, 3])
        for handle in [first, try #require(sent.value)] {
            let error = await #expect(throws: DispatchError.self) { try await handle.receipt() }
            #expect(error?.code == .withdrawn)
        }
        far.core.setRoute(nil)
    }

    @Test func `a thread that may wait does so in every mode`() async {
        let scope = scope
        let far = scope.run { tallyStore() }
        let road = Narrows<TallyState>()
        far.core.setRoute(road)
        for number in [1, 2] {
            Thread {
                if number == 1 { far.actions.tell(1) } else { scope.dispatch(2, to: far) }
                road.departures.continuation.yield(-number)
            }.start()
        }
        var arrivals = road.arrivals.stream.makeAsyncIterator()
        let arrived = [await arrivals.next(), await arrivals.next()]
        #expect(Set(arrived) == [1, 2] && road.numbers.isEmpty)
        road.open()
        var left: [Int] = []
        for await number in road.departures.stream {
            left.append(number)
            if left.count == 4 { break }
        }
        #expect(Set(left) == [1, 2, -1, -2])
        far.core.setRoute(nil)
    }

    private struct Nothing: Middleware {}

    @Test func `a lock does not wait for a dispatch that finds no room`() async throws {
        let scope = scope
        scope.use(Nothing())
        let (far, near) = scope.run { (tallyStore(), Storage(0)) }
        let road = Narrows<TallyState>()
        far.core.setRoute(road)
        Thread {
            far.actions.tell(1)
        }.start()
        for await _ in road.arrivals.stream { break }
        try await scope.withLock { _ in try await near.replace(1).receipt() }
        #expect(near.value == 1 && road.numbers.isEmpty)
        road.open()
        for await _ in road.departures.stream { break }
        #expect(road.numbers == [1])
        far.core.setRoute(nil)
    }

    /// A route that delivers its outcomes on its own thread.
    private final class Echo: ActionRoute {
        typealias S = TallyState
        private let queue = DispatchQueue(label: "echo")

        func conditional(on version: StoreVersion) -> any ActionRoute<S> { self }

        func submit(_ action: Int, mayWait: Bool) -> DispatchHandle {
            let tally = Tally()
            tally.expect(1)
            queue.async { tally.report(.failed(.withdrawn), order: 0) }
            return tally.handle
        }
    }

    @Test func `a completion on another thread than the waiting one never blocks`() async {
        let scope = scope
        let far = scope.run { tallyStore() }
        far.core.setRoute(Echo())
        let (inner, teller) = (Late<DispatchHandle>(), Late<ObjectIdentifier>())
        let waiter = await withCheckedContinuation { continuation in
            Thread {
                scope.dispatch(1, to: far, mode: .sync) { _ in
                    teller.value = ObjectIdentifier(Thread.current)
                    inner.value = scope.dispatch(2, to: far, mode: .sync)
                }
                continuation.resume(returning: ObjectIdentifier(Thread.current))
            }.start()
        }
        let error = await #expect(throws: DispatchError.self) {
            try await inner.value?.receipt()
        }
        // If the outcome was there at once, the waiting thread itself ran the completion.
        #expect(error?.code == (teller.value == waiter ? .withdrawn : .wouldBlock))
        far.core.setRoute(nil)
    }
}
