import ConfluxVocabulary
import Testing

@testable import ConfluxProtocol

/// The sequencer loses a message if a connection has no room for it. A message of any kind may be lost.
struct LostMessageScenarios {
    private func started(_ adjust: (inout SequencerSettings) -> Void = { _ in }) -> Cluster {
        var cluster = Cluster()
        adjust(&cluster.settings)
        cluster.startSequencer()
        cluster.addNode(1, named: "alpha", store: "list")
        return cluster
    }

    /// Long enough for every message to be requested again.
    private let aWhile = Duration.seconds(4)

    @Test func `a lost welcome is sent again`() {
        var cluster = started()
        cluster.nextLoss = { if case .welcome = $0 { true } else { false } }
        cluster.addNode(2, named: "beta")
        #expect(cluster.nextLoss == nil)
        #expect(cluster.nodes[2]?.machine.isJoined == false)
        cluster.pass(aWhile)
        #expect(cluster.nodes[2]?.machine.isJoined == true)
        #expect(cluster.sequencer?.sessions.count == 2)
    }

    @Test(arguments: ["list", "other"]) func `a lost answer to an open is sent again`(
        _ store: String
    ) {
        var cluster = started()
        cluster.addNode(2)
        cluster.nextLoss = { if case .opened = $0 { true } else { false } }
        cluster.open(store, on: 2)
        #expect(cluster.nextLoss == nil)
        #expect(cluster.nodes[2]?.opened.isEmpty == true)
        cluster.pass(aWhile)
        #expect(cluster.nodes[2]?.opened.count == 1)
        cluster.dispatch(["x"], to: store, from: 2)
        #expect(cluster.nodes[2]?.texts(of: store) == ["x"])
    }

    @Test func `a lost answer to an open is sent again to a busy node, too`() {
        var cluster = started()
        cluster.addNode(2, store: "other")
        cluster.nextLoss = { if case .opened = $0 { true } else { false } }
        cluster.open("list", on: 2)
        #expect(cluster.nextLoss == nil)
        // Each of these actions is answered, with a rejection.
        for round in 0..<20 {
            cluster.dispatch(["\(round)"], to: "nowhere/*", from: 2)
            cluster.pass(.milliseconds(200))
        }
        #expect(cluster.nodes[2]?.opened.count == 2)
    }

    /// A node that hosts nothing learns its outcomes only from these messages.
    @Test func `lost receipts are sent again`() {
        var cluster = started()
        cluster.addNode(2)
        cluster.nextLoss = { if case .receipts = $0 { true } else { false } }
        cluster.dispatch(["x"], to: "list/*", from: 2)
        #expect(cluster.nextLoss == nil)
        #expect(cluster.nodes[2]?.outcomes.isEmpty == true)
        cluster.pass(aWhile)
        guard case .committed? = cluster.nodes[2]?.outcomes[1] else {
            Issue.record("no receipt: \(cluster.nodes[2]?.outcomes ?? [:])")
            return
        }
        #expect(cluster.nodes[1]?.texts(of: "list") == ["x"])
    }

    @Test func `a lost rejection is sent again`() {
        var cluster = started()
        cluster.addNode(2)
        cluster.nextLoss = { if case .rejection = $0 { true } else { false } }
        cluster.dispatch(["x"], to: "nowhere/*", from: 2)
        #expect(cluster.nextLoss == nil)
        #expect(cluster.nodes[2]?.outcomes.isEmpty == true)
        cluster.pass(aWhile)
        guard case .rejected(.unknownTarget, _)? = cluster.nodes[2]?.outcomes[1] else {
            Issue.record("no rejection: \(cluster.nodes[2]?.outcomes ?? [:])")
            return
        }
    }

    @Test func `a batch is sent again though the message that it is missing was lost`() {
        var cluster = started()
        cluster.addNode(2)
        cluster.nextLoss = { if case .expected = $0 { true } else { false } }
        cluster.submit(["lost"], to: "list/*", from: 2)
        cluster.loseQueue()
        cluster.dispatch(["x"], to: "list/*", from: 2)
        #expect(cluster.nextLoss == nil)
        cluster.pass(aWhile)
        #expect(cluster.nodes[1]?.texts(of: "list") == ["lost", "x"])
        #expect(cluster.nodes[2]?.outcomes.count == 2)
    }

