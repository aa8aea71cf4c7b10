import ConfluxVocabulary
import Testing

@testable import ConfluxProtocol

/// Entries of the log that can't be read: nodes that need them are told, and all others continue.
struct DamageScenarios {
    /// The damage that node 2 was told of.
    private func damages(of node: Int, in cluster: Cluster) -> [Damage] {
        (cluster.nodes[node]?.events ?? []).compactMap { event in
            if case .damaged(let damage) = event { damage } else { nil }
        }
    }

    @Test
    func `a node that reaches damage continues from a later snapshot, and nobody else notices`() {
        var cluster = Cluster.eager(nodes: ["alpha", "beta", "gamma"])
        let lost = cluster.disk.last.next
        cluster.nodes[2]?.feedDrops = 1
        cluster.damaged = lost...lost
        for text in ["a", "b"] { cluster.dispatch([text], to: "list/*", from: 1) }
        #expect(cluster.nodes[1]?.outcomes.count == 2)
        cluster.pass(.seconds(40))
        #expect(cluster.ends.isEmpty)
        #expect(damages(of: 2, in: cluster).map(\.first) == [lost])
        #expect(damages(of: 1, in: cluster).isEmpty && damages(of: 3, in: cluster).isEmpty)
        cluster.dispatch(["c"], to: "list/*", from: 2)
        cluster.expectAgreement()
        #expect(cluster.nodes[2]?.texts(of: "list") == cluster.nodes[1]?.texts(of: "list"))
        let notes = cluster.notes.count { if case .damaged = $0 { true } else { false } }
        #expect(notes == 1)
        cluster.expectBounds()
    }

    @Test func `a store that starts before damage can't be opened, and the damage is reported`()
        throws
    {
        var cluster = Cluster.twoNodes()
        cluster.open("other", on: 1)
        let damaged = cluster.disk.last.next
        cluster.dispatch(["a"], to: "list/*", from: 1)
        for node in 1...2 { cluster.disconnect(node) }
        for node in 1...2 { cluster.nodes[node] = nil }
        cluster.pass(cluster.settings.silenceMax * 2)
        cluster.damaged = damaged...damaged
        cluster.addNode(3, named: "gamma", store: "list")
        cluster.open("other", on: 3)
        cluster.pass(.seconds(3))
        let outcomes = (cluster.nodes[3]?.opened ?? [:]).values
        let failures = outcomes.compactMap { outcome -> String? in
            guard case .failed(.damaged, let message) = outcome else { return nil }
            return message
        }
        #expect(failures.count == 1 && outcomes.count == 2)
        #expect(failures.first?.contains("entries \(damaged) to \(damaged)") == true)
        #expect(damages(of: 3, in: cluster).map(\.first) == [damaged])
        // The damaged entries are not requested again, and stores that don't need them work on.
        cluster.published.removeAll()
        cluster.pass(.seconds(20))
        let answers = cluster.published.count { effect in
            if case .send(.entries, _) = effect { true } else { false }
        }
        #expect(answers == 0)
        cluster.dispatch(["b"], to: "other/*", from: 3)
        #expect(cluster.nodes[3]?.texts(of: "other") == ["b"])
        #expect(cluster.ends.isEmpty)
    }
}
