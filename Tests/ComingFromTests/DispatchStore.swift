import Conflux
import Dispatch
import Foundation
import Synchronization
import Testing

struct Counter: Model {
    static let name = "counter"
    var count = 0

    enum Action: Codable, Sendable {
        case increase
        case decrease
        case add(amount: Int)
    }

    mutating func apply(_ action: Action, _ context: ActionContext) {
        switch action {
        case .increase: count += 1
        case .decrease: count -= 1
        case .add(let amount): count += amount
        }
    }
}

extension Scope {
    var counterStore: ModelStore<Counter>? {
        try? store("counter")
    }
}

struct Logger: Middleware {
    let write: @Sendable (String) -> Void

    func willDispatch<S: State>(_ dispatch: DispatchedAction<S>) -> Passage<S.Action> {
        write("\(dispatch.id): will dispatch \(dispatch.action)")
        return .pass
    }

    func didDispatch<S: State>(
        _ dispatch: DispatchedAction<S>, result: Result<Receipt, DispatchError>
    ) {
        write("\(dispatch.id): did dispatch \(dispatch.action)")
    }
}

@Suite(.timeLimit(.minutes(5)))
struct ComingFromDispatch {
    let dispatcher = Scope()

    @Test func `a store is registered with the dispatcher, and found with its type`() throws {
        let store = dispatcher.run { ModelStore<Counter>() }  // kept by the application
        try dispatcher.register(store, as: "counter")
        dispatcher.counterStore?.dispatch(.increase)
        #expect(store.count == 1)
    }

    @Test func `the application keeps its stores alive, and the dispatcher doesn't`() throws {
        var store: ModelStore<Counter>? = dispatcher.run { ModelStore<Counter>() }
        if let store { try dispatcher.register(store, as: "counter") }
        store = nil
        let failure = #expect(throws: StoreError.self) {
            try dispatcher.store("counter", of: ModelState<Counter>.self)
        }
        #expect(failure?.code == .unknown && store == nil)
    }

    @Test func `an action reaches every store that responds to it`() {
        let (first, second) = dispatcher.run { (ModelStore<Counter>(), ModelStore<Counter>()) }
        dispatcher.run { ModelStore<Counter>.actions.dispatch(action: .increase) }
        #expect(first.count == 1 && second.count == 1)
    }

    @Test func `an object observes a store, for as long as it lives`() {
        final class Observer {}
        let store = dispatcher.run { ModelStore<Counter>() }
        let seen = Mutex<[Int]>([])
        var observer: Observer? = Observer()
        if let observer {
            store.changed(\.count).observe(duringScopeOf: observer) { count in
                seen.withLock { $0.append(count) }
            }
        }
        store.dispatch(.increase)
        observer = nil
        store.dispatch(.increase)
        #expect(observer == nil && seen.withLock { $0 } == [0, 1])
    }

    @Test func `an action is dispatched in one of four modes`() async throws {
        let store = dispatcher.run { ModelStore<Counter>() }
        dispatcher.dispatch(.increase, to: store, mode: .sync)
        #expect(store.count == 1)
        dispatcher.dispatch(.add(amount: 4), to: store, mode: .serial)
        dispatcher.dispatch(.decrease, to: store, mode: .mainThread)
        try await dispatcher.dispatch(.decrease, to: store, mode: .serial).receipt()
        try await dispatcher.dispatch(.increase, to: store, mode: .async).receipt()
        try await dispatcher.dispatch(.add(amount: 0), to: store, mode: .mainThread).receipt()
        #expect(store.count == 4)
    }

    @Test func `actions are chained`() async throws {
        let store = dispatcher.run { ModelStore<Counter>() }
        dispatcher.dispatch(.increase, to: store) { [dispatcher] _ in
            dispatcher.dispatch(.add(amount: 2), to: store)
        }
        let counts = store.changed(\.count).values
        #expect(await counts.first { $0 == 3 } == 3)
    }

    @Test func `an operation that ends later delays what depends on it`() async throws {
        let store = dispatcher.run { ModelStore<Counter>() }
        let answer = AsyncStream.makeStream(of: Int.self)
        let request = dispatcher.perform {
            for await amount in answer.stream.prefix(1) { store.dispatch(.add(amount: amount)) }
        }
        let behind = dispatcher.dispatch(.increase, to: store, after: request)
        #expect(store.count == 0)
        answer.continuation.yield(41)
        try await behind.receipt()
        #expect(store.count == 42)
    }

    @Test func `a store waits for others`() async throws {
        let counts = Mutex<[Int]>([])
        let (counter, mirror) = dispatcher.run {
            (ModelStore<Counter>(executor: .queue(.global())), ModelStore<Counter>())
        }
        try dispatcher.order(mirror, after: counter)
        mirror.observe { _ in counts.withLock { $0.append(counter.count) } }
        try await dispatcher.run { ModelStore<Counter>.actions.dispatch(.increase) }.receipt()
        #expect(counts.withLock { $0 } == [1])
        #expect(throws: StoreError.self) { try dispatcher.order(counter, after: mirror) }
    }

    @Test func `middleware logs each dispatch, before and after, under one id`() {
        let lines = Mutex<[String]>([])
        let store = dispatcher.run { ModelStore<Counter>() }
        dispatcher.use(ActionLogger { line in lines.withLock { $0.append(line) } })
        store.dispatch(.increase)
        #expect(
            lines.withLock { $0 } == [
                "1 dispatch increase to ModelState<Counter>",
                "1 commit 1 in ModelState<Counter>: increase",
                "1 done",
            ])
    }

    @Test func `custom middleware is called before and after`() {
        let lines = Mutex<[String]>([])
        let store = dispatcher.run { ModelStore<Counter>() }
        dispatcher.use(Logger { line in lines.withLock { $0.append(line) } })
        store.dispatch(.increase)
        #expect(lines.withLock { $0 } == ["1: will dispatch increase", "1: did dispatch increase"])
    }

    @Test func `a recorder goes back and forward, and exports its tape`() throws {
        let store = dispatcher.run { ModelStore<Counter>() }
        let recorder = Recorder(store)
        store.dispatch(.increase)
        store.dispatch(.add(amount: 10))
        try recorder.back()
        #expect(store.count == 1)
        try recorder.forward()
        #expect(store.count == 11)
        try recorder.jump(to: 1)
        let other = dispatcher.run { ModelStore<Counter>() }
        let copy = Recorder(other)
        try copy.import(recorder.export())
        #expect(other.count == 1)
        try copy.forward()
        #expect(other.count == 11 && store.count == 1)
    }
}
