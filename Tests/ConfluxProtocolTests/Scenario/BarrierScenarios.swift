import ConfluxVocabulary
import Testing

@testable import ConfluxProtocol

/// Linearizable reads (rule 29).
struct BarrierScenarios {
    private func barriers(_ cluster: Cluster, of id: Int) -> Int {
        cluster.nodes[id]?.sent.filter { if case .barrier = $0 { true } else { false } }.count ?? 0
    }

    @Test func `a barrier ends when all earlier actions with receipts are applied`() {
        var cluster = Cluster.twoNodes()
        // The other node loses the feed's message with the action.
        cluster.nodes[2]?.feedDrops = 1
        cluster.dispatch(["x"], to: "list/*", from: 1)
        #expect(cluster.nodes[1]?.outcomes.count == 1)
        #expect(cluster.nodes[2]?.texts(of: "list") == [])
        cluster.input(.barrier(request: 100), to: 2)
        cluster.run()
        // It fetched the missing entry without waiting for a beat.
        #expect(cluster.nodes[2]?.texts(of: "list") == ["x"])
        #expect(cluster.nodes[2]?.reached[100] == .due(cluster.disk.last))
    }

    @Test func `a node that hosts nothing passes a barrier once the term is confirmed`() {
        var cluster = Cluster.twoNodes()
        cluster.addNode(3)
        cluster.isConfirmSlow = true
        cluster.input(.barrier(request: 1), to: 3)
        cluster.run()
        #expect(cluster.nodes[3]?.reached[1] == nil)
        cluster.answerConfirm()
        cluster.run()
        #expect(cluster.nodes[3]?.reached[1] == .due(cluster.disk.last))
    }

    @Test func `a barrier that begins during a confirmation waits for the next one`() {
        var cluster = Cluster.twoNodes()
        cluster.isConfirmSlow = true
        cluster.input(.barrier(request: 1), to: 1)
        cluster.run()
        cluster.input(.barrier(request: 2), to: 1)
        cluster.input(.barrier(request: 3), to: 2)
        cluster.run()
        #expect(cluster.waitingConfirms == 1)
        cluster.answerConfirm()
        cluster.run()
        #expect(cluster.nodes[1]?.reached.keys.sorted() == [1])
        #expect(cluster.nodes[2]?.reached.isEmpty == true)
        // One confirmation answers both waiting questions.
        #expect(cluster.waitingConfirms == 1)
        cluster.answerConfirm()
        cluster.run()
        #expect(cluster.nodes[1]?.reached.keys.sorted() == [1, 2])
        #expect(cluster.nodes[2]?.reached.keys.sorted() == [3])
        #expect(cluster.waitingConfirms == 0)
    }

    @Test func `a superseded sequencer answers nobody`() {
        var cluster = Cluster.twoNodes()
        cluster.dispatch(["1"], to: "list/*", from: 1)
        cluster.isConfirmSlow = true
        cluster.input(.barrier(request: 1), to: 2)
        cluster.run()

        // A newer term begins on the same disk, where another node gets a receipt.
        var rival = Cluster()
        rival.disk = cluster.disk
        rival.startSequencer()
        rival.addNode(9, named: "gamma")
        rival.dispatch(["2"], to: "list/*", from: 9)
        rival.pass(.seconds(1))
        #expect(rival.nodes[9]?.outcomes.count == 1)

        cluster.disk = rival.disk
        cluster.answerConfirm()
        cluster.run()
        #expect(cluster.ends == [.superseded])
        #expect(cluster.nodes[2]?.reached.isEmpty == true)

        // The node finds the newer term, asks it, and then reads the action that was committed there.
        cluster.isConfirmSlow = false
        cluster.restartSequencer()
        cluster.pass(.seconds(1))
        #expect(cluster.nodes[2]?.texts(of: "list") == ["1", "2"])
        guard case .due(let number)? = cluster.nodes[2]?.reached[1] else {
            Issue.record("the barrier did not end: \(cluster.nodes[2]?.reached ?? [:])")
            return
        }
        #expect(number > rival.disk.bodies[rival.disk.bodies.count - 2].last)
    }

