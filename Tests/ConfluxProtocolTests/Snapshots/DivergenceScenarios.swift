import ConfluxVocabulary
import Testing

@testable import ConfluxProtocol

/// The consequences of votes (rules 18 and 22).
struct DivergenceScenarios {
    private let list = StoreName("list")!

    private func diverge(_ node: Int, in cluster: inout Cluster) {
        cluster.nodes[node]?.replicas[list]?.texts.append("wrong")
    }

    private func vote(_ node: Int, in cluster: inout Cluster) {
        cluster.nodes[node]?.isVotingLate = false
        for vote in cluster.nodes[node]?.heldVotes ?? [] {
            cluster.input(.reported(.digested(vote), resets: 0), to: node)
        }
        cluster.nodes[node]?.heldVotes = []
        cluster.run()
    }

    @Test func `the vote of the only replica counts`() {
        var cluster = Cluster.eager(nodes: ["alpha"])
        cluster.grow("list/*", by: 200, from: 1)
        #expect(cluster.taken.count == 1)
        #expect(cluster.divergences.isEmpty)
    }

    @Test func `neither of two differing replicas reloads, and both are told`() {
        var cluster = Cluster.eager()
        diverge(2, in: &cluster)
        cluster.grow("list/*", by: 200, from: 1)
        #expect(cluster.divergences.first?.isMajority == false)
        #expect(cluster.divergences.last?.path == "/0")
        for node in [1, 2] {
            #expect(cluster.nodes[node]?.compared.map(\.divergence.mustReload) == [false])
        }
        #expect(cluster.nodes[2]?.texts(of: "list").count == 2)
        // The snapshot is only there to compare states with it.
        #expect(cluster.disk.snapshots.count == 1 && cluster.disk.index.isEmpty)
        #expect(cluster.base(of: "list") == cluster.nodes[1]?.replicas[list]?.life)
        #expect(cluster.taken.isEmpty)
    }

    @Test func `a vote lost with its connection counts after the next welcome`() throws {
        var cluster = Cluster.eager()
        diverge(1, in: &cluster)
        cluster.nodes[2]?.isVotingLate = true
        cluster.grow("list/*", by: 200, from: 1)
        let vote = try #require(cluster.nodes[2]?.heldVotes.first)
        cluster.nodes[2]?.heldVotes = []
        cluster.input(.reported(.digested(vote), resets: 0), to: 2)
        cluster.reconnect(2)
        cluster.pass(cluster.settings.votePatience * 2)
        // Neither state is confirmed. Without the repeated vote, the wrong state would be.
        #expect(cluster.divergences.first?.isMajority == false)
        #expect(cluster.taken.isEmpty)
        // The repeated vote still counts once.
        let round = cluster.sequencer?.directory.life(of: list)?.work.votes.round
        cluster.reconnect(2)
        cluster.pass(.seconds(1))
        let again = cluster.sequencer?.directory.life(of: list)?.work.votes.round
        #expect(round?.place == again?.place && again?.votes.count == 2)
        #expect(cluster.divergences.count { $0.path == nil } == 1)
    }

    @Test func `a vote for a point of another term is not repeated`() throws {
        var cluster = Cluster.eager()
        cluster.grow("list/*", by: 200, from: 1)
        cluster.restartSequencer()
        cluster.pass(.seconds(1))
        func votes() -> Int? {
            cluster.nodes[2]?.sent.count {
                if case .digest(.vote) = $0 { true } else { false }
            }
        }
        #expect(votes() == 1)
        cluster.reconnect(2)
        cluster.pass(.seconds(1))
        #expect(votes() == 1)
    }

    @Test func `the differing one of three replicas reports the place, and reloads`() {
        var cluster = Cluster.eager(nodes: ["alpha", "beta", "gamma"])
        diverge(1, in: &cluster)
        cluster.grow("list/*", by: 200, from: 1)
        #expect(cluster.divergences.last?.path == "/0")
        #expect(cluster.nodes[1]?.compared.map(\.divergence.mustReload) == [true])
        #expect(cluster.nodes[2]?.compared.map(\.divergence.mustReload) == [false])
        #expect(cluster.nodes[1]?.texts(of: "list").contains("wrong") == false)
        cluster.addNode(4, store: "list")
        cluster.expectAgreement()
        cluster.grow("list/*", by: 300, from: 2)
        #expect(cluster.notes.contains { if case .converged = $0 { true } else { false } })
        #expect(cluster.sequencer?.directory.life(of: list)?.work.votes.divergence == nil)
        cluster.expectBounds()
    }

