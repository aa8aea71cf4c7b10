import ConfluxHashing
import ConfluxVocabulary
import Testing

@testable import ConfluxProtocol

/// A host that votes like all others, and then sends a state that it made (rule 19).
struct ForgedStateScenarios {
    private let text = "alice has 1000 euros, which is paid byLvVnjnVZ at the end of May"
    private let forgedText = "alice has 9888 euros, which is paid by00aa000a at the end of May"

    private func state(_ text: String) -> [UInt8] { Array("[\"\(text)\"]".utf8) }

    /// A cluster with a list of one text, in which the first node sends the forged list.
    private func cluster(giving: SimulatedNode.Giving) -> Cluster {
        var cluster = Cluster.eager(nodes: ["mallory", "beta", "gamma"])
        cluster.nodes[1]?.giving = giving
        cluster.dispatch([text], to: "list/*", from: 2)
        return cluster
    }

    @Test func `the forged state has the checksum, the length and the form of the true one`() {
        #expect(Checksum.hash(state(text)[...]) == Checksum.hash(state(forgedText)[...]))
        #expect(state(text).count == state(forgedText).count)
        #expect(Digest(of: state(text)) != Digest(of: state(forgedText)))
    }

    @Test func `a forged state of the same checksum and length is not kept`() throws {
        var cluster = cluster(giving: .forged(state(forgedText)))
        #expect(cluster.divergences.isEmpty, "it voted like the others")
        #expect(cluster.passedOver == [Name("mallory")])
        #expect(cluster.disk.snapshots.values.map(\.bytes) == [state(text)])
        cluster.addNode(4, store: "list")
        #expect(cluster.nodes[4]?.texts(of: "list") == [text])
    }

    @Test func `a true state is kept where the forged one is refused`() {
        var cluster = cluster(giving: .whatItHas)
        #expect(cluster.taken.count == 1)
        #expect(cluster.disk.snapshots.values.map(\.bytes) == [state(text)])
        cluster.addNode(4, store: "list")
        #expect(cluster.nodes[4]?.texts(of: "list") == [text])
    }

    @Test func `a state that was forged on its way to a node is not begun with`() throws {
        var cluster = cluster(giving: .whatItHas)
        let place = try #require(cluster.taken.first)
        cluster.disk.snapshots[place]?.bytes = state(forgedText)
        cluster.addNode(4, store: "list")
        #expect(cluster.nodes[4]?.texts(of: "list").contains(forgedText) == false)
        #expect(cluster.nodes[4]?.opened.isEmpty == true)
        cluster.disk.snapshots[place]?.bytes = state(text)
        cluster.pass(.seconds(30))
        #expect(cluster.nodes[4]?.texts(of: "list") == [text])
    }

    @Test func `a state that was forged part by part is not kept`() {
        // The second part is the true one, and so is the length of all.
        let long = text + String(repeating: "x", count: 2_000)
        var cluster = Cluster.eager(nodes: ["mallory", "beta", "gamma"])
        cluster.nodes[1]?.giving = .forged(state(forgedText + long.dropFirst(text.count)))
        cluster.dispatch([long], to: "list/*", from: 2)
        #expect(cluster.passedOver == [Name("mallory")])
        #expect(cluster.disk.snapshots.values.map(\.bytes) == [state(long)])
    }

    @Test func `if every host that answers sends a forged state, none is kept`() {
        var cluster = Cluster.eager(nodes: ["mallory", "beta", "gamma"])
        for number in 1...3 { cluster.nodes[number]?.giving = .forged(state(forgedText)) }
        cluster.dispatch([text], to: "list/*", from: 2)
        #expect(cluster.failed.count == 1)
        #expect(cluster.taken.isEmpty && cluster.disk.snapshots.isEmpty)
    }

    @Test func `a vote for the forged state is another vote`() throws {
        var cluster = Cluster.eager(nodes: ["mallory", "beta", "gamma"])
        cluster.nodes[1]?.isVotingLate = true
        cluster.dispatch([text], to: "list/*", from: 2)
        var vote = try #require(cluster.nodes[1]?.heldVotes.first)
        vote.digest = Digest(of: state(forgedText))
        cluster.input(.reported(.digested(vote), resets: 0), to: 1)
        cluster.run()
        #expect(cluster.divergences.first?.nodes.count == 1)
        #expect(cluster.disk.snapshots.values.map(\.bytes) == [state(text)])
    }
}