    @Test func `a barrier's lost request is sent again`() {
        var cluster = Cluster.twoNodes()
        cluster.input(.barrier(request: 1), to: 2)
        cluster.queue.removeAll()
        // Other traffic must not make the node believe that its question arrived.
        for text in ["1", "2", "3", "4"] {
            cluster.pass(.milliseconds(400))
            cluster.dispatch([text], to: "list/*", from: 2)
        }
        cluster.pass(.milliseconds(400))
        #expect(cluster.nodes[2]?.reached.count == 1)
        #expect(barriers(cluster, of: 2) >= 2)
    }

    @Test func `a barrier whose number is known is not requested again in a new term`() {
        var cluster = Cluster.twoNodes()
        cluster.dispatch(["1"], to: "list/*", from: 1)
        // From now on nothing reaches the node by the feed or by fetching.
        cluster.nodes[2]?.feedDrops = 1_000
        cluster.dispatch(["2"], to: "list/*", from: 1)
        cluster.input(.barrier(request: 1), to: 2)
        while cluster.nodes[2]?.due[1] == nil, !cluster.queue.isEmpty {
            cluster.deliver(cluster.queue.removeFirst())
        }
        #expect(cluster.nodes[2]?.reached.isEmpty == true)
        let asked = barriers(cluster, of: 2)
        let named = cluster.disk.last
        cluster.nodes[2]?.feedDrops = 0
        cluster.restartSequencer()
        cluster.pass(.seconds(2))
        // The number covers every entry that had a receipt when the barrier began.
        #expect(barriers(cluster, of: 2) == asked)
        guard case .due(let number)? = cluster.nodes[2]?.reached[1] else {
            Issue.record("the barrier did not end")
            return
        }
        #expect(number == named && cluster.nodes[2]?.texts(of: "list") == ["1", "2"])
    }

    @Test
    func `a wait for a number that the log loses fails, even if the node never had the entry`() {
        var cluster = Cluster.twoNodes()
        let copy = cluster.disk
        // The node gets nothing that is later lost, except for the number of its barrier.
        cluster.nodes[2]?.feedDrops = 1_000
        cluster.dispatch(["lost"], to: "list/*", from: 1)
        cluster.input(.barrier(request: 1), to: 2)
        while cluster.nodes[2]?.due[1] == nil, !cluster.queue.isEmpty {
            cluster.deliver(cluster.queue.removeFirst())
        }
        #expect(cluster.nodes[2]?.due[1] != nil && cluster.nodes[2]?.resets == 0)
        cluster.nodes[2]?.feedDrops = 0
        cluster.killSequencer()
        cluster.disk = copy
        cluster.restartSequencer()
        cluster.pass(.seconds(2))
        #expect(cluster.nodes[2]?.resets == 1)
    }

    @Test func `above the node's or the sequencer's bound a barrier fails, and others continue`() {
        var cluster = Cluster.twoNodes()
        cluster.sequencer = nil
        cluster.settings.barriersMax = 2
        cluster.restartSequencer()
        cluster.pass(.seconds(1))
        cluster.isConfirmSlow = true
        for request in 1...4 as ClosedRange<UInt64> {
            cluster.input(.barrier(request: request), to: 1)
        }
        cluster.run()
        for request in [3, 4] as [UInt64] {
            guard case .failed(.tableFull, _)? = cluster.nodes[1]?.reached[request] else {
                Issue.record("\(request) did not fail: \(cluster.nodes[1]?.reached ?? [:])")
                continue
            }
        }
        while cluster.waitingConfirms > 0 {
            cluster.answerConfirm()
            cluster.run()
        }
        #expect(cluster.nodes[1]?.reached.count == 4)

        // The limit of the node's own table.
        cluster.isConfirmSlow = true
        let most = UInt64(cluster.nodes[1]?.machine.settings.waitersMax ?? 0)
        for request in 100...(100 + most) {
            cluster.input(.barrier(request: request), to: 1)
        }
        #expect(cluster.nodes[1]?.machine.waiters.count == Int(most))
        guard case .failed(.tableFull, _)? = cluster.nodes[1]?.reached[100 + most] else {
            Issue.record("the last one did not fail")
            return
        }
        cluster.input(.giveUp(request: 100), to: 1)
        #expect(cluster.nodes[1]?.machine.waiters.count == Int(most) - 1)
    }

