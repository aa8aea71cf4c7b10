import Conflux
import ConfluxNode
import Testing

/// What a node that hosts nothing learns about its actions.
struct RemoteEffectTests {
    /// A host with a store, and a node without stores.
    private func withNodes(
        _ body: (_ world: World, _ host: Node, _ store: Store<TallyState>, _ node: Node)
            async throws -> Void
    ) async throws {
        try await withWorld { world in
            let host = try await world.node()
            let store = try await host.store(TallyState.self)
            let node = try await world.node()
            try await body(world, host, store, node)
            await node.close()
            await host.close()
        }
    }

    private func failure(of handle: DispatchHandle) async throws -> DispatchError {
        try #require(
            await #expect(throws: DispatchError.self) {
                try await handle.effect(within: .seconds(60))
            })
    }

    @Test func `a node that hosts nothing learns whether its action was applied or refused`()
        async throws
    {
        try await withNodes { _, host, store, node in
            let actions = try node.actions(of: TallyState.self)
            let applied = actions.dispatch(.add(3))
            let receipt = try await applied.effect()
            #expect(try await applied.receipt() == receipt)
            #expect(store.computed.count == 3)
            let refused = actions.dispatch(.fail)
            // Its place in the log is proved, and it had no effect.
            let place = try await refused.receipt()
            let error = try await failure(of: refused)
            #expect(error.code == .refused && error.receipt == place)
            #expect(error.reason.map { "\($0)" } == "\(Refusal())")
            #expect(error.message.contains("\(Refusal())"))
        }
    }

    @Test func `each action of a batch has its own effect`() async throws {
        try await withNodes { _, _, _, node in
            let actions = try node.actions(of: TallyState.self)
            let handles = (0..<60).map { actions.dispatch($0 % 3 == 1 ? .fail : .add(1)) }
            for (index, handle) in handles.enumerated() {
                if index % 3 == 1 {
                    #expect(try await failure(of: handle).code == .refused)
                } else {
                    try await handle.effect()
                }
            }
        }
    }

    @Test func `in a node that hosts the store, the effect is the receipt`() async throws {
        try await withNodes { world, _, store, _ in
            let applied = store.actions.dispatch(.add(3))
            #expect(try await applied.effect() == applied.receipt())
            let refused = store.actions.dispatch(.fail)
            #expect(try await failure(of: refused).reason is Refusal)
            // No other process has to be asked.
            await world.sequencer.stop()
            try await applied.effect(within: .zero)
            #expect(try await failure(of: refused).code == .refused)
        }
    }

    @Test func `a bridge without a store learns the effect of a global action`() async throws {
        let scope = Scope()
        try await withWorld { world in
            let host = try await world.node()
            let store = try await host.store(TallyState.self)
            let node = try await world.node(scope: scope)
            try await node.bridge(TallyState.self)
            let applied = scope.run { Store<TallyState>.actions.dispatch(.add(2)) }
            try await applied.effect()
            #expect(store.computed.count == 2)
            let refused = scope.run { Store<TallyState>.actions.dispatch(.fail) }
            try await refused.receipt()
            #expect(try await failure(of: refused).code == .refused)
            await node.close()
            await host.close()
        }
    }

    @Test func `a host whose store is frozen asks the hosts of the others`() async throws {
        try await withWorld { world in
            let one = try await world.node()
            let frozen = try await one.store(TallyState.self, named: "one")
            let other = try await world.node()
            let store = try await other.store(TallyState.self, named: "other")
            try await one.freeze(frozen)
            let actions = try one.globalActions(of: TallyState.self)
            try await actions.dispatch(.add(2)).effect()
            #expect(store.computed.count == 2 && frozen.computed.count == 0)
            #expect(try await failure(of: actions.dispatch(.fail)).code == .refused)
            try await other.freeze(store)
            #expect(try await failure(of: actions.dispatch(.add(1))).code == .concernedNobody)
            await other.close()
            await one.close()
        }
    }

    @Test func `without a host the effect is unknown, and the receipt stays`() async throws {
        try await withNodes { _, host, _, node in
            await host.close()
            let handle = try node.actions(of: TallyState.self).dispatch(.fail)
            let receipt = try await handle.receipt()
            let error = try await failure(of: handle)
            #expect(error.code == .effectUnknown && error.receipt == receipt)
        }
    }

    @Test func `what is not in the log has no effect to ask for`() async throws {
        try await withNodes { _, _, _, node in
            let nowhere = try node.actions(of: TallyState.self, named: "nowhere")
            #expect(try await failure(of: nowhere.dispatch(.add(1))).code == .rejected)
            await node.close()
            let late = try node.actions(of: TallyState.self).dispatch(.add(1))
            #expect(try await failure(of: late).code == .notConnected)
        }
    }
}