    @Test func `a late vote is judged by the others' votes`() {
        var cluster = Cluster.eager(nodes: ["alpha", "beta", "gamma"])
        diverge(3, in: &cluster)
        cluster.nodes[3]?.isVotingLate = true
        cluster.grow("list/*", by: 200, from: 1)
        #expect(cluster.taken.isEmpty)
        cluster.pass(cluster.settings.votePatience)
        #expect(cluster.taken.count == 1)
        #expect(cluster.divergences.isEmpty)
        vote(3, in: &cluster)
        #expect(cluster.nodes[3]?.compared.map(\.divergence.mustReload) == [true])
        #expect(cluster.taken.count == 1)
        cluster.expectAgreement()
    }

    @Test func `a late majority misses the snapshot of its point, and gets the next one`()
        throws
    {
        var cluster = Cluster.eager(nodes: ["alpha", "beta", "gamma"])
        diverge(1, in: &cluster)
        for node in [2, 3] { cluster.nodes[node]?.isVotingLate = true }
        cluster.grow("list/*", by: 200, from: 1)
        cluster.pass(cluster.settings.votePatience)
        let first = try #require(cluster.taken.first)
        let saved = try #require(cluster.disk.snapshots[first])
        // Now two states have one vote each. Then the second state gets another vote.
        vote(2, in: &cluster)
        #expect(cluster.disk.snapshots[first] == saved)
        #expect(cluster.disk.index.map(\.place) == [first])
        vote(3, in: &cluster)
        let base = try #require(cluster.base(of: "list"))
        #expect(base > first.sequence)
        #expect(cluster.nodes[1]?.texts(of: "list").contains("wrong") == false)
        cluster.addNode(4, store: "list")
        cluster.expectAgreement()
    }

    @Test func `a vote for another point, of another version or of another node does not count`()
        throws
    {
        var cluster = Cluster.eager()
        cluster.nodes[2]?.isVotingLate = true
        cluster.addNode(3, named: "gamma")
        cluster.grow("list/*", by: 200, from: 1)
        var vote = try #require(cluster.nodes[2]?.heldVotes.first)
        func count() -> Int? {
            cluster.sequencer?.directory.life(of: list)?.work.votes.round?.votes.count
        }
        #expect(count() == 1)
        cluster.input(.reported(.digested(vote), resets: 0), to: 3)
        vote.schemaVersion = 2
        cluster.input(.reported(.digested(vote), resets: 0), to: 2)
        vote.schemaVersion = 1
        vote.place.sequence = vote.place.sequence.next
        cluster.input(.reported(.digested(vote), resets: 0), to: 2)
        vote.place.sequence = vote.place.life
        cluster.input(.reported(.digested(vote), resets: 0), to: 2)
        cluster.run()
        #expect(count() == 1)
        self.vote(2, in: &cluster)
        #expect(count() == 2)
    }

    @Test func `a node that votes twice has one vote`() throws {
        var cluster = Cluster.eager(nodes: ["alpha", "beta", "gamma"])
        cluster.nodes[3]?.isVotingLate = true
        diverge(3, in: &cluster)
        cluster.grow("list/*", by: 200, from: 1)
        let vote = try #require(cluster.nodes[3]?.heldVotes.first)
        for _ in 1...5 { cluster.input(.reported(.digested(vote), resets: 0), to: 3) }
        cluster.run()
        #expect(cluster.divergences.first?.nodes.count == 1)
        cluster.expectAgreement()
    }

    @Test func `a vote may state any size`() throws {
        var cluster = Cluster.eager(nodes: ["alpha"]) { $0.digestRatioMin = 16 }
        cluster.nodes[1]?.isVotingLate = true
        cluster.grow("list/*", by: 200, from: 1)
        var vote = try #require(cluster.nodes[1]?.heldVotes.first)
        vote.byteCount = UInt64(Int64.max)
        cluster.input(.reported(.digested(vote), resets: 0), to: 1)
        cluster.run()
        #expect(cluster.failed.count == 1)
        cluster.grow("list/*", by: 1_000, from: 1)
        cluster.expectBounds()
    }

    @Test func `a node that leaves is not waited for`() {
        var cluster = Cluster.eager(nodes: ["alpha", "beta"])
        cluster.nodes[2]?.isVotingLate = true
        cluster.grow("list/*", by: 200, from: 1)
        #expect(cluster.taken.isEmpty)
        cluster.input(.close(.store(list)), to: 2)
        cluster.pass(cluster.settings.beatInterval * 2)
        #expect(cluster.taken.count == 1)
    }
}
