import ConfluxVocabulary
import Testing

@testable import ConfluxProtocol

/// Withdrawals of actions (rule 12), at every place where an action can be.
struct WithdrawalScenarios {
    private func code(_ cluster: Cluster, _ counter: UInt64) -> RejectionCode? {
        guard case .rejected(let code, _) = cluster.nodes[1]?.outcomes[counter] else { return nil }
        return code
    }

    @Test
    func `actions that are withdrawn before they arrive are not in the log, but others are`() {
        var cluster = Cluster.twoNodes()
        cluster.submit(["a", "b", "c"], to: "list/*", from: 1)
        cluster.queue.removeAll()
        cluster.withdraw(2...2, from: 1)
        cluster.run()
        // Only the void batch arrived, which shows that the batch before it was lost.
        #expect(cluster.nodes[1]?.outcomes.isEmpty == true)
        cluster.pass(.milliseconds(100))
        #expect(cluster.nodes[2]?.texts(of: "list") == ["a", "c"])
        #expect(code(cluster, 2) == .withdrawn)
        #expect(cluster.nodes[1]?.outcomes.count == 3)
    }

    @Test func `an action that is already ordered gets its receipt`() {
        var cluster = Cluster.twoNodes()
        cluster.isDiskSlow = true
        cluster.dispatch(["a", "b", "c"], to: "list/*", from: 1)
        cluster.withdraw(2...3, from: 1)
        cluster.run()
        #expect(cluster.nodes[1]?.outcomes.isEmpty == true)
        cluster.finishAppends()
        #expect(cluster.nodes[1]?.texts(of: "list") == ["a", "b", "c"])
        for counter in [UInt64(1), 2, 3] {
            guard case .committed = cluster.nodes[1]?.outcomes[counter] else {
                Issue.record("no receipt of \(counter)")
                continue
            }
        }
        let last = cluster.disk.last
        cluster.withdraw(1...9, from: 1)
        cluster.run()
        #expect(cluster.disk.last == last)
        cluster.dispatch(["d"], to: "list/*", from: 1)
        #expect(cluster.nodes[2]?.texts(of: "list") == ["a", "b", "c", "d"])
    }

    @Test func `atomic actions are withdrawn together`() {
        var cluster = Cluster.twoNodes()
        cluster.submit(["a", "b", "c"], to: "list/*", from: 1, isAtomic: true)
        cluster.queue.removeAll()
        cluster.withdraw(2...2, from: 1)
        cluster.pass(.milliseconds(100))
        #expect((1...3).map { code(cluster, $0) } == [.withdrawn, .withdrawn, .withdrawn])
        cluster.dispatch(["d"], to: "list/*", from: 1)
        #expect(cluster.nodes[2]?.texts(of: "list") == ["d"])
    }

    @Test func `a withdrawal waits for a sequencer, and survives restarts`() {
        var cluster = Cluster.twoNodes()
        cluster.submit(["a", "b"], to: "list/*", from: 1)
        cluster.killSequencer()
        cluster.withdraw(1...1, from: 1)
        cluster.pass(.seconds(1))
        #expect(cluster.nodes[1]?.outcomes.isEmpty == true)
        cluster.restartSequencer()
        cluster.restartSequencer()
        cluster.pass(.milliseconds(300))
        #expect(code(cluster, 1) == .withdrawn)
        #expect(cluster.nodes[2]?.texts(of: "list") == ["b"])
        cluster.restartSequencer()
        cluster.dispatch(["c"], to: "list/*", from: 1)
        cluster.pass(.milliseconds(300))
        #expect(cluster.nodes[2]?.texts(of: "list") == ["b", "c"])
    }

    @Test func `an outcome of withdrawn actions is reported after the receipts before it`() {
        var cluster = Cluster.twoNodes()
        cluster.submit(["lost"], to: "list/*", from: 1)
        cluster.queue.removeAll()
        cluster.withdraw(1...1, from: 1)
        cluster.isDiskSlow = true
        cluster.dispatch(["a"], to: "list/*", from: 1)
        cluster.submit(["b"], to: "list/*", from: 1)
        cluster.queue.removeAll()
        cluster.withdraw(3...3, from: 1)
        cluster.run()
        #expect(cluster.nodes[1]?.outcomes.keys.sorted() == [1])
        cluster.finishAppends()
        #expect(cluster.nodes[1]?.outcomes.keys.sorted() == [1, 2, 3])
        #expect(code(cluster, 3) == .withdrawn)
    }

    @Test func `a full window blocks no withdrawal`() {
        var cluster = Cluster()
        cluster.startSequencer()
        cluster.addNode(1, store: "list")
        cluster.isDiskSlow = true
        let long = String(repeating: "x", count: 1 << 20)
        for _ in 0..<4 { cluster.dispatch([long], to: "list/*", from: 1) }
        cluster.withdraw(4...4, from: 1)
        cluster.pass(.milliseconds(100))
        cluster.finishAppends()
        cluster.pass(.seconds(1))
        #expect(cluster.nodes[1]?.texts(of: "list").count == 3)
        #expect(code(cluster, 4) == .withdrawn)
    }

