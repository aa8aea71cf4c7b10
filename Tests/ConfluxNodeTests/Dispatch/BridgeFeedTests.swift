import ConfluxNode
import Testing

/// A node that bridges a state, before and after it has a store of that state.
struct BridgeFeedTests {
    private let scope = Scope()

    private func store() -> Store<TallyState> {
        scope.run { Store<TallyState>(state: .init(), mutations: .init(), executor: .immediate) }
    }

    private func add(_ number: Int) async throws -> Receipt {
        try await scope.run {
            try await Store<TallyState>.actions.dispatch(.add(number)).receipt()
        }
    }

    @Test func `a store gets what follows its creation, and nothing before`()
        async throws
    {
        try await withWorld { world in
            let other = try await world.node()
            let all = try await other.store(TallyState.self, named: "all")
            let node = try await world.node(scope: scope)
            try await node.bridge(TallyState.self)
            for _ in 0..<10 { _ = try await add(1) }
            let store = store()
            // The receipt means that this store has the action, even if the node doesn't follow the feed yet.
            _ = try await add(100)
            #expect(store.computed.count == 100)
            let receipt = try await other.globalActions(of: TallyState.self).dispatch(.add(1_000))
                .receipt()
            try await node.wait(for: receipt)
            #expect(store.computed.count == 1_100)
            // A second store, while the node follows the feed.
            let second = self.store()
            _ = try await add(10_000)
            #expect(store.computed.count == 11_100)
            #expect(second.computed.count == 10_000)
            try await other.wait(for: try await add(0))
            #expect(all.computed.count == 11_110)
            await node.close()
            await other.close()
        }
    }

    @Test func `stores that are made while others dispatch miss no later action`()
        async throws
    {
        try await withWorld { world in
            let other = try await world.node()
            _ = try await other.store(TallyState.self, named: "all")
            let actions = try other.globalActions(of: TallyState.self)
            for _ in 0..<20 {
                let scope = Scope()
                let node = try await world.node(scope: scope)
                try await node.bridge(TallyState.self)
                let noise = Task {
                    for _ in 0..<50 { _ = try await actions.dispatch(.add(0)).receipt() }
                }
                let store = scope.run {
                    Store<TallyState>(state: .init(), mutations: .init(), executor: .immediate)
                }
                // Another node dispatches this after the store was made.
                let receipt = try await actions.dispatch(.add(1)).receipt()
                try await node.wait(for: receipt)
                #expect(store.computed.count == 1)
                try await noise.value
                await node.close()
            }
            await other.close()
        }
    }

    /// The commits have actions of several nodes, and the store is made while they arrive.
    @Test func `a store gets nothing of a commit during which it was made`() async throws {
        try await withWorld { world in
            let others = [
                try await world.node(), try await world.node(), try await world.node(),
            ]
            for _ in 0..<20 {
                let scope = Scope()
                let node = try await world.node(scope: scope)
                try await node.bridge(TallyState.self)
                let noise = try others.map { other in
                    let actions = try other.globalActions(of: TallyState.self)
                    return Task {
                        for _ in 0..<50 { _ = try await actions.dispatch(.add(0)).receipt() }
                    }
                }
                // The node's own actions, before it makes the store.
                for _ in 0..<5 {
                    _ = try await scope.run {
                        try await Store<TallyState>.actions.dispatch(.add(1)).receipt()
                    }
                }
                let store = scope.run {
                    Store<TallyState>(state: .init(), mutations: .init(), executor: .immediate)
                }
                for task in noise { try await task.value }
                try await node.barrier()
                #expect(store.computed.count == 0)
                await node.close()
            }
            for other in others { await other.close() }
        }
    }

    @Test func `hosted and local stores of a bridged state get the later actions`()
        async throws
    {
        try await withWorld { world in
            let node = try await world.node(scope: scope)
            try await node.bridge(TallyState.self)
            for _ in 0..<10 { _ = try await add(1) }
            let hosted = try await node.store(TallyState.self, named: "hosted")
            let store = store()
            _ = try await add(5)
            #expect(store.computed.count == 5 && hosted.computed.count == 5)
            await node.close()
        }
    }

    @Test func `a state that is bridged again reaches its stores`() async throws {
        try await withWorld { world in
            let node = try await world.node(scope: scope)
            try await node.bridge(TallyState.self)
            node.unbridge(TallyState.self)
            let store = store()
            try await node.bridge(TallyState.self)
            _ = try await add(5)
            #expect(store.computed.count == 5)
            await node.close()
        }
    }
}
