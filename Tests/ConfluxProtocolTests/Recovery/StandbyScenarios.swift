import ConfluxVocabulary
import Testing

@testable import ConfluxProtocol

/// Several sequencers of one log, as the machine sees them (rule 47).
struct StandbyScenarios {
    private let standby = SequencerPlace(
        address: "tcp://b:1", isServing: false, last: SequenceNumber(4))

    /// A cluster with two nodes, an observer with the number 3, and two other sequencers.
    private func started() -> Cluster {
        var cluster = Cluster()
        cluster.settings.address = "tcp://a:1"
        cluster.startSequencer()
        cluster.addNode(1, named: "alpha", store: "list")
        cluster.addNode(2, named: "beta", store: "list")
        cluster.addNode(3, role: .observer)
        let behind = SequencerPlace(
            address: "tcp://c:1", isServing: false, last: SequenceNumber(2))
        cluster.handle(.standbys([behind, standby]))
        return cluster
    }

    private func ask(_ body: Question.Body, in cluster: inout Cluster) {
        cluster.input(
            .ask(Question(number: 1, patience: .seconds(5), body: body)), to: 3)
        cluster.run()
    }

    private func messages(_ published: ArraySlice<SequencerEffect>) -> [SequencerMessage] {
        published.compactMap { if case .send(let message, _) = $0 { message } else { nil } }
    }

    @Test func `status shows which sequencer serves and which ones stand by`() {
        var cluster = started()
        ask(.sequencers, in: &cluster)
        guard case .sequencers(let places)? = cluster.nodes[3]?.answers.first?.body else {
            Issue.record("no answer: \(cluster.nodes[3]?.answers ?? [])")
            return
        }
        #expect(places.map(\.address) == ["tcp://a:1", "tcp://b:1", "tcp://c:1"])
        #expect(places.map(\.isServing) == [true, false, false])
        #expect(places.first?.last == cluster.disk.last)
    }

    @Test func `a handover commits what was admitted, gives the receipts, and then ends`() {
        var cluster = started()
        cluster.isDiskSlow = true
        cluster.submit(["1"], to: "list/*", from: 1)
        cluster.run()
        cluster.submit(["2"], to: "list/*", from: 2)
        cluster.run()
        let begun = cluster.published.count
        ask(.handOver(to: nil), in: &cluster)
        #expect(cluster.nodes[3]?.answers.first?.body == .handingOver(to: "tcp://b:1"))
        #expect(cluster.ends.isEmpty)
        // Batches that arrive from now on are for the successor.
        cluster.submit(["3"], to: "list/*", from: 1)
        cluster.run()
        cluster.finishAppends()
        #expect(cluster.ends == [.handedOver(to: "tcp://b:1")])
        #expect(cluster.nodes[1]?.outcomes.keys.sorted() == [1])
        #expect(cluster.nodes[2]?.outcomes.keys.sorted() == [1])
        let said = messages(cluster.published[begun...])
        let byes = said.indices.filter {
            if case .bye(let bye) = said[$0] { bye.code == .leaving } else { false }
        }
        let receipts = said.indices.filter {
            if case .receipts = said[$0] { true } else { false }
        }
        #expect(byes.count == 3)
        #expect(receipts.max() ?? .max < byes.min() ?? .min)
    }

    @Test func `a sequencer hands over only to the requested successor`() {
        var cluster = started()
        ask(.handOver(to: "tcp://nobody:1"), in: &cluster)
        guard case .failed(.noStandby, let text)? = cluster.nodes[3]?.answers.last?.body else {
            Issue.record("it was answered: \(cluster.nodes[3]?.answers ?? [])")
            return
        }
        #expect(text.contains("tcp://b:1, tcp://c:1"))
        #expect(cluster.ends.isEmpty)
        ask(.handOver(to: "tcp://c:1"), in: &cluster)
        #expect(cluster.ends == [.handedOver(to: "tcp://c:1")])
    }

    @Test func `nothing is handed over without another sequencer`() {
        var cluster = started()
        cluster.handle(.standbys([]))
        ask(.handOver(to: nil), in: &cluster)
        guard case .failed(.noStandby, _)? = cluster.nodes[3]?.answers.last?.body else {
            Issue.record("it was answered: \(cluster.nodes[3]?.answers ?? [])")
            return
        }
        #expect(cluster.sequencer != nil)
    }

