import ConfluxVocabulary
import Testing

@testable import ConfluxProtocol

/// Stores whose schema version rises (rule 17). A list that was migrated to version 2 ends with `migrated`.
struct UpgradeScenarios {
    let list = StoreName("list")!

    /// Adds a node that understands these versions, and lets it open the list.
    func add(
        _ node: Int, _ versions: ClosedRange<UInt32>, policy: UpgradePolicy = .whenAllUnderstand,
        migration: String? = nil, to cluster: inout Cluster
    ) {
        cluster.addNode(node, named: "node\(node)")
        cluster.nodes[node]?.oldestVersion = versions.lowerBound
        cluster.nodes[node]?.schemaVersion = versions.upperBound
        cluster.nodes[node]?.policy = policy
        cluster.nodes[node]?.migration = migration
        cluster.open("list", on: node)
        settle(&cluster)
    }

    func settle(_ cluster: inout Cluster) {
        for _ in 0..<5 { cluster.pass(cluster.settings.beatInterval) }
    }

    /// The node is gone without a word, and its session is taken for left.
    func kill(_ node: Int, in cluster: inout Cluster) {
        cluster.removeNode(node)
        for _ in 0..<3 { cluster.pass(cluster.settings.silenceMax / 2) }
    }

    /// The node leaves in good order.
    func leave(_ node: Int, in cluster: inout Cluster) {
        cluster.input(.leaving, to: node)
        cluster.run()
        settle(&cluster)
        #expect(cluster.nodes[node]?.machine.awaitsLeaving == false)
        cluster.input(.leave, to: node)
        cluster.run()
        cluster.removeNode(node)
        settle(&cluster)
    }

    func upgrades(in cluster: Cluster) throws -> [SequenceNumber] {
        try cluster.events().compactMap { event, _ in
            guard case .upgraded(list, _, 2, let base, .some) = event else { return nil }
            return base
        }
    }

    func version(in cluster: Cluster) -> UInt32? {
        cluster.sequencer?.directory.store(list)?.schemaVersion
    }

    func failures(in cluster: Cluster) -> [String] {
        cluster.notes.compactMap {
            if case .upgradeFailed(list, 2, let reason) = $0 { reason } else { nil }
        }
    }

    func refusal(of node: Int, in cluster: Cluster) -> (RejectionCode, String)? {
        guard case .failed(let code, let message)? = cluster.nodes[node]?.opened.values.first
        else { return nil }
        return (code, message)
    }

    func texts(_ node: Int, in cluster: Cluster) -> [String]? {
        cluster.nodes[node]?.texts(of: "list")
    }

    // MARK: Rising

