import ConfluxVocabulary
import Testing

@testable import ConfluxProtocol

/// The list of snapshots is damaged. A store whose snapshot may be missing is not started from anything else.
struct UnlistedScenarios {
    private static let list = StoreName("list")!

    /// A cluster whose log was truncated after snapshots of two stores, without the nodes that had the stores.
    private func deserted() throws -> Cluster {
        var cluster = Cluster.eager()
        cluster.open("other", on: 1)
        for round in 0..<4 {
            for store in ["list", "other"] {
                cluster.grow(store, by: 20_000, from: 1, text: "\(round)")
            }
            try cluster.saveCheckpoint()
            cluster.pass(.seconds(2))
        }
        #expect(cluster.disk.floor > SequenceNumber(1))
        for node in 1...2 { cluster.disconnect(node) }
        for node in 1...2 { cluster.removeNode(node) }
        cluster.pass(cluster.settings.silenceMax * 2)
        return cluster
    }

    /// The messages with which node 3 was refused a store because of the damage.
    private func refusals(in cluster: Cluster) -> [String] {
        (cluster.nodes[3]?.opened ?? [:]).values.compactMap { outcome in
            if case .failed(.damaged, let message) = outcome { message } else { nil }
        }
    }

    private func beginnings(in cluster: Cluster, of life: SequenceNumber?) -> Int {
        cluster.published.count { effect in
            guard case .send(.opened(let opened), _) = effect,
                case .opened(let opened, _, _, _, _, _, _, _) = opened.outcome
            else { return false }
            return opened == life
        }
    }

    @Test(arguments: [true, false])
    func `a store whose snapshot may be missing has to wait, and all others are served`(
        _ isNamed: Bool
    ) throws {
        var cluster = try deserted()
        cluster.unlisted = (isNamed ? [Self.list] : nil, { $0.place.store == Self.list })
        cluster.published.removeAll()
        cluster.restartFromDisk()
        cluster.addNode(3, named: "gamma", store: "other")
        cluster.open("list", on: 3)
        cluster.pass(.seconds(90))
        let life = cluster.sequencer?.directory.store(Self.list)?.life
        #expect(beginnings(in: cluster, of: life) == 0)
        #expect(refusals(in: cluster).allSatisfy { $0.contains("The list is damaged.") })
        #expect(refusals(in: cluster).count == 1 && cluster.failed.map(\.store) == [Self.list])
        #expect(cluster.notes.contains(.snapshotsUnlisted("The list is damaged.")))
        // The store doesn't keep entries in the log, and must still wait after more entries were discarded.
        for round in 0..<4 {
            cluster.grow("other/*", by: 20_000, from: 3, text: "\(round)")
            try cluster.saveCheckpoint()
            cluster.pass(.seconds(2))
        }
        #expect(cluster.nodes[3]?.texts(of: "other").count == 8)
        cluster.restartFromDisk()
        cluster.open("list", on: 3)
        cluster.pass(.seconds(10))
        #expect(beginnings(in: cluster, of: life) == 0 && refusals(in: cluster).count == 2)
        #expect(cluster.ends.isEmpty)
        cluster.expectBounds()
    }

    @Test func `a replica of the store provides another snapshot`() throws {
        var cluster = Cluster.eager()
        for round in 0..<4 {
            cluster.grow("list/*", by: 20_000, from: 1, text: "\(round)")
            try cluster.saveCheckpoint()
            cluster.pass(.seconds(2))
        }
        cluster.unlisted = ([Self.list], { $0.place.store == Self.list })
        cluster.restartFromDisk()
        cluster.addNode(3, named: "gamma", store: "list")
        cluster.pass(.seconds(60))
        #expect(cluster.nodes[3]?.texts(of: "list").count == 4)
        cluster.expectAgreement()
        #expect(cluster.sequencer?.directory.life(of: Self.list)?.work.missing == nil)
    }

