import Conflux
import Synchronization
import Testing

enum CounterAction {
    case increment, decrement
}

final class CounterState: State {
    typealias Action = CounterAction
    typealias Mutations = CounterMutations

    fileprivate let count = Variable(0)
}

struct CounterMutations: Mutations {
    func commit(action: CounterAction, state: CounterState) {
        switch action {
        case .increment: state.count.value += 1
        case .decrement: state.count.value -= 1
        }
    }
}

extension Actions where State == CounterState {
    func increment() { dispatch(action: .increment) }
    func decrement() { dispatch(action: .decrement) }
}

extension Computed where State == CounterState {
    var count: Int { state.count.value }
    var counts: Signal<Int> { state.count.signal }
    var countTextValues: Signal<String> { state.count.signal.map { String($0) } }
}

@Suite(.timeLimit(.minutes(5)))
struct ComingFromVueFlux {
    @Test func `a program keeps its text, and gets receipts`() async throws {
        try await Scope().run {
            let store = Store<CounterState>(
                state: .init(), mutations: .init(), executor: .immediate)
            let texts = Mutex<[String]>([])
            store.computed.countTextValues.observe { text in texts.withLock { $0.append(text) } }
            store.actions.increment()  // this store
            Store<CounterState>.actions.increment()  // every store of the state
            try await store.actions.dispatch(.decrement).receipt()
            #expect(texts.withLock { $0 } == ["0", "1", "2", "1"])
        }
    }
}

/// The rows of the table of differences.
@Suite(.timeLimit(.minutes(5)))
struct DifferencesToVueFlux {
    /// A state whose commit dispatches.
    final class EchoState: State {
        typealias Action = Int
        typealias Mutations = EchoMutations

        fileprivate let count = Variable(0)
        fileprivate let read = Variable<[Int]>([])
        fileprivate let echo = Mutex<Actions<EchoState>?>(nil)
    }

    struct EchoMutations: Mutations {
        func commit(action: Int, state: EchoState) {
            state.count.value += action
            guard action > 1 else { return }
            state.echo.withLock { $0 }?.dispatch(action: 1)
            state.read.value.append(state.count.value)
        }
    }

    private func store() -> Store<CounterState> {
        Store(state: .init(), mutations: .init(), executor: .immediate)
    }

    @Test func `what an observer dispatches is committed after the observers have returned`() {
        Scope().run {
            let store = store()
            let read = Mutex<[Int]>([])
            let (actions, computed) = (store.actions, store.computed)
            nonisolated(unsafe) let state = computed
            store.computed.counts.observe { count in
                guard count == 1 else { return }
                actions.increment()
                read.withLock { $0.append(state.count) }
            }
            store.actions.increment()
            #expect(read.withLock { $0 } == [1])
            #expect(store.computed.count == 2)
        }
    }

    @Test func `what a commit dispatches is committed after that commit`() {
        Scope().run {
            let state = EchoState()
            let store = Store(state: state, mutations: .init(), executor: .immediate)
            state.echo.withLock { $0 = store.actions }
            store.actions.dispatch(action: 5)
            #expect(state.read.value == [5])
            #expect(state.count.value == 6)
        }
    }

    @Test func `a global action of an observer reaches other free stores before the call returns`()
    {
        Scope().run {
            let (store, other) = (store(), store())
            let read = Mutex<[Int]>([])
            nonisolated(unsafe) let (own, others) = (store.computed, other.computed)
            let all = Store<CounterState>.actions
            store.computed.counts.observe { count in
                guard count == 1 else { return }
                all.increment()
                read.withLock { $0 += [own.count, others.count] }
            }
            store.actions.increment()
            #expect(read.withLock { $0 } == [1, 1])
            #expect(store.computed.count == 2 && other.computed.count == 1)
        }
    }

    @Test func `a store on an executor that drops a function commits nothing more`() {
        Scope().run {
            let isDropping = Mutex(true)
            let context: @Sendable (@escaping @Sendable () -> Void) -> Void = { function in
                let drops = isDropping.withLock { isDropping in
                    defer { isDropping = false }
                    return isDropping
                }
                if !drops { function() }
            }
            let store = Store<CounterState>(
                state: .init(), mutations: .init(), executor: Executor(context))
            store.actions.increment()
            store.actions.increment()
            #expect(store.computed.count == 0)
        }
    }

    @Test
    func `a value that an observer sends comes after the present value has reached everybody`() {
        let variable = Variable(0)
        let seen = Mutex<[String]>([])
        variable.signal.observe { number in
            if number == 1 { variable.value = 2 }
            seen.withLock { $0.append("a \(number) of \(variable.value)") }
        }
        variable.signal.observe { number in seen.withLock { $0.append("b \(number)") } }
        variable.value = 1
        #expect(seen.withLock { $0 } == ["a 0 of 0", "b 0", "a 1 of 2", "b 1", "a 2 of 2", "b 2"])
    }

    @Test
    func
        `an observer of the main actor is called on main, and a sendable one where the value is sent`()
        async
    {
        let sink = Sink<Int>()
        let (numbers, continuation) = AsyncStream.makeStream(of: Int.self)
        await MainActor.run {
            _ = sink.signal.observe { number in
                MainActor.assertIsolated()
                continuation.yield(number)
            }
        }
        let sent = Mutex<[Int]>([])
        sink.signal.observe { number in sent.withLock { $0.append(number) } }
        await Task.detached {
            sink.send(value: 7)
            #expect(sent.withLock { $0 } == [7])
        }.value
        for await number in numbers {
            #expect(number == 7)
            return
        }
    }
}
