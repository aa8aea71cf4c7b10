import ConfluxVocabulary
import Testing

@testable import ConfluxProtocol

/// Nodes that come, leave and fail while a version rises, or before it does.
extension UpgradeScenarios {
    @Test(arguments: [true, false])
    func `hosts that leave together leave a snapshot, also if one has crashed`(hasCrashed: Bool)
        throws
    {
        var cluster = Cluster.eager { $0.digestBytesMin = 1 << 20 }
        cluster.dispatch(["a", "b"], to: "list/*", from: 1)
        if hasCrashed {
            cluster.disconnect(2)
        } else {
            cluster.input(.leaving, to: 2)
        }
        cluster.input(.leaving, to: 1)
        cluster.run()
        settle(&cluster)
        #expect(cluster.nodes[1]?.machine.awaitsLeaving == false)
        for node in [1, 2] {
            if !hasCrashed || node == 1 { cluster.input(.leave, to: node) }
            cluster.run()
            cluster.removeNode(node)
        }
        for _ in 0..<3 { cluster.pass(cluster.settings.silenceMax / 2) }
        add(3, 2...2, to: &cluster)
        #expect(version(in: cluster) == 2)
        #expect(texts(3, in: cluster) == ["a", "b", "migrated"])
    }

    @Test(arguments: [UpgradePolicy.never, .whenTold])
    func `a host that comes meanwhile and does not want the version keeps it away`(
        policy: UpgradePolicy
    ) throws {
        var cluster = Cluster.eager(nodes: ["alpha"])
        add(3, 1...2, migration: "hang", to: &cluster)
        leave(1, in: &cluster)
        #expect(cluster.sequencer?.directory.lives.rising == [list])
        add(4, 1...2, policy: policy, to: &cluster)
        cluster.nodes[3]?.migration = nil
        for _ in 0..<4 { cluster.pass(cluster.settings.migrationPatience) }
        #expect(version(in: cluster) == 1)
        cluster.dispatch(["a"], to: "list/*", from: 4)
        for node in [3, 4] { #expect(texts(node, in: cluster) == ["a"]) }
        // It is a matter of this host alone.
        kill(4, in: &cluster)
        settle(&cluster)
        #expect(version(in: cluster) == 2)
    }

    @Test func `a host of another store that does not understand the version keeps it away`()
        throws
    {
        var cluster = Cluster.eager(nodes: ["alpha"])
        add(3, 1...2, migration: "hang", to: &cluster)
        leave(1, in: &cluster)
        #expect(cluster.sequencer?.directory.lives.rising == [list])
        cluster.addNode(4, named: "node4")
        cluster.nodes[4]?.schemaVersion = 1
        cluster.bridge("list", on: 4)
        cluster.open("list/other", on: 4)
        settle(&cluster)
        cluster.nodes[3]?.migration = nil
        cluster.reconnect(3)
        for _ in 0..<4 { cluster.pass(cluster.settings.migrationPatience) }
        #expect(version(in: cluster) == 1)
    }

    @Test func `entries are judged again only by the version for which that is allowed`() throws {
        var cluster = Cluster.eager { $0.digestBytesMin = 1 << 20 }
        cluster.dispatch(["a"], to: "list/*", from: 1)
        for node in [1, 2] { kill(node, in: &cluster) }
        let life = try #require(cluster.sequencer?.directory.store(list)?.life)
        cluster.addNode(4, named: "operator", role: .observer)
        func allow() {
            cluster.input(
                .upgrade(
                    Upgrade(
                        request: 9, store: list, life: life, schemaVersion: 2, mayReplay: true)),
                to: 4)
            cluster.run()
        }
        allow()
        add(3, 3...3, to: &cluster)
        #expect(refusal(of: 3, in: cluster)?.1.contains("--replay") == true)
        #expect(version(in: cluster) == 1)
        allow()
        add(5, 2...2, to: &cluster)
        #expect(version(in: cluster) == 2)
    }

    @Test func `a version that did not rise in time rises by itself some time later`() throws {
        var cluster = Cluster.eager(nodes: ["alpha"])
        add(3, 1...2, migration: "hang", to: &cluster)
        leave(1, in: &cluster)
        for _ in 0..<4 { cluster.pass(cluster.settings.migrationPatience / 2) }
        #expect(failures(in: cluster).count == 1 && version(in: cluster) == 1)
        cluster.nodes[3]?.migration = nil
        // A host that repeats its open makes no attempt.
        cluster.reconnect(3)
        settle(&cluster)
        #expect(failures(in: cluster).count == 1 && version(in: cluster) == 1)
        for _ in 0..<7 { cluster.pass(cluster.settings.riseRetryInterval / 6) }
        settle(&cluster)
        #expect(version(in: cluster) == 2)
    }

    @Test func `a node that is to be asked once more has not answered`() {
        let node = Incarnation(7)
        let base = SequenceNumber(3)
        let begun = Rise(
            to: 2, base: base, behind: base, until: .seconds(1), wish: UpgradeWish())
        var rise = Rise(begun, .rehearsing, base: base, of: [node], until: .seconds(5))
        #expect(rise.ask() == [node] && rise.silent == [node])
        rise.askAgain(node)
        #expect(rise.silent == [node])
        rise.rehearse(from: SequenceNumber(3), until: .seconds(9))
        #expect(rise.ask() == [node] && rise.silent == [node] && rise.deadline == .seconds(5))
    }
}
