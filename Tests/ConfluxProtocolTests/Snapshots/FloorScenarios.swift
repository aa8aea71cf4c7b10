import ConfluxVocabulary
import Testing

@testable import ConfluxProtocol

/// Which entries the log discards, and how replicas continue without them (rule 20).
struct FloorScenarios {
    /// Makes the log grow by enough bytes for a mark, and saves a checkpoint at its end.
    private func grow(
        _ cluster: inout Cluster, times: Int = 1, target: String = "list/*"
    ) throws {
        for _ in 0..<times {
            cluster.grow(target, by: 20_000, from: 1)
            try cluster.saveCheckpoint()
            cluster.pass(cluster.settings.floorReviewInterval * 2)
            try expectNoneMissed(cluster)
        }
    }

    /// Expects rule 20: no entry was discarded that somebody needs.
    private func expectNoneMissed(_ cluster: Cluster) throws {
        let floor = cluster.disk.floor
        #expect(cluster.sequencer?.term.floor == floor)
        if floor > SequenceNumber(1) {
            #expect(cluster.disk.checkpoints.count == 2)
            #expect(try floor <= #require(cluster.disk.checkpoints.first).sequence.next)
        }
        let directory = try #require(cluster.sequencer?.directory)
        for (name, life) in directory.lives.lives
        where directory.stamp(of: name) > life.record.baseSequence {
            #expect(floor <= life.record.baseSequence.next, "\(name)")
        }
    }

    @Test func `the floor follows the older checkpoint and the snapshots`() throws {
        var cluster = Cluster.eager()
        try grow(&cluster)
        #expect(cluster.disk.floor == SequenceNumber(1))
        try grow(&cluster)
        let floor = cluster.disk.floor
        #expect(floor > SequenceNumber(1))
        // From now on, no snapshot is taken.
        for node in [1, 2] { cluster.nodes[node]?.giving = .silence }
        let base = try #require(cluster.base(of: "list"))
        try grow(&cluster, times: 4)
        #expect(cluster.base(of: "list") == base)
        #expect(cluster.disk.floor <= base.next)
        for node in [1, 2] { cluster.nodes[node]?.giving = .whatItHas }
        try grow(&cluster, times: 6)
        #expect(cluster.disk.floor > base.next)
        cluster.expectBounds()
    }

    @Test func `bytes, entries and age decide how much of the log is kept`() {
        var marks = LogMarks()
        for index in 1...100 as ClosedRange<UInt64> {
            marks.add(
                through: SequenceNumber(index * 10), byteCount: 20_000,
                at: Timestamp(Int64(index) * 1_000_000_000))
        }
        func floor(_ adjust: (inout Retention) -> Void) -> UInt64 {
            var retention = Retention()
            adjust(&retention)
            return marks.floor(
                keeping: retention, through: SequenceNumber(1_000),
                at: Timestamp(100_000_000_000)
            ).rawValue
        }
        #expect(floor { _ in } == 1)
        #expect(floor { $0.bytesMax = 100_000 } == 951)
        #expect(floor { $0.entriesMax = 200 } == 801)
        #expect(floor { $0.ageMax = .seconds(30) } == 701)
    }

    @Test func `the older half of a log is at least half of it, whatever its commits are`() {
        var marks = LogMarks()
        func add(_ last: UInt64, _ byteCount: Int) {
            marks.add(through: SequenceNumber(last), byteCount: byteCount, at: Timestamp(0))
        }
        for last in 1...10 as ClosedRange<UInt64> { add(last, 2_000) }
        #expect(marks.floor(keepingHalfFrom: SequenceNumber(1)) == SequenceNumber(6))
        // One large commit has most of the bytes.
        add(11, 100_000)
        add(12, 2_000)
        #expect(marks.floor(keepingHalfFrom: SequenceNumber(6)) == SequenceNumber(12))
        #expect(marks.floor(keepingHalfFrom: SequenceNumber(13)) == SequenceNumber(13))
    }

