import ConfluxVocabulary
import Testing

@testable import ConfluxProtocol

/// Consecutive processes with one session key (rule 11).
struct KeyedScenarios {
    @Test func `the next process continues after the reported outcomes`() {
        var cluster = Cluster.withKeyedProcess()
        cluster.dispatch(["1", "2", "3"], to: "list/*", from: 1)
        cluster.input(.told(2), to: 1)
        cluster.input(.leave, to: 1)
        cluster.run()
        cluster.removeNode(1)
        cluster.addNode(2, key: "k")
        #expect(cluster.resumption(of: 2) == Resumption(settled: 2, lastCounter: 3))
        #expect(cluster.nodes[2]?.machine.nextCounter == 3)
        cluster.dispatch(["3"], to: "list/*", from: 2)
        cluster.dispatch(["4"], to: "list/*", from: 2)
        #expect(cluster.workersTexts == ["1", "2", "3", "4"])
        #expect(cluster.isCommitted(by: 2, 3) && cluster.isCommitted(by: 2, 4))
    }

    @Test func `acknowledged outcomes reach the sequencer without a bye`() {
        var cluster = Cluster.withKeyedProcess()
        cluster.dispatch(["1", "2", "3"], to: "list/*", from: 1)
        cluster.input(.told(3), to: 1)
        cluster.pass(cluster.settings.beatInterval * 2)
        cluster.removeNode(1)
        cluster.addNode(2, key: "k")
        cluster.pass(.seconds(2))
        #expect(cluster.resumption(of: 2) == Resumption(settled: 3, lastCounter: 3))
    }

    @Test func `a lost answer about part of a former process's actions is repeated`() {
        var cluster = Cluster.withKeyedProcess()
        let lines = (1...100).map { "\($0)" }
        cluster.dispatch(lines, to: "list/*", from: 1)
        cluster.removeNode(1)
        cluster.addNode(2, key: "k")
        cluster.pass(.seconds(2))
        #expect(cluster.resumption(of: 2) == Resumption(settled: 0, lastCounter: 100))
        cluster.submit(Array(lines.prefix(10)), to: "list/*", from: 2)
        while case .toSequencer = cluster.queue.first {
            cluster.deliver(cluster.queue.removeFirst())
        }
        // The connection breaks while the answer is in transit, and nothing more is dispatched.
        cluster.reconnect(2)
        cluster.pass(.seconds(5))
        #expect(cluster.nodes[2]?.outcomes.count == 10)
        #expect(cluster.nodes[2]?.machine.isSettled == true)
        #expect(cluster.workersTexts == lines)
    }

    @Test func `another key has another session, and a process without one begins with 1`() {
        var cluster = Cluster.withKeyedProcess()
        cluster.dispatch(["1"], to: "list/*", from: 1)
        cluster.addNode(2, key: "other")
        #expect(cluster.resumption(of: 2) == Resumption(settled: 0, lastCounter: 0))
        cluster.addNode(3)
        #expect(cluster.resumption(of: 3) == nil)
        #expect(cluster.nodes[3]?.machine.nextCounter == 1)
    }

