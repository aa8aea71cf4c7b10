import Conflux
import ConfluxNode
import ConfluxSequencer
import ConfluxZeroMQ
import Testing

/// A host whose key may not dispatch.
struct ScheduleRightTests {
    @Test func `a host that may not dispatch reports it, and another host sees to it`()
        async throws
    {
        let (own, member, reader) = (
            CurveKeyPair.random(), CurveKeyPair.random(), CurveKeyPair.random()
        )
        var configuration = SequencerConfiguration(bind: "tcp://127.0.0.1:0", storage: .memory)
        configuration.access = .keys(
            own,
            authorized: try AuthorizedKeys("member \(member) all\nreader \(reader) host observe\n"))
        let sequencer = try Sequencer.start(configuration)
        func node(_ key: CurveKeyPair) async throws -> Node {
            var settings = NodeSettings()
            settings.keys = NodeKeys(own: key, sequencer: own.publicKey)
            return try await Node.connect(
                to: sequencer.address, settings: settings, scope: Scope())
        }
        let result = await Result {
            let first = try await node(member)
            let cinema = try await first.store(Cinema.self)
            let other = try await node(reader)
            let events = other.events
            let replica = try await other.store(Cinema.self)
            // It falls due once the first node has left.
            try await cinema.dispatch(.hold(1, milliseconds: 1_000)).receipt()
            try await other.barrier()
            await first.close()
            let event = try await ConfluxNodeTests.first(of: events) {
                if case .tickFailed = $0 { true } else { false }
            }
            guard case .tickFailed(let store, let message) = event else { return }
            #expect(store.description == "cinema/shared" && message.contains("dispatch"))
            #expect(replica.held == [1])
            let again = try await node(member)
            let third = try await again.store(Cinema.self)
            try await wait(for: replica) { $0.notes == ["expired 1"] }
            for node in [other, again] { await node.close() }
            withExtendedLifetime(third) {}
        }
        await sequencer.stop()
        try result.get()
    }
}