    @Test func `a quiet store that retains the log is digested`() throws {
        var cluster = Cluster.eager { $0.digestBytesMin = 10_000 }
        cluster.open("quiet", on: 2)
        cluster.dispatch(["a"], to: "quiet/*", from: 2)
        try grow(&cluster, times: 3)
        let base = try #require(cluster.base(of: "quiet"))
        #expect(try cluster.points(of: "quiet").count <= 1)
        #expect(cluster.disk.snapshots.keys.contains { $0.store.state.text == "quiet" })
        #expect(cluster.disk.floor > base)
        cluster.addNode(3, store: "quiet")
        #expect(cluster.nodes[3]?.texts(of: "quiet") == ["a"])
    }

    /// Actions wait in this state, so no growth of the log would lead to a digest point.
    @Test func `a store that retains a nearly full log is digested at once`() throws {
        var cluster = Cluster.eager {
            $0.digestBytesMin = 1 << 20
            $0.snapshotBytesMin = 1 << 20
        }
        try grow(&cluster, times: 3)
        let floor = cluster.disk.floor
        cluster.handle(.logSpace(.nearlyFull))
        cluster.pass(cluster.settings.floorReviewInterval * 2)
        #expect(try #require(cluster.base(of: "list")) > floor)
        #expect(cluster.disk.floor > floor)
    }

    @Test func `a nearly full log keeps less than its retention, until it has room`() throws {
        var cluster = Cluster.eager { $0.retention.bytesMax = 1 << 30 }
        try grow(&cluster, times: 6)
        #expect(cluster.disk.floor == SequenceNumber(1))
        cluster.handle(.logSpace(.scarce))
        cluster.pass(cluster.settings.floorReviewInterval * 4)
        #expect(cluster.disk.floor == SequenceNumber(1), "retention holds while there is room")
        cluster.handle(.logSpace(.nearlyFull))
        cluster.pass(cluster.settings.floorReviewInterval)
        let half = cluster.disk.floor
        #expect(half > SequenceNumber(1))
        cluster.handle(.logSpace(.ample))
        cluster.pass(cluster.settings.floorReviewInterval * 4)
        #expect(cluster.disk.floor == half)
        try expectNoneMissed(cluster)
    }

    private func holds(_ cluster: Cluster) -> [LogHold] {
        cluster.notes.compactMap { if case .logNearlyFull(let hold) = $0 { hold } else { nil } }
    }

    @Test func `a nearly full log that checkpoints hold asks for new ones until it has them`()
        throws
    {
        var cluster = Cluster.eager()
        try grow(&cluster, times: 3)
        cluster.handle(.logSpace(.nearlyFull))
        cluster.pass(cluster.settings.floorReviewInterval * 2)
        let wanted = cluster.checkpointsWanted
        // The first ones fail.
        cluster.pass(cluster.settings.floorReviewInterval * 2)
        #expect(wanted > 0 && cluster.checkpointsWanted > wanted)
        cluster.handle(.logSpace(.ample))
        let last = cluster.checkpointsWanted
        cluster.pass(cluster.settings.floorReviewInterval * 4)
        #expect(cluster.checkpointsWanted == last, "it has room again")
    }

    /// What a log says that has so little room, while one of its stores gets no votes.
    private func hold(of cluster: inout Cluster, _ space: LogSpace) throws -> LogHold {
        try grow(&cluster, times: 3)
        cluster.addNode(3, named: "gamma", store: "quiet")
        cluster.dispatch(["a"], to: "quiet/*", from: 3)
        cluster.nodes[3]?.isVotingLate = true
        try grow(&cluster, times: 3)
        cluster.handle(.logSpace(space))
        cluster.pass(.seconds(2))
        return try #require(holds(cluster).last)
    }

    @Test func `a nearly full log says who holds it`() throws {
        var cluster = Cluster.eager()
        cluster.handle(.logSpace(.nearlyFull))
        #expect(holds(cluster).map(\.subject) == [.checkpoint])
        cluster.handle(.logSpace(.ample))
        let hold = try hold(of: &cluster, .nearlyFull)
        #expect(hold.subject == .store(try #require(StoreName("quiet"))))
        #expect(hold.nodes == ["gamma"] && hold.words.contains("conflux drop quiet"))
        #expect(hold.retainedBytes > 0 && hold.floor == cluster.disk.floor)
    }