    @Test func `a batch is sent again though the message that it had no room was lost`() {
        var cluster = started { $0.unsettledOutcomesMax = 1 }
        cluster.addNode(2)
        cluster.isDiskSlow = true
        cluster.nextLoss = { if case .expected = $0 { true } else { false } }
        cluster.dispatch(["a"], to: "list/*", from: 2)
        cluster.dispatch(["b"], to: "list/*", from: 2)
        #expect(cluster.nextLoss == nil)
        cluster.finishAppends()
        cluster.pass(aWhile)
        #expect(cluster.nodes[1]?.texts(of: "list") == ["a", "b"])
        #expect(cluster.nodes[2]?.outcomes.count == 2)
    }

    @Test(arguments: [true, false]) func `lost entries are fetched again`(_ isCatchingUp: Bool) {
        var cluster = started()
        for text in ["a", "b"] { cluster.dispatch([text], to: "list/*", from: 1) }
        cluster.nextLoss = { if case .entries = $0 { true } else { false } }
        if isCatchingUp {
            cluster.addNode(2, store: "list")
        } else {
            cluster.nodes[1]?.feedDrops = 1
            cluster.addNode(2)
            cluster.dispatch(["c"], to: "list/*", from: 2)
            cluster.pass(cluster.settings.beatInterval * 2)
        }
        #expect(cluster.nextLoss == nil)
        cluster.pass(aWhile)
        let expected = isCatchingUp ? ["a", "b"] : ["a", "b", "c"]
        #expect(cluster.nodes[isCatchingUp ? 2 : 1]?.texts(of: "list") == expected)
    }

    @Test func `a lost confirmation of a barrier is sent again`() {
        var cluster = started()
        cluster.nextLoss = { if case .confirmed = $0 { true } else { false } }
        cluster.input(.barrier(request: 5), to: 1)
        cluster.run()
        #expect(cluster.nextLoss == nil)
        #expect(cluster.nodes[1]?.reached.isEmpty == true)
        cluster.pass(aWhile)
        #expect(cluster.nodes[1]?.reached[5] == .due(cluster.disk.last))
    }

    /// Only the node that asked first can ask again, and it learns of the failure in time.
    @Test func `a lost question to a node times out, and can be asked again`() throws {
        var cluster = started()
        cluster.addNode(2, role: .observer)
        let store = try #require(StoreName("list"))
        let question = Question(
            number: 1, patience: .seconds(2), body: .observe(store, node: nil, after: .zero))
        cluster.nextLoss = { if case .question = $0 { true } else { false } }
        cluster.input(.ask(question), to: 2)
        cluster.run()
        #expect(cluster.nextLoss == nil)
        #expect(cluster.nodes[1]?.asked.isEmpty == true)
        cluster.pass(aWhile)
        guard case .failed(.timedOut, _)? = cluster.nodes[2]?.answers.first?.body else {
            Issue.record("no failure: \(cluster.nodes[2]?.answers ?? [])")
            return
        }
        cluster.input(.ask(question), to: 2)
        cluster.run()
        #expect(cluster.nodes[1]?.asked.count == 1)
    }

    /// A node gets nothing between its hello and its welcome. After the welcome, it gets the question again.
    @Test func `a question to a node that rejoins follows its welcome`() throws {
        var cluster = started()
        cluster.addNode(2, role: .observer)
        let store = try #require(StoreName("list"))
        cluster.nextLoss = { if case .question = $0 { true } else { false } }
        cluster.input(
            .ask(
                Question(
                    number: 7, patience: .seconds(5),
                    body: .observe(store, node: nil, after: .zero))), to: 2)
        cluster.run()
        #expect(cluster.nextLoss == nil)
        cluster.reconnect(1)
        cluster.run()
        let asked = try #require(cluster.nodes[1]?.asked)
        #expect(asked.count == 1)
        for question in asked {
            let body = Answer.Body.state(store, SequenceNumber(4), [1])
            let answer = Answer(number: question.number, isLast: true, node: nil, body: body)
            cluster.input(.answer(answer), to: 1)
        }
        cluster.run()
        // A question that was answered is not asked again.
        cluster.reconnect(1)
        cluster.run()
        #expect(cluster.nodes[1]?.asked.count == 1)
        #expect(cluster.nodes[2]?.answers.map(\.number) == [7])
    }

