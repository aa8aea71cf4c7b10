import ConfluxVocabulary
import Testing

@testable import ConfluxProtocol

/// Logs that lost their end, were restored from an earlier copy, or were replaced by another log (rules 1
/// and 2).
struct LostHistoryScenarios {
    @Test func `progress in a lost history does not count in the next one`() {
        var cluster = Cluster.twoNodes()
        for text in ["1", "2", "3", "4", "5"] { cluster.dispatch([text], to: "list/*", from: 1) }
        cluster.killSequencer()
        cluster.disk = Cluster.Disk(id: Identifier(high: 7, low: 2))
        cluster.restartSequencer()
        cluster.pass(.milliseconds(300))
        // A slow thread reports progress that belongs to the lost history.
        let applied = cluster.nodes[2]?.machine.applied
        var late = cluster.nodes[2]?.progress ?? ApplyProgress()
        #expect(late.resets == 1)
        late.applied = SequenceNumber(4)
        late.resets = 0
        cluster.input(.applied(late), to: 2)
        #expect(cluster.nodes[2]?.machine.applied == applied)
    }

    @Test func `a node that had no entries of a lost log learns that its session is lost`() {
        var cluster = Cluster.twoNodes()
        cluster.addNode(3)
        cluster.isDiskSlow = true
        cluster.dispatch(["lost"], to: "list/*", from: 3)
        cluster.killSequencer()
        cluster.isDiskSlow = false
        cluster.disk = Cluster.Disk(id: Identifier(high: 7, low: 2))
        cluster.restartSequencer()
        cluster.run()
        cluster.pass(.seconds(20))
        #expect(cluster.nodes[3]?.events.contains(.sessionForgotten) == true)
    }

    @Test func `a node with a lost history follows the next one from their last common entry`() {
        var cluster = Cluster.twoNodes()
        for text in ["1", "2", "3", "4", "5"] { cluster.dispatch([text], to: "list/*", from: 1) }
        cluster.addNode(3)
        cluster.input(.follow(from: cluster.disk.last), to: 3)
        cluster.open("list", on: 3)
        #expect(cluster.nodes[3]?.texts(of: "list").count == 5)
        cluster.killSequencer()
        cluster.disk = Cluster.Disk(id: Identifier(high: 7, low: 2))
        cluster.restartSequencer()
        cluster.pass(.milliseconds(300))
        cluster.dispatch(["new"], to: "list/*", from: 3)
        #expect(cluster.nodes[3]?.machine.live == cluster.disk.last)
        #expect(cluster.nodes[3]?.texts(of: "list") == ["new"])
    }

