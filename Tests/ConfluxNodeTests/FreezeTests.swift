import Conflux
import ConfluxNode
import Testing

/// Freezing stores and skipping entries, on request of a node.
struct FreezeTests {
    @Test func `no action reaches a frozen store, in any node, until it is thawed`() async throws {
        let scope = Scope()
        try await withWorld { world in
            let alpha = try await world.node("alpha", scope: scope)
            let beta = try await world.node("beta")
            let store = try await alpha.store(TallyState.self)
            let other = try await alpha.store(TallyState.self, named: "other")
            let theirs = try await beta.store(TallyState.self)
            try await store.actions.dispatch(.add(1)).receipt()
            try await alpha.freeze(store)
            // To freeze it once more changes nothing.
            try await beta.freeze(theirs)
            for frozen in [store, theirs] {
                let error = await #expect(throws: DispatchError.self) {
                    try await frozen.actions.dispatch(.add(2)).receipt()
                }
                #expect(error?.code == .rejected)
                #expect(error?.message.contains("frozen") == true)
            }
            // An action for the whole state leaves the store out, even after it is thawed.
            try await scope.run {
                _ = try await Store<TallyState>.actions.dispatch(.add(10)).receipt()
            }
            #expect(store.computed.count == 1 && other.computed.count == 10)
            // A node that opens the store now gets its present state.
            let gamma = try await world.node("gamma")
            let late = try await gamma.store(TallyState.self)
            #expect(late.computed.count == 1)
            try await beta.thaw(theirs)
            let receipt = try await theirs.actions.dispatch(.add(4)).receipt()
            for node in [alpha, gamma] { try await node.wait(for: receipt) }
            #expect([store, theirs, late].map(\.computed.count) == [5, 5, 5])
            for node in [alpha, beta, gamma] { await node.close() }
        }
    }

    @Test func `only a node that hosts a store freezes it, by its present life`() async throws {
        try await withWorld { world in
            let node = try await world.node("alpha")
            let store = try await node.store(TallyState.self)
            node.close(store)
            let closed = await #expect(throws: NodeError.self) { try await node.freeze(store) }
            #expect(closed?.code == .notHosted)
            let thawed = await #expect(throws: NodeError.self) { try await node.thaw(store) }
            #expect(thawed?.code == .notHosted)
            await node.close()
        }
    }

    @Test func `an entry that a replica has applied can't be skipped, and the answer says so`()
        async throws
    {
        try await withWorld { world in
            let node = try await world.node("alpha")
            let store = try await node.store(TallyState.self)
            let receipt = try await store.actions.dispatch(.add(1)).receipt()
            let name = try #require(StoreName("tally"))
            let error = await #expect(throws: NodeError.self) {
                // The report that the replica has applied it may still be in transit.
                while true {
                    do throws(NodeError) {
                        try await node.skip(receipt.sequence, for: .store(name))
                        return
                    } catch {
                        guard error.message.contains("ask again") else { throw error }
                    }
                }
            }
            #expect(error?.code == .rejected && error?.rejection == .passed)
            #expect(error?.message.contains("alpha has applied entry") == true)
            // The entry is not for that store, so no replica of it has applied it.
            try await node.skip(receipt.sequence, for: .store(try #require(StoreName("other"))))
            #expect(store.computed.count == 1)
            await node.close()
        }
    }
}
