import ConfluxNode
import ConfluxProtocol
import ConfluxSequencer
import Testing

/// Snapshots of stores whose nodes do not all send their states.
struct UploadTests {
    @Test func `a node that sends no state is passed over and named, and another one sends it`()
        async throws
    {
        let (events, continuation) = AsyncStream.makeStream(of: SequencerEvent.self)
        var configuration = SequencerConfiguration(bind: "tcp://127.0.0.1:0", storage: .memory)
        configuration.adjust = {
            $0.digestBytesMin = 64
            $0.digestRatioMin = 1
            $0.snapshotBytesMin = 64
        }
        let sequencer = try Sequencer.start(configuration) { continuation.yield($0) }
        // The first node keeps no encodings, so that it has none to send.
        var settings = NodeSettings(name: Name("forgetful"))
        settings.encodingsBytesMax = 0
        let forgetful = try await Node.connect(
            to: sequencer.address, settings: settings, scope: Scope())
        let other = try await Node.connect(
            to: sequencer.address, settings: NodeSettings(name: Name("other")), scope: Scope())
        let kept = try await forgetful.store(TallyState.self)
        let store = try await other.store(TallyState.self)
        for _ in 0..<40 { try await store.actions.dispatch(.add(1)).receipt() }
        let told = try await first(of: events) { event in
            switch event {
            case .note(.sourcePassedOver), .note(.snapshotTaken): true
            default: false
            }
        }
        guard case .note(.sourcePassedOver(let place, _, let name, nil, let reason)) = told else {
            Issue.record("\(told)")
            return
        }
        #expect(name == Name("forgetful") && place.store.state == Name(TallyState.name))
        #expect(reason.contains("no longer has"))
        _ = try await first(of: events) {
            if case .note(.snapshotTaken) = $0 { true } else { false }
        }
        withExtendedLifetime(kept) {}
        await forgetful.close()
        await other.close()
        await sequencer.stop()
    }
}