    @Test func `a newer program hosts an older version until every host understands its own`()
        throws
    {
        var cluster = Cluster.eager()
        cluster.dispatch(["a"], to: "list/*", from: 1)
        add(3, 1...2, to: &cluster)
        cluster.dispatch(["b"], to: "list/*", from: 3)
        #expect(version(in: cluster) == 1)
        #expect(texts(3, in: cluster) == ["a", "b"])
        kill(1, in: &cluster)
        add(5, 1...2, to: &cluster)
        #expect(version(in: cluster) == 1)
        kill(2, in: &cluster)
        settle(&cluster)
        #expect(version(in: cluster) == 2)
        for node in [5, 3] { #expect(texts(node, in: cluster) == ["a", "b", "migrated"]) }
        cluster.dispatch(["c"], to: "list/*", from: 5)
        for node in [5, 3] { #expect(texts(node, in: cluster)?.last == "c") }
        // No entry of the list is between the base and the word.
        let base = try #require(try upgrades(in: cluster).first)
        let word = try #require(
            try cluster.events().first { if case .upgraded = $0.event { true } else { false } })
        #expect(try cluster.entries(of: list).allSatisfy { $0 < base || $0 > word.sequence })
        add(4, 1...1, to: &cluster)
        #expect(refusal(of: 4, in: cluster)?.0 == .schemaVersion)
        cluster.expectBounds()
    }

    @Test
    func `a program that can't host the present version is refused while an older one hosts it`()
        throws
    {
        var cluster = Cluster.eager()
        add(3, 2...2, to: &cluster)
        let refusal = try #require(self.refusal(of: 3, in: cluster))
        #expect(refusal.0 == .schemaVersion)
        #expect(refusal.1.contains("alpha") && refusal.1.contains("oldestSchemaVersion"))
        #expect(version(in: cluster) == 1 && failures(in: cluster).isEmpty)
        cluster.dispatch(["a"], to: "list/*", from: 1)
        #expect(texts(2, in: cluster) == ["a"])
    }

    @Test func `hosts that leave in good order leave a snapshot, at which a newer program begins`()
        throws
    {
        var cluster = Cluster.eager { $0.digestBytesMin = 1 << 20 }
        cluster.dispatch(["a", "b"], to: "list/*", from: 1)
        for node in [1, 2] { leave(node, in: &cluster) }
        add(3, 2...2, to: &cluster)
        #expect(version(in: cluster) == 2)
        #expect(texts(3, in: cluster) == ["a", "b", "migrated"])
    }

    @Test func `if all old hosts are gone, a newer program judges entries again only if it may`()
        throws
    {
        var cluster = Cluster.eager { $0.digestBytesMin = 1 << 20 }
        cluster.dispatch(["a"], to: "list/*", from: 1)
        for node in [1, 2] { kill(node, in: &cluster) }
        add(3, 2...2, to: &cluster)
        let refusal = try #require(self.refusal(of: 3, in: cluster))
        #expect(refusal.0 == .upgradeFailed && refusal.1.contains("--replay"))
        #expect(version(in: cluster) == 1 && texts(3, in: cluster) == [])
        // Whoever opens it next is told the same, at once.
        add(7, 2...2, to: &cluster)
        #expect(self.refusal(of: 7, in: cluster)?.1.contains("--replay") == true)

        let life = try #require(cluster.sequencer?.directory.store(list)?.life)
        cluster.addNode(4, named: "operator", role: .observer)
        cluster.input(
            .upgrade(Upgrade(request: 9, store: list, life: life, mayReplay: true)), to: 4)
        cluster.run()
        #expect(version(in: cluster) == 1)
        add(5, 2...2, to: &cluster)
        #expect(version(in: cluster) == 2)
        #expect(texts(5, in: cluster) == ["migrated", "a"])
        #expect(try upgrades(in: cluster) == [life])
        // A program that can host the old version would have judged them as that.
        add(6, 1...2, to: &cluster)
        #expect(texts(6, in: cluster) == ["migrated", "a"])
    }

    /// Whether somebody asks without that permission before, after or never.
    @Test(arguments: [nil, true, false])
    func `who lets entries be judged again lets the attempt that is under way`(
        isOtherFirst: Bool?
    ) throws {
        var cluster = Cluster.eager { $0.digestBytesMin = 1 << 20 }
        cluster.dispatch(["a"], to: "list/*", from: 1)
        for node in [1, 2] { kill(node, in: &cluster) }
        add(3, 2...2, migration: "hang", to: &cluster)
        #expect(cluster.sequencer?.directory.lives.rising == [list])
        let life = try #require(cluster.sequencer?.directory.store(list)?.life)
        cluster.addNode(4, named: "operator", role: .observer)
        let asking: [Bool] =
            switch isOtherFirst {
            case nil: [true]
            case true?: [false, true]
            case false?: [true, false]
            }
        for mayReplay in asking {
            cluster.input(
                .upgrade(
                    Upgrade(
                        request: mayReplay ? 9 : 8, store: list, life: life, mayReplay: mayReplay)),
                to: 4)
            cluster.run()
        }
        cluster.nodes[3]?.migration = nil
        cluster.reconnect(3)
        cluster.run()
        settle(&cluster)
        #expect(version(in: cluster) == 2 && failures(in: cluster).isEmpty)
        #expect(texts(3, in: cluster) == ["migrated", "a"])
        #expect(cluster.nodes[4]?.due[9] != nil || cluster.nodes[4]?.reached[9] != nil)
    }

    @Test func `who asks later takes no permission away, and both are told`() throws {
        var cluster = Cluster.eager { $0.digestBytesMin = 1 << 20 }
        cluster.dispatch(["a"], to: "list/*", from: 1)
        for node in [1, 2] { kill(node, in: &cluster) }
        let life = try #require(cluster.sequencer?.directory.store(list)?.life)
        cluster.addNode(4, named: "operator", role: .observer)
        for (request, mayReplay) in [(8, true), (9, false)] as [(UInt64, Bool)] {
            cluster.input(
                .upgrade(
                    Upgrade(request: request, store: list, life: life, mayReplay: mayReplay)), to: 4
            )
            cluster.run()
        }
        add(3, 2...2, to: &cluster)
        #expect(version(in: cluster) == 2)
        for request in [8, 9] as [UInt64] {
            #expect(
                cluster.nodes[4]?.due[request] != nil || cluster.nodes[4]?.reached[request] != nil)
        }
    }

