import ConfluxNode
import Testing

/// A node that dispatches to stores it does not host.
struct DispatchOnlyTests {
    @Test func `a node dispatches to a store that another one hosts`() async throws {
        try await withWorld { world in
            let host = try await world.node()
            let there = try await host.store(TallyState.self, named: "berlin")
            let node = try await world.node()
            let berlin = try node.actions(of: TallyState.self, named: "berlin")
            let receipt = try await berlin.dispatch(.add(3)).receipt()
            #expect(receipt.log != nil)
            try await host.wait(for: receipt)
            #expect(there.computed.count == 3)
            let status = await node.status
            #expect(status.stores.isEmpty)
            // It got no entries: a node that hosts nothing doesn't follow the feed.
            #expect(status.applied == .zero)
            await node.close()
            await host.close()
        }
    }

    @Test func `a receipt of a node that hosts nothing waits for no store`() async throws {
        try await withWorld { world in
            let host = try await world.node()
            _ = try await host.store(TallyState.self, named: "berlin")
            await host.close()
            let node = try await world.node()
            let berlin = try node.actions(of: TallyState.self, named: "berlin")
            try await berlin.dispatch(.add(3)).receipt()
            await node.close()
        }
    }

    @Test func `a store that nobody ever opened is rejected`() async throws {
        try await withWorld { world in
            let node = try await world.node()
            let berlin = try node.actions(of: TallyState.self, named: "berlin")
            let error = await #expect(throws: DispatchError.self) {
                try await berlin.dispatch(.add(3)).receipt()
            }
            #expect(error?.code == .rejected)
            await node.close()
        }
    }

    @Test func `global actions reach every store without a bridge`() async throws {
        try await withWorld { world in
            let host = try await world.node()
            let one = try await host.store(TallyState.self, named: "one")
            let two = try await host.store(TallyState.self, named: "two")
            let node = try await world.node()
            let receipt = try await node.globalActions(of: TallyState.self).dispatch(.add(2))
                .receipt()
            try await host.wait(for: receipt)
            #expect(one.computed.count == 2)
            #expect(two.computed.count == 2)
            await node.close()
            await host.close()
        }
    }

    @Test func `a model's actions and its host's own store meet in one order`() async throws {
        try await withWorld { world in
            let host = try await world.node()
            let there = try await host.store(Journal.self, named: "x")
            let journal = try host.actions(of: Journal.self, named: "x")
            try await journal.dispatch(.write("a")).receipt()
            // This node hosts the store, so the receipt means that the store has applied the action.
            #expect(there.lines == ["a"])
            await host.close()
        }
    }

    @Test func `an invalid name is refused at once`() async throws {
        try await withWorld { world in
            let node = try await world.node()
            let error = #expect(throws: NodeError.self) {
                try node.actions(of: TallyState.self, named: "no name")
            }
            #expect(error?.code == .invalidName)
            await node.close()
        }
    }

    @Test func `the scope's middleware and locks apply to actions that are only sent`() async throws
    {
        try await withWorld { world in
            let scope = Scope()
            let host = try await world.node()
            let there = try await host.store(TallyState.self, named: "berlin")
            let node = try await world.node(scope: scope)
            let berlin = try node.actions(of: TallyState.self, named: "berlin")
            let interceptor = Interceptor()
            interceptor.register(TallyState.Action.self) { $0 == .add(13) ? .stop : .pass }
            let use = scope.use(interceptor)
            let error = await #expect(throws: DispatchError.self) {
                try await berlin.dispatch(.add(13)).receipt()
            }
            #expect(error?.code == .intercepted)
            use.dispose()
            let receipt = try await berlin.dispatch(.add(1)).receipt()
            try await host.wait(for: receipt)
            #expect(there.computed.count == 1)
            await node.close()
            await host.close()
        }
    }
}