    @Test func `a node that has only a snapshot notices that the log lost it`() throws {
        var cluster = Cluster.twoNodes()
        let name = try #require(StoreName("list"))
        // Neither node has applied an entry. The second one has only a snapshot.
        let created = try #require(cluster.nodes[2]?.replicas[name]?.life)
        let lost = cluster.disk.last
        cluster.killSequencer()
        while cluster.disk.last >= created { cluster.disk.bodies.removeLast() }
        cluster.restartSequencer()
        cluster.pass(.milliseconds(300))
        #expect(
            cluster.nodes[2]?.events.contains(.historyLost(from: created, through: lost)) == true)
        let lives = [1, 2].compactMap { cluster.nodes[$0]?.replicas[name]?.life }
        #expect(lives.count == 2 && lives[0] == lives[1] && lives[0] > created)
    }

    @Test func `a node that skipped what the log then lost notices it`() {
        var cluster = Cluster.twoNodes()
        for text in ["1", "2", "3"] { cluster.dispatch([text], to: "list/*", from: 1) }
        cluster.addNode(3)
        cluster.bridge("list", on: 3)
        #expect(cluster.nodes[3]?.machine.live == cluster.disk.last)
        cluster.killSequencer()
        cluster.disk.bodies.removeLast(4)
        cluster.restartSequencer()
        cluster.pass(.milliseconds(300))
        for text in ["4", "5", "6", "7"] { cluster.dispatch([text], to: "list/*", from: 1) }
        // Other entries now have the lost numbers, and the node gets these entries, too.
        #expect(cluster.nodes[3]?.bridgedTexts.suffix(4).map { $0.last } == ["4", "5", "6", "7"])
    }

    @Test
    func `a node that learned of an entry when it opened a store notices that the log lost it`()
        throws
    {
        var cluster = Cluster.twoNodes()
        let list = try #require(StoreName("list"))
        cluster.dispatch(["1"], to: "list/*", from: 1)
        let first = cluster.disk.last
        cluster.addNode(3, named: "gamma")
        cluster.bridge("other", on: 3)
        let copy = cluster.disk
        // The node gets nothing of what follows, except for the answer to its open.
        cluster.nodes[3]?.feedDrops = 1_000
        _ = cluster.nodes[1]?.skip(first, .store(list))
        cluster.flushInputs(of: 1)
        cluster.run()
        cluster.nodes[3]?.open("list")
        cluster.flushInputs(of: 3)
        while cluster.nodes[3]?.replicas[list] == nil {
            if cluster.queue.isEmpty { cluster.handle(.drained) }
            cluster.deliver(cluster.queue.removeFirst())
        }
        #expect(cluster.disk.last > copy.last && cluster.nodes[3]?.resets == 0)
        cluster.killSequencer()
        cluster.disk = copy
        cluster.nodes[3]?.feedDrops = 0
        cluster.restartSequencer()
        cluster.pass(.seconds(2))
        cluster.dispatch(["2"], to: "list/*", from: 1)
        #expect(cluster.nodes[3]?.resets == 1)
        #expect(cluster.nodes[3]?.texts(of: "list").suffix(2) == ["1", "2"])
    }

    @Test
    func `a node notices the loss of entries that it skipped because the log had dropped them`() {
        var cluster = Cluster.twoNodes()
        cluster.addNode(3, role: .observer)
        cluster.input(.follow(from: SequenceNumber(1)), to: 3)
        cluster.run()
        cluster.nodes[3]?.feedDrops = 4
        for text in ["1", "2", "3"] { cluster.dispatch([text], to: "list/*", from: 1) }
        cluster.floor = cluster.disk.last.next
        cluster.pass(.seconds(1))
        let missed = ReplicaEvent.missed(from: SequenceNumber(1), through: cluster.disk.last)
        #expect(cluster.nodes[3]?.events.last == missed)
        cluster.killSequencer()
        cluster.disk.bodies.removeLast(2)
        cluster.floor = SequenceNumber(1)
        cluster.restartSequencer()
        cluster.pass(.milliseconds(300))
        #expect(cluster.nodes[3]?.machine.live == cluster.disk.last)
    }

    @Test func `counters that restart do not match a session whose end the log has lost`() {
        var cluster = Cluster()
        cluster.settings.forgetAfter = .seconds(1)
        cluster.startSequencer()
        cluster.addNode(1, named: "alpha", store: "list")
        cluster.addNode(2, named: "beta", store: "list")
        cluster.dispatch(["1", "2"], to: "list/*", from: 1)
        let kept = cluster.disk.bodies.count
        // The node is silent, so its session ends and is forgotten. Then it returns, and joins again.
        let sleeper = cluster.nodes[1]
        cluster.removeNode(1)
        cluster.pass(cluster.settings.silenceMax * 2)
        cluster.nodes[1] = sleeper
        cluster.reconnect(1)
        cluster.pass(.seconds(3))
        #expect(cluster.nodes[1]?.events.contains(.sessionForgotten) == true)
        // The log loses all of that, and has the first session again.
        cluster.killSequencer()
        cluster.disk.bodies.removeLast(cluster.disk.bodies.count - kept)
        cluster.restartSequencer()
        cluster.pass(.seconds(3))
        cluster.dispatch(["3"], to: "list/*", from: 1)
        cluster.pass(.seconds(1))
        #expect(cluster.nodes[2]?.texts(of: "list") == ["1", "2", "3"])
    }

    /// In two histories of a log, one process has the same incarnation, each time for another session.
    @Test func `a session of another history is not confused with one of the same number`() {
        var cluster = Cluster()
        cluster.startSequencer()
        let empty = cluster.disk
        cluster.restartSequencer()
        cluster.addNode(1, named: "alpha", store: "list")
        cluster.dispatch(["1", "2", "3"], to: "list/*", from: 1)
        let first = cluster.nodes[1]?.machine.incarnation
        let copy = cluster.disk
        // The log loses all of it, and the process joins again, with the same number.
        cluster.killSequencer()
        cluster.disk = empty
        cluster.restartSequencer()
        cluster.pass(.seconds(3))
        #expect(cluster.nodes[1]?.machine.incarnation == first)
        cluster.dispatch(["lost"], to: "list/*", from: 1)
        #expect(cluster.nodes[1]?.texts(of: "list") == ["lost"])
        // The log is restored to its former state: with a session of that number, and its three actions.
        cluster.killSequencer()
        cluster.disk = copy
        cluster.restartSequencer()
        cluster.pass(.seconds(3))
        cluster.dispatch(["4"], to: "list/*", from: 1)
        cluster.pass(.seconds(1))
        #expect(cluster.nodes[1]?.texts(of: "list") == ["1", "2", "3", "4"])
    }

    @Test func `commits that wait after a gap do not outlive their term`() {
        var cluster = Cluster.twoNodes()
        cluster.dispatch(["1"], to: "list/*", from: 1)
        let copy = cluster.disk
        // In the next term, the answer with its claim is slow. The commits after the claim wait.
        cluster.entriesDelay = .seconds(1)
        cluster.restartSequencer()
        cluster.pass(cluster.settings.beatInterval)
        cluster.dispatch(["lost"], to: "list/*", from: 1)
        cluster.dispatch(["lost, too"], to: "list/*", from: 1)
        #expect(cluster.nodes[2].map { $0.machine.bufferedBytes > 0 } == true)
        // The log is restored from a copy of the earlier term. The next term has the same epoch, and assigns
        // the same numbers again.
        cluster.killSequencer()
        cluster.disk = copy
        cluster.entriesDelay = .zero
        cluster.nodes[2]?.feedDrops = 1
        cluster.restartSequencer()
        cluster.dispatch(["kept"], to: "list/*", from: 1)
        cluster.pass(.seconds(1))
        #expect(cluster.nodes[1]?.texts(of: "list") == ["1", "kept"])
        #expect(cluster.nodes[2]?.texts(of: "list") == ["1", "kept"])
    }

    @Test func `a node does not fetch entries that it never received and the log has lost`() {
        var cluster = Cluster.twoNodes()
        let copy = cluster.disk
        // The node learns of these entries, but gets none of them.
        cluster.entriesDelay = .seconds(60)
        cluster.nodes[2]?.feedDrops = 4
        for text in ["lost 1", "lost 2", "lost 3", "lost 4"] {
            cluster.dispatch([text], to: "list/*", from: 1)
        }
        cluster.pass(cluster.settings.beatInterval * 2)
        cluster.removeNode(1)
        cluster.killSequencer()
        let epoch = cluster.disk.epoch
        cluster.disk = copy
        cluster.disk.epoch = epoch
        cluster.entriesDelay = .zero
        cluster.restartSequencer()
        cluster.pass(.seconds(2))
        #expect(cluster.nodes[2]?.machine.remoteLast == cluster.disk.last)
        cluster.nodes[2]?.sent.removeAll()
        cluster.pass(.seconds(5))
        let fetches = cluster.nodes[2]?.sent.count { if case .fetch = $0 { true } else { false } }
        #expect(fetches == 0)
    }

    @Test
    func `entries fetched from a term that a node missed are compared by their own epoch`() {
        var cluster = Cluster.twoNodes()
        let copy = cluster.disk
        // The second node is away for a whole term, and fetches a part of its entries in the next one.
        let sleeper = cluster.nodes[2]
        cluster.removeNode(2)
        cluster.restartSequencer()
        for text in ["lost 1", "lost 2", "lost 3", "lost 4"] {
            cluster.dispatch([text], to: "list/*", from: 1)
        }
        cluster.restartSequencer()
        cluster.nodes[2] = sleeper
        cluster.reconnect(2)
        cluster.now += cluster.settings.beatInterval
        cluster.handle(.tick)
        while cluster.nodes[2]?.texts(of: "list").isEmpty == true, !cluster.queue.isEmpty {
            cluster.deliver(cluster.queue.removeFirst())
        }
        #expect(cluster.nodes[2]?.texts(of: "list") == ["lost 1", "lost 2"])
        // The log is restored from a copy older than both terms, so its numbers are assigned again.
        let reader = cluster.nodes[2]
        for id in [1, 2] { cluster.removeNode(id) }
        cluster.killSequencer()
        cluster.disk = copy
        cluster.startSequencer()
        cluster.addNode(3, named: "gamma", store: "list")
        for text in ["kept 1", "kept 2", "kept 3", "kept 4", "kept 5", "kept 6"] {
            cluster.dispatch([text], to: "list/*", from: 3)
        }
        cluster.nodes[2] = reader
        cluster.reconnect(2)
        cluster.pass(.seconds(2))
        #expect(cluster.nodes[2]?.texts(of: "list") == cluster.nodes[3]?.texts(of: "list"))
    }

    @Test func `the feed of a restored log is not applied after lost entries`() throws {
        var cluster = Cluster.twoNodes()
        let copy = cluster.disk
        cluster.restartSequencer()
        for text in ["lost 1", "lost 2", "lost 3"] {
            cluster.dispatch([text], to: "list/*", from: 1)
        }
        // The next term has the same epoch. The second node's feed is connected again, but its
        // connection is not yet.
        let cutOff = cluster.nodes[2]
        cluster.killSequencer()
        cluster.disk = copy
        for id in [1, 2] { cluster.removeNode(id) }
        cluster.startSequencer()
        cluster.published.removeAll()
        cluster.handle(.subscribed)
        cluster.addNode(3, named: "gamma", store: "list")
        for index in 1...6 { cluster.dispatch(["kept \(index)"], to: "list/*", from: 3) }
        cluster.nodes[2] = cutOff
        cluster.input(.feedReconnected, to: 2)
        for effect in cluster.published {
            switch effect {
            case .publishBeat(let beat):
                cluster.input(.beaten(beat, epoch: cluster.disk.epoch), to: 2)
            case .publishCommit(let frame):
                if case .commit(let commit) = try Frame.decodeFeedMessage(frame) {
                    cluster.input(
                        .fed(commit, byteCount: frame.count, epoch: cluster.disk.epoch), to: 2)
                }
            default: break
            }
        }
        let lost = ["lost 1", "lost 2", "lost 3"]
        #expect(cluster.nodes[2]?.texts(of: "list") == lost)
        cluster.reconnect(2)
        cluster.pass(.seconds(3))
        #expect(cluster.nodes[2]?.texts(of: "list") == cluster.nodes[3]?.texts(of: "list"))
    }

    /// Votes are encoded in the background, and may be late.
    @Test func `a vote on a lost history does not count for the present one`() throws {
        var cluster = Cluster.eager()
        cluster.nodes[2]?.isVotingLate = true
        let copy = cluster.disk
        cluster.grow("list/*", by: 200, from: 1, text: "lost")
        let vote = try #require(cluster.nodes[2]?.heldVotes.first)
        cluster.killSequencer()
        cluster.disk = copy
        cluster.restartSequencer()
        cluster.pass(.seconds(3))
        let resets = try #require(cluster.nodes[2]?.resets)
        #expect(resets == 1)
        var votes: Int {
            cluster.nodes[2]?.sent.count { if case .digest = $0 { true } else { false } } ?? 0
        }
        cluster.input(.reported(.digested(vote), resets: 0), to: 2)
        #expect(votes == 0)
        cluster.input(
            .reported(
                .stopped(
                    StoppedStore(
                        store: vote.place.store, life: vote.place.life,
                        sequence: vote.place.sequence)), resets: 0), to: 2)
        #expect(cluster.nodes[2]?.machine.stopped.isEmpty == true)
        cluster.input(.reported(.digested(vote), resets: resets), to: 2)
        #expect(votes == 1)
    }

    @Test func `a vote of an ended term does not count in the next one`() throws {
        var cluster = Cluster.eager()
        for node in [1, 2] { cluster.nodes[node]?.isVotingLate = true }
        cluster.grow("list/*", by: 200, from: 1)
        let vote = try #require(cluster.nodes[2]?.heldVotes.first)
        let connection = try #require(cluster.connection(of: 2))
        func count() -> Int? {
            cluster.sequencer?.directory.life(vote.place)?.work.votes.round?.votes.count
        }
        cluster.handle(
            .received(
                .digest(.vote(vote)), by: cluster.speaker(connection, epoch: Epoch.none),
                from: connection))
        #expect(count() == 0)
        cluster.handle(
            .received(.digest(.vote(vote)), by: cluster.speaker(connection), from: connection))
        #expect(count() == 1)
    }
}
