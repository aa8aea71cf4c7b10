import ConfluxNode
import ConfluxSequencer
import Testing

/// Stores and bridges that can't be opened again after the log was lost.
struct LostHostingTests {
    /// Runs a node while its sequencer is replaced by one with another log in memory and other limits.
    private func withReplacedLog(
        adjust: @escaping @Sendable (inout SequencerSettings) -> Void,
        before: (Node, Scope) async throws -> Void,
        after: (Node, Scope, AsyncStream<NodeEvent>) async throws -> Void
    ) async throws {
        try await withAddress { address in
            try await replaceLog(at: address, adjust: adjust, before: before, after: after)
        }
    }

    private func replaceLog(
        at address: String, adjust: @escaping @Sendable (inout SequencerSettings) -> Void,
        before: (Node, Scope) async throws -> Void,
        after: (Node, Scope, AsyncStream<NodeEvent>) async throws -> Void
    ) async throws {
        let world = try World(bind: address)
        let scope = Scope()
        let node = try await world.node("alpha", scope: scope)
        let events = node.events
        do {
            try await before(node, scope)
        } catch {
            await world.sequencer.stop()
            throw error
        }
        await world.sequencer.stop()
        let again = try World(bind: address, adjust: adjust)
        do {
            try await after(node, scope, events)
        } catch {
            await again.sequencer.stop()
            throw error
        }
        await node.close()
        await again.sequencer.stop()
    }

    @Test func `a store that can't be opened again stops, and says so`() async throws {
        let kept = Box<Store<TallyState>>()
        try await withReplacedLog(
            adjust: { $0.storesMax = 0 },
            before: { node, _ in
                let store = try await node.store(TallyState.self)
                try await store.actions.dispatch(.add(3)).receipt()
                kept.value = store
            },
            after: { node, scope, events in
                let store = try #require(kept.value)
                let event = try await first(of: events) { event in
                    if case .storeStopped = event { true } else { false }
                }
                guard case .storeStopped(let name, nil, let message) = event else { return }
                #expect(name.description == "tally/shared" || name.description == "tally")
                #expect(message.contains("tableFull"))
                let error = await #expect(throws: DispatchError.self) {
                    _ = try await withDeadline {
                        try await store.actions.dispatch(.add(1)).receipt()
                    }
                }
                #expect(error?.code == .storeStopped)
                #expect(error?.message.contains("tableFull") == true)
                #expect((error?.reason as? NodeError)?.code == .openFailed)
                #expect(store.computed.count == 3)
                #expect(await node.status.stores.isEmpty == true)
                // A global dispatch doesn't change the former replica, either.
                try await scope.run {
                    _ = try await Store<TallyState>.actions.dispatch(.add(5)).receipt()
                }
                #expect(store.computed.count == 3)
                // The name can be opened again.
                let second = await #expect(throws: NodeError.self) {
                    _ = try await node.store(TallyState.self)
                }
                #expect(second?.code == .openFailed)
            })
    }

    @Test func `a state that can't be bridged again refuses what is dispatched to it`()
        async throws
    {
        try await withReplacedLog(
            adjust: { $0.statesMax = 0 },
            before: { node, _ in try await node.bridge(TallyState.self) },
            after: { node, scope, events in
                _ = try await first(of: events) { event in
                    if case .bridgeStopped = event { true } else { false }
                }
                let store = scope.run {
                    Store<TallyState>(state: .init(), mutations: .init(), executor: .immediate)
                }
                let error = await #expect(throws: DispatchError.self) {
                    try await scope.run {
                        _ = try await Store<TallyState>.actions.dispatch(.add(1)).receipt()
                    }
                }
                #expect(error?.code == .storeStopped)
                #expect(store.computed.count == 0)
                // If the node ends its bridge, the state's stores belong to this process again.
                node.unbridge(TallyState.self)
                try await scope.run {
                    _ = try await Store<TallyState>.actions.dispatch(.add(1)).receipt()
                }
                #expect(store.computed.count == 1)
            })
    }

    private final class Box<Value> {
        var value: Value?
    }
}