    @Test func `a keyed session outlives its bye and the sequencer`() throws {
        var cluster = Cluster.withKeyedProcess()
        cluster.dispatch(["1"], to: "list/*", from: 1)
        let incarnation = try #require(cluster.nodes[1]?.machine.incarnation)
        cluster.input(.told(1), to: 1)
        cluster.input(.leave, to: 1)
        cluster.run()
        cluster.removeNode(1)
        let last = try Commit.decode(body: try #require(cluster.disk.bodies.last).body)
        #expect(last.blocks == [.event(.left(incarnation))])

        cluster.restartSequencer()
        cluster.addNode(2, key: "k")
        #expect(cluster.nodes[2]?.machine.incarnation == incarnation)
        // The log doesn't say which outcomes were reported, so they are reported again.
        #expect(cluster.resumption(of: 2) == Resumption(settled: 0, lastCounter: 1))
        cluster.input(.leave, to: 2)
        cluster.run()
        let bye = try Commit.decode(body: try #require(cluster.disk.bodies.last).body)
        #expect(bye.blocks == [.event(.left(incarnation))])
    }

    @Test(arguments: [false, true])
    func `lines that a restored log has lost are dispatched again, whatever was told`(
        isResumed: Bool
    ) {
        var cluster = Cluster.withKeyedProcess()
        cluster.dispatch(["1"], to: "list/*", from: 1)
        let copy = cluster.disk
        cluster.dispatch(["2", "3"], to: "list/*", from: 1)
        cluster.input(.told(3), to: 1)
        cluster.pass(cluster.settings.beatInterval * 2)
        var process = 1
        if isResumed {
            // This process knows of the lines only what the sequencer says of its session.
            cluster.input(.leave, to: 1)
            cluster.run()
            cluster.removeNode(1)
            process = 3
            cluster.addNode(process, key: "k")
            #expect(cluster.resumption(of: process) == Resumption(settled: 3, lastCounter: 3))
        }
        cluster.killSequencer()
        cluster.disk = copy
        cluster.restartSequencer()
        cluster.pass(.seconds(5))
        // It does not say what it knows as settled: the log would take it for judged.
        #expect(
            cluster.nodes[process]?.events.contains { event in
                if case .historyLost = event { true } else { false }
            } == true)
        #expect(cluster.nodes[process]?.machine.isJoined == false)
        cluster.removeNode(process)
        cluster.addNode(4, key: "k")
        cluster.pass(.seconds(2))
        #expect(cluster.resumption(of: 4) == Resumption(settled: 0, lastCounter: 1))
        for text in ["1", "2", "3"] { cluster.dispatch([text], to: "list/*", from: 4) }
        cluster.pass(.seconds(2))
        #expect(cluster.workersTexts == ["1", "2", "3"])
    }

    @Test func `a keyed session is forgotten after its own time`() {
        var cluster = Cluster()
        cluster.settings.forgetAfter = .seconds(20)
        cluster.settings.keyedSessionsKeptFor = .seconds(60)
        cluster.startSequencer()
        cluster.addNode(1, key: "k")
        cluster.pass(.seconds(30))
        cluster.input(.leave, to: 1)
        cluster.run()
        cluster.removeNode(1)
        cluster.pass(.seconds(50))
        #expect(cluster.sequencer?.sessions.count == 1)
        cluster.pass(.seconds(20))
        #expect(cluster.sequencer?.sessions.count == 0)
    }

    @Test func `when the table is full, the keyed session that ended first is forgotten`() {
        var cluster = Cluster()
        cluster.settings.sessionsMax = 2
        cluster.startSequencer()
        for (id, key) in [(1, "a"), (2, "b")] {
            cluster.addNode(id, key: key)
            cluster.dispatch(["x"], to: "nowhere/*", from: id)
            cluster.input(.leave, to: id)
            cluster.run()
            cluster.removeNode(id)
            cluster.pass(.seconds(1))
        }
        cluster.addNode(3)
        #expect(cluster.nodes[3]?.machine.isJoined == true)
        #expect(cluster.sequencer?.sessions.incarnation(of: SessionKey("a")!.nonce) == nil)
        #expect(cluster.sequencer?.sessions.incarnation(of: SessionKey("b")!.nonce) != nil)
    }

    @Test func `a sequencer that restarts without its latest entries loses no line`() {
        var cluster = Cluster.withKeyedProcess()
        cluster.isDiskSlow = true
        cluster.dispatch(["1"], to: "list/*", from: 1)
        cluster.dispatch(["2"], to: "list/*", from: 1)
        // The second line was admitted, and is lost with the sequencer. The process dies, too.
        let append = cluster.waitingAppends.removeFirst()
        cluster.disk.append(append)
        cluster.removeNode(1)
        cluster.isDiskSlow = false
        cluster.restartSequencer()
        cluster.addNode(2, key: "k")
        cluster.pass(.seconds(2))
        #expect(cluster.resumption(of: 2) == Resumption(settled: 0, lastCounter: 1))
        cluster.submit(["1"], to: "list/*", from: 2)
        cluster.submit(["2", "3"], to: "list/*", from: 2)
        // And once more, in the middle of the resumed run.
        cluster.restartSequencer()
        cluster.pass(.seconds(1))
        #expect(cluster.workersTexts == ["1", "2", "3"])
        #expect((1...3).allSatisfy { cluster.isCommitted(by: 2, $0) })
    }

    @Test func `void lines at the end are void again after a restart`() {
        var cluster = Cluster.withKeyedProcess()
        cluster.dispatch(["1"], to: "list/*", from: 1)
        cluster.input(.skipped(2), to: 1)
        cluster.run()
        #expect(cluster.nodes[1]?.outcomes.count == 3)
        cluster.removeNode(1)
        cluster.restartSequencer()
        cluster.addNode(2, key: "k")
        cluster.pass(.seconds(2))
        #expect(cluster.resumption(of: 2) == Resumption(settled: 0, lastCounter: 1))
        cluster.submit(["1"], to: "list/*", from: 2)
        cluster.input(.skipped(2), to: 2)
        cluster.submit(["4"], to: "list/*", from: 2)
        cluster.run()
        #expect(cluster.workersTexts == ["1", "4"])
        #expect(cluster.nodes[2]?.outcomes.count == 4)
    }

    @Test func `void lines are not asked about, and the lines after them are dispatched`() {
        var cluster = Cluster.withKeyedProcess()
        cluster.dispatch(["1"], to: "list/*", from: 1)
        cluster.input(.skipped(2), to: 1)
        cluster.run()
        cluster.removeNode(1)
        cluster.addNode(2, key: "k")
        cluster.pass(.seconds(2))
        #expect(cluster.resumption(of: 2) == Resumption(settled: 0, lastCounter: 3))
        cluster.submit(["1"], to: "list/*", from: 2)
        cluster.input(.skipped(2), to: 2)
        // In the middle of this, the sequencer restarts, and remembers nothing about the void lines.
        cluster.restartSequencer()
        cluster.pass(.seconds(1))
        cluster.dispatch(["4"], to: "list/*", from: 2)
        cluster.pass(.seconds(1))
        #expect(cluster.workersTexts == ["1", "4"])
        #expect(cluster.nodes[2]?.outcomes.count == 4)
    }

    @Test func `a known rejection that was not sent yet is not judged again after a restart`() {
        var cluster = Cluster.withKeyedProcess()
        cluster.dispatch(["1"], to: "list/*", from: 1)
        cluster.submit(["nowhere/*:2", "elsewhere/*:3"], to: "list/*", from: 1)
        cluster.deliver(cluster.queue.removeFirst())
        // The first rejection arrives. The second is lost with the connection.
        let first = cluster.queue.removeFirst()
        cluster.queue.removeAll()
        cluster.deliver(first)
        #expect(cluster.nodes[1]?.outcomes.count == 2)
        // Meanwhile the stores that nobody hosted are opened, so that both actions would be admitted.
        cluster.open("nowhere", on: 9)
        cluster.open("elsewhere", on: 9)
        cluster.restartSequencer()
        cluster.pass(.seconds(1))
        #expect(cluster.nodes[1]?.outcomes.count == 3)
        #expect(cluster.nodes[9]?.texts(of: "nowhere") == [])
        cluster.dispatch(["4"], to: "list/*", from: 1)
        #expect(cluster.workersTexts == ["1", "4"])
        // The next process is told of it, as of any other line.
        cluster.removeNode(1)
        cluster.addNode(2, key: "k")
        cluster.pass(.seconds(2))
        #expect(cluster.resumption(of: 2) == Resumption(settled: 0, lastCounter: 4))
    }

    @Test func `a session that is forgotten during a run ends it and reports unknown outcomes`()
        throws
    {
        var cluster = Cluster.withKeyedProcess()
        cluster.dispatch(["1"], to: "list/*", from: 1)
        cluster.submit(["2", "3"], to: "list/*", from: 1)
        cluster.killSequencer()
        cluster.disk = Cluster.Disk(id: Identifier(high: 7, low: 2))
        cluster.removeNode(9)
        cluster.restartSequencer()
        cluster.pass(.seconds(1))
        let node = try #require(cluster.nodes[1])
        guard case .refused(.forgotten, let message) = node.end else {
            Issue.record("it goes on: \(String(describing: node.end))")
            return
        }
        #expect(message.contains("key"))
        #expect(node.outcomes[2] == .unknown && node.outcomes[3] == .unknown)
        #expect(node.events.contains(.sessionForgotten))
        // Nothing was dispatched again.
        #expect(cluster.disk.last == SequenceNumber(1))
    }

    @Test func `whatever is killed, each line is in the log once and reported by some process`() {
        let seed = SplitMix64.seed()
        for round in 0..<60 {
            var run = KeyedRun(seed: seed &+ UInt64(round))
            run.finish()
            #expect(run.texts == run.expected, "seed \(seed) round \(round)")
            #expect(run.told == run.lineCount, "seed \(seed) round \(round)")
        }
    }
}
