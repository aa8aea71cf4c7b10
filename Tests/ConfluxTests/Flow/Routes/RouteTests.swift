import Dispatch
import Foundation
import Synchronization
import Testing

@testable import Conflux

/// What takes a route to a log, which may have no room: nobody else waits with it.
@Suite(.timeLimit(.minutes(5)))
struct RouteTests {
    let scope = Scope()

    /// A route that lets nothing through until it is opened.
    private final class Narrows<S: State>: ActionRoute where S.Action == Int {
        private let gate = DispatchSemaphore(value: 0)
        private let taken = Mutex<[Int]>([])
        /// Each that comes, and each that went through.
        let (arrivals, departures) = (AsyncStream<Int>.makeStream(), AsyncStream<Int>.makeStream())

        var numbers: [Int] { taken.withLock { $0 } }

        func open() { gate.signal() }

        func submit(_ action: Int) -> DispatchHandle {
            arrivals.continuation.yield(action)
            gate.wait()
            gate.signal()
            taken.withLock { $0.append(action) }
            departures.continuation.yield(action)
            return DispatchHandle(.failed(.withdrawn))
        }
    }

    @Test func `a route that has no room holds up no other store`() async throws {
        let scope = scope
        let (far, near) = scope.run { (tallyStore(), Storage(0)) }
        let road = Narrows<TallyState>()
        far.core.setRoute(road)
        let lock = scope.lock()
        let first = far.actions.dispatch(1)
        near.replace(1)
        lock.release()
        #expect(near.value == 1)
        // It stands behind the first, on a thread that may wait.
        let second = far.actions.dispatch(2)
        near.replace(2)
        #expect(near.value == 2)
        // In a mode, too.
        let third = scope.dispatch(3, to: far)
        try await scope.dispatch(StorageCommit { $0.replace(3) }, to: near).receipt()
        #expect(near.value == 3 && road.numbers.isEmpty)
        road.open()
        for handle in [first, second, third] {
            let error = await #expect(throws: DispatchError.self) { try await handle.receipt() }
            #expect(error?.code == .withdrawn)
        }
        #expect(road.numbers == [1, 2, 3])
        far.core.setRoute(nil)
    }

    @Test func `while a route has no room, threads commit their own dispatches alone`() async {
        let scope = scope
        let far = scope.run { tallyStore() }
        let road = Narrows<TallyState>()
        far.core.setRoute(road)
        let lock = scope.lock()
        let stuck = far.actions.dispatch(1)
        lock.release()
        let strays = await withTaskGroup(of: Int.self) { group in
            for _ in 0..<2 {
                group.addTask {
                    let own = scope.run { Storage(0) }
                    return (1...10_000).count { number in
                        own.replace(number)
                        return own.value != number
                    }
                }
            }
            return await group.reduce(0, +)
        }
        #expect(strays == 0)
        road.open()
        _ = try? await stuck.receipt()
        far.core.setRoute(nil)
    }

    /// A route of whose own threads this is one.
    private final class OwnRoad: ActionRoute {
        typealias S = StorageState<Int>
        let count = Atomic(0)
        var needsThisThread: Bool { true }

        func submit(_ action: StorageCommit<Int>) -> DispatchHandle {
            count.add(1, ordering: .relaxed)
            return DispatchHandle(.failed(.withdrawn))
        }
    }

    @Test func `a thread that a route needs is told at once`() async {
        let scope = scope
        let (far, other) = scope.run { (tallyStore(), Storage(0)) }
        let (road, own) = (Narrows<TallyState>(), OwnRoad())
        far.core.setRoute(road)
        other.core.setRoute(own)
        let lock = scope.lock()
        let stuck = far.actions.dispatch(1)
        lock.release()
        other.replace(1)
        #expect(own.count.load(ordering: .relaxed) == 1)
        road.open()
        _ = try? await stuck.receipt()
        far.core.setRoute(nil)
        other.core.setRoute(nil)
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

    @Test func `the queue of modes does not wait for room on a route`() async throws {
        let scope = scope
        let (far, near) = scope.run { (tallyStore(), Storage(0)) }
        let road = Narrows<TallyState>()
        far.core.setRoute(road)
        let sent = Late<DispatchHandle>()
        try await scope.dispatch(StorageCommit { $0.replace(1) }, to: near) { _ in
            sent.value = far.actions.dispatch(1)
            scope.run { Store<TallyState>.actions.tell(2) }
        }.receipt()
        try await scope.dispatch(StorageCommit { $0.replace(2) }, to: near).receipt()
        #expect(near.value == 2 && road.numbers.isEmpty)
        road.open()
        _ = try? await sent.value?.receipt()
        far.core.setRoute(nil)
    }

    /// A route whose outcomes come by a thread of its own.
    private final class Echo: ActionRoute {
        typealias S = TallyState
        private let queue = DispatchQueue(label: "echo")

        func submit(_ action: Int) -> DispatchHandle {
            let tally = Tally()
            tally.expect(1)
            queue.async { tally.report(.failed(.withdrawn), order: 0) }
            return tally.handle
        }
    }

    @Test func `where a waiting dispatch's end is told by another thread nobody waits`() async {
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
        // Where the outcome was there at once, the waiting thread itself has told it.
        #expect(error?.code == (teller.value == waiter ? .withdrawn : .wouldBlock))
        far.core.setRoute(nil)
    }
}
