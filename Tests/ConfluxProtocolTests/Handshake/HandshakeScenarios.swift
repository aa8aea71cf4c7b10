import ConfluxHashing
import ConfluxVocabulary
import Testing

@testable import ConfluxProtocol

/// Hellos and their answers: each answer belongs to one hello, and each message belongs to one session
/// (rules 2 and 8).
struct HandshakeScenarios {
    /// A node without a cluster, and the effects that it wants.
    private struct LoneNode {
        var machine = ReplicaMachine(
            settings: ReplicaSettings(name: nil, role: .member), nonce: Identifier(high: 1, low: 5))
        var effects: [ReplicaEffect] = []
        var now = Duration.zero
        static let log = Identifier(high: 7, low: 1)

        init() {
            input(.start)
        }

        mutating func input(_ input: ReplicaInput) {
            machine.handle(
                input, at: Moment(monotonic: now, wall: Timestamp(0)), into: &effects)
        }

        mutating func welcome(
            _ request: UInt64, session: UInt64 = 3, claim: UInt64 = 1, agreed: UInt64 = 0,
            last: UInt64 = 9, epoch: UInt64 = 1
        ) {
            let welcome = Welcome(
                request: request, log: Self.log, claim: Identifier(high: 8, low: claim),
                incarnation: Incarnation(session), last: SequenceNumber(last),
                floor: SequenceNumber(1), agreed: SequenceNumber(agreed), settled: 0,
                lastCounter: 0, feed: "feed",
                limits: SessionLimits(
                    windowBytes: 1 << 20, batchBytesMax: 1 << 20, payloadBytesMax: 1 << 10,
                    beatInterval: .milliseconds(100), silenceMax: .seconds(10)))
            input(.received(.welcome(welcome), epoch: Epoch(epoch)))
        }

        /// The hellos that were sent since the last call.
        mutating func hellos() -> [Hello] {
            defer { effects.removeAll() }
            return effects.compactMap {
                if case .send(.hello(let hello)) = $0 { hello } else { nil }
            }
        }

        var lostHistory: Bool {
            effects.contains { if case .event(.historyLost) = $0 { true } else { false } }
        }
    }

    // MARK: The node

    @Test func `a welcome for an earlier hello is ignored`() {
        var node = LoneNode()
        node.input(.reconnected)
        #expect(node.hellos().map(\.request) == [1, 2])
        node.welcome(1, session: 69)
        #expect(!node.machine.isJoined)
        node.welcome(2, session: 73)
        #expect(node.machine.incarnation == Incarnation(73))
        #expect(node.machine.speaker == Speaker(epoch: Epoch(1), session: Incarnation(73)))
    }

    @Test func `a repeated welcome is ignored`() {
        var node = LoneNode()
        node.welcome(1)
        node.effects.removeAll()
        node.welcome(1, session: 73, claim: 2, epoch: 2)
        #expect(node.effects.isEmpty)
        #expect(node.machine.incarnation == Incarnation(3))
    }

    @Test func `a hello without an answer is the same until it is answered, however late`() {
        var node = LoneNode()
        let first = node.hellos()
        while node.now < .seconds(20), let due = node.machine.nextDeadline {
            node.now = due
            node.input(.tick)
        }
        let repeated = node.hellos()
        #expect(repeated.count > 5)
        #expect(repeated.allSatisfy { $0 == first[0] })
        node.welcome(1)
        #expect(node.machine.isJoined)
    }

