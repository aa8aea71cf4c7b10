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

    @Test func `a batch that would fill a commit with its pieces is rejected whole`() {
        var cluster = started()
        let long = String(repeating: "x", count: 64)
        var texts: [String] = []
        for index in 0..<2_000 {
            let instance = String(String(1_000 + index % 250).reversed()) + long.dropFirst(4)
            texts += ["good", "\(long)/\(instance):bad"]
        }
        cluster.dispatch(texts, to: "list", from: 1)
        cluster.pass(.seconds(1))
        #expect(cluster.nodes[1]?.outcomes.count == texts.count)
        let count = cluster.nodes[1]?.texts(of: "list").count
        cluster.dispatch(["after"], to: "list", from: 1)
        #expect(cluster.nodes[1]?.texts(of: "list").count == (count ?? 0) + 1)
        #expect(cluster.nodes[1]?.texts(of: "list").last == "after")
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

    @Test func `a node that fetches without end leaves room for the fetches of others`() throws {
        var cluster = started()
        cluster.addNode(2, named: "beta", store: "list")
        var machine = try #require(cluster.sequencer)
        func reads(of connection: UInt64, requests: Int) -> Int {
            var effects: [SequencerEffect] = []
            for request in 0..<requests {
                let fetch = Fetch(
                    request: UInt64(request), from: SequenceNumber(1), limitBytes: 1)
                machine.handle(
                    .received(
                        .fetch(fetch), epoch: cluster.disk.epoch,
                        from: ConnectionID(rawValue: connection)),
                    at: cluster.moment, into: &effects)
            }
            return effects.count { if case .readFetch = $0 { true } else { false } }
        }
        #expect(reads(of: 1, requests: 10_000) < cluster.settings.fetchesMax)
        #expect(reads(of: 2, requests: 1) == 1)
    }
}
