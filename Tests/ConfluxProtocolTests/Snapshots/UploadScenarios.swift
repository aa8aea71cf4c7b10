import ConfluxHashing
import ConfluxVocabulary
import Testing

@testable import ConfluxProtocol

/// Uploads of snapshots from replicas to the log (rule 19).
struct UploadScenarios {
    /// The nodes and offsets of the sequencer's requests for parts.
    private func requests(_ cluster: Cluster) -> [[UInt64]] {
        cluster.recorded.compactMap { event in
            guard case .sequencer(.send(.snapshotRequest(let request), _), let node) = event else {
                return nil
            }
            return [UInt64(node ?? 0), request.offset]
        }
    }

    @Test func `a snapshot is taken from a voter once the log has grown`() throws {
        var cluster = Cluster.eager()
        cluster.isRecording = true
        cluster.grow("list/*", by: 2_000, from: 1)
        let point = try #require(try cluster.points(of: "list").first)
        #expect(cluster.taken.map(\.sequence) == [point])
        #expect(cluster.base(of: "list") == point)
        let saved = try #require(cluster.disk.snapshots.values.first)
        #expect(Digest(of: saved.bytes) == saved.reference.digest && saved.bytes.count == 2_004)
        #expect(requests(cluster) == [[1, 0], [1, 1_024]])
        // A little more growth doesn't lead to another snapshot.
        cluster.dispatch(["a"], to: "list/*", from: 2)
        #expect(try cluster.points(of: "list") == [point])
        cluster.addNode(3, store: "list")
        #expect(cluster.nodes[3]?.texts(of: "list").count == 2)
        cluster.expectAgreement()
        cluster.expectBounds()
    }

    @Test func `a dead source of a snapshot is replaced, and the upload continues`() {
        var cluster = Cluster.eager()
        cluster.isRecording = true
        cluster.isSavingSlow = true
        cluster.grow("list/*", by: 2_000, from: 1)
        #expect(cluster.waitingSaves.count == 1)
        let alpha = cluster.nodes[1]
        cluster.nodes[1] = nil
        cluster.finishSaves()
        cluster.pass(cluster.settings.snapshotPatience * 2)
        cluster.nodes[1] = alpha
        #expect(requests(cluster) == [[1, 0], [1, 1_024], [2, 1_024]])
        #expect(cluster.taken.count == 1)
    }

    @Test func `a lost part of a snapshot is requested again`() {
        var cluster = Cluster.eager(nodes: ["alpha", "beta"])
        cluster.isRecording = true
        cluster.nextLoss = { if case .snapshotRequest = $0 { true } else { false } }
        cluster.grow("list/*", by: 500, from: 1)
        #expect(cluster.taken.isEmpty)
        cluster.pass(cluster.settings.snapshotPatience * 2)
        #expect(requests(cluster) == [[1, 0], [2, 0]])
        #expect(cluster.taken.count == 1)
    }

    @Test
    func `a voter that is gone before its votes are decided keeps no snapshot from being taken`()
        throws
    {
        var cluster = Cluster.eager(nodes: ["alpha", "beta"])
        cluster.nodes[2]?.isVotingLate = true
        cluster.grow("list/*", by: 2_000, from: 1)
        cluster.input(.leave, to: 1)
        cluster.run()
        cluster.removeNode(1)
        cluster.pass(cluster.settings.votePatience * 2)
        #expect(cluster.taken.isEmpty)
        #expect(!cluster.failed.isEmpty)
        cluster.nodes[2]?.isVotingLate = false
        for _ in 1...2 { cluster.grow("list/*", by: 8_000, from: 2) }
        #expect(!cluster.taken.isEmpty)
        cluster.addNode(3, store: "list")
        cluster.expectAgreement()
    }

    @Test func `a source that no longer has the state is skipped at once`() {
        var cluster = Cluster.eager()
        cluster.nodes[1]?.giving = .nothing
        cluster.grow("list/*", by: 2_000, from: 1)
        #expect(cluster.taken.count == 1)
        #expect(cluster.failed.isEmpty)
    }

    @Test func `bytes with a wrong digest are dropped until the next point`() throws {
        var cluster = Cluster.eager()
        for node in [1, 2] { cluster.nodes[node]?.giving = .lies }
        cluster.grow("list/*", by: 2_000, from: 1)
        #expect(cluster.failed.count == 1)
        cluster.dispatch(["a"], to: "list/*", from: 1)
        cluster.pass(.seconds(5))
        // After a failure, it is not tried again with each commit.
        #expect(try cluster.points(of: "list").count == 1)
        #expect(cluster.taken.isEmpty && cluster.disk.snapshots.isEmpty)
        cluster.nodes[1]?.giving = .whatItHas
        cluster.grow("list/*", by: 3_000, from: 1)
        #expect(cluster.taken.count == 1)
        cluster.addNode(3, store: "list")
        cluster.expectAgreement()
    }

