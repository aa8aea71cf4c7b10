import ConfluxVocabulary
import Testing

@testable import ConfluxProtocol

/// Questions to the sequencer, and their limits.
struct QuestionBoundTests {
    /// A sequencer whose store has one host, which answers nothing by itself, and with an observer.
    private func started(
        _ adjust: (inout SequencerSettings) -> Void
    ) -> RawPeers {
        var peers = RawPeers(adjust)
        peers.cluster.addNode(1, named: "alpha", store: "list")
        peers.join(1, role: .observer)
        return peers
    }

    private func observe(_ number: UInt64, patience: Duration = .seconds(5)) throws -> NodeMessage {
        let store = try #require(StoreName("list"))
        return .question(
            Question(
                number: number, patience: patience,
                body: .observe(store, node: nil, after: .zero)))
    }

    @Test func `at the limit of questions a new one fails at once, and the others are answered`()
        throws
    {
        var peers = started { $0.questionsMax = 4 }
        for number in 1...3 as ClosedRange<UInt64> { peers.say(try observe(number), on: 1) }
        #expect(peers.heard(on: 1).failures == [.tableFull])
        let asked = try #require(peers.cluster.nodes[1]?.asked)
        #expect(asked.count == 2)
        for question in asked {
            let body = Answer.Body.state(try #require(StoreName("list")), SequenceNumber(4), [0x5B])
            let answer = Answer(number: question.number, isLast: true, node: nil, body: body)
            peers.cluster.input(.answer(answer), to: 1)
        }
        peers.cluster.run()
        #expect(peers.heard(on: 1).count == 2)
        peers.say(try observe(4), on: 1)
        #expect(peers.cluster.nodes[1]?.asked.count == 3)
    }

    @Test func `no question waits longer than the sequencer's limit`() throws {
        var peers = started { $0.questionPatienceMax = .seconds(3) }
        peers.say(try observe(1, patience: .seconds(3_600)), on: 1)
        peers.cluster.pass(.seconds(2))
        #expect(peers.heard(on: 1).failures.isEmpty)
        peers.cluster.pass(.seconds(2))
        #expect(peers.heard(on: 1).failures == [.timedOut])
    }

    @Test func `hellos that wait for the log are bounded, and sent again`() {
        var peers = RawPeers { $0.observersMax = 3_000 }
        peers.cluster.isConfirmSlow = true
        let higher = peers.cluster.disk.epoch.raised(by: 1)
        func hello(_ connection: UInt64) -> NodeMessage {
            .hello(
                Hello(
                    request: 100, nonce: Identifier(high: 77, low: connection), name: nil,
                    role: .observer))
        }
        // The sequencer asks the log for the first hello. Those that arrive meanwhile wait for the next time.
        let connections = 1...1_030 as ClosedRange<UInt64>
        for connection in connections {
            peers.say(hello(connection), on: connection, by: Speaker(epoch: higher))
        }
        while peers.cluster.waitingConfirms > 0 {
            peers.cluster.answerConfirm()
            peers.cluster.run()
        }
        func unheard() -> [UInt64] {
            connections.filter { peers.heard(on: $0).welcomes == 0 }
        }
        let left = unheard()
        #expect(left == Array(1_026...1_030))
        for connection in left {
            peers.say(hello(connection), on: connection, by: Speaker(epoch: higher))
        }
        while peers.cluster.waitingConfirms > 0 {
            peers.cluster.answerConfirm()
            peers.cluster.run()
        }
        #expect(left.allSatisfy { peers.heard(on: $0).welcomes == 1 })
    }

    @Test
    func `waiting hellos are bounded by the names they carry, and small ones are not`()
        throws
    {
        var peers = RawPeers()
        // As many elements as a list in a frame may have.
        let most = WireLimits.standard.elementsPerListMax
        let states = try (0..<most).map {
            StateBridge(state: try #require(Name("s\($0)")), schemaVersion: 1)
        }
        func hello(_ connection: UInt64, _ bridged: [StateBridge]) -> NodeMessage {
            .hello(
                Hello(
                    request: 100, nonce: Identifier(high: 77, low: connection), name: nil,
                    role: .member,
                    bridged: bridged))
        }
        peers.cluster.isDiskSlow = true
        let room = UInt64(SequencerMachine.waitingNamesMax / most)
        for connection in 1...room + 1 { peers.say(hello(connection, states), on: connection) }
        peers.say(hello(room + 2, [states[0]]), on: room + 2)
        #expect(peers.cluster.sequencer?.joining.count == Int(room) + 1)
        let names = peers.cluster.sequencer?.waitingNames.total ?? 0
        #expect(names > 0 && names <= SequencerMachine.waitingNamesMax)
        peers.cluster.finishAppends()
        #expect(peers.heard(on: 1).welcomes == 1 && peers.heard(on: room + 2).welcomes == 1)
        #expect(peers.heard(on: room + 1).isEmpty)
        peers.say(hello(room + 1, states), on: room + 1)
        #expect(peers.heard(on: room + 1).welcomes == 1)
    }

    @Test func `a hello that waits for the log ends with its connection`() {
        var peers = RawPeers()
        peers.cluster.isConfirmSlow = true
        let higher = Speaker(epoch: peers.cluster.disk.epoch.raised(by: 1))
        for connection in 1...4 as ClosedRange<UInt64> {
            let hello = Hello(
                request: 100, nonce: Identifier(high: 77, low: connection), name: nil,
                role: .observer)
            peers.say(.hello(hello), on: connection, by: higher)
        }
        // The sequencer asks the log for the first hello. The others wait.
        for connection in [1, 3] as [UInt64] {
            peers.cluster.handle(.disconnected(ConnectionID(rawValue: 1_000 + connection)))
        }
        while peers.cluster.waitingConfirms > 0 {
            peers.cluster.answerConfirm()
            peers.cluster.run()
        }
        #expect((1...4).filter { peers.heard(on: $0).welcomes > 0 } == [2, 4])
        #expect(peers.cluster.sequencer?.connections.observers.total == 2)
    }

    @Test func `of all processes that want a held key, only the last one waits`() throws {
        var peers = RawPeers()
        let key = Identifier(high: 5, low: 5)
        func hello(_ connection: UInt64) -> NodeMessage {
            .hello(
                Hello(
                    request: 100, nonce: key, name: nil, role: .member,
                    process: Identifier(high: 6, low: connection)))
        }
        for connection in 1...20 as ClosedRange<UInt64> {
            peers.say(hello(connection), on: connection)
        }
        #expect(peers.cluster.sequencer?.inquiries.count == 1)
        for bound in peers.cluster.sequencer?.bounds ?? [] {
            #expect(bound.level <= bound.most, "\(bound)")
        }
        // The holder doesn't answer.
        peers.cluster.pass(peers.cluster.settings.nameInquiryMax * 2)
        #expect(peers.heard(on: 20).welcomes == 1)
        #expect((2...19).allSatisfy { peers.heard(on: $0).welcomes == 0 })
    }

    @Test func `of all nodes that want a held name, only the last one waits`() {
        var peers = RawPeers()
        for connection in 1...20 as ClosedRange<UInt64> { peers.join(connection, named: "a") }
        #expect(peers.cluster.sequencer?.inquiries.count == 1)
        peers.cluster.pass(peers.cluster.settings.nameInquiryMax * 2)
        #expect(peers.heard(on: 20).welcomes == 1)
        #expect((2...19).allSatisfy { peers.heard(on: $0).isEmpty })
    }

    @Test
    func `a bounded number of claims is remembered, and a node with an older history reloads`() {
        var table = ClaimTable()
        let count = UInt64(ClaimTable.countMax)
        for epoch in 1...count + 1 {
            table.remember(
                ClaimTable.Claim(
                    epoch: Epoch(epoch), nonce: Identifier(high: 9, low: epoch),
                    first: SequenceNumber(10 * epoch)))
        }
        #expect(table.claims.count == Int(count))
        func agreement(_ sequence: UInt64, epoch: UInt64) -> SequenceNumber {
            table.agreement(
                with: HistoryMark(
                    log: .none, sequence: SequenceNumber(sequence), epoch: Epoch(epoch),
                    claim: Identifier(high: 9, low: epoch)),
                endingAt: SequenceNumber(10 * (count + 2)))
        }
        #expect(agreement(25, epoch: 2) == SequenceNumber(25))
        // Nothing is known about the first term any more: neither where it began nor where it ended.
        for sequence in [15, 20, 25] as [UInt64] {
            #expect(agreement(sequence, epoch: 1) == .zero)
        }
    }
}