    @Test func `a snapshot that the floor passed during its upload releases no waiting store`()
        throws
    {
        var cluster = Cluster.eager()
        func grow(_ rounds: Range<Int>, in cluster: inout Cluster) throws {
            for round in rounds {
                cluster.grow("list/*", by: 20_000, from: 1, text: "\(round)")
                try cluster.saveCheckpoint()
                cluster.pass(.seconds(2))
            }
        }
        try grow(0..<4, in: &cluster)
        cluster.unlisted = ([Self.list], { $0.place.store == Self.list })
        cluster.isSavingSlow = true
        cluster.restartFromDisk()
        cluster.pass(.seconds(2))
        // The log saves a part of the snapshot while it discards entries that follow it.
        try grow(4..<8, in: &cluster)
        let floor = cluster.disk.floor
        let life = cluster.sequencer?.directory.life(of: Self.list)
        let point = try #require(life?.work.upload?.place.sequence)
        #expect(point.next < floor)
        while cluster.sequencer?.directory.store(Self.list)?.baseSequence != point {
            let parts = cluster.waitingSaves
            #expect(!parts.isEmpty)
            cluster.waitingSaves.removeAll()
            cluster.queue += parts
            cluster.run()
        }
        cluster.published.removeAll()
        cluster.addNode(3, named: "gamma", store: "list")
        cluster.pass(.seconds(5))
        #expect(beginnings(in: cluster, of: life?.record.life) == 0)
        cluster.finishSaves()
        cluster.pass(.seconds(60))
        #expect(cluster.nodes[3]?.texts(of: "list").count == 8)
        cluster.expectAgreement()
    }

    @Test func `entries kept aside continue only from their own snapshot`() throws {
        var cluster = Cluster.eager()
        cluster.open("list/old", on: 2)
        cluster.grow("list/old", by: 20_000, from: 2, text: "one")
        cluster.pass(.seconds(2))
        let old = try #require(StoreName("list/old"))
        #expect(cluster.base(of: "list/old") != cluster.life(of: old))
        cluster.removeNode(2)
        for _ in 0..<14 { cluster.pass(.seconds(1)) }
        cluster.dispatch(["two"], to: "list/old", from: 1)
        for round in 0..<4 {
            cluster.grow("list/shared", by: 20_000, from: 1, text: "\(round)")
            try cluster.saveCheckpoint()
            cluster.pass(.seconds(2))
        }
        #expect(cluster.disk.asides[old] != nil)
        cluster.unlisted = ([old], { $0.place.store == old && !$0.isAside })
        cluster.published.removeAll()
        cluster.restartFromDisk()
        cluster.addNode(3, named: "gamma", store: "list/old")
        cluster.pass(.seconds(30))
        #expect(beginnings(in: cluster, of: cluster.life(of: old)) == 0)
        #expect(refusals(in: cluster).count == 1)
    }

    @Test func `only missing entries are migrated from another snapshot`() throws {
        var cluster = Cluster.eager()
        cluster.grow("list/*", by: 200, from: 1, text: "a")
        #expect(cluster.base(of: "list") != cluster.life(of: Self.list))
        func openNewer(_ node: Int) {
            cluster.addNode(node, named: "node\(node)")
            cluster.nodes[node]?.schemaVersion = 2
            cluster.open("list", on: node)
            cluster.pass(.seconds(30))
        }
        for node in [1, 2] { cluster.removeNode(node) }
        cluster.pass(cluster.settings.silenceMax * 3)
        openNewer(4)
        #expect(cluster.nodes[4]?.texts(of: "list").contains("migrated") == true)
        cluster.removeNode(4)
        // All entries are there, but the state that was migrated is not.
        cluster.unlisted = ([Self.list], { _ in true })
        cluster.published.removeAll()
        cluster.restartFromDisk()
        cluster.pass(cluster.settings.silenceMax * 3)
        openNewer(3)
        #expect(beginnings(in: cluster, of: cluster.life(of: Self.list)) == 0)
        #expect(refusals(in: cluster).count == 1)
    }

    @Test func `a store that has to wait is not upgraded`() throws {
        var cluster = try deserted()
        cluster.unlisted = ([Self.list], { $0.place.store == Self.list })
        cluster.restartFromDisk()
        cluster.pass(cluster.settings.silenceMax * 3)
        cluster.addNode(3, named: "gamma")
        cluster.nodes[3]?.schemaVersion = 2
        cluster.open("list", on: 3)
        cluster.pass(.seconds(30))
        #expect(refusals(in: cluster).count == 1)
        #expect(cluster.sequencer?.directory.store(Self.list)?.schemaVersion == 1)
    }

    @Test func `a store is served from before its snapshot if the log has all its entries`() throws
    {
        var cluster = Cluster.eager()
        for round in 0..<4 { cluster.grow("list/*", by: 200, from: 1, text: "\(round)") }
        #expect(cluster.base(of: "list") != cluster.life(of: Self.list))
        cluster.unlisted = (nil, { _ in true })
        cluster.restartFromDisk()
        cluster.addNode(3, named: "gamma", store: "list")
        #expect(cluster.nodes[3]?.texts(of: "list").count == 4 && cluster.failed.isEmpty)
    }
}

extension Cluster {
    fileprivate func life(of name: StoreName) -> SequenceNumber? {
        sequencer?.directory.store(name)?.life
    }
}