    /// A store with three nodes, and more of it in a scarce log than can be kept aside. No node votes in time.
    private func heldUp() throws -> Cluster {
        var cluster = Cluster.eager { $0.asideBytesMax = 2_000 }
        cluster.addNode(3, named: "gamma", store: "quiet")
        for id in [1, 2] { cluster.nodes[id]?.isVotingLate = true }
        cluster.handle(.logSpace(.scarce))
        cluster.grow("list/*", by: 3_000, from: 1)
        cluster.dispatch(["late"], to: "list", from: 1)
        #expect(cluster.nodes[2]?.texts(of: "list").contains("late") == false)
        return cluster
    }

    @Test func `a store that fills a scarce log waits for its snapshot, and others go on`() throws {
        var cluster = try heldUp()
        cluster.dispatch(["a"], to: "quiet/*", from: 3)
        #expect(cluster.nodes[3]?.texts(of: "quiet") == ["a"])
        let held = cluster.nodes[1]?.events.compactMap {
            if case .heldUp(let message) = $0 { message } else { nil }
        }
        #expect(try #require(held?.first).contains("list/shared gets no more"), "\(held ?? [])")
        for id in [1, 2] {
            cluster.nodes[id]?.isVotingLate = false
            for vote in cluster.nodes[id]?.heldVotes ?? [] {
                cluster.input(.reported(.digested(vote), resets: 0), to: id)
            }
        }
        cluster.run()
        cluster.pass(.seconds(5))
        #expect(!cluster.taken.isEmpty)
        for id in [1, 2] { #expect(cluster.nodes[id]?.texts(of: "list").last == "late") }
    }

    @Test func `a store that fills a scarce log and gives no snapshot is frozen`() throws {
        var cluster = try heldUp()
        cluster.pass(cluster.settings.votePatience * 3)
        let frozen = cluster.notes.compactMap {
            if case .frozen(let name, let reason) = $0 { "\(name) \(reason)" } else { nil }
        }
        #expect(frozen == ["list/shared unconfirmed"])
        cluster.pass(.seconds(5))
        #expect(
            cluster.nodes[1]?.outcomes.values.contains {
                if case .rejected(.frozen, _) = $0 { true } else { false }
            } == true)
    }

    @Test func `a log that other things than entries fill names no store`() throws {
        var cluster = Cluster.eager()
        let hold = try hold(of: &cluster, .fullOfOthers)
        #expect(hold.subject == .nothing && hold.words.contains("snapshots, checkpoints"))
    }

    @Test func `a node is told once what holds a nearly full log`() throws {
        var cluster = Cluster.eager()
        try grow(&cluster, times: 3)
        cluster.handle(.logSpace(.nearlyFull))
        cluster.dispatch(["late"], to: "list/*", from: 1)
        let held = cluster.nodes[1]?.events.compactMap {
            if case .heldUp(let message) = $0 { message } else { nil }
        }
        let message = try #require(held?.first)
        #expect(message.contains("the log is nearly full") && message.contains("bytes"))
        cluster.handle(.logSpace(.ample))
        cluster.pass(.seconds(5))
        #expect(cluster.nodes[2]?.texts(of: "list").last == "late")
    }

    @Test func `a cause that stays is reported once`() throws {
        var cluster = Cluster.eager()
        cluster.handle(.logSpace(.nearlyFull))
        cluster.pass(.seconds(20))
        #expect(holds(cluster).count == 1)
        var advised = LogSpace.nearlyFull
        advised.advice = "Defragment it"
        try cluster.saveCheckpoint()
        cluster.handle(.logSpace(advised))
        #expect(cluster.notes.count { $0 == .logHasRoom } == 0)
        cluster.handle(.logSpace(.scarce))
        #expect(cluster.notes.count { $0 == .logHasRoom } == 1)
    }