    @Test func `a wait for a receipt ends once its number is applied`() {
        var cluster = Cluster.twoNodes()
        cluster.nodes[2]?.feedDrops = 1
        cluster.dispatch(["x"], to: "list/*", from: 1)
        guard let receipt = receipt(cluster, of: 1) else {
            Issue.record("no receipt")
            return
        }
        cluster.input(.await(receipt, request: 1), to: 2)
        cluster.run()
        #expect(cluster.nodes[2]?.reached.isEmpty == true)
        cluster.pass(cluster.settings.beatInterval * 2)
        #expect(cluster.nodes[2]?.reached[1] == .due(receipt.sequence))
        #expect(cluster.nodes[2]?.texts(of: "list") == ["x"])
        // The receipt is known to belong to the node's history, so the sequencer is not asked.
        #expect(barriers(cluster, of: 2) == 0)
        let other = Receipt(
            log: Identifier(high: 1, low: 1), epoch: receipt.epoch, sequence: receipt.sequence,
            timestamp: receipt.timestamp)
        cluster.input(.await(other, request: 2), to: 2)
        #expect(cluster.nodes[2]?.reached[2] == .otherLog(cluster.disk.id))
    }

    @Test
    func `a node with a lost entry of a receipt's number waits for the receipt's entry`() {
        var cluster = Cluster.twoNodes()
        let copy = cluster.disk
        for _ in 1...6 { cluster.dispatch(["lost"], to: "list/*", from: 1) }
        #expect(cluster.nodes[2]?.texts(of: "list").count == 6)
        // The log is restored from an earlier copy, and another node gets a receipt there.
        cluster.killSequencer()
        var restored = Cluster()
        restored.disk = copy
        restored.startSequencer()
        restored.addNode(9, named: "gamma")
        for text in ["1", "2", "3"] { restored.dispatch([text], to: "list/*", from: 9) }
        restored.pass(.seconds(1))
        guard let receipt = receipt(restored, of: 9), receipt.sequence <= cluster.disk.last else {
            Issue.record("no receipt below what the node has")
            return
        }

        // The node has not noticed that when it begins to wait.
        cluster.input(.await(receipt, request: 1), to: 2)
        cluster.run()
        #expect(cluster.nodes[2]?.reached.isEmpty == true)
        cluster.disk = restored.disk
        cluster.restartSequencer()
        cluster.pass(.seconds(2))
        #expect(cluster.nodes[2]?.reached[1] == .due(receipt.sequence))
        #expect(cluster.nodes[2]?.texts(of: "list").first == "1")
        #expect(barriers(cluster, of: 2) > 0)
    }

    /// The receipt of a node's first action.
    private func receipt(_ cluster: Cluster, of node: Int) -> Receipt? {
        guard
            case .committed(let log, let sequence, let epoch, let timestamp)? =
                cluster.nodes[node]?.outcomes[1]
        else { return nil }
        return Receipt(log: log, epoch: epoch, sequence: sequence, timestamp: timestamp)
    }

    @Test func `a barrier waits for stores that reload after a history was lost`() {
        var cluster = Cluster.twoNodes()
        for text in ["1", "2"] { cluster.dispatch([text], to: "list/*", from: 1) }
        cluster.killSequencer()
        cluster.input(.barrier(request: 1), to: 2)
        cluster.disk = Cluster.Disk(id: Identifier(high: 7, low: 2))
        cluster.restartSequencer()
        cluster.pass(.seconds(2))
        #expect(cluster.nodes[2]?.reached.count == 1)
    }
}
