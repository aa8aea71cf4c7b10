import ConfluxHashing
import ConfluxVocabulary
import Testing

@testable import ConfluxProtocol

/// The limits of snapshots, digest points and skips (P7).
struct SnapshotBoundTests {
    private let list = StoreName("list")!

    /// A node that hosts many stores of one state.
    private func manyStores(
        _ count: Int, adjusting adjust: (inout SequencerSettings) -> Void = { _ in }
    ) -> Cluster {
        var cluster = Cluster.eager(nodes: []) {
            $0.digestBytesMin = 1_000
            adjust(&$0)
        }
        cluster.addNode(1, named: "alpha")
        for index in 0..<count { cluster.nodes[1]?.open("many/\(index)") }
        cluster.flushInputs(of: 1)
        cluster.run()
        cluster.pass(cluster.settings.beatInterval * 2)
        return cluster
    }

    @Test func `a commit has a bounded number of digest points, and the next one has others`()
        throws
    {
        var cluster = manyStores(100)
        cluster.grow("many/*", by: 1_100, from: 1)
        var points: [Int] = []
        for entry in cluster.disk.bodies {
            let blocks = try Commit.decode(body: entry.body).blocks
            let count = blocks.count { block in
                if case .event(.digestPoint, _) = block { true } else { false }
            }
            if count > 0 { points.append(count) }
        }
        #expect(points == [PointPlan.perCommitMax, 36])
        cluster.expectBounds()
    }

    @Test func `a bounded number of snapshots is saved at once, and others wait`() {
        var cluster = manyStores(10) { $0.uploadsMax = 5 }
        cluster.isSavingSlow = true
        cluster.grow("many/*", by: 1_100, from: 1)
        // All replicas are of one node, which leaves as many places as it takes.
        #expect(cluster.waitingSaves.count == 3)
        #expect(cluster.sequencer?.directory.lives.uploadCount == 10)
        cluster.expectBounds()
        cluster.finishSaves()
        #expect(cluster.taken.count == 10)
        #expect(cluster.sequencer?.directory.lives.uploadCount == 0)
    }

    @Test func `many waits for nodes that have left end together`() {
        var cluster = manyStores(150) { $0.uploadsMax = 1 }
        cluster.isSavingSlow = true
        cluster.grow("many/*", by: 1_100, from: 1)
        cluster.pass(.milliseconds(500))
        let waiting = cluster.sequencer?.directory.lives.uploadCount ?? 0
        #expect(waiting > 100)
        cluster.input(.leave, to: 1)
        cluster.run()
        cluster.removeNode(1)
        cluster.finishSaves()
        cluster.pass(cluster.settings.snapshotPatience * 2)
        #expect(cluster.sequencer?.directory.lives.uploadCount == 0)
    }

    @Test func `a bounded number of snapshots is sent to a node at once, and others wait`() {
        var cluster = manyStores(10)
        cluster.grow("many/*", by: 1_100, from: 1)
        #expect(cluster.taken.count == 10)
        cluster.addNode(2, named: "beta") { $0.loadsMax = 2 }
        for index in 0..<10 { cluster.nodes[2]?.open("many/\(index)") }
        cluster.flushInputs(of: 2)
        var most = 0
        for _ in 0..<3_000 {
            if cluster.queue.isEmpty {
                cluster.handle(.drained)
            }
            if cluster.queue.isEmpty {
                cluster.now += cluster.settings.beatInterval
                cluster.handle(.tick)
            }
            if !cluster.queue.isEmpty { cluster.deliver(cluster.queue.removeFirst()) }
            most = max(most, cluster.nodes[2]?.machine.loads.activeCount ?? 0)
        }
        #expect(most == 2)
        cluster.expectBounds()
        cluster.pass(.seconds(1))
        #expect(cluster.nodes[2]?.opened.count == 10)
        #expect(cluster.nodes[2]?.replicas.values.allSatisfy(\.isAttached) == true)
    }

    @Test
    func `a store that is closed during the load of its snapshot makes room for the next load`()
        throws
    {
        var cluster = manyStores(3)
        cluster.grow("many/*", by: 1_100, from: 1)
        #expect(cluster.taken.count == 3)
        cluster.addNode(2, named: "beta") { $0.loadsMax = 1 }
        for index in 0..<3 { cluster.nodes[2]?.open("many/\(index)") }
        cluster.flushInputs(of: 2)
        while cluster.nodes[2].map({ $0.machine.loads.count < 2 }) == true {
            if cluster.queue.isEmpty {
                cluster.now += cluster.settings.beatInterval
                cluster.handle(.tick)
                cluster.handle(.drained)
            }
            try #require(!cluster.queue.isEmpty)
            cluster.deliver(cluster.queue.removeFirst())
        }
        let loads = try #require(cluster.nodes[2]?.machine.loads.loads)
        let coming = try #require(loads.values.first { $0.deadline != nil }).place.store
        cluster.input(.close(.store(coming)), to: 2)
        #expect(cluster.nodes[2]?.machine.loads.activeCount == 1)
        cluster.run()
        cluster.pass(.seconds(1))
        #expect(cluster.nodes[2]?.opened.count == 2)
    }

