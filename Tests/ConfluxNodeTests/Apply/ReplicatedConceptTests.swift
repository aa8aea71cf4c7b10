import ConfluxNode
import ConfluxTesting
import ConfluxVocabulary
import Foundation
import Observation
import Synchronization
import Testing

/// How concepts of one process work with a store that is replicated in several.
@Suite(.timeLimit(.minutes(5)))
struct ReplicatedConceptTests {
    struct Shelf: Model, EventHandling, Equatable {
        static let name = "shelf"
        static let events = EventHandlers<Action>().on(Delivery.self) { .add($0.amount) }
        var left = 0
        enum Action: Codable, Sendable, Equatable { case add(Int), take(Int) }

        func check(_ action: Action, _ context: ActionContext) throws {
            if case .take(let amount) = action, amount > left { throw Refusal() }
        }

        mutating func apply(_ action: Action, _ context: ActionContext) {
            switch action {
            case .add(let amount): left += amount
            case .take(let amount): left -= amount
            }
        }
    }

    struct Delivery: Event { var amount: Int }

    /// Two nodes, each with a scope and a replica of the shelf.
    private struct Pair: Sendable {
        let scope = Scope()
        let alpha: Node
        let beta: Node
        let here: ModelStore<Shelf>
        let there: ModelStore<Shelf>

        init(_ world: World) async throws {
            alpha = try await world.node("alpha", scope: scope)
            beta = try await world.node("beta")
            here = try await alpha.store(Shelf.self)
            there = try await beta.store(Shelf.self)
        }

        func close() async {
            await alpha.close()
            await beta.close()
        }
    }

    /// Doubles added amounts, stops amounts above 100, and notes the commits.
    private final class Doubler: Middleware {
        let commits = Mutex<[(action: String, isOurs: Bool)]>([])

        func willDispatch<S: State>(_ dispatch: DispatchedAction<S>) -> Passage<S.Action> {
            guard case .add(let amount)? = dispatch.action as? Shelf.Action,
                let double = Shelf.Action.add(2 * amount) as? S.Action
            else { return .pass }
            return amount > 100 ? .stop : .replace(double)
        }

        func didCommit<S: State>(_ commit: CommittedAction<S>, refusal: (any Error)?) {
            commits.withLock { $0.append(("\(commit.action)", commit.id != nil)) }
        }
    }

