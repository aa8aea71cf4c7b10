import ConfluxVocabulary
import Testing

@testable import ConfluxProtocol

/// Questions to the sequencer, and questions to nodes that it passes on.
struct QuestionScenarios {
    private func started() -> Cluster {
        var cluster = Cluster()
        cluster.startSequencer()
        cluster.addNode(1, named: "alpha", store: "list")
        cluster.addNode(2, named: "beta", store: "list")
        cluster.addNode(3, role: .observer)
        return cluster
    }

    private func ask(
        _ body: Question.Body, in cluster: inout Cluster, number: UInt64 = 1,
        patience: Duration = .seconds(5)
    ) {
        cluster.input(
            .ask(Question(number: number, patience: patience, body: body)), to: 3)
        cluster.run()
    }

    @Test func `the status lists sessions and stores`() throws {
        var cluster = started()
        cluster.dispatch(["x"], to: "list/*", from: 1)
        cluster.pass(.seconds(3))
        ask(.status, in: &cluster)
        guard case .status(let status) = cluster.nodes[3]?.answers.first?.body else {
            Issue.record("no status: \(cluster.nodes[3]?.answers ?? [])")
            return
        }
        #expect(status.sessions.map(\.name?.text) == ["alpha", "beta"])
        #expect(status.sessions.allSatisfy { $0.applied == status.last && $0.isLive })
        #expect(status.stores.map(\.hosts) == [2])
        #expect(status.last == cluster.disk.last)
    }

    @Test func `the status says what the sequencer knows of its log and its bounds`() throws {
        var cluster = started()
        func health() throws -> SequencerHealth {
            ask(.status, in: &cluster)
            guard case .status(let status)? = cluster.nodes[3]?.answers.last?.body else {
                throw WireError.malformed(at: 0, expected: "a status")
            }
            return try #require(status.health)
        }
        var space = LogSpace(usedBytes: 10, of: 1 << 30)
        space.freeBytes = 7
        cluster.handle(.logSpace(space))
        let ample = try health()
        #expect(ample.usedBytes == 10 && ample.limitBytes == 1 << 30 && ample.freeBytes == 7)
        #expect(ample.held == nil && !ample.isSlowed && !ample.isClockBehind)
        #expect(ample.bounds.count == SequencerHealth.boundsMax)
        cluster.handle(.logSpace(.nearlyFull))
        #expect(try health().held?.contains("bytes") == true)
    }

