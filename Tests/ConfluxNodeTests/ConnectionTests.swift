import ConfluxNode
import ConfluxSequencer
import Testing

struct ConnectionTests {
    @Test func `an address where nobody answers ends in time`() async throws {
        let world = try World()
        let address = world.sequencer.address
        await world.sequencer.stop()
        var settings = NodeSettings()
        settings.connectTimeout = .milliseconds(300)
        let error = await #expect(throws: NodeError.self) {
            _ = try await Node.connect(to: address, settings: settings)
        }
        #expect(error?.code == .unreachable)
        #expect(error?.message.contains(address) == true)
    }

    @Test(arguments: ["", "nonsense", "tcp://", "tcp://127.0.0.1", "http://localhost:1"])
    func `an invalid address is refused at once`(address: String) async throws {
        let error = await #expect(throws: NodeError.self) {
            _ = try await Node.connect(to: address)
        }
        #expect(error?.code == .invalidAddress)
    }

    @Test func `a second live node of a name is refused`() async throws {
        try await withWorld { world in
            let first = try await world.node("alpha")
            let error = await #expect(throws: NodeError.self) { _ = try await world.node("alpha") }
            #expect(error?.code == .refused)
            #expect(error?.bye == .nameTaken)
            await first.close()
            // The name is free once its holder has left.
            let second = try await world.node("alpha")
            await second.close()
        }
    }

    @Test func `nodes continue with a sequencer that restarts at the same address`()
        async throws
    {
        // The log is in memory, so the new sequencer has a new one, and stores are created again.
        try await withAddress { address in
            let world = try World(bind: address)
            let node = try await world.node()
            let store = try await node.store(TallyState.self)
            try await store.actions.dispatch(.add(3)).receipt()
            let events = node.events
            await world.sequencer.stop()
            let again = try World(bind: address)
            _ = try await first(of: events) { if case .historyLost = $0 { true } else { false } }
            // Until the store is created again, actions for its former life are rejected.
            try await withDeadline {
                while true {
                    let error = await Self.failure(of: store.actions.dispatch(.add(1)))
                    guard let error else { return }
                    guard [.rejected, .outcomeUnknown].contains(error.code) else { throw error }
                }
            }
            #expect(store.computed.count == 1)
            await node.close()
            await again.sequencer.stop()
        }
    }

    @Test func `cancelling a wait for a receipt ends the wait and not the dispatch`() async throws {
        try await withWorld { world in
            let node = try await world.node()
            let store = try await node.store(TallyState.self)
            await world.sequencer.stop()
            let handle = store.actions.dispatch(.add(1))
            let task = Task { try await handle.receipt() }
            task.cancel()
            let error = await #expect(throws: DispatchError.self) { try await task.value }
            #expect(error?.code == .cancelled)
            await node.close()
        }
    }

    @Test func `cancelling an open that nobody answers ends the wait`() async throws {
        try await withWorld { world in
            let node = try await world.node()
            await world.sequencer.stop()
            let task = Task { try await node.store(TallyState.self) }
            task.cancel()
            let error = await #expect(throws: NodeError.self) { try await task.value }
            #expect(error?.code == .cancelled)
            await node.close()
        }
    }

    @Test func `actions without an outcome at the node's closing are unknown, not silently lost`()
        async throws
    {
        let world = try World()
        var settings = NodeSettings()
        settings.closeTimeout = .milliseconds(50)
        let node = try await Node.connect(to: world.sequencer.address, settings: settings)
        let store = try await node.store(TallyState.self)
        await world.sequencer.stop()
        let handles = (0..<10).map { _ in store.actions.dispatch(.add(1)) }
        await node.close()
        for handle in handles {
            let error = await #expect(throws: DispatchError.self) { try await handle.receipt() }
            #expect(error?.code == .outcomeUnknown || error?.code == .notConnected)
        }
    }

    @Test func `the sequencer's status names nodes and stores`() async throws {
        try await withWorld { world in
            let node = try await world.node("alpha")
            let store = try await node.store(TallyState.self)
            try await store.actions.dispatch(.add(1)).receipt()
            let status = try await node.sequencerStatus()
            #expect(status.sessions.map(\.name?.text) == ["alpha"])
            #expect(status.stores.map(\.store.description) == ["tally/shared"])
            let own = await node.status
            #expect(own.isConnected && own.stores.map(\.description) == ["tally/shared"])
            await node.close()
        }
    }

    @Test func `an action above the limit is an error and nothing else is lost`() async throws {
        try await withWorld { world in
            let node = try await world.node { $0.payloadBytesMax = 10_000 }
            let store = try await node.store(Journal.self)
            let long = store.dispatch(.write(String(repeating: "x", count: 20_000)))
            let short = store.dispatch(.write("short"))
            let error = await #expect(throws: DispatchError.self) { try await long.receipt() }
            #expect(error?.code == .invalidAction)
            try await short.receipt()
            #expect(store.lines == ["short"])
            await node.close()
        }
    }

    @Test func `with the policy to fail, a full outbox fails the dispatch`() async throws {
        try await withWorld { world in
            let node = try await world.node {
                $0.outboxBytesMax = 2_000
                $0.outboxPolicy = .fail
            }
            let store = try await node.store(Journal.self)
            let events = node.events
            await world.sequencer.stop()
            _ = try await first(of: events) { $0 == .disconnected }
            let handles = (0..<100).map { _ in
                store.dispatch(.write(String(repeating: "x", count: 500)))
            }
            var codes: Set<String> = []
            await node.close()
            for handle in handles {
                do throws(DispatchError) {
                    try await handle.receipt()
                } catch {
                    codes.insert(error.code.rawValue)
                }
            }
            #expect(codes.contains(DispatchError.Code.outboxFull.rawValue))
        }
    }

    private static func failure(of handle: DispatchHandle) async -> DispatchError? {
        do throws(DispatchError) {
            try await handle.receipt()
            return nil
        } catch {
            return error
        }
    }
}
