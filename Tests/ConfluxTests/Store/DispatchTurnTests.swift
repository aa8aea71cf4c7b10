import Conflux
import Foundation
import Synchronization
import Testing

/// Each thread commits its own actions, and serves others for a limited time.
@Suite(.timeLimit(.minutes(5)))
struct DispatchTurnTests {
    let scope = Scope()

    /// Runs functions on new threads, which no task or queue uses.
    private func onThreads(_ functions: (@Sendable () -> Void)...) async {
        await withCheckedContinuation { continuation in
            let left = Atomic(functions.count)
            let end: @Sendable () -> Void = {
                if left.subtract(1, ordering: .acquiringAndReleasing).newValue == 0 {
                    continuation.resume()
                }
            }
            start(functions, end)
        }
    }

    private func start(_ functions: [@Sendable () -> Void], _ end: @escaping @Sendable () -> Void) {
        for function in functions {
            Thread {
                function()
                end()
            }.start()
        }
    }

    enum Way: CaseIterable { case instance, tracked, global, event, watched }

    private struct Nothing: Middleware {}

    @Test(arguments: Way.allCases)
    func `a thread commits its own action before its dispatch returns, whoever serves the store`(
        _ way: Way
    ) async {
        let scope = scope
        if way == .watched { scope.use(Nothing()) }
        let stores = scope.run {
            (0..<2).map { _ in
                Store<WriterState>(
                    state: .init(), mutations: WriterMutations(), executor: .immediate)
            }
        }
        let concerned = way == .global || way == .event ? 2 : 1
        let early = Atomic(0)
        let work: @Sendable (Int) -> Void = { thread in
            Thread.current.threadDictionary["own"] = thread
            for step in 1...2_000 {
                let entry = Written(thread: thread, step: step)
                scope.run {
                    switch way {
                    case .instance, .watched: stores[0].actions.dispatch(action: entry)
                    case .tracked: _ = stores[0].actions.dispatch(entry)
                    case .global: Store<WriterState>.actions.dispatch(action: entry)
                    case .event: scope.send(entry)
                    }
                }
                for store in stores[..<concerned] where store.computed.last(of: thread) != step {
                    early.add(1, ordering: .relaxed)
                }
            }
        }
        await onThreads({ work(1) }, { work(2) }, { work(3) })
        let count = early.load(ordering: .relaxed)
        #expect(count == 0)
        #expect(stores.map { $0.computed.strangers } == [0, 0])
        #expect(stores[0].computed.last(of: 3) == 2_000)
    }

    @Test(arguments: [false, true])
    func `a dispatch doesn't wait for another thread to stop`(isGlobal: Bool) async {
        let scope = scope
        let isOver = Atomic(false)
        let line = Late<@Sendable () -> Int>()
        let (mayFlood, mayGoOn) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
        let (store, other) = scope.run {
            let store = tallyStore { number in
                // Others fill the line while this thread serves it, and they are faster.
                if number == 1 {
                    mayFlood.signal()
                    mayGoOn.wait()
                }
                while !isOver.load(ordering: .relaxed), line.value?() == 0 {}
            }
            return (store, tallyStore())
        }
        line.value = { store.core.waitingCount }
        // It dispatches from inside a commit, where it never waits.
        let flood = Scope().run {
            tallyStore { _ in
                mayFlood.wait()
                var number = 0
                while !isOver.load(ordering: .relaxed) {
                    number += 1
                    if store.core.waitingCount < 100 { store.actions.tell(-1) }
                    if number == 100 { mayGoOn.signal() }
                }
            }
        }
        await onThreads(
            { flood.actions.tell(0) },
            {
                for number in 1...20 {
                    if isGlobal {
                        scope.run { Store<TallyState>.actions.tell(number) }
                    } else {
                        store.actions.tell(number)
                    }
                }
                isOver.store(true, ordering: .relaxed)
            })
        #expect(store.computed.numbers.filter { $0 > 0 } == Array(1...20))
        #expect(other.computed.numbers == (isGlobal ? Array(1...20) : []))
    }

    @Test func `a commit never waits for another store's turn`() async throws {
        let (isIn, mayGo) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
        let busy = tallyStore { number in
            if number == 0 {
                isIn.signal()
                mayGo.wait()
            }
        }
        let outer = tallyStore { number in busy.actions.tell(number) }
        await onThreads(
            { busy.actions.tell(0) },
            {
                isIn.wait()
                outer.actions.tell(1)
                // The call has returned, and the other store's action is not committed yet.
                #expect(busy.computed.numbers == [])
                mayGo.signal()
            })
        try await busy.actions.dispatch(2).receipt()
        #expect(busy.computed.numbers == [0, 1, 2])
    }

    @Test
    func `a thread that the committing thread waits for continues, and its action is committed`()
        async throws
    {
        let (isIn, hasReturned) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
        let store = tallyStore { number in
            if number == 0 {
                isIn.signal()
                hasReturned.wait()
            }
        }
        await onThreads(
            { store.actions.tell(0) },
            {
                isIn.wait()
                store.actions.tell(1)
                hasReturned.signal()
            })
        try await store.actions.dispatch(2).receipt()
        #expect(store.computed.numbers == [0, 1, 2])
    }

    @Test func `an action runs under its own dispatch's lock, and under no other`() {
        let scope = scope
        let held = HeldExecutor()
        let (first, second) = scope.run { (tallyStore(on: held.executor), tallyStore()) }
        let follow = scope.run {
            tallyStore(on: held.executor) { number in second.actions.tell(number) }
        }
        // The first action was dispatched before the lock, and is committed together with the holder's.
        follow.actions.tell(1)
        let lock = scope.lock()
        lock.run { follow.actions.tell(2) }
        lock.run { held.runAll() }
        // Dispatches from the first action's commit wait. Those from the holder's commit pass.
        #expect(second.computed.numbers == [2])
        lock.release()
        #expect(second.computed.numbers == [2, 1])
        _ = first
    }
}

/// An action with its thread and its step.
private struct Written: Event {
    var thread: Int
    var step: Int
}

/// A state with the last step of each thread, and the number of actions that another thread committed.
private final class WriterState: State, EventHandling, Sendable {
    typealias Action = Written
    typealias Mutations = WriterMutations
    static let events = EventHandlers<Written>().on(Written.self) { $0 }

    fileprivate let last = Mutex<[Int: Int]>([:])
    fileprivate let strangers = Atomic(0)
}

private struct WriterMutations: Mutations {
    func commit(action: Written, state: WriterState) {
        let thread = Thread.current.threadDictionary["own"] as? Int
        if thread != action.thread { state.strangers.add(1, ordering: .relaxed) }
        state.last.withLock { $0[action.thread] = action.step }
    }
}

extension Computed where State == WriterState {
    fileprivate func last(of thread: Int) -> Int? { state.last.withLock { $0[thread] } }
    fileprivate var strangers: Int { state.strangers.load(ordering: .relaxed) }
}
