import ConfluxVocabulary
import Testing

@testable import ConfluxProtocol

/// The feed is a hint: nodes notice what it loses, and fetch it. Each store catches up by itself.
struct FeedScenarios {
    private func started(nodes: Int = 2) -> Cluster {
        var cluster = Cluster()
        cluster.startSequencer()
        for id in 1...nodes { cluster.addNode(id, store: "list") }
        return cluster
    }

    @Test func `a gap in the feed is fetched`() {
        var cluster = started()
        cluster.dispatch(["a"], to: "list/*", from: 1)
        cluster.nodes[2]?.feedDrops = 3
        for text in ["b", "c", "d", "e"] { cluster.dispatch([text], to: "list/*", from: 1) }
        #expect(cluster.nodes[2]?.texts(of: "list") == ["a", "b", "c", "d", "e"])
        #expect(
            cluster.nodes[2]?.sent.contains { if case .fetch = $0 { true } else { false } } == true)
    }

    @Test func `a lost last commit is seen within one beat`() {
        var cluster = started()
        cluster.nodes[2]?.feedDrops = 1
        cluster.dispatch(["last"], to: "list/*", from: 1)
        #expect(cluster.nodes[2]?.texts(of: "list") == [])
        cluster.pass(cluster.settings.beatInterval)
        #expect(cluster.nodes[2]?.texts(of: "list") == ["last"])
    }

    @Test func `entries of one append are published in messages of a bounded size`() throws {
        var cluster = Cluster()
        cluster.settings.feedCommitBytesMax = 1_000
        cluster.startSequencer()
        for id in 1...2 { cluster.addNode(id, store: "list") }
        cluster.published.removeAll()
        cluster.isDiskSlow = true
        cluster.dispatch(["first"], to: "list/*", from: 1)
        // Meanwhile these actions gather: many small ones, and one that is larger than a message by itself.
        let texts = (1...20).map { String(repeating: "x", count: $0 == 10 ? 5_000 : 90) + "\($0)" }
        for text in texts { cluster.dispatch([text], to: "list/*", from: 1) }
        #expect(cluster.waitingAppends.map(\.commits.count) == [1])
        cluster.finishAppends()
        let frames = cluster.published.compactMap { effect in
            if case .publishCommit(let frame) = effect { frame } else { nil }
        }
        #expect((5...8).contains(frames.count))
        #expect(frames.count { $0.count > 1_000 } == 1)
        // Each commit follows the one before it, and no node has to fetch anything.
        let commits = try frames.map { try Commit.decode(body: $0.dropFirst(Frame.size)) }
        for (one, next) in zip(commits, commits.dropFirst()) {
            #expect(next.first == one.last.next && next.predecessor == one.epoch)
        }
        #expect(
            !cluster.published.contains {
                if case .send(.entries, _) = $0 { true } else { false }
            })
        for id in 1...2 { #expect(cluster.nodes[id]?.texts(of: "list") == ["first"] + texts) }
        #expect(cluster.nodes[1]?.outcomes.count == 21)
    }

    @Test func `an initial state too large for the feed is announced by a beat and fetched`() throws
    {
        var peers = RawPeers {
            $0.feedCommitBytesMax = 1_000
            $0.payloadBytesMax = 1_000
            $0.batchBytesMax = 8_000
        }
        peers.cluster.addNode(1, store: "list")
        peers.join(2)
        peers.cluster.published.removeAll()
        let last = peers.cluster.disk.last
        peers.open("large", request: 1, bytes: 20_000, on: 2)
        #expect(peers.cluster.disk.last > last)
        let frames = peers.cluster.published.compactMap { effect in
            if case .publishCommit(let frame) = effect { frame } else { nil }
        }
        #expect(frames.allSatisfy { $0.count < 10_000 })
        // This happens at once: no node waits for the next beat.
        #expect(peers.cluster.nodes[1]?.machine.live == peers.cluster.disk.last)
    }

    @Test func `answers that take longer than a node's interval are still accepted`() {
        var cluster = started()
        let patience = ReplicaSettings(name: nil, role: .member).fetchPatience
        cluster.nodes[2]?.feedDrops = 3
        cluster.entriesDelay = patience * 5 / 2
        for text in ["a", "b", "c"] { cluster.dispatch([text], to: "list/*", from: 1) }
        cluster.pass(patience * 3)
        #expect(cluster.nodes[2]?.texts(of: "list") == ["a", "b", "c"])
        let fetches =
            cluster.nodes[2]?.sent.count { if case .fetch = $0 { true } else { false } } ?? 0
        // Meanwhile the node asks less and less often.
        #expect(fetches >= 2 && fetches <= 4)
    }

    @Test func `the sequencer beats while nothing happens`() {
        var cluster = started(nodes: 1)
        cluster.published.removeAll()
        let start = cluster.now
        var beats = 0
        while cluster.now < start + .seconds(1) {
            cluster.pass(cluster.settings.beatInterval)
            beats += 1
        }
        #expect(beats == 10)
        #expect(cluster.nodes[1]?.machine.isJoined == true)
        #expect(cluster.nodes[1]?.events.contains(.disconnected) == false)
    }

    @Test func `a dispatch gets its outcome though its commit was lost on the feed`() {
        var cluster = started()
        cluster.nodes[1]?.feedDrops = 1
        cluster.dispatch(["x"], to: "list/*", from: 1)
        // The receipt arrived, but this node has not applied the action, so there is no outcome yet (P6).
        #expect(cluster.nodes[1]?.outcomes.isEmpty == true)
        cluster.pass(cluster.settings.beatInterval)
        #expect(cluster.nodes[1]?.texts(of: "list") == ["x"])
        #expect(cluster.nodes[1]?.outcomes.count == 1)
    }

    @Test func `a late joiner becomes current`() {
        var cluster = started()
        for round in 0..<30 { cluster.dispatch(["\(round)"], to: "list/*", from: 1 + round % 2) }
        cluster.addNode(3, store: "list")
        #expect(cluster.nodes[3]?.texts(of: "list") == (0..<30).map(String.init))
        #expect(cluster.nodes[3]?.opened.count == 1)
    }

    @Test func `a store that is opened later catches up while the others continue`() {
        var cluster = started()
        cluster.open("other", on: 1)
        for round in 0..<20 {
            cluster.submit(["o\(round)"], to: "other/*", from: 1)
            cluster.submit(["l\(round)"], to: "list/*", from: 1)
            cluster.run()
        }
        cluster.nodes[2]?.open("other")
        while let input = cluster.nodes[2]?.takeInput() { cluster.input(input, to: 2) }
        // Entries arrive while the store catches up, step by step.
        for round in 20..<40 {
            cluster.submit(["o\(round)"], to: "other/*", from: 1)
            cluster.submit(["l\(round)"], to: "list/*", from: 1)
            for _ in 0..<3 where !cluster.queue.isEmpty {
                cluster.deliver(cluster.queue.removeFirst())
            }
            cluster.handle(.drained)
        }
        cluster.run()
        cluster.pass(cluster.settings.beatInterval)
        #expect(cluster.nodes[2]?.texts(of: "other") == (0..<40).map { "o\($0)" })
        #expect(cluster.nodes[2]?.texts(of: "list") == (0..<40).map { "l\($0)" })
    }

    @Test func `an action for a store that is being opened is reported after it is applied`() {
        var cluster = started(nodes: 1)
        cluster.dispatch(["before"], to: "list/*", from: 1)
        cluster.addNode(2)
        cluster.bridge("list", on: 2)
        cluster.nodes[2]?.open("list")
        while let input = cluster.nodes[2]?.takeInput() { cluster.input(input, to: 2) }
        cluster.submit(["early"], to: "list/*", from: 2)
        // The feed is faster than the answer to the open.
        while let next = cluster.queue.firstIndex(where: { step in
            if case .toNode(2, _, _) = step { false } else { true }
        }) {
            cluster.deliver(cluster.queue.remove(at: next))
            cluster.handle(.drained)
        }
        #expect(cluster.nodes[2]?.outcomes.isEmpty == true)
        cluster.run()
        cluster.pass(cluster.settings.beatInterval)
        #expect(cluster.nodes[2]?.texts(of: "list") == ["before", "early"])
        #expect(cluster.nodes[2]?.outcomes.count == 1)
    }

    @Test func `two stores of different ages catch up together`() {
        var cluster = started(nodes: 1)
        for round in 0..<10 { cluster.dispatch(["l\(round)"], to: "list/*", from: 1) }
        cluster.open("young", on: 1)
        for round in 0..<10 {
            cluster.dispatch(["y\(round)"], to: "young/*", from: 1)
            cluster.dispatch(["l\(round + 10)"], to: "list/*", from: 1)
        }
        cluster.addNode(2)
        cluster.nodes[2]?.open("young")
        cluster.nodes[2]?.open("list")
        while let input = cluster.nodes[2]?.takeInput() { cluster.input(input, to: 2) }
        cluster.run()
        cluster.pass(cluster.settings.beatInterval)
        #expect(cluster.nodes[2]?.texts(of: "young") == (0..<10).map { "y\($0)" })
        #expect(cluster.nodes[2]?.texts(of: "list") == (0..<20).map { "l\($0)" })
    }

    @Test func `a bridged state sees every global action once, in order`() {
        var cluster = Cluster()
        cluster.startSequencer()
        for id in 1...2 {
            cluster.addNode(id)
            cluster.bridge("bus", on: id)
        }
        for round in 0..<10 { cluster.dispatch(["\(round)"], to: "bus/*", from: 1 + round % 2) }
        let first = cluster.nodes[1]?.bridgedTexts ?? []
        #expect(first.count == 10)
        #expect(cluster.nodes[2]?.bridgedTexts == first)
    }

    /// A cluster in which the first node bridges "bus" and has no store of it, while the second node has one.
    private func bridgedWithoutStore(silenceMax: Duration = .seconds(10)) -> Cluster {
        var cluster = Cluster()
        cluster.settings.silenceMax = silenceMax
        cluster.startSequencer()
        for id in 1...2 {
            cluster.addNode(id)
            cluster.nodes[id]?.hasLocals = id == 2
            cluster.bridge("bus", on: id)
        }
        return cluster
    }

    @Test
    func `a bridging node follows no feed before it has a store, and the store misses nothing`()
        throws
    {
        var cluster = bridgedWithoutStore()
        cluster.dispatch(["a"], to: "bus/*", from: 1)
        cluster.dispatch(["b"], to: "bus/*", from: 2)
        #expect(cluster.nodes[1]?.isSubscribed == false)
        #expect(cluster.nodes[1]?.outcomes.count == 1)
        // The receipt of "a" has reached the node; nothing about "b" has.
        let bus = try #require(Name("bus"))
        let inhabited = try #require(cluster.nodes[1]?.inhabit(bus))
        cluster.input(inhabited, to: 1)
        cluster.dispatch(["c"], to: "bus/*", from: 2)
        cluster.pass(cluster.settings.beatInterval)
        cluster.dispatch(["d"], to: "bus/*", from: 1)
        #expect(cluster.nodes[1]?.bridgedTexts.map { $0.last } == ["b", "c", "d"])
        #expect(cluster.nodes[2]?.bridgedTexts.map { $0.last } == ["a", "b", "c", "d"])
    }

    /// The node has a receipt that another process got from the next term.
    @Test func `a node that knows of an entry before its sequencer does has lost nothing`() throws {
        var cluster = bridgedWithoutStore()
        cluster.isDiskSlow = true
        cluster.isConfirmSlow = true
        cluster.dispatch(["a"], to: "bus/*", from: 2)
        let session = cluster.nodes[1]?.machine.incarnation
        let receipt = Receipt(
            log: cluster.disk.id, epoch: cluster.disk.epoch, sequence: cluster.disk.last.next,
            timestamp: Timestamp(0))
        cluster.input(.await(receipt, request: 1), to: 1)
        cluster.reconnect(1)
        // The log may have the entry, and has not confirmed it here. So nobody knows yet whether it is lost.
        #expect(cluster.waitingConfirms == 1 && cluster.nodes[1]?.machine.isJoined == false)
        cluster.finishAppends()
        while cluster.waitingConfirms > 0 { cluster.answerConfirm() }
        cluster.run()
        #expect(cluster.nodes[1]?.machine.isJoined == true)
        #expect(cluster.nodes[1]?.machine.incarnation == session)
        #expect(!cluster.notes.contains { if case .historyLost = $0 { true } else { false } })
        #expect(!cluster.notes.contains { if case .challenged = $0 { true } else { false } })
    }

    @Test func `a node that follows no feed asks from time to time where the log ends`() throws {
        var cluster = bridgedWithoutStore()
        cluster.dispatch(["b"], to: "bus/*", from: 2)
        cluster.pass(cluster.settings.silenceMax / 4)
        #expect(cluster.nodes[1]?.machine.live == cluster.disk.last)
        let bus = try #require(Name("bus"))
        let inhabited = try #require(cluster.nodes[1]?.inhabit(bus))
        cluster.input(inhabited, to: 1)
        cluster.pass(cluster.settings.beatInterval)
        cluster.dispatch(["c"], to: "bus/*", from: 2)
        #expect(cluster.nodes[1]?.bridgedTexts.map { $0.last } == ["c"])
    }

    @Test
    func `a node without a feed recovers lost messages though it asks where the log ends`() {
        var cluster = bridgedWithoutStore(silenceMax: .seconds(2))
        cluster.submit(["a"], to: "bus/*", from: 1)
        cluster.queue.removeAll()
        for _ in 0..<100 where cluster.nodes[1]?.outcomes.isEmpty == true {
            cluster.pass(.milliseconds(100))
        }
        #expect(cluster.nodes[1]?.outcomes.count == 1)
        #expect(cluster.nodes[2]?.bridgedTexts.map { $0.last } == ["a"])
    }

    @Test func `the first of concurrent openers wins, and the other adopts its store`() throws {
        var cluster = Cluster()
        cluster.startSequencer()
        for id in 1...2 { cluster.addNode(id) }
        for id in 1...2 {
            cluster.nodes[id]?.open("list")
            while let input = cluster.nodes[id]?.takeInput() { cluster.input(input, to: id) }
        }
        cluster.run()
        cluster.pass(cluster.settings.beatInterval)
        let lives = [1, 2].compactMap { cluster.nodes[$0]?.replicas.values.first?.life }
        #expect(lives.count == 2 && lives[0] == lives[1])
        #expect(cluster.notes.filter { if case .created = $0 { true } else { false } }.count == 1)
    }

    @Test func `commits for a slow reader wait up to a bound, and later ones are fetched`() {
        var cluster = started(nodes: 1)
        var settings = ReplicaSettings(name: nil, role: .member)
        settings.deliveryBytesMax = 1
        settings.bufferBytesMax = 300
        var machine = ReplicaMachine(settings: settings, nonce: Identifier(high: 1, low: 5))
        // A separate machine, driven by hand: it never says that it has applied anything.
        let moment = cluster.moment
        var effects: [ReplicaEffect] = []
        machine.handle(.start, at: moment, into: &effects)
        machine.handle(.follow(from: SequenceNumber(1)), at: moment, into: &effects)
        let welcome = Welcome(
            request: 1, log: cluster.disk.id, claim: .none, incarnation: Incarnation(3),
            last: cluster.disk.last, floor: SequenceNumber(1), agreed: .zero, settled: 0,
            lastCounter: 0, feed: "feed",
            limits: SessionLimits(
                windowBytes: 1 << 20, batchBytesMax: 1 << 20, payloadBytesMax: 1 << 10,
                beatInterval: .milliseconds(100), silenceMax: .seconds(10)))
        machine.handle(.received(.welcome(welcome), epoch: Epoch(1)), at: moment, into: &effects)
        for round in 0..<50 { cluster.dispatch(["\(round)"], to: "list/*", from: 1) }
        effects.removeAll()
        for item in cluster.disk.bodies {
            guard let commit = try? Commit.decode(body: item.body) else { continue }
            machine.handle(
                .fed(commit, byteCount: item.body.count, epoch: Epoch(1)), at: moment,
                into: &effects)
        }
        let delivered = effects.filter {
            if case .deliver(.commit) = $0 { true } else { false }
        }
        #expect(delivered.count == 1)
        #expect(machine.buffer.byteCount <= settings.bufferBytesMax)
        // Once there is room, the node fetches the commits that did not fit.
        effects.removeAll()
        var progress = ApplyProgress()
        progress.liveBytes = machine.outstandingBytes
        machine.handle(.applied(progress), at: moment, into: &effects)
        let later = Moment(monotonic: moment.monotonic + .seconds(1), wall: moment.wall)
        machine.handle(.tick, at: later, into: &effects)
        #expect(effects.contains { if case .send(.fetch) = $0 { true } else { false } })
    }

    @Test func `below the floor a bridge continues, and reports what it missed`() {
        var cluster = started()
        cluster.addNode(3)
        cluster.bridge("list", on: 3)
        guard let from = cluster.nodes[3]?.machine.live?.next else {
            Issue.record("it does not follow")
            return
        }
        cluster.nodes[3]?.feedDrops = 3
        for text in ["a", "b", "c"] { cluster.dispatch([text], to: "list/*", from: 1) }
        // The log discards the entries before the node can fetch them.
        cluster.floor = from.advanced(by: 2)
        cluster.pass(cluster.settings.beatInterval)
        #expect(
            cluster.nodes[3]?.events.contains(.missed(from: from, through: from.next)) == true)
        cluster.dispatch(["d"], to: "list/*", from: 1)
        #expect(cluster.nodes[3]?.bridgedTexts.last?.hasSuffix("list d") == true)
    }

    @Test func `a bridge starts at the log's end, however old the beat is that proves its feed`()
        throws
    {
        var cluster = Cluster()
        cluster.startSequencer()
        cluster.addNode(1)
        cluster.bridge("bus", on: 1)
        for text in ["a", "b"] { cluster.dispatch([text], to: "bus/*", from: 1) }
        cluster.addNode(2)
        cluster.nodes[2]?.bridge("bus")
        let open = cluster.nodes[2]?.takeInput()
        cluster.input(try #require(open), to: 2)
        // The beat with which the feed welcomes subscribers is fixed when the term begins.
        let beat = Beat(log: cluster.disk.id, last: SequenceNumber(1), floor: SequenceNumber(1))
        cluster.input(.beaten(beat, epoch: Epoch(1)), to: 2)
        cluster.pass(.milliseconds(300))
        #expect(cluster.nodes[2]?.bridgedTexts == [])
        cluster.dispatch(["c"], to: "bus/*", from: 1)
        #expect(cluster.nodes[2]?.bridgedTexts.map { $0.last } == ["c"])
    }
}
