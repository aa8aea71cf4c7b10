import ConfluxVocabulary
import Testing

@testable import ConfluxProtocol

/// Questions to the sequencer, and to nodes through it.
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

    @Test func `the status names sessions and stores`() throws {
        var cluster = started()
        cluster.dispatch(["x"], to: "list", from: 1)
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

    @Test func `every host is asked, and the last answer says so`() throws {
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

    @Test func `a question about what nobody hosts fails at once with the names that are known`()
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
        let target = try #require(Target("list"))
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

    @Test func `a node that leaves while it is asked is not waited for`() throws {
        var cluster = started()
        ask(.applied(SequenceNumber(4), try #require(Target("list"))), in: &cluster)
        cluster.input(.leave, to: 1)
        cluster.run()
        cluster.input(.leave, to: 2)
        cluster.run()
        #expect(cluster.nodes[3]?.answers.map(\.isLast) == [true])
    }
}
