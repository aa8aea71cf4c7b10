import ConfluxVocabulary
import Testing

@testable import ConfluxProtocol

/// Replicas that can't keep up (rule 28).
struct AdmissionScenarios {
    /// A cluster whose nodes 1 to `count` host the store. The actions of node 1 have 100 bytes.
    private func cluster(of count: Int) -> Cluster {
        var cluster = Cluster()
        cluster.settings.lagEntriesMax = 10
        cluster.settings.slowBytesPerBeat = 400
        cluster.startSequencer()
        for id in 1...count { cluster.addNode(id, store: "list") }
        cluster.pass(.seconds(1))
        return cluster
    }

    private let text = String(repeating: "x", count: 100)

    /// Node 1 dispatches actions, each in its own batch, and time passes.
    private func dispatch(
        _ count: Int, in cluster: inout Cluster, over time: Duration
    ) {
        for _ in 0..<count { cluster.submit([text], to: "list/*", from: 1) }
        cluster.run()
        cluster.pass(time)
    }

    private func outcomes(_ cluster: Cluster) -> Int {
        cluster.nodes[1]?.outcomes.values.filter {
            if case .committed = $0 { true } else { false }
        }.count ?? 0
    }

    @Test func `a majority that lags slows admission for a bounded time, and no outcome is lost`() {
        var cluster = cluster(of: 3)
        cluster.nodes[2]?.isStuck = true
        cluster.nodes[3]?.isStuck = true
        dispatch(20, in: &cluster, over: .milliseconds(300))
        #expect(outcomes(cluster) == 20)
        #expect(cluster.sequencer?.admission.isSlow == true)
        #expect(cluster.notes.last == .slowed(lagging: 2, of: 3))

        // Each beat admits two batches of this size.
        dispatch(200, in: &cluster, over: .seconds(2))
        let slowly = outcomes(cluster) - 20
        #expect((20...60).contains(slowly), "\(slowly)")

        // The replicas are alive, but never advance. After a time, admission is no longer slowed.
        cluster.pass(.seconds(4))
        #expect(cluster.sequencer?.admission.isSlow == false)
        #expect(cluster.notes.last == .resumed)
        #expect(outcomes(cluster) == 220)
        dispatch(500, in: &cluster, over: .milliseconds(300))
        #expect(outcomes(cluster) == 720)
        #expect(cluster.sequencer?.sessions.all.filter { $0.presence == .live }.count == 3)
        let texts = cluster.nodes[1]?.texts(of: "list") ?? []
        #expect(texts.count == 720)
    }

    @Test func `a minority that lags slows nobody`() {
        var cluster = cluster(of: 4)
        cluster.nodes[2]?.isStuck = true
        cluster.nodes[3]?.isStuck = true
        dispatch(300, in: &cluster, over: .milliseconds(300))
        #expect(outcomes(cluster) == 300)
        #expect(!cluster.notes.contains { if case .slowed = $0 { true } else { false } })
    }

    @Test func `replicas that catch up are waited for again when they lag again`() {
        var cluster = cluster(of: 3)
        for round in 1...2 {
            cluster.nodes[2]?.isStuck = true
            cluster.nodes[3]?.isStuck = true
            dispatch(20, in: &cluster, over: .milliseconds(300))
            #expect(cluster.sequencer?.admission.isSlow == true, "round \(round)")
            for id in [2, 3] {
                cluster.nodes[id]?.isStuck = false
                guard let progress = cluster.nodes[id]?.progress else { continue }
                #expect(progress.applied == cluster.disk.last)
                cluster.input(.applied(progress), to: id)
            }
            cluster.pass(.milliseconds(500))
            #expect(cluster.sequencer?.admission.isSlow == false, "round \(round)")
        }
    }

    @Test func `a stuck majority slows nobody in the next term, or when it returns`() {
        var cluster = cluster(of: 3)
        for id in [2, 3] { cluster.nodes[id]?.isStuck = true }
        dispatch(20, in: &cluster, over: .seconds(8))
        cluster.restartSequencer()
        cluster.pass(.seconds(1))
        cluster.notes = []
        dispatch(100, in: &cluster, over: .seconds(1))
        for id in [2, 3] { cluster.reconnect(id) }
        dispatch(100, in: &cluster, over: .seconds(1))
        #expect(!cluster.notes.contains { if case .slowed = $0 { true } else { false } })
        #expect(outcomes(cluster) == 220)
        let behind = cluster.sequencer?.sessions.all.filter { $0.applied < cluster.disk.last }
        #expect(behind?.count == 2)
    }

    @Test func `slow admission allows a bounded number of bytes per beat, and at least one batch`()
    {
        var settings = SequencerSettings(feed: "feed")
        settings.lagEntriesMax = 10
        settings.slowBytesPerBeat = 100
        var sessions = SessionTable()
        var session = Session(
            incarnation: Incarnation(2), nonce: .none, name: nil, owner: nil, isKeyed: false,
            quietSince: .zero)
        let list = StoreName("list")!
        var directory = StoreDirectory()
        directory.insert(
            StoreRecord(life: SequenceNumber(3), schemaVersion: 1, initial: .none), named: list)
        directory.host(list, as: SupportedVersions(1), by: session.incarnation)
        session.applied = SequenceNumber(5)
        sessions.insert(session)
        var admission = Admission()
        func review(_ last: UInt64, _ milliseconds: Int) -> Admission.Change? {
            admission.review(
                sessions, hosting: directory, last: SequenceNumber(last),
                at: .milliseconds(milliseconds), by: settings)
        }
        func admit(_ bytes: Int) -> Bool { admission.admit(bytes: bytes, by: settings) }
        #expect(review(15, 0) == nil)
        #expect(review(16, 50) == nil, "once a beat")
        #expect(review(16, 100) == .slowed(lagging: 1, of: 1))
        // A void batch needs no admission.
        #expect(admit(0))
        #expect(admit(1_000))
        #expect(!admit(1))
        #expect(admit(0))
        #expect(review(16, 200) == nil)
        #expect(admit(60))
        #expect(admit(40))
        #expect(!admit(1))
        #expect(review(16, 5_099) == nil)
        #expect(review(1_000, 5_200) == .resumed)
        #expect(admit(1_000))
        #expect(admit(1_000))
        // The replica counts as stuck until it is within the bound again. Then it may lag once more.
        #expect(review(1_000_000, 90_000) == nil)
        #expect(review(15, 90_100) == nil)
        #expect(review(16, 90_200) == .slowed(lagging: 1, of: 1))
        sessions.remove(Incarnation(2))
        #expect(review(17, 90_300) == .resumed)
    }
}