    private func shapes(of state: String, in cluster: inout Cluster) throws -> [ActionShapes] {
        ask(.shapes(try #require(Name(state))), in: &cluster)
        guard case .status(let status) = cluster.nodes[3]?.answers.last?.body else {
            Issue.record("no status: \(cluster.nodes[3]?.answers ?? [])")
            return []
        }
        return status.shapes
    }

    @Test
    func `the shapes of a state's actions are known while a node declares them`()
        throws
    {
        var cluster = started()
        let old = ActionShapes(schemaVersion: 1, json: Array(#"{"a":{}}"#.utf8)[...])
        let new = ActionShapes(schemaVersion: 2, json: Array(#"{"a":{},"b":{}}"#.utf8)[...])
        cluster.bridge("prefs", schemaVersion: 1, shapes: old.json, on: 1)
        cluster.bridge("prefs", schemaVersion: 2, shapes: new.json, on: 2)
        #expect(try shapes(of: "prefs", in: &cluster) == [old, new])
        #expect(try shapes(of: "list", in: &cluster) == [])

        // The log doesn't have the shapes. The nodes send them again with their hellos.
        cluster.restartSequencer()
        cluster.pass(.seconds(10))
        #expect(try shapes(of: "prefs", in: &cluster) == [old, new])

        cluster.input(.leave, to: 2)
        cluster.run()
        #expect(try shapes(of: "prefs", in: &cluster) == [old])
        let table = try #require(cluster.sequencer?.directory.states)
        #expect(table.shapesBytes.total == old.json.count)
    }

    @Test func `shapes above a bound are not kept, but their states are bridged`()
        throws
    {
        var table = StateTable()
        let most = [UInt8](repeating: 0x20, count: WireLimits.shapesBytesMax)
        // Each of a session of its own, so that none has more than its share.
        var number = 0
        func bridge(_ text: String, _ shapes: [UInt8]) throws -> [ActionShapes] {
            let name = try #require(Name(text))
            number += 1
            table.bridge(
                StateBridge(state: name, schemaVersion: 1, shapes: shapes[...]),
                by: Incarnation(UInt64(number)), of: .session(Incarnation(UInt64(number))))
            #expect(table[name]?.bridges[Incarnation(UInt64(number))]?.schemaVersion == 1)
            return table.shapes(of: name)
        }
        #expect(try bridge("large", most + [0x20]) == [])
        let room = StateTable.shapesBytesMax / most.count
        for index in 0..<room { #expect(try bridge("s\(index)", most).count == 1) }
        #expect(try bridge("late", most) == [])
        #expect(table.shapesBytes.total == room * most.count)
        // A state that is no longer bridged makes room.
        table.endBridge(try #require(Name("s0")), by: Incarnation(2))
        #expect(try bridge("late", most).count == 1)
        #expect(table.shapesBytes.total == room * most.count)
    }

    @Test func `a status larger than a frame is not sent, and the question fails`() throws {
        var cluster = started()
        var hosted: [StoreName] = []
        let state = try #require(Name(String(repeating: "s", count: 64)))
        for index in 0..<20_000 {
            let text = String(repeating: "i", count: 59) + "\(10_000 + index)"
            let store = StoreName(state: state, instance: try #require(Name(text)))
            hosted.append(store)
            cluster.sequencer?.directory.insert(
                StoreRecord(life: SequenceNumber(1), schemaVersion: 1, initial: .none),
                named: store)
        }
        for number in 1_001...1_026 as ClosedRange<UInt64> {
            let session = Session(
                incarnation: Incarnation(number), nonce: Identifier(high: 5, low: number),
                name: nil, owner: nil, isKeyed: false, quietSince: cluster.now)
            cluster.sequencer?.sessions.insert(session)
            for store in hosted {
                cluster.sequencer?.directory.host(
                    store, as: SupportedVersions(1), by: session.incarnation)
            }
        }
        ask(.status, in: &cluster)
        guard case .failed(.tooLarge, _) = cluster.nodes[3]?.answers.first?.body else {
            Issue.record("no failure: \(cluster.nodes[3]?.answers.count ?? 0)")
            return
        }
    }

    @Test func `every host is asked, and the last answer is marked as such`() throws {
        var cluster = started()
        let store = try #require(StoreName("list"))
        ask(.observe(store, node: nil, after: .zero), in: &cluster, number: 7)
        for id in [1, 2] {
            let question = try #require(cluster.nodes[id]?.asked.first)
            let answer = Answer(
                number: question.number, isLast: true, node: nil,
                body: .state(store, SequenceNumber(4), [UInt8(id)]))
            cluster.input(.answer(answer), to: id)
            cluster.run()
        }
        let answers = try #require(cluster.nodes[3]?.answers)
        #expect(answers.map(\.number) == [7, 7])
        #expect(answers.map(\.node?.text) == ["alpha", "beta"])
        #expect(answers.map(\.isLast) == [false, true])
    }

    @Test func `one node can be asked by its name`() throws {
        var cluster = started()
        let store = try #require(StoreName("list"))
        ask(.observe(store, node: Name("beta"), after: .zero), in: &cluster)
        #expect(cluster.nodes[1]?.asked.isEmpty == true)
        #expect(cluster.nodes[2]?.asked.count == 1)
        ask(.observe(store, node: Name("gamma"), after: .zero), in: &cluster, number: 2)
        guard case .failed(.unknownNode, let message) = cluster.nodes[3]?.answers.first?.body else {
            Issue.record("no failure: \(cluster.nodes[3]?.answers ?? [])")
            return
        }
        #expect(message.contains("alpha, beta"))
    }

    @Test func `a question that nobody answers ends in time`() throws {
        var cluster = started()
        let store = try #require(StoreName("list"))
        ask(
            .observe(store, node: nil, after: .zero), in: &cluster, number: 1,
            patience: .milliseconds(500))
        cluster.pass(.milliseconds(400))
        #expect(cluster.nodes[3]?.answers.isEmpty == true)
        cluster.pass(.milliseconds(200))
        guard case .failed(.timedOut, _) = cluster.nodes[3]?.answers.first?.body else {
            Issue.record("no failure: \(cluster.nodes[3]?.answers ?? [])")
            return
        }
    }

    @Test func `a question about an unhosted store fails at once with the known names`()
        throws
    {
        var cluster = started()
        ask(.observe(try #require(StoreName("none")), node: nil, after: .zero), in: &cluster)
        guard case .failed(.notHosted, let message) = cluster.nodes[3]?.answers.first?.body else {
            Issue.record("no failure: \(cluster.nodes[3]?.answers ?? [])")
            return
        }
        #expect(message.contains("list"))
    }

    @Test func `the first good answer ends a question about an entry`() throws {
        var cluster = started()
        let target = try #require(Target("list/*"))
        ask(.applied(SequenceNumber(4), target), in: &cluster)
        let first = try #require(cluster.nodes[1]?.asked.first)
        let second = try #require(cluster.nodes[2]?.asked.first)
        cluster.input(
            .answer(
                Answer(
                    number: first.number, isLast: true, node: nil,
                    body: .failed(.effectUnknown, message: ""))), to: 1)
        cluster.run()
        #expect(cluster.nodes[3]?.answers.isEmpty == true)
        cluster.input(
            .answer(Answer(number: second.number, isLast: true, node: nil, body: .applied)), to: 2)
        cluster.run()
        #expect(cluster.nodes[3]?.answers.map(\.body) == [.applied])
        #expect(cluster.nodes[3]?.answers.map(\.isLast) == [true])
    }

    @Test func `an answer to a question of an earlier term does not answer another question`()
        throws
    {
        var cluster = started()
        let target = try #require(Target("list/*"))
        ask(.applied(SequenceNumber(4), target), in: &cluster)
        let former = try #require(cluster.nodes[2]?.asked.last)
        cluster.restartSequencer()
        cluster.pass(.seconds(1))
        ask(.applied(SequenceNumber(99), target), in: &cluster, number: 2)
        let present = try #require(cluster.nodes[2]?.asked.last)
        for question in [former, present] {
            #expect(cluster.nodes[3]?.answers.isEmpty == true)
            cluster.input(
                .answer(Answer(number: question.number, isLast: true, node: nil, body: .applied)),
                to: 2)
            cluster.run()
        }
        #expect(cluster.nodes[3]?.answers.map(\.number) == [2])
    }

    @Test func `a node that leaves while it is asked is not waited for`() throws {
        var cluster = started()
        ask(.applied(SequenceNumber(4), try #require(Target("list/*"))), in: &cluster)
        cluster.input(.leave, to: 1)
        cluster.run()
        cluster.input(.leave, to: 2)
        cluster.run()
        #expect(cluster.nodes[3]?.answers.map(\.isLast) == [true])
    }
}
