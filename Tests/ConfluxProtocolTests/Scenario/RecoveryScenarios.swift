import ConfluxVocabulary
import Testing

@testable import ConfluxProtocol

/// Coincidences: messages and entries that a restart, a rejoin or a leaving node interrupts.
struct RecoveryScenarios {
    @Test func `a batch that is only partly in the log has all outcomes after a restart`() {
        var cluster = Cluster.twoNodes()
        cluster.isDiskSlow = true
        cluster.dispatch(["nowhere/*:1", "2", "nowhere/*:3", "nowhere/*:4"], to: "list/*", from: 1)
        // The admitted actions reach the disk, and the sequencer dies before it reports them.
        for append in cluster.waitingAppends {
            cluster.disk.append(append)
        }
        cluster.isDiskSlow = false
        cluster.restartSequencer()
        cluster.pass(.seconds(2))
        cluster.dispatch(["5"], to: "list/*", from: 1)
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

    @Test func `a session whose node is returning is not forgotten for a newcomer`() {
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

    @Test func `an inquiry about a name whose holder leaves meanwhile ends no other session`()
        throws
    {
        var cluster = Cluster.twoNodes()
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
            if case .event(.left, _) = block { true } else { false }
        }
        #expect(departures.isEmpty)
    }

    @Test func `a store that was closed during its creation is not hosted`() throws {
        var cluster = Cluster.twoNodes()
        let ghost = try #require(StoreName("ghost"))
        cluster.isDiskSlow = true
        cluster.open("ghost", on: 1)
        cluster.input(.close(.store(ghost)), to: 1)
        cluster.run()
        cluster.finishAppends()
        #expect(cluster.sequencer?.directory.store(ghost) != nil)
        #expect(cluster.sequencer?.directory.life(of: ghost)?.work.hosts.isEmpty == true)
    }

    @Test func `a store that was closed while a hello was in transit is not hosted`() throws {
        var cluster = Cluster.twoNodes()
        let list = try #require(StoreName("list"))
        cluster.input(.reconnected, to: 2)
        cluster.input(.close(.store(list)), to: 2)
        cluster.pass(.seconds(1))
        #expect(cluster.nodes[2]?.machine.isJoined == true)
        let hosts = cluster.sequencer?.directory.hosts(of: .store(list)) ?? []
        #expect(hosts.map { cluster.sequencer?.sessions[$0]?.name?.text } == ["alpha"])
    }

    @Test func `a repeated hello closes no store that was opened since`() throws {
        var cluster = Cluster.twoNodes()
        let copy = cluster.disk
        cluster.restartSequencer()
        cluster.dispatch(["lost"], to: "list/*", from: 1)
        // The log is restored from a copy that is two terms old, and answers slowly.
        cluster.killSequencer()
        cluster.restartSequencer()
        cluster.killSequencer()
        cluster.disk = copy
        cluster.isConfirmSlow = true
        cluster.restartSequencer()
        // The first confirmation is for the first node only, the second one for both nodes.
        for _ in 0..<2 {
            cluster.pass(.milliseconds(600))
            cluster.answerConfirm()
        }
        cluster.pass(.milliseconds(300))
        cluster.open("other", on: 2)
        cluster.isConfirmSlow = false
        while cluster.waitingConfirms > 0 { cluster.answerConfirm() }
        cluster.pass(.seconds(1))
        let other = try #require(StoreName("other"))
        let hosts = cluster.sequencer?.directory.hosts(of: .store(other)) ?? []
        #expect(hosts.map { cluster.sequencer?.sessions[$0]?.name?.text } == ["beta"])
        let lost = cluster.notes.filter { if case .historyLost = $0 { true } else { false } }
        #expect(lost.count == 2)
        #expect(cluster.nodes[2]?.texts(of: "list") == cluster.nodes[1]?.texts(of: "list"))
    }

    @Test func `an outcome waits for a store that is opened while the feed is not proven yet`() {
        var cluster = Cluster()
        cluster.startSequencer()
        cluster.addNode(1, named: "alpha", store: "list")
        cluster.addNode(2)
        cluster.nodes[2]?.open("list")
        cluster.nodes[2]?.feedDrops = 1
        cluster.submit(["early"], to: "list/*", from: 2)
        cluster.run()
        #expect(cluster.nodes[2]?.outcomes.isEmpty == true)
        cluster.pass(cluster.settings.beatInterval * 2)
        #expect(cluster.nodes[2]?.texts(of: "list") == ["early"])
        #expect(cluster.nodes[2]?.outcomes.count == 1)
    }

    @Test func `a held outcome waits for a store that reloads meanwhile`() throws {
        var cluster = Cluster.twoNodes()
        let list = try #require(StoreName("list"))
        cluster.nodes[2]?.feedDrops = 1
        cluster.dispatch(["x"], to: "list/*", from: 2)
        #expect(cluster.nodes[2]?.outcomes.isEmpty == true)
        cluster.nextLoss = { if case .opened = $0 { true } else { false } }
        cluster.input(.reported(.reload(list), resets: 0), to: 2)
        // The node itself makes sure that the store has the action when it reports the outcome.
        cluster.pass(.seconds(4))
        #expect(cluster.nodes[2]?.outcomes.count == 1)
        #expect(cluster.nodes[2]?.texts(of: "list") == ["x"])
    }

    @Test func `a node that repeats its hello while it returns gets one entry`() throws {
        var cluster = Cluster.twoNodes()
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
            if case .event(.joined(_, _, let former, _), _) = block {
                former != .none
            } else {
                false
            }
        }
        #expect(returns.count == 1)
    }

