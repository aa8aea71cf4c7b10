import ConfluxVocabulary
import Testing

@testable import ConfluxProtocol

/// Stores that get a newer schema version (rule 17).
struct UpgradeScenarios {
    private let list = StoreName("list")!

    private func add(_ node: Int, version: UInt32, to cluster: inout Cluster) {
        cluster.addNode(node, named: "node\(node)")
        cluster.nodes[node]?.schemaVersion = version
        cluster.open("list", on: node)
    }

    private func upgrades(in cluster: Cluster) throws -> [SequenceNumber] {
        try cluster.events().compactMap { event, _ in
            if case .upgraded(_, _, 2, let base) = event { base } else { nil }
        }
    }

    @Test func `the first newer opener upgrades a store, and older nodes stop or are refused`()
        throws
    {
        var cluster = Cluster.eager()
        cluster.grow("list/*", by: 200, from: 1)
        cluster.dispatch(["a"], to: "list/*", from: 1)
        let base = try #require(cluster.base(of: "list"))
        add(3, version: 2, to: &cluster)
        #expect(try upgrades(in: cluster) == [base])
        #expect(cluster.nodes[1]?.replicas[list]?.stoppedAt != nil)
        #expect(cluster.nodes[3]?.texts(of: "list").dropFirst() == ["migrated", "a"])
        add(4, version: 1, to: &cluster)
        guard case .failed(.schemaVersion, _)? = cluster.nodes[4]?.opened.values.first else {
            Issue.record("\(String(describing: cluster.nodes[4]?.opened))")
            return
        }
        cluster.expectBounds()
    }

    @Test func `two newer nodes start from one snapshot, whatever their versions are`() throws {
        var cluster = Cluster.eager { $0.digestBytesMin = 1_000 }
        cluster.dispatch(["a"], to: "list/*", from: 1)
        let life = try #require(cluster.base(of: "list"))
        add(3, version: 2, to: &cluster)
        cluster.dispatch(["b"], to: "list/*", from: 3)
        cluster.restartFromDisk()
        add(4, version: 2, to: &cluster)
        cluster.dispatch(["c"], to: "list/*", from: 4)
        #expect(try upgrades(in: cluster) == [life])
        #expect(cluster.nodes[3]?.texts(of: "list") == ["migrated", "a", "b", "c"])
        #expect(cluster.nodes[4]?.texts(of: "list") == cluster.nodes[3]?.texts(of: "list"))
        // Only the votes of the newer version count.
        cluster.grow("list/*", by: 2_000, from: 4)
        #expect(try #require(cluster.base(of: "list")) > life)
        #expect(cluster.divergences.isEmpty)
        add(5, version: 2, to: &cluster)
        #expect(cluster.nodes[5]?.texts(of: "list") == cluster.nodes[3]?.texts(of: "list"))
    }

    @Test func `an upgrade waits until a snapshot is saved, and starts from it`() throws {
        var cluster = Cluster.eager()
        let life = try #require(cluster.base(of: "list"))
        cluster.isSavingSlow = true
        cluster.grow("list/*", by: 200, from: 1)
        #expect(cluster.waitingSaves.count == 1)
        add(3, version: 2, to: &cluster)
        #expect(try upgrades(in: cluster).isEmpty)
        cluster.finishSaves()
        // The node got no answer, and asks again.
        for _ in 0..<4 { cluster.pass(.seconds(1)) }
        let base = try #require(cluster.base(of: "list"))
        #expect(base > life)
        #expect(try upgrades(in: cluster) == [base])
        cluster.restartFromDisk()
        #expect(cluster.base(of: "list") == base)
        add(4, version: 2, to: &cluster)
        #expect(cluster.nodes[4]?.texts(of: "list") == cluster.nodes[3]?.texts(of: "list"))
    }

    @Test func `several nodes open at once, and one entry upgrades the store`() throws {
        var cluster = Cluster.eager()
        cluster.isDiskSlow = true
        for node in [3, 4] { cluster.addNode(node, named: "node\(node)") }
        cluster.finishAppends()
        cluster.isDiskSlow = true
        for node in [3, 4] {
            cluster.nodes[node]?.schemaVersion = 2
            cluster.open("list", on: node)
        }
        cluster.finishAppends()
        cluster.pass(.seconds(3))
        #expect(try upgrades(in: cluster).count == 1)
        #expect(cluster.nodes[3]?.texts(of: "list") == ["migrated"])
        #expect(cluster.nodes[4]?.texts(of: "list") == ["migrated"])
    }
}
