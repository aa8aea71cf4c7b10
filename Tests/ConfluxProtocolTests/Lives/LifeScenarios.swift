import ConfluxVocabulary
import Testing

@testable import ConfluxProtocol

/// The lives of a store: how one ends, and that no action for it reaches the next life.
struct LifeScenarios {
    private func life(of store: String, on id: Int, in cluster: Cluster) -> SequenceNumber? {
        StoreName(store).flatMap { cluster.nodes[id]?.replicas[$0]?.life }
    }

    private func drops(in cluster: Cluster) throws -> Int {
        let blocks = try cluster.disk.bodies.flatMap { try Commit.decode(body: $0.body).blocks }
        return blocks.count { if case .event(.dropped, _) = $0 { true } else { false } }
    }

    @Test func `a drop ends a store in every node, by one entry`() throws {
        var cluster = Cluster.twoNodes()
        cluster.dispatch(["1"], to: "list/*", from: 1)
        let asked = cluster.drop("list", by: 1)
        let askedToo = cluster.drop("list", by: 2)
        cluster.run()
        #expect(life(of: "list", on: 1, in: cluster) == nil)
        #expect(life(of: "list", on: 2, in: cluster) == nil)
        #expect(try drops(in: cluster) == 1)
        #expect(cluster.nodes[1]?.reached[asked] == .due(cluster.disk.last))
        #expect(cluster.nodes[2]?.reached[askedToo] == .due(cluster.disk.last))
        #expect(cluster.sequencer.map { Array($0.directory.hosting.hosts).isEmpty } == true)
    }

    @Test func `stores that are opened together are requested once each`() {
        var cluster = Cluster.twoNodes()
        let before = cluster.nodes[1]?.sent.count ?? 0
        for number in 0..<40 { cluster.nodes[1]?.open("list/\(number)") }
        cluster.flushInputs(of: 1)
        cluster.run()
        cluster.pass(.seconds(1))
        let opens = cluster.nodes[1]?.sent.dropFirst(before).count {
            if case .open = $0 { true } else { false }
        }
        #expect(opens == 40)
        // The entries that they need to catch up are fetched once for all of them.
        let fetches = cluster.nodes[1]?.sent.dropFirst(before).count {
            if case .fetch = $0 { true } else { false }
        }
        #expect(fetches ?? 0 < 10, "\(fetches ?? 0)")
        for number in 0..<40 { #expect(life(of: "list/\(number)", on: 1, in: cluster) != nil) }
    }

    @Test func `opening a dropped store creates another one`() throws {
        var cluster = Cluster.twoNodes()
        cluster.dispatch(["1"], to: "list/*", from: 1)
        let former = try #require(life(of: "list", on: 1, in: cluster))
        _ = cluster.drop("list", by: 1)
        cluster.run()
        cluster.open("list", on: 2)
        cluster.dispatch(["2"], to: "list/*", from: 2)
        #expect(life(of: "list", on: 2, in: cluster).map { $0 > former } == true)
        #expect(cluster.nodes[2]?.texts(of: "list") == ["2"])
        #expect(cluster.nodes[1]?.texts(of: "list") == [])
    }

    @Test func `actions for one life do not reach another one, even in the same commit`() throws {
        var cluster = Cluster.twoNodes()
        cluster.addNode(3)
        let former = try #require(life(of: "list", on: 1, in: cluster))
        // While one append is in progress, the life ends and the next one begins, both in the next commit.
        cluster.isDiskSlow = true
        cluster.dispatch(["before"], to: "list/*", from: 1)
        _ = cluster.drop("list", by: 2)
        cluster.run()
        let target = "list/shared"
        cluster.submit(["late"], to: target, life: former, from: 1)
        cluster.run()
        cluster.open("list", on: 3)
        cluster.submit(["next"], to: target, from: 1)
        cluster.submit(["too late"], to: target, life: former, from: 1)
        cluster.run()
        cluster.finishAppends()
        cluster.pass(.seconds(1))
        let outcomes = cluster.nodes[1]?.outcomes ?? [:]
        for (counter, isCommitted) in [(UInt64(1), true), (2, false), (3, true), (4, false)] {
            switch outcomes[counter] {
            case .committed: #expect(isCommitted, "\(counter)")
            case .rejected(.otherLife, _): #expect(!isCommitted, "\(counter)")
            case let outcome: Issue.record("\(counter): \(String(describing: outcome))")
            }
        }
        #expect(cluster.nodes[3]?.texts(of: "list") == ["next"])
        #expect(life(of: "list", on: 1, in: cluster) == nil)
    }

    @Test func `a repeated drop does not affect a later life`() throws {
        var cluster = Cluster.twoNodes()
        cluster.nextLoss = { if case .confirmed = $0 { true } else { false } }
        let asked = cluster.drop("list", by: 1)
        cluster.run()
        #expect(cluster.nodes[1]?.reached[asked] == nil)
        cluster.open("list", on: 2)
        let next = try #require(life(of: "list", on: 2, in: cluster))
        cluster.pass(.seconds(5))
        #expect(cluster.nodes[1]?.reached[asked] != nil)
        #expect(life(of: "list", on: 2, in: cluster) == next)
        #expect(try drops(in: cluster) == 1)
    }

    @Test func `a drop that a crash undoes is requested again`() throws {
        var cluster = Cluster.twoNodes()
        cluster.isDiskSlow = true
        let asked = cluster.drop("list", by: 1)
        cluster.run()
        cluster.isDiskSlow = false
        cluster.restartSequencer()
        cluster.pass(.seconds(1))
        #expect(cluster.nodes[1]?.reached[asked] != nil)
        #expect(life(of: "list", on: 2, in: cluster) == nil)
    }

    @Test func `a node that was away while a store was dropped learns it from the entry`() throws {
        var cluster = Cluster.twoNodes()
        let sleeper = cluster.nodes[2]
        cluster.removeNode(2)
        cluster.dispatch(["1"], to: "list/*", from: 1)
        _ = cluster.drop("list", by: 1)
        cluster.run()
        cluster.open("list", on: 1)
        cluster.dispatch(["2"], to: "list/*", from: 1)
        cluster.restartSequencer()
        cluster.nodes[2] = sleeper
        cluster.reconnect(2)
        cluster.pass(.seconds(1))
        #expect(life(of: "list", on: 2, in: cluster) == nil)
        #expect(cluster.nodes[2]?.machine.live == cluster.disk.last)
        #expect(cluster.nodes[1]?.texts(of: "list") == ["2"])
    }

    @Test func `a drop of a life that the log has lost fails`() throws {
        var cluster = Cluster.twoNodes()
        let former = try #require(life(of: "list", on: 1, in: cluster))
        cluster.killSequencer()
        let asked = cluster.drop("list", by: 1)
        while cluster.disk.last >= former { cluster.disk.bodies.removeLast() }
        cluster.restartSequencer()
        cluster.pass(.seconds(2))
        guard case .failed(.otherLife, _) = cluster.nodes[1]?.reached[asked] else {
            Issue.record("\(String(describing: cluster.nodes[1]?.reached[asked]))")
            return
        }
        #expect(life(of: "list", on: 2, in: cluster) != nil)
        #expect(try drops(in: cluster) == 0)
    }
}
