import ConfluxVocabulary
import Testing

@testable import ConfluxProtocol

/// Coincidences: what meets a restart, a rejoin or a leaving node halfway.
struct RecoveryScenarios {
    private func twoNodes() -> Cluster {
        var cluster = Cluster()
        cluster.startSequencer()
        cluster.addNode(1, named: "alpha", store: "list")
        cluster.addNode(2, named: "beta", store: "list")
        return cluster
    }

    @Test func `a batch of which only a part is in the log has all outcomes after a restart`() {
        var cluster = twoNodes()
        cluster.isDiskSlow = true
        cluster.dispatch(["nowhere:1", "2", "nowhere:3", "nowhere:4"], to: "list", from: 1)
        // The disk has what was admitted, and the sequencer dies before it says so.
        for append in cluster.waitingAppends {
            cluster.disk.bodies.append(
                (append.first, append.last, append.frame.dropFirst(Frame.size)))
        }
        cluster.isDiskSlow = false
        cluster.restartSequencer()
        cluster.pass(.seconds(2))
        cluster.dispatch(["5"], to: "list", from: 1)
        cluster.pass(.milliseconds(300))
        let outcomes = cluster.nodes[1]?.outcomes ?? [:]
        #expect(outcomes.count == 5)
        for counter in [UInt64(3), 4] {
            guard case .rejected(.unrecorded, _) = outcomes[counter] else {
                Issue.record("counter \(counter) was not rejected: \(outcomes)")
                continue
            }
        }
        #expect(cluster.nodes[1]?.texts(of: "list") == ["2", "5"])
        #expect(cluster.nodes[2]?.texts(of: "list") == ["2", "5"])
    }

    @Test func `a session whose node is just coming back is not forgotten for a newcomer`() {
        var cluster = Cluster()
        cluster.settings.sessionsMax = 2
        cluster.startSequencer()
        cluster.addNode(1, named: "alpha", store: "list")
        cluster.addNode(2, named: "beta", store: "list")
        let sleeper = cluster.nodes[1]
        cluster.removeNode(1)
        cluster.pass(cluster.settings.silenceMax * 2)
        cluster.isDiskSlow = true
        cluster.nodes[1] = sleeper
        cluster.reconnect(1)
        cluster.addNode(3, named: "gamma")
        cluster.finishAppends()
        cluster.pass(.seconds(5))
        #expect(cluster.nodes[1]?.machine.isJoined == true)
        #expect(cluster.sequencer?.joining.isEmpty == true)
    }

    @Test func `an inquiry for a name whose holder says goodbye meanwhile ends no other presence`()
        throws
    {
        var cluster = twoNodes()
        let holder = cluster.nodes[1]
        // The holder does not answer, and leaves properly before its time is over.
        cluster.nodes[1] = nil
        cluster.addNode(3, named: "alpha")
        cluster.nodes[1] = holder
        cluster.input(.leave, to: 1)
        cluster.run()
        cluster.pass(.seconds(2))
        #expect(cluster.nodes[3]?.machine.isJoined == true)
        let events = try cluster.disk.bodies.flatMap { try Commit.decode(body: $0.body).blocks }
        let departures = events.filter { block in
            if case .event(.left) = block { true } else { false }
        }
        #expect(departures.isEmpty)
    }

    @Test func `a store that was closed while it began is not hosted`() throws {
        var cluster = twoNodes()
        let ghost = try #require(StoreName("ghost"))
        cluster.isDiskSlow = true
        cluster.open("ghost", on: 1)
        cluster.input(.close(.store(ghost)), to: 1)
        cluster.run()
        cluster.finishAppends()
        #expect(cluster.sequencer?.directory.store(ghost) != nil)
        let hosts = cluster.sequencer?.sessions.all.filter { $0.hosted[ghost] != nil }
        #expect(hosts?.isEmpty == true)
    }

    @Test func `an outcome waits for a store that is opened while the feed is not proven yet`() {
        var cluster = Cluster()
        cluster.startSequencer()
        cluster.addNode(1, named: "alpha", store: "list")
        cluster.addNode(2)
        cluster.nodes[2]?.open("list")
        cluster.nodes[2]?.feedDrops = 1
        cluster.submit(["early"], to: "list", from: 2)
        cluster.run()
        #expect(cluster.nodes[2]?.outcomes.isEmpty == true)
        cluster.pass(cluster.settings.beatInterval * 2)
        #expect(cluster.nodes[2]?.texts(of: "list") == ["early"])
        #expect(cluster.nodes[2]?.outcomes.count == 1)
    }

    @Test func `what was applied of a history that is lost is no progress in the next one`() {
        var cluster = twoNodes()
        for text in ["1", "2", "3", "4", "5"] { cluster.dispatch([text], to: "list", from: 1) }
        cluster.killSequencer()
        cluster.disk = Cluster.Disk(id: Identifier(high: 7, low: 2))
        cluster.restartSequencer()
        cluster.pass(.milliseconds(300))
        // A slow thread reports what it was given before.
        cluster.input(.applied(SequenceNumber(1_000), bytes: 0), to: 2)
        let node = cluster.nodes[2]?.machine
        #expect((node?.applied ?? .zero) <= (node?.live ?? .zero))
    }

    @Test func `a node that asks again while it comes back is present again by one entry`() throws {
        var cluster = twoNodes()
        let sleeper = cluster.nodes[1]
        cluster.removeNode(1)
        cluster.pass(cluster.settings.silenceMax * 2)
        cluster.isDiskSlow = true
        cluster.nodes[1] = sleeper
        cluster.reconnect(1)
        cluster.pass(.seconds(5))
        cluster.finishAppends()
        cluster.pass(.seconds(1))
        #expect(cluster.nodes[1]?.machine.isJoined == true)
        let events = try cluster.disk.bodies.flatMap { try Commit.decode(body: $0.body).blocks }
        let returns = events.filter { block in
            if case .event(.joined(_, _, let former)) = block { former != .none } else { false }
        }
        #expect(returns.count == 1)
    }

    @Test func `nobody waits for the catching up of a store that was closed`() throws {
        var cluster = twoNodes()
        for text in ["1", "2", "3"] { cluster.dispatch([text], to: "list", from: 1) }
        cluster.addNode(3)
        cluster.bridge("list", on: 3)
        let name = try #require(StoreName("list"))
        cluster.nodes[3]?.open("list")
        while let input = cluster.nodes[3]?.takeInput() { cluster.input(input, to: 3) }
        // The answer to the open arrives, and none to the fetch that follows.
        while cluster.nodes[3]?.machine.catchUp == nil, !cluster.queue.isEmpty {
            cluster.deliver(cluster.queue.removeFirst())
        }
        #expect(cluster.nodes[3]?.machine.catchUp != nil)
        cluster.input(.close(.store(name)), to: 3)
        #expect(cluster.nodes[3]?.machine.catchUp == nil)
    }
}