    /// The node that asked times out by itself, and may ask again.
    @Test func `a question whose answer was lost can be asked again`() {
        var cluster = started()
        cluster.addNode(2, role: .observer)
        let question = Question(number: 1, patience: .seconds(2), body: .status)
        cluster.nextLoss = { if case .answer = $0 { true } else { false } }
        for _ in 0..<2 {
            cluster.input(.ask(question), to: 2)
            cluster.run()
        }
        #expect(cluster.nextLoss == nil)
        #expect(cluster.nodes[2]?.answers.count == 1)
        #expect(cluster.sequencer?.questions.count == 0)
    }

    @Test(arguments: [false, true])
    func `a holder keeps its name or key though an inquiry about it is lost`(_ isKeyed: Bool) {
        var cluster = started()
        let key = isKeyed ? "nightly" : nil
        cluster.addNode(2, named: "beta", key: key)
        cluster.nextLoss = { if case .question = $0 { true } else { false } }
        cluster.addNode(3, named: "beta", key: key)
        #expect(cluster.nextLoss == nil)
        cluster.pass(aWhile)
        #expect(cluster.nodes[2]?.end == nil)
        #expect(cluster.nodes[2]?.machine.isJoined == true)
        guard case .refused? = cluster.nodes[3]?.end else {
            Issue.record(
                "the holder lost what it had: \(String(describing: cluster.nodes[3]?.end))")
            return
        }
    }

    @Test(arguments: [ByeCode.rejoin, .forgotten, .nameTaken])
    func `a lost bye is sent again`(_ code: ByeCode) throws {
        var cluster = started()
        let isLost = { (message: SequencerMessage) in
            if case .bye(let bye) = message { bye.code == code } else { false }
        }
        switch code {
        case .rejoin:
            // The sequencer restarts, but no feed tells the node.
            cluster.addNode(2)
            cluster.killSequencer()
            cluster.startSequencer()
            cluster.nextLoss = isLost
            cluster.dispatch(["x"], to: "list/*", from: 2)
            cluster.pass(aWhile)
            #expect(cluster.nodes[1]?.texts(of: "list") == ["x"])
        case .forgotten:
            cluster.killSequencer()
            cluster.disk = Cluster.Disk(id: Identifier(high: 7, low: 2))
            cluster.nextLoss = isLost
            cluster.restartSequencer()
            cluster.pass(aWhile)
            #expect(cluster.nodes[1]?.machine.isJoined == true)
            #expect(cluster.nodes[1]?.events.contains(.sessionForgotten) == true)
        default:
            cluster.nextLoss = isLost
            cluster.addNode(2, named: "alpha")
            cluster.pass(aWhile)
            guard case .refused(.nameTaken, _)? = cluster.nodes[2]?.end else {
                Issue.record("not refused: \(String(describing: cluster.nodes[2]?.end))")
                return
            }
            #expect(cluster.nodes[1]?.end == nil)
        }
        #expect(cluster.nextLoss == nil)
    }

    @Test func `a node continues though the bye of a stopping sequencer is lost`() {
        var cluster = started()
        cluster.nextLoss = { if case .bye = $0 { true } else { false } }
        cluster.handle(.stop)
        cluster.run()
        #expect(cluster.nextLoss == nil)
        #expect(cluster.nodes[1]?.machine.isJoined == true)
        cluster.startSequencer()
        cluster.pass(aWhile)
        cluster.dispatch(["x"], to: "list/*", from: 1)
        cluster.pass(aWhile)
        #expect(cluster.nodes[1]?.texts(of: "list") == ["x"])
    }
}
