import ConfluxVocabulary
import Testing

@testable import ConfluxProtocol

/// A store that nobody hosts keeps its state, and keeps no entries of others in the log (rule 21).
struct AsideScenarios {
    /// A cluster in which `beta` hosted `list/old`, which has an entry after its initial state, and has
    /// left. Since then, another store got so many entries that the log could be truncated.
    private func abandoned(
        isKeepingSlow: Bool = false, adjusting adjust: (inout SequencerSettings) -> Void = { _ in }
    ) throws -> Cluster {
        var cluster = Cluster.eager(adjusting: adjust)
        cluster.isKeepingSlow = isKeepingSlow
        cluster.open("list/old", on: 2)
        cluster.dispatch(["one", "two"], to: "list/old", from: 2)
        cluster.removeNode(2)
        for _ in 0..<14 { cluster.pass(.seconds(1)) }
        for round in 0..<4 {
            cluster.grow("list/shared", by: 20_000, from: 1, text: "\(round)")
            // This is for the whole state, so for the abandoned store, too.
            if round == 1 { cluster.dispatch(["all"], to: "list/*", from: 1) }
            try cluster.saveCheckpoint()
            cluster.pass(.seconds(2))
        }
        return cluster
    }

    @Test func `an abandoned store does not retain the log, and loses nothing`() throws {
        var cluster = try abandoned()
        #expect(cluster.disk.asides.count == 1)
        let name = try #require(StoreName("list/old"))
        let life = try #require(cluster.sequencer?.directory.store(name)?.life)
        #expect(cluster.disk.floor > life.next.next, "the log is cut behind the store's entries")
        cluster.addNode(3, named: "gamma", store: "list/old")
        cluster.pass(.seconds(2))
        #expect(cluster.nodes[3]?.texts(of: "list/old") == ["one", "two", "all"])
        cluster.expectBounds()
    }

    @Test func `opening a store without entries kept aside reads no old entries`()
        throws
    {
        var cluster = Cluster.eager()
        cluster.open("list/old", on: 2)
        cluster.removeNode(2)
        for _ in 0..<14 { cluster.pass(.seconds(1)) }
        let name = try #require(StoreName("list/old"))
        let lost = cluster.disk.last.next
        for round in 0..<4 {
            cluster.grow("list/shared", by: 20_000, from: 1, text: "\(round)")
        }
        // The entry concerns the store, and is newer than all entries that the log could discard.
        cluster.dispatch(["all"], to: "list/*", from: 1)
        cluster.pass(.seconds(2))
        let kept = try #require(cluster.sequencer?.directory.store(name)?.aside)
        #expect(kept.reference == nil && kept.through > lost && cluster.disk.floor < lost)
        cluster.damaged = lost...lost
        cluster.addNode(3, named: "gamma", store: "list/old")
        cluster.pass(.seconds(2))
        #expect(cluster.nodes[3]?.texts(of: "list/old") == ["all"])
        #expect(cluster.notes.allSatisfy { if case .damaged = $0 { false } else { true } })
    }

    @Test func `entries kept aside outlive the sequencer`() throws {
        var cluster = try abandoned()
        cluster.restartFromDisk()
        cluster.addNode(3, named: "gamma", store: "list/old")
        cluster.pass(.seconds(2))
        #expect(cluster.nodes[3]?.texts(of: "list/old") == ["one", "two", "all"])
    }

    @Test func `above the bound an abandoned store is frozen, and opening it thaws it`() throws {
        var cluster = try abandoned { $0.asideBytesMax = 1 }
        let name = try #require(StoreName("list/old"))
        #expect(cluster.sequencer?.directory.store(name)?.freezing?.reason == .abandoned)
        // While the store is frozen, actions for the whole state don't reach it.
        cluster.dispatch(["left out"], to: "list/*", from: 1)
        cluster.addNode(3, named: "gamma", store: "list/old")
        cluster.pass(.seconds(2))
        #expect(cluster.sequencer?.directory.store(name)?.isFrozen == false)
        cluster.dispatch(["again"], to: "list/old", from: 3)
        #expect(cluster.nodes[3]?.texts(of: "list/old") == ["one", "two", "again"])
    }

    @Test
    func `what nobody hosts is frozen before it takes half of a small log, though that has room`()
        throws
    {
        var cluster = Cluster.eager()
        cluster.handle(.logSpace(LogSpace(usedBytes: 0, of: 600_000)))
        for number in 2...4 { cluster.open("list/\(number)", on: 2) }
        cluster.removeNode(2)
        for _ in 0..<14 { cluster.pass(.seconds(1)) }
        for round in 0..<10 {
            cluster.grow("list/*", by: 10_000, from: 1, text: "\(round)")
            cluster.pass(.seconds(2))
        }
        // Each entry would be kept aside three times.
        for number in 2...4 {
            let name = try #require(StoreName("list/\(number)"))
            let store = try #require(cluster.sequencer?.directory.store(name))
            #expect(store.freezing?.reason == .abandoned)
        }
        let shared = try #require(StoreName("list/shared"))
        #expect(cluster.sequencer?.directory.store(shared)?.isFrozen == false)
        // Nothing else froze them: the log was never scarce.
        #expect(cluster.sequencer?.space.room == .ample)
    }

    @Test func `a store that is opened while its entries are being kept aside is not frozen`()
        throws
    {
        var cluster = try abandoned(isKeepingSlow: true) { $0.asideBytesMax = 1 }
        #expect(!cluster.waitingKeeps.isEmpty)
        cluster.addNode(3, named: "gamma", store: "list/old")
        cluster.finishKeeping()
        cluster.pass(.seconds(2))
        #expect(cluster.notes.allSatisfy { if case .frozen = $0 { false } else { true } })
        cluster.dispatch(["again"], to: "list/old", from: 3)
        #expect(cluster.nodes[3]?.texts(of: "list/old") == ["one", "two", "all", "again"])
    }

