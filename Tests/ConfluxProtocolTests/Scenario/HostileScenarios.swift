import ConfluxVocabulary
import Testing

@testable import ConfluxProtocol

/// Faulty or hostile nodes, and that they harm neither the sequencer nor other nodes.
struct HostileScenarios {
    private func started(
        _ adjust: (inout SequencerSettings) -> Void = { _ in }
    ) -> Cluster {
        var cluster = Cluster()
        adjust(&cluster.settings)
        cluster.startSequencer()
        cluster.addNode(1, named: "alpha", store: "list")
        return cluster
    }

    @Test func `a batch whose pieces would fill a commit is rejected whole`() {
        var cluster = started()
        let long = String(repeating: "x", count: 64)
        var texts: [String] = []
        for index in 0..<2_000 {
            let instance = String(String(1_000 + index % 250).reversed()) + long.dropFirst(4)
            texts += ["good", "\(long)/\(instance):bad"]
        }
        cluster.dispatch(texts, to: "list/*", from: 1)
        cluster.pass(.seconds(1))
        #expect(cluster.nodes[1]?.outcomes.count == texts.count)
        let count = cluster.nodes[1]?.texts(of: "list").count
        cluster.dispatch(["after"], to: "list/*", from: 1)
        #expect(cluster.nodes[1]?.texts(of: "list").count == (count ?? 0) + 1)
        #expect(cluster.nodes[1]?.texts(of: "list").last == "after")
    }

    @Test func `a batch larger than the window is rejected, and its node continues`() {
        var cluster = started { settings in
            settings.payloadBytesMax = 100
            settings.batchBytesMax = 8_192
            settings.windowBytes = 8_192
        }
        let large = String(repeating: "x", count: 20_000)
        #expect(cluster.nodes[1]?.machine.canSubmit(bytes: large.utf8.count) == true)
        cluster.dispatch([large], to: "list/*", from: 1)
        cluster.pass(.seconds(2))
        guard case .rejected(.payloadTooLarge, _) = cluster.nodes[1]?.outcomes[1] else {
            Issue.record("not rejected: \(cluster.nodes[1]?.outcomes ?? [:])")
            return
        }
        cluster.dispatch(["after"], to: "list/*", from: 1)
        #expect(cluster.nodes[1]?.texts(of: "list") == ["after"])
    }

    @Test func `a node that keeps fetching does not block the fetches of others`() throws {
        var cluster = started()
        cluster.addNode(2, named: "beta", store: "list")
        var machine = try #require(cluster.sequencer)
        var effects: [SequencerEffect] = []
        func ask(_ connection: UInt64, requests: Int) {
            for request in 0..<requests {
                let fetch = Fetch(
                    request: UInt64(request), from: SequenceNumber(1), limitBytes: 1)
                machine.handle(
                    .received(
                        .fetch(fetch), by: cluster.speaker(ConnectionID(rawValue: connection)),
                        from: ConnectionID(rawValue: connection)),
                    at: cluster.moment, into: &effects)
            }
        }
        ask(1, requests: 10_000)
        ask(2, requests: 1)
        // It is the other node's turn after at most one more read.
        var askers: [UInt64] = []
        while case .read(let job)? = effects.first {
            effects.removeFirst()
            askers.append(job.connection.rawValue)
            machine.handle(.read(job, .commits([])), at: cluster.moment, into: &effects)
            effects.removeAll { if case .send = $0 { true } else { false } }
        }
        let most = cluster.settings.readsMax + ReadQueue.perConnectionMax
        #expect(askers.count == most + 1)
        #expect((askers.firstIndex(of: 2) ?? .max) <= cluster.settings.readsMax + 1)
    }

    /// The outcomes of a node's opens, in order.
    private func outcomes(of opens: [UInt64: OpenOutcome]?) -> [RejectionCode?] {
        (opens ?? [:]).sorted { $0.key < $1.key }.map { _, outcome in
            if case .failed(let code, _) = outcome { code } else { nil }
        }
    }