    @Test func `a nearly full log blocks no withdrawal`() {
        var cluster = Cluster.twoNodes()
        cluster.handle(.logSpace(.nearlyFull))
        cluster.dispatch(["a", "b"], to: "list/*", from: 1)
        #expect(cluster.nodes[1]?.outcomes.isEmpty == true)
        cluster.withdraw(1...1, from: 1)
        cluster.pass(.milliseconds(500))
        #expect(code(cluster, 1) == .withdrawn)
        cluster.handle(.logSpace(.ample))
        cluster.pass(.seconds(1))
        #expect(cluster.nodes[2]?.texts(of: "list") == ["b"])
    }

    @Test func `a batch has all outcomes though only some of its parts are in the log`() {
        var cluster = Cluster.twoNodes()
        cluster.isDiskSlow = true
        cluster.dispatch(
            ["1", "nowhere/*:2", "3", "nowhere/*:4", "nowhere/*:5"], to: "list/*", from: 1)
        // These are withdrawn, but the sequencer had already judged them.
        cluster.withdraw(2...3, from: 1)
        cluster.run()
        for append in cluster.waitingAppends {
            cluster.disk.append(append)
        }
        cluster.isDiskSlow = false
        cluster.restartSequencer()
        cluster.pass(.seconds(1))
        let outcomes = cluster.nodes[1]?.outcomes ?? [:]
        #expect(outcomes.count == 5)
        guard case .committed = outcomes[3] else {
            Issue.record("3 is in the log and has no receipt: \(outcomes)")
            return
        }
        #expect(cluster.nodes[2]?.texts(of: "list") == ["1", "3"])
        cluster.dispatch(["6"], to: "list/*", from: 1)
        #expect(cluster.nodes[2]?.texts(of: "list") == ["1", "3", "6"])
    }

    @Test func `a rejection that was sent is not judged again after a restart`() throws {
        var cluster = Cluster.twoNodes()
        cluster.dispatch(["1"], to: "list/*", from: 1)
        cluster.submit(["nowhere/*:2", "elsewhere/*:3"], to: "list/*", from: 1)
        cluster.deliver(cluster.queue.removeFirst())
        // The first rejection arrives. The second is lost with the connection.
        let first = cluster.queue.removeFirst()
        cluster.queue.removeAll()
        cluster.deliver(first)
        #expect(code(cluster, 2) == .unknownTarget)
        #expect(cluster.nodes[1]?.outcomes.count == 2)
        // Meanwhile somebody opens the store that nobody hosted.
        cluster.open("nowhere", on: 2)
        cluster.restartSequencer()
        cluster.pass(.seconds(1))
        #expect(cluster.nodes[1]?.outcomes.count == 3)
        #expect(cluster.nodes[2]?.texts(of: "nowhere") == [])
        cluster.dispatch(["4"], to: "list/*", from: 1)
        #expect(cluster.nodes[2]?.texts(of: "list") == ["1", "4"])
    }

    @Test func `whatever fails, an action is applied once, or withdrawn and never applied`() {
        let seed = SplitMix64.seed()
        for round in 0..<60 {
            var random = SplitMix64(seed: seed &+ UInt64(round))
            func below(_ bound: Int) -> Int { Int.random(in: 0..<bound, using: &random) }
            var cluster = Cluster.twoNodes()
            var count: UInt64 = 0
            for _ in 0..<60 {
                switch below(12) {
                case 0...3 where cluster.nodes[1]?.machine.isJoined == true:
                    let texts = (1...UInt64(1 + below(5))).map { "\(count + $0)" }
                        .map { below(6) == 0 ? "nowhere:\($0)" : $0 }
                    cluster.submit(
                        texts, to: "list/*", from: 1, isAtomic: below(5) == 0)
                    count += UInt64(texts.count)
                case 4 where count > 0, 5 where count > 0:
                    let first = max(1, count - min(count - 1, UInt64(below(8))))
                    cluster.withdraw(first...min(count, first + UInt64(below(4))), from: 1)
                case 6: cluster.isDiskSlow = true
                case 7: cluster.finishAppends()
                case 8 where below(3) == 0:
                    cluster.isDiskSlow = false
                    cluster.restartSequencer()
                case 9 where below(2) == 0: cluster.reconnect(1)
                case 10: cluster.pass(.milliseconds(Int64(1 + below(60))))
                default:
                    for _ in 0..<below(4) where !cluster.queue.isEmpty {
                        cluster.deliver(cluster.queue.removeFirst())
                    }
                    cluster.handle(.drained)
                }
            }
            cluster.finishAppends()
            cluster.reconnect(1)
            cluster.pass(.seconds(5))
            let texts = (cluster.nodes[1]?.texts(of: "list") ?? []).compactMap { UInt64($0) }
            let outcomes = cluster.nodes[1]?.outcomes ?? [:]
            let committed = outcomes.filter { if case .committed = $1 { true } else { false } }
            #expect(outcomes.count == Int(count), "seed \(seed) round \(round)")
            #expect(texts == committed.keys.sorted(), "seed \(seed) round \(round)")
            #expect(cluster.nodes[2]?.texts(of: "list").count == texts.count)
        }
    }
}
