import Conflux
import ConfluxNode
import ConfluxSequencer
import Testing

/// Stores that are dropped while processes host them.
struct DropTests {
    @Test func `a dropped store ends in every node, and reopening creates a new one`()
        async throws
    {
        try await withWorld { world in
            let alpha = try await world.node("alpha")
            let beta = try await world.node("beta")
            let events = beta.events
            let store = try await alpha.store(TallyState.self)
            let other = try await beta.store(TallyState.self)
            try await store.actions.dispatch(.add(3)).receipt()
            try await alpha.drop(store)
            // When the call returns, the store has ended here. In other nodes, it ends with the entry.
            #expect(await alpha.status.stores.isEmpty)
            let event = try await first(of: events) { event in
                if case .storeDropped = event { true } else { false }
            }
            #expect(event == .storeDropped(try #require(StoreName("tally"))))
            for store in [store, other] {
                #expect(store.computed.count == 3)
                let error = await #expect(throws: DispatchError.self) {
                    try await store.actions.dispatch(.add(1)).receipt()
                }
                #expect(error?.code == .storeStopped)
                #expect(error?.message.contains("dropped") == true)
            }
            let next = try await beta.store(TallyState.self)
            try await next.actions.dispatch(.add(10)).receipt()
            #expect(next.computed.count == 10 && store.computed.count == 3)
            await alpha.close()
            await beta.close()
        }
    }

    @Test func `a store that is not hosted here can't be dropped here`() async throws {
        try await withWorld { world in
            let node = try await world.node("alpha")
            let store = try await node.store(TallyState.self)
            node.close(store)
            let error = await #expect(throws: NodeError.self) { try await node.drop(store) }
            #expect(error?.code == .notHosted)
            // The store still exists.
            let again = try await node.store(TallyState.self)
            try await node.drop(again)
            let twice = await #expect(throws: NodeError.self) { try await node.drop(again) }
            #expect(twice?.code == .notHosted)
            await node.close()
        }
    }

    @Test func `global actions no longer reach a dropped store, and still reach the others`()
        async throws
    {
        let scope = Scope()
        try await withWorld { world in
            let node = try await world.node("alpha", scope: scope)
            let store = try await node.store(TallyState.self)
            let other = try await node.store(TallyState.self, named: "other")
            try await node.drop(store)
            try await scope.run {
                _ = try await Store<TallyState>.actions.dispatch(.add(5)).receipt()
            }
            #expect(store.computed.count == 0 && other.computed.count == 5)
            await node.close()
        }
    }
}