    @Test func `a state above the bound has no snapshot, and a node loads none`() {
        var cluster = Cluster.eager { $0.snapshotBytesMax = 1_000 }
        cluster.grow("list/*", by: 1_500, from: 1)
        #expect(cluster.taken.isEmpty && cluster.failed.count == 1)
        cluster = Cluster.eager()
        cluster.grow("list/*", by: 1_500, from: 1)
        #expect(cluster.taken.count == 1)
        cluster.addNode(3, named: "gamma") { $0.snapshotBytesMax = 1_000 }
        cluster.open("list", on: 3)
        guard case .failed(.payloadTooLarge, _)? = cluster.nodes[3]?.opened.values.first else {
            Issue.record("\(String(describing: cluster.nodes[3]?.opened))")
            return
        }
        #expect(cluster.sequencer?.directory.life(of: list)?.voters.count == 2)
    }

    @Test func `a bounded number of entries is skipped`() throws {
        var cluster = Cluster.eager { $0.digestBytesMin = 1 << 20 }
        for node in [1, 2] { cluster.nodes[node]?.poisons = ["bad"] }
        cluster.dispatch(["bad"], to: "list/*", from: 1)
        let first = try #require(cluster.nodes[1]?.replicas[list]?.stoppedAt)
        let texts = Array(repeating: "x", count: SkipTable.countMax + 1)
        cluster.dispatch(texts, to: "list/*", from: 1)
        cluster.pass(.seconds(1))
        // Both replicas stopped before these entries, so that nobody has applied any of them.
        for offset in 1...UInt64(SkipTable.countMax) + 1 {
            _ = cluster.nodes[1]?.skip(first.advanced(by: offset), .store(list))
        }
        cluster.flushInputs(of: 1)
        cluster.pass(.seconds(3))
        #expect(cluster.sequencer?.directory.skips.count == SkipTable.countMax)
        let failures = cluster.nodes[1]?.reached.values.count { outcome in
            if case .failed(.tableFull, _) = outcome { true } else { false }
        }
        // At least one skip is above the limit of the machine's waits, or of the sequencer's skips.
        #expect(failures ?? 0 >= 1)
        cluster.expectBounds()
    }

    @Test func `a bounded number of votes counts for one point`() throws {
        let place = SnapshotPlace(
            store: list, life: SequenceNumber(3), sequence: SequenceNumber(9))
        var votes = Votes()
        votes.begin(
            Votes.Round(
                place: place, schemaVersion: 1, load: 0, deadline: .zero, awaited: []))
        let vote = Vote(
            place: place, schemaVersion: 1, digest: Digest(of: [1]),
            refusals: Digest(of: [2]), byteCount: 3)
        let counted = (1...UInt64(Votes.votesMax) + 5).count { number in
            votes.add(vote, of: Incarnation(number))
        }
        #expect(counted == Votes.votesMax)
    }

    @Test func `a bounded number of nodes waits for one decision, and others ask again`() throws {
        var peers = RawPeers()
        peers.join(1)
        peers.join(2)
        peers.open("list", request: 1, on: 1)
        let life = try #require(peers.cluster.base(of: "list"))
        peers.cluster.isDiskSlow = true
        func ask(_ requests: ClosedRange<UInt64>, on connection: UInt64) {
            for request in requests {
                peers.say(
                    .freeze(Freeze(request: request, store: list, life: life, isFrozen: true)),
                    on: connection)
            }
        }
        ask(1...520, on: 1)
        ask(1...1, on: 2)
        peers.cluster.finishAppends()
        func confirmed(on connection: UInt64) -> Int {
            peers.heard(on: connection).count { if case .confirmed = $0 { true } else { false } }
        }
        #expect(confirmed(on: 1) == 512 && confirmed(on: 2) == 1)
        ask(513...520, on: 1)
        #expect(confirmed(on: 1) == 8)
    }

    @Test func `the marks of a log are bounded however long it is`() {
        var marks = LogMarks()
        for index in 1...20_000 as ClosedRange<UInt64> {
            marks.add(
                through: SequenceNumber(index), byteCount: 50_000, at: Timestamp(Int64(index)))
            #expect(marks.marks.count <= LogMarks.countMax)
        }
        var retention = Retention()
        retention.bytesMax = 100_000_000
        let floor = marks.floor(
            keeping: retention, through: SequenceNumber(20_000), at: Timestamp(0))
        // At least as much is kept as was requested, and not much more.
        #expect((17_900...18_001).contains(floor.rawValue), "\(floor)")
        marks.forget(below: floor)
        #expect(marks.byteCount(behind: SequenceNumber(20_000)) < 2_000_000)
        #expect(marks.marks.count < 200)
    }

    @Test func `settings that prevent snapshots are reported by name`() {
        func fault(_ adjust: (inout SequencerSettings) -> Void) -> String? {
            var settings = SequencerSettings(feed: "feed")
            adjust(&settings)
            return settings.fault
        }
        #expect(fault { _ in } == nil)
        #expect(fault { $0.snapshotPartBytesMax = 63 }?.contains("snapshotPartBytesMax") == true)
        #expect(fault { $0.uploadsMax = 0 }?.contains("uploadsMax") == true)
        #expect(fault { $0.digestBytesMin = 0 }?.contains("digestBytesMin") == true)
        #expect(fault { $0.floorReviewInterval = .zero }?.contains("floorReviewInterval") == true)
    }
}
