import ConfluxVocabulary
import Testing

@testable import ConfluxProtocol

/// What a mistaken or hostile node can't do to the sequencer and to the others.
struct HostileScenarios {
    private func started(
        _ adjust: (inout SequencerSettings) -> Void = { _ in }
    ) -> Cluster {
        var cluster = Cluster()
        adjust(&cluster.settings)
        cluster.startSequencer()
        cluster.addNode(1, named: "alpha", store: "list")
        return cluster
    }

    @Test func `a batch larger than the window is rejected, and its node goes on`() {
        var cluster = started { settings in
            settings.payloadBytesMax = 100
            settings.batchBytesMax = 8_192
            settings.windowBytes = 8_192
        }
        let large = String(repeating: "x", count: 20_000)
        #expect(cluster.nodes[1]?.machine.canSubmit(bytes: large.utf8.count) == true)
        cluster.dispatch([large], to: "list", from: 1)
        cluster.pass(.seconds(2))
        guard case .rejected(.payloadTooLarge, _) = cluster.nodes[1]?.outcomes[1] else {
            Issue.record("not rejected: \(cluster.nodes[1]?.outcomes ?? [:])")
            return
        }
        cluster.dispatch(["after"], to: "list", from: 1)
        #expect(cluster.nodes[1]?.texts(of: "list") == ["after"])
    }
}