    @Test func `a program that knows both versions judges old entries by the old one`() throws {
        var cluster = Cluster.eager { $0.digestBytesMin = 1 << 20 }
        cluster.dispatch(["a"], to: "list/*", from: 1)
        for node in [1, 2] { kill(node, in: &cluster) }
        add(3, 1...2, to: &cluster)
        #expect(version(in: cluster) == 2)
        #expect(texts(3, in: cluster) == ["a", "migrated"])
        cluster.restartFromDisk()
        settle(&cluster)
        add(4, 2...3, to: &cluster)
        #expect(texts(4, in: cluster) == texts(3, in: cluster))
    }

    // MARK: Failing

    @Test(arguments: ["throw", "hang", "other"])
    func `a migration that fails changes nothing`(migration: String) throws {
        var cluster = Cluster.eager(nodes: ["alpha"])
        cluster.dispatch(["a"], to: "list/*", from: 1)
        cluster.nodes[1]?.migration = nil
        add(3, 1...2, migration: migration, to: &cluster)
        add(4, 1...2, to: &cluster)
        let before = try cluster.events().count
        kill(1, in: &cluster)
        // Entries go on while a migration hangs.
        cluster.dispatch(["b"], to: "list/*", from: 4)
        #expect(texts(3, in: cluster) == ["a", "b"])
        for _ in 0..<3 { cluster.pass(cluster.settings.migrationPatience / 2) }
        #expect(failures(in: cluster).count == 1)
        #expect(version(in: cluster) == 1)
        let others = try cluster.events().dropFirst(before).filter {
            if case .digestPoint = $0.event { false } else { true }
        }
        #expect(others.count == 1, "only one node has left")
        cluster.dispatch(["c"], to: "list/*", from: 3)
        for node in [3, 4] { #expect(texts(node, in: cluster) == ["a", "b", "c"]) }
        // It is tried again when a node opens the store.
        cluster.nodes[3]?.migration = nil
        add(5, 1...2, to: &cluster)
        #expect(version(in: cluster) == 2)
    }

    @Test func `an opener whose migration fails is refused, with the reason`() throws {
        var cluster = Cluster.eager()
        for node in [1, 2] { leave(node, in: &cluster) }
        add(3, 2...2, migration: "throw", to: &cluster)
        let refusal = try #require(self.refusal(of: 3, in: cluster))
        #expect(refusal.0 == .upgradeFailed && refusal.1.contains("it threw"))
        #expect(version(in: cluster) == 1)
        add(4, 1...1, to: &cluster)
        #expect(texts(4, in: cluster) == [])
    }

    @Test func `an answer that was lost is repeated, and no further attempt is made for it`() throws
    {
        var cluster = Cluster.eager()
        for node in [1, 2] { leave(node, in: &cluster) }
        add(3, 2...2, migration: "hang", to: &cluster)
        // Its hellos repeat the open and the question. That takes no more time.
        for _ in 0..<4 {
            cluster.pass(.seconds(1))
            cluster.reconnect(3)
        }
        cluster.disconnect(3)
        cluster.pass(.seconds(1))
        #expect(failures(in: cluster) == ["node3 did not migrate the state in time"])
        cluster.reconnect(3)
        settle(&cluster)
        #expect(refusal(of: 3, in: cluster)?.0 == .upgradeFailed)
        #expect(failures(in: cluster).count == 1 && cluster.sequencer?.directory.lives.rising == [])
        // Another request is another attempt.
        cluster.nodes[3]?.migration = nil
        add(4, 2...2, to: &cluster)
        #expect(version(in: cluster) == 2)
    }

    @Test func `a process that dies of its migration is not followed by the others`() throws {
        var cluster = Cluster.eager(nodes: ["alpha"])
        add(3, 1...2, migration: "hang", to: &cluster)
        add(4, 1...2, migration: "hang", to: &cluster)
        kill(1, in: &cluster)
        // The node that came last was asked first. It dies.
        kill(4, in: &cluster)
        settle(&cluster)
        #expect(failures(in: cluster).count == 1)
        #expect(failures(in: cluster)[0].contains("node4"))
        for _ in 0..<4 { cluster.pass(cluster.settings.migrationPatience) }
        #expect(failures(in: cluster).count == 1 && version(in: cluster) == 1)
        cluster.dispatch(["a"], to: "list/*", from: 3)
        #expect(texts(3, in: cluster) == ["a"])
    }

    @Test func `an older program that comes meanwhile ends a rise`() throws {
        var cluster = Cluster.eager(nodes: ["alpha"])
        add(3, 1...2, migration: "hang", to: &cluster)
        leave(1, in: &cluster)
        #expect(cluster.sequencer?.directory.lives.rising == [list])
        add(4, 1...1, to: &cluster)
        #expect(failures(in: cluster).count == 1 && version(in: cluster) == 1)
        cluster.dispatch(["a"], to: "list/*", from: 4)
        for node in [3, 4] { #expect(texts(node, in: cluster) == ["a"]) }
    }

    /// The last older host leaves. Entries go on until the hosts have saved a snapshot, and then wait for the next one.
    private func reachSaving(_ cluster: inout Cluster) {
        cluster.isSavingSlow = true
        leave(1, in: &cluster)
        #expect(step(in: cluster)?.isHolding == false)
        cluster.dispatch(["b"], to: "list/*", from: 3)
        #expect(texts(3, in: cluster) == ["a", "b"])
        cluster.finishSaves(areNextSlow: true)
        settle(&cluster)
        #expect(step(in: cluster) == .saving)
    }

    private func step(in cluster: Cluster) -> Rise.Step? {
        cluster.sequencer?.directory.life(of: list)?.work.rise?.step
    }

    @Test func `entries do not wait for hosts that have not caught up`() throws {
        var cluster = Cluster.eager(nodes: ["alpha"])
        cluster.dispatch(["a"], to: "list/*", from: 1)
        add(3, 1...2, to: &cluster)
        cluster.nodes[3]?.isVotingLate = true
        leave(1, in: &cluster)
        cluster.dispatch(["b"], to: "list/*", from: 3)
        #expect(texts(3, in: cluster) == ["a", "b"] && version(in: cluster) == 1)
        // It takes too long, so the rise goes on, and fails in its own time.
        cluster.pass(cluster.settings.votePatience)
        cluster.dispatch(["c"], to: "list/*", from: 3)
        #expect(texts(3, in: cluster) == ["a", "b"])
        for _ in 0..<3 { cluster.pass(cluster.settings.migrationPatience / 2) }
        #expect(failures(in: cluster).count == 1)
        #expect(texts(3, in: cluster) == ["a", "b", "c"])
    }

    @Test func `a rise that fails while entries wait holds them up once a minute at most`() throws {
        var cluster = Cluster.eager(nodes: ["alpha"])
        add(3, 1...2, to: &cluster)
        cluster.dispatch(["a"], to: "list/*", from: 3)
        reachSaving(&cluster)
        cluster.nodes[3]?.migration = "hang"
        cluster.isSavingSlow = false
        cluster.finishSaves()
        settle(&cluster)
        #expect(step(in: cluster) == .migrating)
        cluster.dispatch(["c"], to: "list/*", from: 3)
        #expect(texts(3, in: cluster) == ["a", "b"])
        for _ in 0..<3 { cluster.pass(cluster.settings.migrationPatience / 2) }
        #expect(failures(in: cluster).count == 1)
        settle(&cluster)
        #expect(texts(3, in: cluster) == ["a", "b", "c"])
        // Neither another node nor one that hosts only the newer version causes the next attempt.
        cluster.nodes[3]?.migration = nil
        add(4, 1...2, to: &cluster)
        add(5, 2...2, to: &cluster)
        #expect(refusal(of: 5, in: cluster)?.1.contains("next one is made in") == true)
        #expect(version(in: cluster) == 1)
        for _ in 0..<7 { cluster.pass(cluster.settings.riseRetryInterval / 6) }
        settle(&cluster)
        #expect(version(in: cluster) == 2)
        #expect(failures(in: cluster).count == 1)
    }

    @Test func `a node that says again that it leaves gets no further snapshot for that`() throws {
        var cluster = Cluster.eager(nodes: ["alpha"]) { $0.digestBytesMin = 1 << 20 }
        for text in ["a", "b", "c"] {
            cluster.dispatch([text], to: "list/*", from: 1)
            cluster.input(.leaving, to: 1)
            cluster.run()
            settle(&cluster)
            #expect(cluster.nodes[1]?.machine.awaitsLeaving == false)
            cluster.nodes[1]?.due = [:]
            cluster.nodes[1]?.reached = [:]
        }
        #expect(cluster.taken.count == 1)
    }

    @Test func `a key's rises leave room for those of others`() throws {
        var cluster = Cluster.eager(nodes: [])
        for (node, key) in [(1, "slow"), (2, "quick")] {
            cluster.principals[node] = Principal(
                name: Name(key), rights: .all)
            cluster.addNode(node, named: key)
            cluster.nodes[node]?.oldestVersion = 1
            cluster.nodes[node]?.schemaVersion = 2
        }
        cluster.nodes[1]?.migration = "hang"
        for number in 0..<SequencerMachine.risesMax { cluster.open("list/\(number)", on: 1) }
        #expect(cluster.sequencer?.directory.lives.rising.count == SequencerMachine.risesMax / 2)
        cluster.open("list", on: 2)
        cluster.nodes[1]?.schemaVersion = 2
        settle(&cluster)
        #expect(version(in: cluster) == 2)
    }

    // MARK: Who decides

    @Test func `a version rises when it is told, if the hosts want that`() throws {
        var cluster = Cluster.eager(nodes: [])
        add(1, 1...2, policy: .whenTold, to: &cluster)
        add(2, 1...2, to: &cluster)
        #expect(version(in: cluster) == 1)
        let life = try #require(cluster.sequencer?.directory.store(list)?.life)
        cluster.input(.upgrade(Upgrade(request: 9, store: list, life: life)), to: 2)
        cluster.run()
        settle(&cluster)
        #expect(version(in: cluster) == 2)
        let word = try #require(
            try cluster.events().last { if case .upgraded = $0.event { true } else { false } })
        #expect(
            cluster.nodes[2]?.due[9] ?? .zero >= word.sequence
                || cluster.nodes[2]?.reached[9] != nil)
    }

