import ConfluxVocabulary
import Testing

@testable import ConfluxProtocol

/// Which process holds a session key: one at a time (rule 11).
struct KeyHolderScenarios {
    @Test func `while a process holds the key, another one is refused`() {
        var cluster = Cluster.withKeyedProcess()
        cluster.addNode(2, key: "k")
        cluster.pass(.milliseconds(100))
        guard case .refused(.keyTaken, let message) = cluster.nodes[2]?.end else {
            Issue.record("not refused: \(String(describing: cluster.nodes[2]?.end))")
            return
        }
        #expect(message.contains("key"))
        cluster.dispatch(["1"], to: "list/*", from: 1)
        #expect(cluster.workersTexts == ["1"])
    }

    @Test func `of two processes that start at the same time, one gets the key`() {
        var cluster = Cluster()
        cluster.startSequencer()
        cluster.isDiskSlow = true
        cluster.addNode(1, key: "k")
        cluster.addNode(2, key: "k")
        cluster.pass(.milliseconds(700))
        cluster.finishAppends()
        cluster.pass(.seconds(3))
        let joined = [1, 2].filter {
            cluster.nodes[$0]?.machine.isJoined == true && cluster.nodes[$0]?.end == nil
        }
        let refused = [1, 2].filter {
            if case .refused(.keyTaken, _) = cluster.nodes[$0]?.end { true } else { false }
        }
        #expect(joined.count == 1 && refused.count == 1)
    }

    @Test func `the key of an unresponsive process is free after a second`() {
        var cluster = Cluster.withKeyedProcess()
        let sleeper = cluster.nodes[1]
        cluster.removeNode(1)
        cluster.addNode(2, key: "k")
        cluster.pass(.milliseconds(900))
        #expect(cluster.nodes[2]?.machine.isJoined == false)
        cluster.pass(.milliseconds(200))
        #expect(cluster.nodes[2]?.machine.isJoined == true)
        cluster.dispatch(["1"], to: "list/*", from: 2)

        // The first process was only stopped. Its messages don't count any more.
        cluster.nodes[1] = sleeper
        cluster.reconnect(1)
        cluster.pass(.seconds(2))
        guard case .refused(.keyTaken, _) = cluster.nodes[1]?.end else {
            Issue.record("not refused: \(String(describing: cluster.nodes[1]?.end))")
            return
        }
        cluster.dispatch(["2"], to: "list/*", from: 2)
        #expect(cluster.workersTexts == ["1", "2"])
    }

    @Test func `a process that waits for a key gets it when its holder leaves`() {
        var cluster = Cluster.withKeyedProcess()
        // The holder's bye and the question whether it is alive cross each other.
        cluster.input(.leave, to: 1)
        let parting = cluster.queue
        cluster.queue.removeAll()
        cluster.addNode(2, key: "k")
        #expect(cluster.nodes[2]?.machine.isJoined == false)
        cluster.queue = parting
        cluster.pass(.seconds(2))
        #expect(cluster.nodes[2]?.end == nil)
        #expect(cluster.nodes[2]?.machine.isJoined == true)
    }

    @Test
    func `a process that waits for a key gets it once its holder has been silent for too long`()
        throws
    {
        var cluster = Cluster.withKeyedProcess()
        cluster.removeNode(1)
        cluster.pass(cluster.settings.silenceMax)
        let sweepAt = try #require(cluster.sequencer?.sweepAt)
        cluster.pass(sweepAt - cluster.now - .milliseconds(300))
        cluster.addNode(2, key: "k")
        cluster.pass(.seconds(2))
        #expect(cluster.nodes[2]?.end == nil)
        #expect(cluster.nodes[2]?.machine.isJoined == true)
    }

    @Test func `after a restart the former holder keeps its key, even if another process is first`()
    {
        var cluster = Cluster.withKeyedProcess()
        cluster.restartSequencer()
        // The holder's hello is lost; a newcomer's arrives.
        cluster.killSequencer()
        cluster.startSequencer()
        cluster.addNode(2, key: "k")
        #expect(cluster.nodes[2]?.machine.isJoined == false)
        cluster.reconnect(1)
        cluster.pass(.milliseconds(500))
        #expect(cluster.nodes[1]?.machine.isJoined == true)
        guard case .refused(.keyTaken, _) = cluster.nodes[2]?.end else {
            Issue.record("not refused: \(String(describing: cluster.nodes[2]?.end))")
            return
        }
    }

    @Test func `a process whose welcome was lost waits for nobody`() {
        var cluster = Cluster()
        cluster.startSequencer()
        cluster.isDiskSlow = true
        cluster.addNode(1, key: "k")
        cluster.isDiskSlow = false
        let append = cluster.waitingAppends.removeFirst()
        cluster.deliver(.logged(append))
        cluster.queue.removeAll()
        cluster.reconnect(1)
        #expect(cluster.nodes[1]?.machine.isJoined == true)
    }

    @Test func `a takeover waits until its predecessor's actions are in the log`() {
        var cluster = Cluster.withKeyedProcess()
        cluster.isDiskSlow = true
        cluster.dispatch(["1"], to: "list/*", from: 1)
        cluster.dispatch(["2"], to: "list/*", from: 1)
        cluster.removeNode(1)
        cluster.addNode(2, key: "k")
        cluster.pass(.seconds(2))
        #expect(cluster.nodes[2]?.machine.isJoined == false)
        cluster.finishAppends()
        cluster.pass(.seconds(3))
        #expect(cluster.resumption(of: 2) == Resumption(settled: 0, lastCounter: 2))
        // The batches are divided differently than before.
        cluster.dispatch(["1", "2"], to: "list/*", from: 2)
        cluster.dispatch(["3"], to: "list/*", from: 2)
        #expect(cluster.workersTexts == ["1", "2", "3"])
        #expect((1...3).allSatisfy { cluster.isCommitted(by: 2, $0) })
    }
}