    @Test func `nothing waits for a closed store to catch up`() throws {
        var cluster = Cluster.twoNodes()
        for text in ["1", "2", "3"] { cluster.dispatch([text], to: "list/*", from: 1) }
        cluster.addNode(3)
        cluster.bridge("list", on: 3)
        let name = try #require(StoreName("list"))
        cluster.nodes[3]?.open("list")
        while let input = cluster.nodes[3]?.takeInput() { cluster.input(input, to: 3) }
        // The answer to the open arrives, but the answer to the fetch that follows does not.
        while cluster.nodes[3]?.machine.catchUps.isEmpty == true, !cluster.queue.isEmpty {
            cluster.deliver(cluster.queue.removeFirst())
        }
        #expect(cluster.nodes[3]?.machine.catchUps.isEmpty == false)
        cluster.input(.close(.store(name)), to: 3)
        #expect(cluster.nodes[3]?.machine.catchUps.isEmpty == true)
    }

    @Test func `a store continues to catch up when its node is back`() {
        var cluster = Cluster.twoNodes()
        for text in ["1", "2", "3"] { cluster.dispatch([text], to: "list/*", from: 1) }
        cluster.addNode(3) { $0.catchUpBytesMax = 1 }
        cluster.bridge("list", on: 3)
        cluster.nodes[3]?.open("list")
        cluster.flushInputs(of: 3)
        while cluster.nodes[3]?.machine.catchUps.isEmpty == true, !cluster.queue.isEmpty {
            cluster.deliver(cluster.queue.removeFirst())
        }
        // The store applies what it got only after the disconnect, and nothing else happens meanwhile.
        cluster.nodes[3]?.isStuck = true
        cluster.run()
        let bytes = cluster.nodes[3]?.machine.catchUps.outstandingBytes ?? 0
        #expect(bytes > 0)
        cluster.nodes[3]?.isStuck = false
        cluster.disconnect(3)
        cluster.input(.applied(cluster.nodes[3]?.progress ?? ApplyProgress()), to: 3)
        cluster.reconnect(3)
        cluster.pass(.seconds(1))
        #expect(cluster.nodes[3]?.texts(of: "list") == ["1", "2", "3"])
        #expect(cluster.nodes[3]?.machine.catchUps.isEmpty == true)
    }

    @Test func `hellos that waited together lose neither outcomes nor the history of their node`() {
        var cluster = Cluster.twoNodes()
        cluster.isDiskSlow = true
        cluster.dispatch(["x"], to: "list/*", from: 1)
        // The action reaches the disk, and the sequencer dies before it reports it.
        for append in cluster.waitingAppends {
            cluster.disk.append(append)
        }
        cluster.killSequencer()
        cluster.isDiskSlow = false
        cluster.reconnect(1)
        cluster.startSequencer()
        // Both hellos are read one after the other, and a receipt is sent between their welcomes.
        cluster.input(.reconnected, to: 1)
        cluster.input(.reconnected, to: 1)
        cluster.pass(.milliseconds(300))
        let events = cluster.nodes[1]?.events ?? []
        #expect(!events.contains { if case .historyLost = $0 { true } else { false } })
        #expect(cluster.nodes[1]?.outcomes.count == 1)
        #expect(cluster.nodes[1]?.texts(of: "list") == ["x"])
    }

    @Test func `a superseded sequencer adopts no history from a node that knows more`() {
        var cluster = Cluster.twoNodes()
        // Another term has begun, and a third sequencer has given its entries to a node.
        cluster.disk.epoch = Epoch(2)
        let mark = HistoryMark(
            log: cluster.disk.id, sequence: SequenceNumber(50), epoch: Epoch(2), claim: .none)
        let hello = Hello(
            request: 100, nonce: Identifier(high: 4, low: 2), name: nil, role: .observer,
            process: nil,
            session: nil, history: mark, hosted: [], bridged: [])
        let connection = ConnectionID(rawValue: 999)
        cluster.published.removeAll()
        cluster.handle(
            .received(
                .hello(hello), by: cluster.speaker(connection, epoch: Epoch(1)), from: connection))
        cluster.run()
        #expect(cluster.ends == [.superseded])
        #expect(!cluster.notes.contains { if case .historyLost = $0 { true } else { false } })
        let isWelcome = { (effect: SequencerEffect) in
            if case .send(.welcome, connection) = effect { true } else { false }
        }
        #expect(!cluster.published.contains(where: isWelcome))
    }

    @Test func `a late welcome of an ended term is ignored`() {
        var cluster = Cluster.twoNodes()
        // The node hosts nothing, so that no history contradicts the welcome.
        cluster.addNode(3)
        // The node says hello once more, and the answer is delayed.
        cluster.input(.reconnected, to: 3)
        while case .toSequencer? = cluster.queue.first {
            cluster.deliver(cluster.queue.removeFirst())
        }
        let late = cluster.queue.compactMap { step -> [UInt8]? in
            if case .toNode(3, _, let frame) = step { frame } else { nil }
        }
        #expect(late.count == 1)
        cluster.restartSequencer()
        #expect(cluster.nodes[3]?.machine.epoch == Epoch(2))
        let connection = cluster.connection(of: 3)
        for frame in late {
            if let connection { cluster.deliver(.toNode(3, connection, frame)) }
        }
        #expect(cluster.nodes[3]?.machine.epoch == Epoch(2))
    }
}