    @Test(arguments: [
        SimulatedNode.Giving.lies, .lieThenSilence, .dribble, .silence, .nothing,
    ])
    func `a source that does not send its state is passed over, named, and asked last from then on`(
        giving: SimulatedNode.Giving
    ) throws {
        var cluster = Cluster.eager(nodes: ["liar", "beta", "gamma", "delta", "epsilon"])
        cluster.nodes[1]?.giving = giving
        cluster.isRecording = true
        var points = 0
        for round in 1...4 {
            cluster.grow("list/*", by: 3_000 << round, from: 2)
            cluster.pass(cluster.settings.snapshotPatience * 2)
            points = try cluster.points(of: "list").count
            #expect(cluster.taken.count == points && points >= round)
        }
        // It is asked first at the first point, and never again: the same point has another source.
        #expect(cluster.passedOver == [Name("liar")])
        let ofLiar = requests(cluster).filter { $0[0] == 1 }
        #expect(ofLiar == (giving == .lieThenSilence ? [[1, 0], [1, 1_024]] : ofLiar))
        // A further upload would begin at 0 again.
        #expect(Set(ofLiar).count == ofLiar.count)
        #expect(cluster.failed.isEmpty)
        for saved in cluster.disk.snapshots.values {
            #expect(Digest(of: saved.bytes) == saved.reference.digest)
        }
    }

    @Test func `one that continues a lie is not to blame, and gives the whole state itself`() throws
    {
        var cluster = Cluster.eager(nodes: ["liar", "beta"])
        cluster.nodes[1]?.giving = .lieThenSilence
        cluster.isRecording = true
        cluster.grow("list/*", by: 2_000, from: 2)
        cluster.pass(cluster.settings.snapshotPatience * 2)
        #expect(requests(cluster) == [[1, 0], [1, 1_024], [2, 1_024], [2, 0], [2, 1_024]])
        #expect(cluster.taken.count == 1)
        #expect(cluster.passedOver == [Name("liar")])
    }

    @Test func `a process that begins anew with the same key is still asked last`() throws {
        var cluster = Cluster.eager(nodes: [])
        for (node, key) in [(1, "bad"), (2, "good"), (3, "bad"), (4, "good")] {
            cluster.principals[node] = Principal(name: Name(key), rights: .all)
        }
        cluster.addNode(1, named: "liar", store: "list")
        cluster.nodes[1]?.giving = .lies
        cluster.addNode(2, named: "beta", store: "list")
        cluster.grow("list/*", by: 3_000, from: 2)
        #expect(cluster.passedOver == [Name("liar")])
        cluster.input(.leave, to: 1)
        cluster.run()
        cluster.removeNode(1)
        cluster.input(.leave, to: 2)
        cluster.run()
        cluster.removeNode(2)
        cluster.addNode(3, named: "liar again", store: "list")
        cluster.addNode(4, named: "delta", store: "list")
        cluster.nodes[3]?.giving = .lies
        cluster.grow("list/*", by: 9_000, from: 4)
        #expect(cluster.taken.count == 2)
        #expect(cluster.passedOver == [Name("liar")])
    }

    @Test func `a source that failed once is asked before those that failed since`() {
        func source(_ number: UInt64, _ sharer: Sharer? = nil) -> SnapshotUpload.Source {
            let incarnation = Incarnation(number)
            return SnapshotUpload.Source(
                incarnation: incarnation, sharer: sharer ?? .session(incarnation))
        }
        var failures = SourceFailures()
        let all = (1...3).map { source(UInt64($0)) }
        #expect(failures.ordered(all.reversed()) == all)
        failures.add(all[0])
        failures.add(all[2])
        #expect(failures.ordered(all) == [all[1], all[0], all[2]])
        failures.add(all[1])
        failures.add(all[0])
        #expect(failures.ordered(all) == [all[2], all[1], all[0]])
        failures.keep { $0 != all[0].incarnation }
        #expect(failures.ordered(all) == [all[0], all[2], all[1]])
    }

    @Test func `one key's slow replicas leave places for the snapshots of others`() throws {
        var cluster = Cluster.eager(nodes: []) { $0.uploadsMax = 4 }
        cluster.principals[1] = Principal(name: Name("slow"), rights: .all)
        cluster.principals[2] = Principal(name: Name("other"), rights: .all)
        cluster.addNode(1, named: "slow")
        cluster.addNode(2, named: "other")
        for index in 0..<10 { cluster.nodes[1]?.open("mine/\(index)") }
        for index in 0..<2 { cluster.nodes[2]?.open("yours/\(index)") }
        for node in [1, 2] { cluster.flushInputs(of: node) }
        cluster.run()
        cluster.pass(cluster.settings.beatInterval * 2)
        cluster.nodes[1]?.giving = .silence
        cluster.grow("mine/*", by: 2_000, from: 1)
        #expect(cluster.sequencer?.directory.lives.activeCount == 2)
        cluster.grow("yours/*", by: 2_000, from: 2)
        #expect(cluster.taken.map(\.store.state.text) == ["yours", "yours"])
        #expect(cluster.sequencer?.directory.lives.uploadCount == 10)
        cluster.expectBounds()
        // Each of the slow ones has its turn, and is given up.
        cluster.pass(cluster.settings.snapshotPatience * 12)
        #expect(Set(cluster.failed.map(\.store)).count == 10)
        #expect(Set(cluster.passedOver) == [Name("slow")])
    }

