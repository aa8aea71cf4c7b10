import ConfluxVocabulary
import Testing

@testable import ConfluxProtocol

/// What the sequencer does at the limits of its tables, and that it works on afterwards.
struct SequencerBoundTests {
    /// Expects that no bound of the sequencer is exceeded.
    private func expectBounds(_ peers: RawPeers) {
        for bound in peers.cluster.sequencer?.bounds ?? [] {
            #expect(bound.level <= bound.most, "\(bound)")
        }
    }

    @Test func `contradictory settings are reported by name`() {
        #expect(SequencerSettings(feed: "feed").fault == nil)
        let faults: [(String, (inout SequencerSettings) -> Void)] = [
            ("batchBytesMax", { $0.batchBytesMax = $0.payloadBytesMax }),
            ("windowBytes", { $0.windowBytes = 1 << 20 }),
            ("commitBytesMax", { $0.commitBytesMax = 1 << 20 }),
            ("commitBytesMax", { $0.commitBytesMax = 49 << 20 }),
            ("silenceMax", { $0.silenceMax = $0.beatInterval }),
            ("readsMax", { $0.readsMax = 0 }),
            ("readsMax", { $0.readsMax = 1_025 }),
            ("slowdownMax", { $0.slowdownMax = .seconds(-1) }),
        ]
        for (name, adjust) in faults {
            var settings = SequencerSettings(feed: "feed")
            adjust(&settings)
            #expect(settings.fault?.hasPrefix(name) == true, "\(settings.fault ?? name)")
        }
    }

    @Test func `actions gathered for a commit are bounded, and the rest is sent again`() {
        var cluster = Cluster()
        cluster.settings.payloadBytesMax = 4_000
        cluster.settings.batchBytesMax = 8_192
        cluster.settings.windowBytes = 8_192
        cluster.settings.commitBytesMax = 12_288
        cluster.startSequencer()
        for id in 1...4 { cluster.addNode(id, store: "list") }
        cluster.isDiskSlow = true
        // The first action is on its way to the disk at once. The others gather.
        cluster.dispatch(["first"], to: "list/*", from: 3)
        cluster.published.removeAll()
        for id in 1...4 {
            cluster.dispatch([String(repeating: "\(id)", count: 3_800)], to: "list/*", from: id)
        }
        let discarded = cluster.published.count {
            guard case .send(.expected(let expected), _) = $0 else { return false }
            return expected.reason == .full
        }
        #expect(discarded == 1)
        let gathering = cluster.sequencer?.pipeline.gatheringBytes ?? 0
        #expect(gathering > 11_000 && gathering <= 12_288)
        cluster.finishAppends()
        cluster.pass(.seconds(1))
        for id in 1...4 {
            let texts = cluster.nodes[id]?.texts(of: "list") ?? []
            #expect(texts.map { $0.prefix(1) }.sorted() == ["1", "2", "3", "4", "f"])
        }
    }

    @Test func `a commit has a bounded number of blocks, and room for the sequencer's own`() {
        let settings = SequencerSettings(feed: "feed")
        var pipeline = CommitPipeline(
            log: Identifier(high: 1, low: 1), epoch: Epoch(1), predecessor: .none, last: .zero,
            settings: settings)
        var count = 0
        while pipeline.hasRoom(bytes: 0), count < WireLimits.standard.blocksPerCommitMax {
            pipeline.admit(.left(Incarnation(1)), then: .left(Incarnation(1)))
            count += 1
        }
        #expect(count + 2 * settings.sessionsMax <= WireLimits.standard.blocksPerCommitMax)
        let commit = pipeline.launch(timestamp: Timestamp(0), isForced: false)
        #expect(commit?.last == SequenceNumber(UInt64(count)))
        #expect(pipeline.hasRoom(bytes: 0))
    }