    @Test func `states of concurrently created stores count before they are in the log`() {
        var cluster = Cluster()
        cluster.settings.statesMax = 2
        cluster.startSequencer()
        cluster.addNode(1)
        cluster.isDiskSlow = true
        for state in ["a", "b", "c", "d"] { cluster.open(state, on: 1) }
        cluster.finishAppends()
        #expect(outcomes(of: cluster.nodes[1]?.opened) == [nil, nil, .tableFull, .tableFull])
        #expect(cluster.sequencer?.directory.states.count == 2)
    }

    @Test func `initial states of concurrently created stores count before they are in the log`() {
        var cluster = Cluster()
        // The initial state of a list has two bytes.
        cluster.settings.initialStatesBytesMax = 5
        cluster.startSequencer()
        cluster.addNode(1)
        cluster.isDiskSlow = true
        for state in ["a", "b", "c"] { cluster.open(state, on: 1) }
        cluster.finishAppends()
        #expect(outcomes(of: cluster.nodes[1]?.opened) == [nil, nil, .tableFull])
        #expect(cluster.sequencer?.directory.initialBytes.total == 4)
    }

    @Test func `a state that is bridged and hosted is counted once`() {
        var cluster = started { $0.statesMax = 2 }
        cluster.bridge("list", on: 1)
        cluster.bridge("bus", on: 1)
        #expect(outcomes(of: cluster.nodes[1]?.opened) == [nil, nil, nil])
        // No node bridges the bus any more, and the log has no entry of it, so it no longer counts.
        cluster.input(.close(.state(Name("bus")!)), to: 1)
        cluster.run()
        cluster.open("other", on: 1)
        #expect(outcomes(of: cluster.nodes[1]?.opened) == [nil, nil, nil, nil])
    }

    @Test func `a repeated hello that waited for the log undoes nothing`() throws {
        var peers = RawPeers()
        peers.cluster.isConfirmSlow = true
        let hello = Hello(
            request: 1, nonce: Identifier(high: 1, low: 1), name: nil, role: .member)
        let newer = Speaker(epoch: peers.cluster.disk.epoch.raised(by: 5), session: .none)
        peers.say(.hello(hello), on: 1, by: newer)
        peers.cluster.isDiskSlow = true
        peers.cluster.answerConfirm()
        peers.cluster.run()
        // Its session is being written to the log.
        peers.say(.hello(hello), on: 1, by: newer)
        peers.cluster.isDiskSlow = false
        peers.cluster.finishAppends()
        peers.cluster.run()
        let incarnation = Incarnation(peers.cluster.disk.last.rawValue)
        peers.open("list", request: 1, on: 1)
        func isHosted() -> Bool? {
            StoreName("list").flatMap { peers.cluster.sequencer?.directory.life(of: $0) }?
                .work.hosts.keys.contains(incarnation)
        }
        #expect(isHosted() == true && peers.cluster.waitingConfirms == 1)
        peers.cluster.answerConfirm()
        peers.cluster.run()
        #expect(isHosted() == true)
    }

    @Test func `another key can't use a session though it knows its nonce`() throws {
        var cluster = started()
        func join(_ connection: UInt64, by owner: String, session: SessionToken? = nil) {
            let connection = ConnectionID(rawValue: connection)
            let hello = Hello(
                request: 1, nonce: Identifier(high: 1, low: 1), name: nil, role: .member,
                session: session)
            cluster.handle(
                .received(
                    .hello(hello), by: cluster.speaker(connection), from: connection,
                    as: Principal(name: Name(owner), rights: .all)))
            cluster.run()
        }
        join(70, by: "alpha")
        let session = Incarnation(cluster.disk.last.rawValue)
        let token = SessionToken(log: cluster.disk.id, incarnation: session)
        join(71, by: "thief")
        join(72, by: "thief", session: token)
        #expect(cluster.sequencer?.sessions[session]?.connection == ConnectionID(rawValue: 70))
        // Its owner resumes it on another connection.
        join(73, by: "alpha", session: token)
        #expect(cluster.sequencer?.sessions[session]?.connection == ConnectionID(rawValue: 73))
    }

