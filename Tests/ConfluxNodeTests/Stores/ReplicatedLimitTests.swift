import ConfluxNode
import Dispatch
import Synchronization
import Testing

/// What a process can't do by itself with a store whose actions the log orders: it says so, and does nothing.
@Suite(.timeLimit(.minutes(5)))
struct ReplicatedLimitTests {
    struct Delivery: Event { var amount: Int }
    struct Nothing: Event {}

    struct Shelf: Model, EventHandling, Equatable {
        static let name = "shelf"
        static let events = EventHandlers<Action>().on(Delivery.self) { .add($0.amount) }
        var left = 0
        enum Action: Codable, Sendable, Equatable { case add(Int) }

        func check(_ action: Action, _ context: ActionContext) throws {
            if case .add(let amount) = action, amount < 0 { throw Refusal() }
        }

        mutating func apply(_ action: Action, _ context: ActionContext) {
            switch action {
            case .add(let amount): left += amount
            }
        }
    }

    /// A node with a replicated shelf.
    private func withShelf(
        executor: Executor = .immediate,
        _ body: @escaping @Sendable (Scope, Node, ModelStore<Shelf>) async throws -> Void
    ) async throws {
        let scope = Scope()
        try await withWorld { world in
            let node = try await world.node("alpha", scope: scope)
            let shelf = try await node.store(Shelf.self, executor: executor)
            try await body(scope, node, shelf)
            await node.close()
        }
    }

    private func checkRefusal(_ error: StoreError?, _ scope: Scope, _ shelf: ModelStore<Shelf>) {
        #expect(error?.code == .replicated)
        #expect(error?.message.contains("no other process") == true)
        #expect(scope.lockInForce == nil && shelf.left == 0)
    }

    @Test func `a lock with an action for a replicated store fails at once`() async throws {
        try await withShelf { scope, node, shelf in
            let error = #expect(throws: StoreError.self) {
                try scope.lock(dispatching: .add(1), to: shelf)
            }
            checkRefusal(error, scope, shelf)
            // Other stores can be locked, and the log has nothing of the refused action.
            let local = scope.run { Storage(1) }
            let lock = scope.lock(changing: local) { $0.replace(2) }
            #expect(scope.lockInForce === lock)
            lock.release()
            try await node.barrier()
            #expect(shelf.left == 0)
            await node.close()
            let later = #expect(throws: StoreError.self) {
                try scope.lock(dispatching: .add(1), to: shelf)
            }
            checkRefusal(later, scope, shelf)
        }
    }

    @Test func `a lock with an event for a replicated or bridged state fails at once`() async throws
    {
        try await withShelf { scope, node, shelf in
            checkRefusal(
                #expect(throws: StoreError.self) { try scope.lock(sending: Delivery(amount: 1)) },
                scope,
                shelf)
            // Nobody handles this one.
            try scope.lock(sending: Nothing())
            #expect(scope.lockInForce == nil)
            node.close(shelf)
            // The state is still bridged.
            checkRefusal(
                #expect(throws: StoreError.self) { try scope.lock(sending: Delivery(amount: 1)) },
                scope,
                shelf)
        }
    }

    @Test func `a replicated store has no order with other stores`() async throws {
        try await withShelf { scope, node, shelf in
            let (local, other) = scope.run { (Storage(1), ModelStore(Shelf())) }
            let waiting = #expect(throws: StoreError.self) { try scope.order(shelf, after: local) }
            let waitedFor = #expect(throws: StoreError.self) {
                try scope.order(local, after: shelf)
            }
            #expect(waiting?.code == .replicated && waitedFor?.code == .replicated)
            for first in [true, false] {
                let order =
                    try first ? scope.order(other, after: local) : scope.order(local, after: other)
                let error = await #expect(throws: NodeError.self) {
                    try await node.replicate(other, as: "other")
                }
                #expect(error?.message.contains("Scope.order") == true)
                order.dispose()
            }
            try await node.replicate(other, as: "other")
        }
    }

    @Test func `a transaction over a replicated store has no effect, and says why`() async throws {
        try await withShelf { scope, _, shelf in
            let local = scope.run { Storage(1) }
            let handle = scope.chain().dispatch(.add(1), to: shelf).change(local) { $0.replace(2) }
                .react()
            let error = await #expect(throws: DispatchError.self) { try await handle.receipt() }
            #expect(error?.code == .rejected && error?.message.contains("through its node") == true)
            #expect(shelf.left == 0 && local.value == 1)
        }
    }

    @Test func `mode mainThread says that a replicated store has its own executor`() async throws {
        try await withShelf { scope, _, shelf in
            let handle = scope.dispatch(.add(1), to: shelf, mode: .mainThread)
            let error = await #expect(throws: DispatchError.self) { try await handle.receipt() }
            #expect(error?.code == .rejected && error?.message.contains("mode mainThread") == true)
            #expect(error?.message.contains("executor .mainThread") == true && shelf.left == 0)
            for mode in [DispatchMode.async, .serial] {
                try await scope.dispatch(.add(1), to: shelf, mode: mode).receipt()
            }
            #expect(shelf.left == 2)
        }
        try await withShelf(executor: .mainThread) { _, _, shelf in
            let isMain = Mutex(false)
            shelf.observe(\.left) { _ in
                dispatchPrecondition(condition: .onQueue(.main))
                isMain.withLock { $0 = true }
            }
            try await shelf.dispatch(.add(1)).receipt()
            #expect(isMain.withLock { $0 })
        }
    }

    /// Notes how dispatches ended.
    private final class Ends: Middleware {
        let results = Mutex<[Result<Receipt, DispatchError>]>([])

        func didDispatch<S: State>(
            _ dispatch: DispatchedAction<S>, result: Result<Receipt, DispatchError>
        ) { results.withLock { $0.append(result) } }
    }

    @Test func `middleware learns the entry of a dispatch, also of a refused one`() async throws {
        try await withShelf { scope, _, shelf in
            let ends = Ends()
            scope.use(ends)
            let receipt = try await shelf.dispatch(.add(1)).receipt()
            let error = await #expect(throws: DispatchError.self) {
                try await shelf.dispatch(.add(-1)).receipt()
            }
            let results = ends.results.withLock { $0 }
            try #require(results.count == 2)
            #expect(try results[0].get() == receipt && receipt.log != nil)
            guard case .failure(let failure) = results[1] else {
                Issue.record("the action was not refused")
                return
            }
            #expect(failure.code == .refused && failure.receipt == error?.receipt)
            #expect(failure.receipt != nil)
        }
    }
}