    @Test func `a deposed sequencer says bye, and sends nothing else for its term`() {
        var cluster = started()
        cluster.isDiskSlow = true
        cluster.isConfirmSlow = true
        cluster.submit(["1"], to: "list/*", from: 1)
        cluster.input(.barrier(request: 7), to: 2)
        cluster.run()
        var machine = cluster.sequencer
        var effects: [SequencerEffect] = []
        machine?.handle(.deposed(.superseded), at: cluster.moment, into: &effects)
        let said = messages(effects[...])
        #expect(said.count == 3)
        let isBye = said.allSatisfy {
            if case .bye(let bye) = $0 { bye.code == .superseded } else { false }
        }
        #expect(isBye)
        #expect(effects.last == .end(.superseded))
        // Later answers of the log, and messages of nodes, change nothing.
        effects.removeAll()
        let connection = ConnectionID(rawValue: 1)
        let hello = Hello(
            request: 9, nonce: Identifier(high: 1, low: 9), name: nil, role: .observer)
        for input in [
            .appended, .published, .termConfirmed, .subscribed, .tick, .drained,
            .received(
                .hello(hello), by: Speaker(epoch: cluster.disk.epoch, session: .none),
                from: connection, as: .anybody),
        ] as [SequencerInput] {
            machine?.handle(input, at: cluster.moment, into: &effects)
        }
        #expect(effects.isEmpty)
        #expect(machine?.nextDeadline == nil)
    }

    // MARK: States of the log that are already known

    /// What a new term reads if it already has the state of the log's first commits.
    private func recovery(
        of disk: Cluster.Disk, knowing logState: LogState
    ) throws -> (read: [LogRecovery.Demand], logState: LogState) {
        var recovery = LogRecovery(
            log: disk.id, through: disk.last, in: disk.lastEpoch, floor: disk.floor,
            goingOnFrom: KnownLogState(logState: logState, checkpoint: nil))
        var read: [LogRecovery.Demand] = []
        while recovery.demand != .nothing {
            read.append(recovery.demand)
            switch recovery.demand {
            case .checkpoint: recovery.take(.none)
            case .entries(let first):
                try recovery.take(disk.bodies.filter { $0.last >= first }.map(\.body))
            case .nothing: break
            }
        }
        return (read, recovery.logState)
    }

    @Test func `a logState that has followed the log to its end needs no reading`() throws {
        let disk = history()
        let whole = try disk.logState(commits: disk.bodies.count)
        let found = try recovery(of: disk, knowing: whole)
        #expect(found.read.isEmpty)
        #expect(found.logState == whole)
    }

    @Test func `after a logState only new entries are read`() throws {
        let disk = history()
        let known = try disk.logState(commits: 2)
        let found = try recovery(of: disk, knowing: known)
        #expect(found.read == [.entries(from: known.last.next)])
        #expect(try found.logState == disk.logState(commits: disk.bodies.count))
    }

    @Test func `a logState of a lost end is set aside, and the log is read instead`() throws {
        let disk = history()
        // Meanwhile another term has assigned the same numbers.
        var lost = disk
        lost.bodies.removeLast(2)
        let known = try lost.logState(commits: lost.bodies.count)
        var other = Cluster()
        other.disk = lost
        other.disk.bodies.removeLast()
        other.startSequencer()
        other.addNode(8, named: "omega", store: "other")
        for text in ["x", "y", "z"] { other.dispatch([text], to: "other/*", from: 8) }
        let found = try recovery(of: other.disk, knowing: known)
        #expect(try found.logState == other.disk.logState(commits: other.disk.bodies.count))
        #expect(found.read.contains(.entries(from: SequenceNumber(1))))
    }

    @Test func `a logState of another log, or beyond the end, is not used`() throws {
        let disk = history()
        let foreign = LogState(log: Identifier(high: 1, low: 1))
        #expect(
            try recovery(of: disk, knowing: foreign).logState
                == disk.logState(commits: disk.bodies.count))
        let whole = try disk.logState(commits: disk.bodies.count)
        var shorter = disk
        shorter.bodies.removeLast()
        #expect(
            try recovery(of: shorter, knowing: whole).logState
                == shorter.logState(commits: shorter.bodies.count))
    }

    private func history() -> Cluster.Disk {
        var cluster = Cluster.twoNodes()
        for text in ["a", "b", "c"] { cluster.dispatch([text], to: "list/*", from: 1) }
        return cluster.disk
    }
}