    @Test func `a hello with other contents has its own number`() throws {
        let bus = HostingSubject.state(try #require(Name("bus")))
        var node = LoneNode()
        node.welcome(1)
        node.input(
            .open(
                Open(
                    request: 1, subject: bus, versions: SupportedVersions(1), events: [],
                    initial: .none)))
        let beat = Beat(log: LoneNode.log, last: SequenceNumber(9), floor: SequenceNumber(1))
        node.input(.beaten(beat, epoch: Epoch(1)))
        let opened = Opened(
            request: 1,
            outcome: .opened(
                life: .zero, schemaVersion: 1, last: SequenceNumber(9), snapshot: nil))
        node.input(.received(.opened(opened), epoch: Epoch(1)))
        node.input(.reconnected)
        node.input(.close(bus))
        node.now = .seconds(1)
        node.input(.tick)
        let hellos = node.hellos()
        #expect(hellos.map(\.request) == [1, 2, 3])
        #expect(hellos.map(\.bridged.count) == [0, 1, 0])
    }

    @Test func `a loss is accepted only in answer to a hello with the node's present mark`() throws
    {
        var node = LoneNode()
        node.welcome(1)
        var builder = BatchBuilder()
        let target = try #require(Target("list/*"))
        builder.append(
            target: BatchTarget(target: target, schemaVersion: 1, coding: .json), payload: [0x78])
        // A first hello waits at a busy sequencer, and does not name a mark yet.
        node.input(.reconnected)
        node.welcome(2)
        node.input(.dispatched(node.machine.batch(of: &builder, isAtomic: false)))
        let run = Receipts.Run(
            firstCounter: 1, count: 1, firstSequence: SequenceNumber(8), epoch: Epoch(1),
            timestamp: Timestamp(0))
        node.input(.received(.receipts(Receipts(runs: [run])), epoch: Epoch(1)))
        node.input(.reconnected)
        #expect(node.hellos().last?.history?.sequence == SequenceNumber(8))
        // A new term answers all hellos that waited, each one separately.
        for _ in 0..<2 { node.welcome(2, claim: 2, agreed: 4, epoch: 2) }
        #expect(!node.lostHistory && !node.machine.isJoined)
        node.welcome(3, claim: 2, agreed: 8, epoch: 2)
        #expect(!node.lostHistory && node.machine.isJoined)
        node.input(.reconnected)
        node.welcome(4, claim: 3, agreed: 4, epoch: 3)
        #expect(node.lostHistory && node.machine.isJoined)
    }

    @Test(arguments: [ByeCode.nameTaken, .keyTaken, .tableFull, .forgotten])
    func `a refusal of an earlier hello does not end the node`(_ code: ByeCode) {
        var node = LoneNode()
        node.input(.reconnected)
        node.effects.removeAll()
        for request in [0, 1] as [UInt64] {
            let bye = Bye(code: code, message: "", answering: request)
            node.input(.received(.bye(bye), epoch: Epoch(1)))
        }
        #expect(node.effects.isEmpty)
        node.input(.received(.bye(Bye(code: code, message: "", answering: 2)), epoch: Epoch(1)))
        #expect(!node.effects.isEmpty)
    }

    @Test
    func `a node's questions wait for its session, and their number is bounded`() {
        var node = LoneNode()
        let question = Question(number: 1, patience: .seconds(1), body: .status)
        node.input(.ask(question))
        func asked(_ effects: [ReplicaEffect]) -> Int {
            effects.count { $0 == .send(.question(question)) }
        }
        for _ in 1..<node.machine.settings.waitersMax { node.input(.ask(question)) }
        node.effects.removeAll()
        node.input(.ask(question))
        guard case .answered(let answer)? = node.effects.last,
            case .failed(.tableFull, _) = answer.body
        else {
            Issue.record("not refused: \(node.effects)")
            return
        }
        #expect(asked(node.effects) == 0)
        node.welcome(1)
        #expect(asked(node.effects) == node.machine.settings.waitersMax)
    }

    // MARK: The sequencer

    /// A member on connection 1, and a store that it hosts.
    private func joined() -> RawPeers {
        var peers = RawPeers()
        peers.join(1)
        peers.open("list", request: 1, on: 1)
        _ = peers.heard(on: 1)
        return peers
    }

    private func hosts(of peers: RawPeers) -> Int {
        peers.cluster.sequencer.map { Array($0.directory.hosting.hosts).count } ?? 0
    }

    @Test func `messages for another session do not count for the connection's session`() throws {
        var peers = joined()
        let session = try #require(peers.cluster.sequencer?.sessions.incarnations.last)
        let former = peers.cluster.sequencer?.sessions[session]
        let other = Incarnation(session.rawValue - 1)
        let last = peers.cluster.disk.last
        let place = SnapshotPlace(
            store: try #require(StoreName("list")), life: last, sequence: last)
        let vote = Vote(
            place: place, schemaVersion: 1, digest: Digest(of: [1]),
            refusals: Digest(of: [1]), byteCount: 2)
        let said: [NodeMessage] = [
            try #require(peers.batch(1)), .progress(Progress(applied: last, settled: 0)),
            .digest(.vote(vote)), .close(Close(subject: .store(place.store))),
            .answer(Answer(number: 0, isLast: true, node: nil, body: .alive)),
            .bye(Bye(code: .leaving, message: "")),
        ]
        for message in said {
            for speaker in [
                Speaker(epoch: peers.cluster.disk.epoch, session: other),
                Speaker(epoch: peers.cluster.disk.epoch),
                Speaker(epoch: .none, session: session),
            ] {
                peers.say(message, on: 1, by: speaker)
                let isBye = if case .bye = message { true } else { false }
                let byes = peers.heard(on: 1).byes
                #expect(byes == (isBye ? [] : [.rejoin]), "\(message) by \(speaker)")
            }
        }
        #expect(peers.cluster.sequencer?.sessions[session] == former)
        #expect(peers.cluster.disk.last == last)
    }

    @Test func `a repeated hello is answered again, and unhosts nothing`() {
        var peers = joined()
        #expect(hosts(of: peers) == 1)
        peers.join(1)
        let heard = peers.heard(on: 1)
        #expect(heard.welcomes == 1)
        #expect(hosts(of: peers) == 1)
        // A new hello replaces the list of what is hosted.
        peers.join(1, request: 2)
        #expect(peers.heard(on: 1).welcomes == 1)
        #expect(hosts(of: peers) == 0)
    }

    @Test func `an earlier hello of the same process changes nothing, on any connection`() {
        var peers = joined()
        peers.join(1, request: 5)
        peers.join(2, request: 4, as: 1)
        #expect(peers.heard(on: 2).isEmpty)
        let connections = peers.cluster.sequencer?.sessions.all.compactMap(\.connection)
        #expect(connections == [ConnectionID(rawValue: 1_001)])
        peers.join(2, request: 6, as: 1)
        #expect(peers.heard(on: 2).welcomes == 1)
    }

    @Test func `a refusal names the hello that it answers`() {
        var peers = joined()
        let forgotten = SessionToken(log: peers.cluster.disk.id, incarnation: Incarnation(99))
        peers.say(
            .hello(
                Hello(
                    request: 7, nonce: Identifier(high: 1, low: 1), name: nil, role: .member,
                    session: forgotten)), on: 2)
        let byes = peers.heard(on: 2).compactMap { if case .bye(let bye) = $0 { bye } else { nil } }
        #expect(byes.map(\.code) == [.forgotten])
        #expect(byes.map(\.request) == [7])
    }

    @Test func `the later of two hellos that wait for the log is answered`() {
        var peers = joined()
        peers.cluster.isConfirmSlow = true
        func greet(_ request: UInt64) {
            peers.say(
                .hello(
                    Hello(
                        request: request, nonce: Identifier(high: 77, low: 1), name: nil,
                        role: .member)),
                on: 1, by: Speaker(epoch: Epoch(99)))
        }
        greet(2)
        // The log is asked. If the same hello arrives again, it doesn't wait any longer.
        greet(2)
        greet(3)
        greet(3)
        while peers.cluster.waitingConfirms > 0 { peers.cluster.answerConfirm() }
        let heard = peers.heard(on: 1)
        let answered = heard.compactMap {
            if case .welcome(let welcome) = $0 { welcome.request } else { nil }
        }
        #expect(answered == [3])
    }
}
