import ConfluxVocabulary
import Testing

@testable import ConfluxProtocol

/// Snapshots on their way from replicas to the log (rule 19).
struct UploadScenarios {
    /// Whom the sequencer asked for parts, and from where on.
    private func requests(_ cluster: Cluster) -> [[UInt64]] {
        cluster.recorded.compactMap { event in
            guard case .sequencer(.send(.snapshotRequest(let request), _), let node) = event else {
                return nil
            }
            return [UInt64(node ?? 0), request.offset]
        }
    }

    @Test func `a snapshot is taken of a voter once the log grew`() throws {
        var cluster = Cluster.eager()
        cluster.isRecording = true
        cluster.grow("list", by: 2_000, from: 1)
        let point = try #require(try cluster.points(of: "list").first)
        #expect(cluster.taken.map(\.sequence) == [point])
        #expect(cluster.base(of: "list") == point)
        let saved = try #require(cluster.disk.snapshots.values.first)
        #expect(Digest(of: saved.bytes) == saved.reference.digest && saved.bytes.count == 2_004)
        #expect(requests(cluster) == [[1, 0], [1, 1_024]])
        // A little more is not worth another one.
        cluster.dispatch(["a"], to: "list", from: 2)
        #expect(try cluster.points(of: "list") == [point])
        cluster.addNode(3, store: "list")
        #expect(cluster.nodes[3]?.texts(of: "list").count == 2)
        cluster.expectAgreement()
        cluster.expectBounds()
    }

    @Test func `a source that dies is replaced by another one at the same place`() {
        var cluster = Cluster.eager()
        cluster.isRecording = true
        cluster.isSavingSlow = true
        cluster.grow("list", by: 2_000, from: 1)
        #expect(cluster.waitingSaves.count == 1)
        let alpha = cluster.nodes[1]
        cluster.nodes[1] = nil
        cluster.finishSaves()
        cluster.pass(cluster.settings.snapshotPatience * 2)
        cluster.nodes[1] = alpha
        #expect(requests(cluster) == [[1, 0], [1, 1_024], [2, 1_024]])
        #expect(cluster.taken.count == 1)
    }

    @Test func `a part that is lost is asked for again`() {
        var cluster = Cluster.eager(nodes: ["alpha", "beta"])
        cluster.isRecording = true
        cluster.nextLoss = { if case .snapshotRequest = $0 { true } else { false } }
        cluster.grow("list", by: 500, from: 1)
        #expect(cluster.taken.isEmpty)
        cluster.pass(cluster.settings.snapshotPatience * 2)
        #expect(requests(cluster) == [[1, 0], [2, 0]])
        #expect(cluster.taken.count == 1)
    }

    @Test func `a source that has the state no longer is passed over at once`() {
        var cluster = Cluster.eager()
        cluster.nodes[1]?.giving = .nothing
        cluster.grow("list", by: 2_000, from: 1)
        #expect(cluster.taken.count == 1)
        #expect(cluster.failed.isEmpty)
    }

    @Test func `bytes that do not have the digest are given up until the next point`() throws {
        var cluster = Cluster.eager()
        cluster.nodes[1]?.giving = .lies
        cluster.grow("list", by: 2_000, from: 1)
        #expect(cluster.failed.count == 1)
        cluster.dispatch(["a"], to: "list", from: 1)
        cluster.pass(.seconds(5))
        // What fails is not tried again with each commit.
        #expect(try cluster.points(of: "list").count == 1)
        #expect(cluster.taken.isEmpty && cluster.disk.snapshots.isEmpty)
        cluster.nodes[1]?.giving = .whatItHas
        cluster.grow("list", by: 3_000, from: 1)
        #expect(cluster.taken.count == 1)
        cluster.addNode(3, store: "list")
        cluster.expectAgreement()
    }

    @Test func `what can't be saved is given up until the next point`() throws {
        var cluster = Cluster.eager()
        cluster.savingFailure = "no space is left"
        cluster.grow("list", by: 2_000, from: 1)
        cluster.pass(.seconds(5))
        #expect(cluster.failed.count == 1)
        #expect(try cluster.points(of: "list").count == 1)
        cluster.savingFailure = nil
        cluster.grow("list", by: 3_000, from: 1)
        #expect(cluster.taken.count == 1)
    }

    @Test func `where nobody is there any more nothing is saved`() {
        var cluster = Cluster.eager(nodes: ["alpha"])
        cluster.isSavingSlow = true
        cluster.grow("list", by: 2_000, from: 1)
        cluster.input(.leave, to: 1)
        cluster.run()
        cluster.removeNode(1)
        cluster.finishSaves()
        #expect(cluster.failed.count == 1)
        #expect(cluster.sequencer?.uploads.count == 0)
    }

    @Test func `an answer for a part that was given up is not taken for another's`() throws {
        let store = try #require(StoreName("list"))
        let place = SnapshotPlace(
            store: store, life: SequenceNumber(3), sequence: SequenceNumber(9))
        let bytes = Array("[]".utf8)
        let reference = SnapshotReference(
            sequence: place.sequence, schemaVersion: 1, digest: Digest(of: bytes), byteCount: 2)
        let round = DigestTable.Round(
            place: place, schemaVersion: 1, load: 0, deadline: .zero, awaited: [])
        var table = UploadTable()
        for isConfirmed in [false, true] {
            table.add(UploadTable.Upload(reference, of: round, isConfirmed: isConfirmed))
            let next = table.next(most: 4)
            var upload = try #require(next)
            upload.step = .saving(2)
            table[store] = upload
        }
        let former = table.answered(place, 0)
        #expect(former?.isGivenUp == true && former?.0.isConfirmed == false)
        let answered = table.answered(place, 0)
        #expect(answered?.isGivenUp == false && answered?.0.isConfirmed == true)
        #expect(answered?.bytes == 2)
        #expect(table.answered(place, 0) == nil)
    }

    /// Both replicas take long to say what they are.
    private func slow(_ cluster: inout Cluster) {
        for node in [1, 2] { cluster.nodes[node]?.isVotingLate = true }
        for _ in 0..<4 { cluster.grow("list", by: 2_000, from: 1) }
    }

    @Test func `a store whose votes are awaited has no further point until time is up`() throws {
        var cluster = Cluster.eager()
        slow(&cluster)
        #expect(try cluster.points(of: "list").count == 1)
        cluster.pass(cluster.settings.votePatience + .seconds(2))
        #expect(try cluster.points(of: "list").count == 2)
        cluster.expectBounds()
    }

    @Test func `a point that was due before a store's size was known is left out if too soon`()
        throws
    {
        var cluster = Cluster.eager { $0.digestRatioMin = 16 }
        slow(&cluster)
        for node in [1, 2] {
            for vote in cluster.nodes[node]?.heldVotes ?? [] {
                cluster.input(.digested(vote, resets: 0), to: node)
            }
        }
        cluster.run()
        cluster.dispatch(["a"], to: "list", from: 2)
        #expect(try cluster.points(of: "list").count == 1)
        #expect(cluster.taken.count == 1)
    }
}
