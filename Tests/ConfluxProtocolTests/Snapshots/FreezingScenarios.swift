import ConfluxVocabulary
import Testing

@testable import ConfluxProtocol

/// Frozen stores (rule 21), and skipped entries (rule 23).
struct FreezingScenarios {
    private let list = StoreName("list")!

    private func freeze(_ isFrozen: Bool, by node: Int, in cluster: inout Cluster) -> UInt64 {
        let request = cluster.nodes[node]?.freeze("list", isFrozen) ?? 0
        cluster.flushInputs(of: node)
        return request
    }

    private func skip(
        _ sequence: SequenceNumber, by node: Int, in cluster: inout Cluster
    ) -> ReachOutcome? {
        let request = cluster.nodes[node]?.skip(sequence, .store(list)) ?? 0
        cluster.flushInputs(of: node)
        cluster.run()
        return cluster.nodes[node]?.reached[request]
    }

    private func isRejected(_ counter: UInt64, of node: Int, in cluster: Cluster) -> Bool {
        guard case .rejected(.frozen, _)? = cluster.nodes[node]?.outcomes[counter] else {
            return false
        }
        return true
    }

    @Test func `no entry reaches a frozen store`() {
        var cluster = Cluster.eager()
        let request = freeze(true, by: 1, in: &cluster)
        cluster.run()
        #expect(cluster.nodes[1]?.reached[request] != nil)
        cluster.dispatch(["list/shared:a"], to: "list/shared", from: 2)
        #expect(isRejected(1, of: 2, in: cluster))
        // An action for the whole state leaves it out.
        cluster.dispatch(["state:list:b"], to: "list/*", from: 1)
        _ = freeze(false, by: 2, in: &cluster)
        cluster.run()
        cluster.dispatch(["list/shared:c"], to: "list/shared", from: 2)
        for node in [1, 2] { #expect(cluster.nodes[node]?.texts(of: "list").last == "c") }
        cluster.expectAgreement()
        cluster.addNode(3, store: "list")
        cluster.expectAgreement()
    }

    @Test func `a freeze takes effect when it is admitted`() {
        var cluster = Cluster.eager()
        cluster.isDiskSlow = true
        _ = freeze(true, by: 1, in: &cluster)
        cluster.run()
        cluster.submit(["a"], to: "list/shared", from: 1)
        cluster.run()
        cluster.finishAppends()
        #expect(isRejected(1, of: 1, in: cluster))
        #expect(cluster.nodes[1]?.texts(of: "list") == [])
    }

    @Test func `a frozen store is not digested, and is still frozen after a restart`() throws {
        var cluster = Cluster.eager { $0.digestBytesMin = 1_000 }
        cluster.grow("list/*", by: 900, from: 1)
        _ = freeze(true, by: 1, in: &cluster)
        cluster.run()
        cluster.grow("list/*", by: 5_000, from: 1)
        #expect(try cluster.points(of: "list").isEmpty)
        try cluster.disk.expectCheckpointsToFit()
        try cluster.saveCheckpoint()
        cluster.restartFromDisk()
        #expect(cluster.sequencer?.directory.store(list)?.isFrozen == true)
        _ = freeze(false, by: 2, in: &cluster)
        cluster.run()
        // Entries that left it out don't count as its load.
        #expect(cluster.sequencer?.directory.load(of: list) ?? 0 < 1_000)
        cluster.grow("list/*", by: 900, from: 1)
        #expect(try cluster.points(of: "list").count == 1)
        cluster.expectAgreement()
    }

    @Test
    func `a life is dropped once its pending freeze is in the log, and the next life is thawed`()
        throws
    {
        var cluster = Cluster.eager(nodes: ["alpha"])
        cluster.addNode(2, named: "beta")
        let life = try #require(cluster.base(of: "list"))
        cluster.isDiskSlow = true
        cluster.dispatch(["a"], to: "list/shared", from: 1)
        _ = freeze(true, by: 1, in: &cluster)
        let dropped = cluster.drop("list", by: 1)
        cluster.run()
        cluster.finishAppends()
        // The node asks again.
        cluster.pass(.seconds(3))
        #expect(cluster.nodes[1]?.reached[dropped] == .due(cluster.disk.last))
        cluster.open("list", on: 2)
        cluster.dispatch(["b"], to: "list/shared", from: 2)
        #expect(try #require(cluster.base(of: "list")) > life)
        #expect(!isRejected(1, of: 2, in: cluster))
    }

    @Test func `a store whose replicas never agree is frozen`() {
        var cluster = Cluster.eager { $0.unconfirmedBytesMax = 1_000 }
        cluster.nodes[2]?.replicas[list]?.texts.append("wrong")
        for _ in 1...6 { cluster.grow("list/*", by: 900, from: 1) }
        #expect(cluster.sequencer?.directory.store(list)?.freezing?.reason == .unconfirmed)
    }

    @Test func `a scarce log keeps aside what an unsaved store needs, and freezes the store`()
        throws
    {
        var cluster = Cluster.eager {
            $0.snapshotBytesMax = 1
            $0.asideBytesMax = 3_000
        }
        func grow() throws {
            cluster.grow("list/*", by: 2_000, from: 1)
            try cluster.saveCheckpoint()
            cluster.pass(.seconds(12))
        }
        for _ in 1...4 { try grow() }
        let floor = cluster.disk.floor
        #expect(floor <= (cluster.base(of: "list") ?? .zero).next, "the log is kept")
        cluster.handle(.logSpace(.scarce))
        for _ in 1...4 { try grow() }
        #expect(cluster.sequencer?.directory.store(list)?.freezing?.reason == .unconfirmed)
        #expect(cluster.disk.floor > floor && cluster.disk.asides[list] != nil)
        // Nothing is lost: a node that opens the store loads what was kept aside.
        cluster.addNode(3, store: "list")
        cluster.pass(.seconds(2))
        #expect(cluster.nodes[3]?.texts(of: "list") == cluster.nodes[1]?.texts(of: "list"))
    }

    @Test func `a nearly full log freezes every store that nobody hosts`() throws {
        var cluster = Cluster.eager()
        cluster.open("list/old", on: 2)
        cluster.dispatch(["one"], to: "list/old", from: 2)
        cluster.removeNode(2)
        for _ in 0..<14 { cluster.pass(.seconds(1)) }
        let old = try #require(StoreName("list/old"))
        cluster.handle(.logSpace(.scarce))
        cluster.pass(.seconds(2))
        #expect(cluster.sequencer?.directory.store(old)?.isFrozen == false)
        cluster.handle(.logSpace(.nearlyFull))
        cluster.pass(.seconds(2))
        #expect(cluster.sequencer?.directory.store(old)?.freezing?.reason == .abandoned)
        #expect(cluster.sequencer?.directory.store(list)?.isFrozen == false)
        cluster.handle(.logSpace(.ample))
        cluster.addNode(3, named: "gamma", store: "list/old")
        cluster.pass(.seconds(2))
        cluster.dispatch(["two"], to: "list/old", from: 3)
        #expect(cluster.nodes[3]?.texts(of: "list/old") == ["one", "two"])
    }

    @Test
    func `a store that nobody hosts is frozen before its entries exceed what can be kept aside`()
        throws
    {
        var cluster = Cluster.eager {
            $0.retention.bytesMax = 1 << 30
            $0.asideBytesMax = 1_000
            $0.unconfirmedBytesMax = 5_000
        }
        cluster.open("list/old", on: 2)
        cluster.removeNode(2)
        for _ in 0..<14 { cluster.pass(.seconds(1)) }
        let old = try #require(StoreName("list/old"))
        cluster.grow("list/old", by: 3_000, from: 1)
        cluster.pass(.seconds(2))
        #expect(cluster.sequencer?.directory.store(old)?.isFrozen == false)
        cluster.grow("list/old", by: 3_000, from: 1)
        cluster.pass(.seconds(2))
        #expect(cluster.sequencer?.directory.store(old)?.freezing?.reason == .abandoned)
    }

    @Test func `a store whose state nobody reports does not silently retain the log`() {
        var cluster = Cluster.eager { $0.unconfirmedBytesMax = 1_000 }
        for node in [1, 2] { cluster.nodes[node]?.isVotingLate = true }
        for _ in 1...6 {
            cluster.grow("list/*", by: 900, from: 1)
            cluster.pass(cluster.settings.votePatience + .seconds(1))
        }
        let failures = cluster.notes.count {
            if case .snapshotFailed(_, let text) = $0 {
                text.contains("reported its state in time")
            } else {
                false
            }
        }
        #expect(failures > 0)
        #expect(cluster.sequencer?.directory.store(list)?.freezing?.reason == .unconfirmed)
    }

    @Test
    func `an entry that a replica applied is not skipped, and stopped replicas get its state`()
        throws
    {
        var cluster = Cluster.eager { $0.digestBytesMin = 1_000 }
        cluster.nodes[2]?.poisons = ["bad"]
        cluster.dispatch(["a"], to: "list/*", from: 1)
        cluster.dispatch(["bad"], to: "list/*", from: 1)
        let stopped = try #require(cluster.nodes[2]?.replicas[list]?.stoppedAt)
        cluster.dispatch(["b"], to: "list/*", from: 1)
        #expect(cluster.nodes[2]?.texts(of: "list") == ["a"])
        cluster.pass(.seconds(1))
        guard case .failed(.passed, _)? = skip(stopped, by: 2, in: &cluster) else {
            Issue.record("it was not refused")
            return
        }
        cluster.pass(.seconds(1))
        #expect(cluster.nodes[2]?.texts(of: "list") == ["a", "bad", "b"])
        cluster.expectAgreement()
        cluster.expectBounds()
    }

    @Test func `a stopped replica of a frozen store gets the state once the store is thawed`()
        throws
    {
        var cluster = Cluster.eager { $0.digestBytesMin = 1_000 }
        cluster.nodes[2]?.poisons = ["bad"]
        for text in ["a", "bad", "b"] { cluster.dispatch([text], to: "list/*", from: 1) }
        let stopped = try #require(cluster.nodes[2]?.replicas[list]?.stoppedAt)
        _ = freeze(true, by: 1, in: &cluster)
        cluster.pass(.seconds(1))
        guard case .failed(.passed, let text)? = skip(stopped, by: 2, in: &cluster) else {
            Issue.record("it was not refused")
            return
        }
        #expect(text.hasSuffix("get its state instead, once the store is thawed"))
        cluster.pass(.seconds(1))
        #expect(cluster.nodes[2]?.texts(of: "list") == ["a"])
        _ = freeze(false, by: 1, in: &cluster)
        cluster.pass(.seconds(1))
        #expect(cluster.nodes[2]?.texts(of: "list") == ["a", "bad", "b"])
    }

    @Test func `an entry at which all replicas stopped is skipped, and for later openers, too`()
        throws
    {
        var cluster = Cluster.eager { $0.digestBytesMin = 1_000 }
        for node in [1, 2] { cluster.nodes[node]?.poisons = ["bad"] }
        cluster.dispatch(["a"], to: "list/*", from: 1)
        cluster.dispatch(["bad"], to: "list/*", from: 1)
        cluster.dispatch(["b"], to: "list/*", from: 1)
        let stopped = try #require(cluster.nodes[2]?.replicas[list]?.stoppedAt)
        cluster.pass(.seconds(1))
        guard case .due? = skip(stopped, by: 1, in: &cluster) else {
            Issue.record("it was refused")
            return
        }
        cluster.pass(.seconds(1))
        cluster.addNode(3, named: "gamma")
        cluster.nodes[3]?.poisons = ["bad"]
        cluster.open("list", on: 3)
        cluster.dispatch(["c"], to: "list/*", from: 3)
        for node in [1, 2, 3] {
            #expect(cluster.nodes[node]?.texts(of: "list") == ["a", "b", "c"])
        }
        // All digests are equal, and cover the skipped entry as a refusal.
        cluster.grow("list/*", by: 2_000, from: 1)
        #expect(cluster.taken.count == 1 && cluster.divergences.isEmpty)
        try cluster.disk.expectCheckpointsToFit()
    }

    @Test func `an attempt to skip an applied entry costs one snapshot that contains it`()
        throws
    {
        var cluster = Cluster.eager()
        cluster.dispatch(["a"], to: "list/*", from: 1)
        cluster.pass(.seconds(1))
        let entry = cluster.disk.last
        // A node that stopped there may be dead, and would continue with this entry after its restart.
        #expect(isRefused(entry, in: &cluster))
        cluster.pass(.seconds(1))
        #expect(cluster.taken.count == 1)
        let last = cluster.disk.last
        #expect(last == entry.next)
        for number in [1, entry.rawValue, entry.rawValue, last.rawValue, last.rawValue + 9] {
            #expect(isRefused(SequenceNumber(number), in: &cluster))
        }
        cluster.pass(.seconds(1))
        #expect(cluster.disk.last == last && cluster.taken.count == 1)
    }

    private func isRefused(_ sequence: SequenceNumber, in cluster: inout Cluster) -> Bool {
        guard case .failed(.passed, _)? = skip(sequence, by: 1, in: &cluster) else { return false }
        return true
    }
}