    @Test func `middleware acts at an action's dispatch, and only observes at its commit`()
        async throws
    {
        try await withWorld { world in
            let pair = try await Pair(world)
            let doubler = Doubler()
            pair.scope.use(doubler)
            try await pair.here.dispatch(.add(3)).receipt()
            let error = await #expect(throws: DispatchError.self) {
                try await pair.here.dispatch(.add(101)).receipt()
            }
            #expect(error?.code == .intercepted)
            let receipt = try await pair.there.dispatch(.add(5)).receipt()
            try await wait(for: pair.here) { $0.left == 11 }
            #expect(pair.there.left == 11)
            // The state is seen before the middleware is told. The next action comes after that.
            try await pair.here.dispatch(.add(0)).receipt()
            let commits = doubler.commits.withLock { $0 }
            #expect(commits.map(\.action).prefix(2) == ["add(6)", "add(5)"])
            #expect(receipt.log != nil)
            await pair.close()
        }
    }

    @Test func `a lock pauses what this process dispatches, and not the log`() async throws {
        try await withWorld { world in
            let pair = try await Pair(world)
            let lock = pair.scope.lock()
            await lock.inForce()
            let waiting = pair.here.dispatch(.add(1))
            try await pair.there.dispatch(.add(10)).receipt()
            try await wait(for: pair.here) { $0.left == 10 }
            let own = try await lock.run { try await pair.here.dispatch(.add(100)).receipt() }
            #expect(pair.here.left == 110)
            lock.release()
            let later = try await waiting.receipt()
            #expect(later.sequence > own.sequence && pair.here.left == 111)
            try await wait(for: pair.there) { $0.left == 111 }
            await pair.close()
        }
    }

    @Test func `waiting calls on a replica are rejected, and do nothing`()
        async throws
    {
        try await withWorld { world in
            let pair = try await Pair(world)
            let local = pair.scope.run { Storage(0) }
            let dispatches: [(Pair, Storage<Int>) -> DispatchHandle] = [
                { pair, local in
                    pair.scope.chain().dispatch(.add(1), to: pair.here)
                        .change(local) { $0.replace(1) }.react()
                },
                { pair, _ in pair.scope.dispatch(.add(1), to: pair.here, mode: .mainThread) },
            ]
            for dispatch in dispatches {
                let error = await #expect(throws: DispatchError.self) {
                    try await dispatch(pair, local).receipt()
                }
                #expect(error?.code == .rejected)
            }
            #expect(pair.here.left == 0 && local.value == 0)
            let recorder = Recorder(pair.here)
            let back = #expect(throws: StoreError.self) { try recorder.back() }
            #expect(back?.code == .noSuchStep || back?.code == .replicated)
            let folder = FileManager.default.temporaryDirectory
                .appendingPathComponent("conflux-concepts-\(Identifier.random())")
            defer { try? FileManager.default.removeItem(at: folder) }
            let kept = #expect(throws: StoreError.self) {
                try Archive(folder: folder).keep(pair.here, as: "shelf")
            }
            #expect(kept?.code == .replicated)
            await pair.close()
        }
    }

    @Test func `an event goes to the log, as a global action does`() async throws {
        try await withWorld { world in
            let pair = try await Pair(world)
            let local = pair.scope.run { ModelStore<Shelf>() }
            let receipt = try await pair.scope.send(Delivery(amount: 3)).receipt()
            #expect(receipt.log != nil)
            #expect(pair.here.left == 3 && local.left == 3)
            try await wait(for: pair.there) { $0.left == 3 }
            await pair.close()
        }
    }

    @Test func `a part of a replica is tracked until another process changes it`() async throws {
        try await withWorld { world in
            let pair = try await Pair(world)
            let here = pair.here
            let changes = Mutex(0)
            withObservationTracking {
                _ = here.left
            } onChange: {
                changes.withLock { $0 += 1 }
            }
            for _ in 1...2 { try await pair.there.dispatch(.add(2)).receipt() }
            try await pair.alpha.barrier()
            #expect(here.left == 4)
            #expect(changes.withLock { $0 } == 1)
            await pair.close()
        }
    }

    @Test func `modes that leave the order to the log work with a replica`() async throws {
        try await withWorld { world in
            let pair = try await Pair(world)
            for mode in [DispatchMode.async, .serial, .sync] {
                try await pair.scope.dispatch(.add(1), to: pair.here, mode: mode).receipt()
            }
            #expect(pair.here.left == 3)
            let operation = pair.scope.perform {
                _ = try? await pair.here.dispatch(.add(1)).receipt()
            }
            try await pair.scope.dispatch(.take(4), to: pair.here, after: operation).receipt()
            #expect(pair.here.left == 0)
            await pair.close()
        }
    }

    @Test func `observers, recorders and test stores get the actions of other processes`()
        async throws
    {
        try await withWorld { world in
            let pair = try await Pair(world)
            let seen = Mutex<[Int]>([])
            let observation = pair.here.changed(\.left).observe { left in
                seen.withLock { $0.append(left) }
            }
            let recorder = Recorder(pair.here)
            let shelf = TestStore(pair.here)
            try await pair.there.dispatch(.add(7)).receipt()
            await shelf.receive(.add(7)) { $0.left = 7 }
            await shelf.send(.take(2)) { $0.left = 5 }
            await shelf.send(.take(9), failing: .refused) { error in
                #expect(error.receipt?.log != nil)
            }
            await shelf.finish()
            #expect(seen.withLock { $0 } == [0, 7, 5])
            #expect(recorder.steps.map(\.value.left) == [0, 7, 5])
            observation.dispose()
            await pair.close()
        }
    }

    struct Pile: ReducedModel {
        static let name = "pile"
        static let reducers = Reducers<Pile>()
            .with(Put.self) { pile, put, _ in pile.height += put.height }
        var height = 0
    }
    struct Put: Codable, Sendable { var height: Int }

    @Test func `typed reducers are frozen once replicated, and their actions are sent`()
        async throws
    {
        try await withWorld { world in
            let alpha = try await world.node()
            let beta = try await world.node()
            let here = try await alpha.store(Pile.self)
            let there = try await beta.store(Pile.self)
            try await here.dispatch(Put(height: 2)).receipt()
            try await wait(for: there) { $0.height == 2 }
            let error = #expect(throws: StoreError.self) {
                try Pile.reducers.unregister(Put.self)
            }
            #expect(error?.code == .frozen)
            await alpha.close()
            await beta.close()
        }
    }
}