    @Test func `a host that never wants it keeps the version`() throws {
        var cluster = Cluster.eager(nodes: [])
        add(1, 1...2, policy: .never, to: &cluster)
        let life = try #require(cluster.sequencer?.directory.store(list)?.life)
        cluster.input(.upgrade(Upgrade(request: 9, store: list, life: life)), to: 1)
        cluster.run()
        settle(&cluster)
        #expect(version(in: cluster) == 1)
        guard case .failed(.upgradeFailed, let message)? = cluster.nodes[1]?.reached[9] else {
            Issue.record("\(String(describing: cluster.nodes[1]?.reached))")
            return
        }
        #expect(message.contains("never"))
    }

    @Test func `after a restart nothing rises before every session is back`() throws {
        var cluster = Cluster.eager(nodes: ["alpha"])
        add(3, 1...2, to: &cluster)
        cluster.killSequencer()
        cluster.claimAndRead()
        cluster.reconnect(3)
        settle(&cluster)
        #expect(version(in: cluster) == 1)
        cluster.reconnect(1)
        settle(&cluster)
        #expect(version(in: cluster) == 1)
        cluster.dispatch(["a"], to: "list/*", from: 1)
        #expect(texts(3, in: cluster) == ["a"])
    }

    @Test
    func `a rise that a restart interrupts begins anew, and entries that waited are taken once`()
        throws
    {
        var cluster = Cluster.eager(nodes: ["alpha"])
        add(3, 1...2, to: &cluster)
        cluster.dispatch(["a"], to: "list/*", from: 3)
        reachSaving(&cluster)
        cluster.dispatch(["c"], to: "list/*", from: 3)
        #expect(texts(3, in: cluster) == ["a", "b"])
        cluster.isSavingSlow = false
        cluster.restartFromDisk()
        for _ in 0..<4 { cluster.pass(.seconds(1)) }
        #expect(version(in: cluster) == 2)
        #expect(texts(3, in: cluster)?.filter { $0 != "migrated" } == ["a", "b", "c"])
        #expect(try upgrades(in: cluster).count == 1)
    }

    @Test
    func
        `a store begins with the oldest version of its opener, and one that is hosted nowhere else rises at once`()
        throws
    {
        var cluster = Cluster.eager(nodes: [])
        add(1, 1...3, to: &cluster)
        #expect(version(in: cluster) == 3)
        guard
            case .created(_, schemaVersion: 1, _)? = try cluster.events().map(\.event).first(
                where: {
                    if case .created = $0 { true } else { false }
                })
        else {
            Issue.record("it began with another version")
            return
        }
    }
}