    @Test func `a snapshot that can't be saved is dropped until the next point`() throws {
        var cluster = Cluster.eager()
        cluster.savingFailure = "no space is left"
        cluster.grow("list/*", by: 2_000, from: 1)
        cluster.pass(.seconds(5))
        #expect(cluster.failed.count == 1)
        #expect(try cluster.points(of: "list").count == 1)
        cluster.savingFailure = nil
        cluster.grow("list/*", by: 3_000, from: 1)
        #expect(cluster.taken.count == 1)
    }

    @Test func `nothing is saved once no node is left`() {
        var cluster = Cluster.eager(nodes: ["alpha"])
        cluster.isSavingSlow = true
        cluster.grow("list/*", by: 2_000, from: 1)
        cluster.input(.leave, to: 1)
        cluster.run()
        cluster.removeNode(1)
        cluster.finishSaves()
        #expect(cluster.failed.count == 1)
        #expect(cluster.sequencer?.directory.lives.uploadCount == 0)
    }

    @Test func `a complete snapshot in the log counts though its upload was dropped`()
        throws
    {
        var cluster = Cluster.eager(nodes: ["alpha", "beta", "gamma"])
        for node in [2, 3] { cluster.nodes[node]?.isVotingLate = true }
        cluster.isSavingSlow = true
        cluster.grow("list/*", by: 200, from: 1)
        cluster.pass(cluster.settings.votePatience + .seconds(1))
        let first = try #require(try cluster.points(of: "list").first)
        #expect(cluster.waitingSaves.count == 1)
        // The late voters have another state, so the first voter's state is not the store's.
        for node in [2, 3] {
            var vote = try #require(cluster.nodes[node]?.heldVotes.first)
            vote.digest = Digest(of: [1])
            cluster.input(.reported(.digested(vote), resets: 0), to: node)
            cluster.run()
        }
        let list = try #require(StoreName("list"))
        #expect(cluster.sequencer?.directory.life(of: list)?.work.upload == nil)
        cluster.finishSaves()
        #expect(cluster.base(of: "list") == first)
        #expect(cluster.sequencer?.directory.life(of: list)?.work.save == nil)
        // The next digest point decides.
        #expect(try cluster.points(of: "list").count == 2)
        cluster.expectBounds()
    }

    @Test func `an answer about an ended life changes nothing`() throws {
        var cluster = Cluster.eager(nodes: ["alpha"])
        cluster.isSavingSlow = true
        cluster.grow("list/*", by: 200, from: 1)
        #expect(cluster.waitingSaves.count == 1)
        _ = cluster.drop("list", by: 1)
        cluster.run()
        cluster.open("list", on: 1)
        cluster.grow("list/*", by: 200, from: 1)
        let list = try #require(StoreName("list"))
        let second = try #require(cluster.sequencer?.directory.life(of: list)?.record.life)
        #expect(cluster.waitingSaves.count == 2)
        let late = cluster.waitingSaves.removeFirst()
        cluster.deliver(late)
        #expect(cluster.taken.isEmpty)
        #expect(cluster.base(of: "list") == second)
        #expect(cluster.sequencer?.directory.life(of: list)?.work.save != nil)
        cluster.finishSaves()
        #expect(cluster.taken.count == 1)
        cluster.expectBounds()
    }

    /// Makes both replicas slow to vote.
    private func slow(_ cluster: inout Cluster) {
        for node in [1, 2] { cluster.nodes[node]?.isVotingLate = true }
        for _ in 0..<4 { cluster.grow("list/*", by: 2_000, from: 1) }
    }

    @Test func `a store with outstanding votes has no further point until the time is up`() throws {
        var cluster = Cluster.eager()
        slow(&cluster)
        #expect(try cluster.points(of: "list").count == 1)
        cluster.pass(cluster.settings.votePatience + .seconds(2))
        #expect(try cluster.points(of: "list").count == 2)
        cluster.expectBounds()
    }

    @Test func `a point that was due before a store's size was known is skipped if too soon`()
        throws
    {
        var cluster = Cluster.eager { $0.digestRatioMin = 16 }
        slow(&cluster)
        for node in [1, 2] {
            for vote in cluster.nodes[node]?.heldVotes ?? [] {
                cluster.input(.reported(.digested(vote), resets: 0), to: node)
            }
        }
        cluster.run()
        cluster.dispatch(["a"], to: "list/*", from: 2)
        #expect(try cluster.points(of: "list").count == 1)
        #expect(cluster.taken.count == 1)
    }
}