    @Test func `a store that retains the log and gets no votes is not digested forever`()
        throws
    {
        var cluster = Cluster.eager { $0.digestBytesMin = 10_000 }
        cluster.open("quiet", on: 2)
        cluster.dispatch(["a"], to: "quiet/*", from: 2)
        cluster.nodes[2]?.isVotingLate = true
        try grow(&cluster, times: 2)
        let last = cluster.disk.last
        cluster.pass(.seconds(60))
        let added = try cluster.points(of: "quiet").filter { $0 > last }
        #expect(added.count <= 1)
    }

    @Test
    func `below the floor a node loads snapshots, and a bridge learns what it missed`()
        throws
    {
        var cluster = Cluster.eager(nodes: ["alpha", "beta", "gamma"])
        cluster.bridge("list", on: 3)
        let sleepers = [2, 3].map { ($0, cluster.nodes[$0]) }
        for (node, _) in sleepers { cluster.nodes[node] = nil }
        cluster.pass(cluster.settings.silenceMax * 2)
        try grow(&cluster, times: 3)
        for (node, sleeper) in sleepers {
            cluster.nodes[node] = sleeper
            cluster.reconnect(node)
        }
        cluster.pass(.seconds(3))
        cluster.dispatch(["last"], to: "list/*", from: 2)
        cluster.expectAgreement()
        #expect(cluster.nodes[1]?.texts(of: "list").count == 4)
        let missed = cluster.nodes[3]?.events.contains { event in
            if case .missed = event { true } else { false }
        }
        #expect(missed == true)
        #expect(cluster.nodes[3]?.bridgedTexts.last?.hasSuffix("last") == true)
        cluster.expectBounds()
    }

    @Test func `a store that no later entry concerns catches up from the floor`() throws {
        var cluster = Cluster.eager()
        cluster.open("quiet", on: 2)
        let life = try #require(cluster.base(of: "quiet"))
        try grow(&cluster, times: 3)
        #expect(cluster.base(of: "quiet") == life && cluster.disk.floor > life.next)
        cluster.addNode(3, store: "quiet")
        cluster.dispatch(["a"], to: "quiet/*", from: 3)
        #expect(cluster.nodes[3]?.texts(of: "quiet") == ["a"])
        #expect(cluster.nodes[2]?.texts(of: "quiet") == ["a"])
        try grow(&cluster, times: 2)
    }

    @Test func `a start has the floor, the snapshots and the entries after them`() throws {
        var cluster = Cluster.eager()
        cluster.open("quiet", on: 2)
        try grow(&cluster, times: 3)
        let base = cluster.base(of: "list")
        let floor = cluster.disk.floor
        cluster.restartFromDisk()
        #expect(cluster.base(of: "list") == base)
        #expect(cluster.sequencer?.term.floor == floor)
        try expectNoneMissed(cluster)
        cluster.addNode(3, store: "list")
        cluster.open("quiet", on: 3)
        cluster.dispatch(["a"], to: "quiet/*", from: 3)
        cluster.dispatch(["b"], to: "list/*", from: 3)
        #expect(cluster.nodes[2]?.texts(of: "quiet") == cluster.nodes[3]?.texts(of: "quiet"))
        cluster.expectAgreement()
        try grow(&cluster, times: 2)
        #expect(cluster.disk.floor > floor)
    }

    @Test func `a snapshot that is lost while it is loaded is loaded from another point`() throws {
        var cluster = Cluster.eager()
        cluster.grow("list/*", by: 3_000, from: 1)
        cluster.disk.snapshots = [:]
        cluster.addNode(3, named: "gamma", store: "list")
        #expect(cluster.nodes[3]?.replicas.isEmpty == true)
        cluster.pass(.seconds(5))
        cluster.dispatch(["a"], to: "list/*", from: 1)
        cluster.pass(.seconds(5))
        #expect(cluster.nodes[3]?.texts(of: "list").count == 2)
        cluster.expectAgreement()
    }
}