    @Test(arguments: [Hello.Role.member, .observer])
    func `messages for a session are not sent to another one on the same connection`(
        role: Hello.Role
    ) throws {
        var cluster = started()
        let shared = ConnectionID(rawValue: 77)
        func say(_ message: NodeMessage) {
            cluster.handle(.received(message, by: cluster.speaker(shared), from: shared))
            cluster.run()
        }
        say(
            .hello(
                Hello(request: 100, nonce: Identifier(high: 1, low: 1), name: nil, role: .member)))
        let first = Incarnation(cluster.disk.last.rawValue)
        #expect(cluster.sequencer?.sessions[first]?.connection == shared)
        cluster.isDiskSlow = true
        var builder = BatchBuilder()
        let target = try #require(Target("list/*"))
        builder.append(
            target: BatchTarget(target: target, schemaVersion: 1, coding: .json), payload: [0x78])
        say(.submit(builder.finish(firstCounter: 1, settled: 0)))
        cluster.isDiskSlow = false
        say(.hello(Hello(request: 100, nonce: Identifier(high: 1, low: 2), name: nil, role: role)))
        cluster.published.removeAll()
        cluster.finishAppends()
        let receipts = cluster.published.filter { effect in
            if case .send(.receipts, _) = effect { true } else { false }
        }
        // A member's hello counts once its joined entry is in the log, an observer's hello at once.
        #expect(receipts.count == (role == .member ? 1 : 0))
        #expect(cluster.sequencer?.sessions[first]?.connection == nil)
    }

    @Test func `a welcome without pauses does not keep a node busy`() {
        var machine = ReplicaMachine(
            settings: ReplicaSettings(name: nil, role: .member),
            nonce: Identifier(high: 1, low: 5))
        let start = Moment(monotonic: .zero, wall: Timestamp(0))
        var effects: [ReplicaEffect] = []
        machine.handle(.start, at: start, into: &effects)
        let welcome = Welcome(
            request: 1, log: Identifier(high: 7, low: 1), claim: .none, incarnation: Incarnation(2),
            last: SequenceNumber(2), floor: SequenceNumber(1), agreed: .zero, settled: 0,
            lastCounter: 0, feed: "feed",
            limits: SessionLimits(
                windowBytes: 1 << 20, batchBytesMax: 1 << 20, payloadBytesMax: 1 << 10,
                beatInterval: .zero, silenceMax: .zero))
        machine.handle(.received(.welcome(welcome), epoch: Epoch(1)), at: start, into: &effects)
        effects.removeAll()
        var now = Duration.zero
        while let due = machine.nextDeadline, due < .seconds(1) {
            guard effects.count <= 1_000 else { break }
            now = max(now, due)
            machine.handle(
                .tick, at: Moment(monotonic: now, wall: Timestamp(0)), into: &effects)
        }
        #expect(effects.count <= 200)
    }

    @Test func `a node that acknowledges outcomes it never had harms only itself`()
        throws
    {
        var cluster = started()
        cluster.addNode(2, named: "beta", store: "list")
        let connection = try #require(cluster.connection(of: 1))
        let far = UInt64(1) << 40
        cluster.handle(
            .received(
                .progress(Progress(applied: .zero, settled: far)),
                by: cluster.speaker(connection, epoch: Epoch(1)), from: connection))
        var builder = BatchBuilder()
        builder.append(
            target: BatchTarget(
                target: try #require(Target("list/*")), schemaVersion: 1, coding: .json),
            payload: [0x78])
        let batch = builder.finish(firstCounter: far + 1, settled: 0)
        cluster.handle(
            .received(
                .submit(batch), by: cluster.speaker(connection, epoch: Epoch(1)), from: connection))
        cluster.run()
        // The log says only that the session's counters continue from 1 to the one far above.
        cluster.restartSequencer()
        cluster.pass(.milliseconds(300))
        cluster.dispatch(["after"], to: "list/*", from: 2)
        #expect(cluster.nodes[2]?.texts(of: "list") == ["x", "after"])
        #expect(cluster.nodes[2]?.outcomes.count == 1)
    }

    @Test func `settings that could block an action forever are refused`() {
        var settings = SequencerSettings(feed: "feed")
        #expect(settings.fault == nil)
        settings.commitBytesMax = settings.windowBytes
        #expect(settings.fault?.contains("commitBytesMax") == true)
        settings = SequencerSettings(feed: "feed")
        settings.sessionsMax = SequencerSettings.sessionsMost + 1
        #expect(settings.fault?.contains("sessionsMax") == true)
    }
}