    @Test func `a store that is opened while it is being frozen is thawed`() throws {
        var cluster = try abandoned(isKeepingSlow: true) { $0.asideBytesMax = 1 }
        cluster.addNode(3, named: "gamma", store: "list/shared")
        cluster.isDiskSlow = true
        cluster.finishKeeping()
        cluster.open("list/old", on: 3)
        cluster.finishAppends()
        cluster.pass(.seconds(2))
        #expect(cluster.notes.contains { if case .frozen = $0 { true } else { false } })
        let name = try #require(StoreName("list/old"))
        #expect(cluster.sequencer?.directory.store(name)?.isFrozen == false)
    }

    @Test func `no store counts as abandoned before its node could say hello`() throws {
        var cluster = Cluster.eager { $0.asideBytesMax = 1 }
        cluster.open("list/old", on: 2)
        cluster.dispatch(["one"], to: "list/old", from: 2)
        // The sequencer gets no snapshot of the store, so the store needs the log.
        cluster.nodes[2]?.isVotingLate = true
        for round in 0..<4 {
            cluster.grow("list/shared", by: 20_000, from: 1, text: "\(round)")
            try cluster.saveCheckpoint()
        }
        let sleeper = cluster.nodes[2]
        cluster.nodes[2] = nil
        cluster.restartFromDisk()
        cluster.pass(.seconds(3))
        #expect(cluster.disk.asides.isEmpty)
        cluster.nodes[2] = sleeper
        cluster.reconnect(2)
        cluster.pass(.seconds(2))
        cluster.dispatch(["two"], to: "list/old", from: 2)
        #expect(cluster.nodes[2]?.texts(of: "list/old") == ["one", "two"])
    }

    @Test func `a snapshot replaces entries that are kept aside`() throws {
        var cluster = try abandoned()
        cluster.addNode(3, named: "gamma", store: "list/old")
        cluster.pass(.seconds(2))
        for _ in 0..<3 { cluster.grow("list/old", by: 200, from: 3) }
        cluster.pass(.seconds(2))
        #expect(cluster.disk.asides.isEmpty)
        let name = try #require(StoreName("list/old"))
        #expect(cluster.sequencer?.directory.store(name)?.aside == nil)
    }

    @Test func `an entry that is kept aside can be skipped`() throws {
        var cluster = try abandoned()
        let old = try #require(StoreName("list/old"))
        cluster.addNode(3, named: "gamma")
        cluster.nodes[3]?.poisons = ["two"]
        cluster.open("list/old", on: 3)
        cluster.pass(.seconds(1))
        let stopped = try #require(cluster.nodes[3]?.replicas[old]?.stoppedAt)
        #expect(stopped < cluster.disk.floor)
        let request = cluster.nodes[3]?.skip(stopped, .store(old)) ?? 0
        cluster.flushInputs(of: 3)
        cluster.pass(.seconds(1))
        guard case .due? = cluster.nodes[3]?.reached[request] else {
            Issue.record("it was refused")
            return
        }
        #expect(cluster.nodes[3]?.texts(of: "list/old") == ["one", "all"])
        // A node that joins later also skips the entry, even after a restart.
        try cluster.saveCheckpoint()
        cluster.restartFromDisk()
        cluster.addNode(4, named: "delta")
        cluster.nodes[4]?.poisons = ["two"]
        cluster.open("list/old", on: 4)
        cluster.pass(.seconds(2))
        for node in [3, 4] {
            #expect(cluster.nodes[node]?.texts(of: "list/old") == ["one", "all"])
        }
        cluster.expectBounds()
    }

    @Test func `an opener knows every digest point after the entries that are kept aside`() throws {
        var cluster = try abandoned()
        let old = try #require(StoreName("list/old"))
        func fillLog() throws {
            for round in 0..<12 {
                cluster.grow("list/shared", by: 20_000, from: 1, text: "\(round)")
                try cluster.saveCheckpoint()
                cluster.pass(.seconds(2))
            }
        }
        cluster.grow("list/*", by: 100, from: 1)
        try fillLog()
        // A node passes over an entry. Then there is a point, at which nobody votes in time.
        cluster.addNode(3, named: "gamma")
        cluster.nodes[3]?.poisons = ["two"]
        cluster.nodes[3]?.isVotingLate = true
        cluster.open("list/old", on: 3)
        cluster.pass(.seconds(1))
        let stopped = try #require(cluster.nodes[3]?.replicas[old]?.stoppedAt)
        _ = cluster.nodes[3]?.skip(stopped, .store(old))
        cluster.flushInputs(of: 3)
        cluster.pass(.seconds(20))
        let point = try #require(cluster.points(of: "list/old").last)
        cluster.handle(.logSpace(.scarce))
        try fillLog()
        cluster.addNode(4, named: "delta", store: "list/old")
        cluster.pass(.seconds(2))
        cluster.grow("list/old", by: 200, from: 4)
        #expect(try #require(cluster.points(of: "list/old").last) > point)
        // Now it votes. Both have refused the same.
        for vote in cluster.nodes[3]?.heldVotes ?? [] {
            cluster.input(.reported(.digested(vote), resets: 0), to: 3)
        }
        cluster.run()
        #expect(cluster.divergences.isEmpty)
        #expect(cluster.nodes[3]?.texts(of: "list/old") == cluster.nodes[4]?.texts(of: "list/old"))
    }
}