    @Test func `outcomes that a node never acknowledges are bounded, and then it waits`() throws {
        var peers = RawPeers { $0.unsettledOutcomesMax = 4 }
        peers.cluster.addNode(1, store: "list")
        peers.join(1)
        for counter in 1...6 as ClosedRange<UInt64> {
            peers.say(try #require(peers.batch(counter)), on: 1)
        }
        // The sixth is discarded without an answer, since a batch before it is missing.
        #expect(peers.heard(on: 1).full == [5])
        expectBounds(peers)
        peers.say(.progress(Progress(applied: .zero, settled: 4)), on: 1)
        for counter in 5...6 as ClosedRange<UInt64> {
            peers.say(try #require(peers.batch(counter, settled: 4)), on: 1)
        }
        #expect(peers.heard(on: 1).full.isEmpty)
        #expect(peers.cluster.nodes[1]?.texts(of: "list").count == 6)
    }

    @Test func `a batch rejected for changing reasons is rejected whole`() throws {
        var peers = RawPeers()
        peers.join(1)
        var counter: UInt64 = 1
        for count in [65_535, 65_536] {
            var builder = BatchBuilder()
            for index in 0..<count {
                let target = try #require(
                    Target(index.isMultiple(of: 2) ? "nobody/*" : "nothing/*"))
                builder.append(
                    target: BatchTarget(target: target, schemaVersion: 1, coding: .json),
                    payload: [])
            }
            peers.say(.submit(builder.finish(firstCounter: counter, settled: 0)), on: 1)
            counter += UInt64(count)
        }
        expectBounds(peers)
        let rejections = peers.heard(on: 1).compactMap { message -> Rejection? in
            if case .rejection(let rejection) = message { rejection } else { nil }
        }
        #expect(rejections.map(\.count) == [65_535, 65_536])
        #expect(rejections.map(\.firstCounter) == [1, 65_536])
        #expect(rejections.allSatisfy { $0.code == .unknownTarget })
    }

    @Test func `many outcomes are sent in messages of a bounded size`() throws {
        var peers = RawPeers()
        peers.cluster.addNode(1, store: "list")
        peers.join(1)
        for counter in 1...8_300 as ClosedRange<UInt64> {
            peers.tell(try #require(peers.batch(counter)), on: 1)
        }
        peers.cluster.run()
        _ = peers.heard(on: 1)
        // The node has reconnected: all outcomes are sent again.
        let session = try #require(
            peers.cluster.sequencer?.sessions.incarnation(of: Identifier(high: 77, low: 1)))
        let token = SessionToken(log: peers.cluster.disk.id, incarnation: session)
        peers.say(
            .hello(
                Hello(
                    request: 100, nonce: Identifier(high: 77, low: 1), name: nil, role: .member,
                    session: token)),
            on: 1)
        let runs = peers.heard(on: 1).compactMap { message -> Int? in
            if case .receipts(let receipts) = message { receipts.runs.count } else { nil }
        }
        #expect(runs == [8_192, 108])
    }

    @Test func `at the limit of stores no new one is created, and existing ones can be opened`() {
        var peers = RawPeers { $0.storesMax = 2 }
        peers.join(1)
        for (request, store) in ["a", "b", "c", "a"].enumerated() {
            peers.open(store, request: UInt64(request), on: 1)
        }
        #expect(peers.heard(on: 1).opens == [nil, nil, .tableFull, nil])
        expectBounds(peers)
    }

    @Test
    func
        `while the log is nearly full no store is created, and the refusal says what holds the log`()
    {
        var peers = RawPeers()
        peers.join(1)
        peers.open("a", request: 1, on: 1)
        peers.cluster.handle(.logSpace(.nearlyFull))
        peers.open("b", request: 2, on: 1)
        peers.open("a", request: 3, on: 1)
        let heard = peers.heard(on: 1)
        #expect(heard.opens == [nil, .tableFull, nil])
        let texts = heard.compactMap { message -> String? in
            guard case .opened(let opened) = message,
                case .failed(_, let text) = opened.outcome
            else { return nil }
            return text
        }
        #expect(texts.count == 1 && texts[0].contains("can't be created: the log is nearly full"))
    }

    @Test func `an initial state above the limit is refused`() {
        var peers = RawPeers { $0.initialStateBytesMax = 10 }
        peers.join(1)
        peers.open("a", request: 1, bytes: 11, on: 1)
        peers.open("a", request: 2, bytes: 10, on: 1)
        #expect(peers.heard(on: 1).opens == [.payloadTooLarge, nil])
    }

    @Test func `a bounded number of nodes waits for the creation of a store`() {
        var peers = RawPeers()
        peers.join(1)
        peers.join(2)
        peers.cluster.isDiskSlow = true
        for request in 1...520 as ClosedRange<UInt64> { peers.open("a", request: request, on: 1) }
        #expect(peers.heard(on: 1).opens == Array(repeating: .tableFull, count: 8))
        // Another one still finds room.
        peers.open("a", request: 1, on: 2)
        peers.cluster.finishAppends()
        let opened = peers.heard(on: 1).opens
        #expect(opened.count == 512 && opened.allSatisfy { $0 == nil })
        #expect(peers.heard(on: 2).opens == [nil])
    }

    @Test func `a bounded number of nodes waits for a store to end, and others ask again`() throws {
        var peers = RawPeers()
        let name = try #require(StoreName("a"))
        peers.join(1)
        peers.open("a", request: 1, on: 1)
        let life = try #require(peers.cluster.sequencer?.directory.store(name)?.life)
        peers.cluster.isDiskSlow = true
        func drop(_ request: UInt64) -> NodeMessage {
            .drop(Drop(request: request, store: name, life: life))
        }
        // The same request twice counts as one.
        for request in [1...520, 1...10] as [ClosedRange<UInt64>] {
            for request in request { peers.say(drop(request), on: 1) }
        }
        peers.cluster.finishAppends()
        func confirmed() -> [UInt64] {
            peers.heard(on: 1).compactMap { message in
                if case .confirmed(let confirmed) = message { confirmed.request } else { nil }
            }
        }
        #expect(confirmed() == Array(1...512))
        for request in 513...520 as ClosedRange<UInt64> { peers.say(drop(request), on: 1) }
        #expect(confirmed() == Array(513...520))
    }

    @Test func `at the limit of sessions a newcomer is refused until another leaves`() {
        var peers = RawPeers { $0.sessionsMax = 2 }
        for connection in 1...3 as ClosedRange<UInt64> { peers.join(connection) }
        #expect(peers.heard(on: 3).byes == [.tableFull])
        expectBounds(peers)
        peers.say(.bye(Bye(code: .leaving, message: "")), on: 1)
        peers.join(3)
        #expect(peers.heard(on: 3).welcomes == 1)
    }

    @Test func `at the limit of observers a new one is refused until another leaves`() {
        var peers = RawPeers { $0.observersMax = 2 }
        for connection in 1...3 as ClosedRange<UInt64> { peers.join(connection, role: .observer) }
        #expect(peers.heard(on: 3).byes == [.tableFull])
        expectBounds(peers)
        // A node that is already an observer may say hello again.
        peers.join(2, role: .observer)
        #expect(peers.heard(on: 2).welcomes == 2)
        peers.say(.bye(Bye(code: .leaving, message: "")), on: 1)
        peers.join(3, role: .observer)
        #expect(peers.heard(on: 3).welcomes == 1)
        peers.cluster.handle(.disconnected(ConnectionID(rawValue: 1_002)))
        peers.join(4, role: .observer)
        #expect(peers.heard(on: 4).welcomes == 1)
        expectBounds(peers)
    }

    @Test func `a connection that begins several sessions has one at a time`() {
        var peers = RawPeers { $0.sessionsMax = 4 }
        for nonce in 1...20 as ClosedRange<UInt64> { peers.join(1, as: nonce) }
        #expect(peers.heard(on: 1).welcomes == 20)
        for connection in 2...4 as ClosedRange<UInt64> {
            peers.join(connection, as: 100 + connection)
            #expect(peers.heard(on: connection).welcomes == 1)
        }
        expectBounds(peers)
    }
}
