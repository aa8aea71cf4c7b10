import ConfluxVocabulary
import Testing

@testable import ConfluxProtocol

/// A checkpoint and the entries after it are equivalent to the whole log (rule 20).
struct CheckpointTests {
    /// A random history of some nodes: they join, host, dispatch valid and invalid actions, fall silent, leave,
    /// return and are forgotten. The sequencer restarts now and then.
    private func history(_ random: inout SplitMix64) -> Cluster {
        func below(_ bound: Int) -> Int { Int.random(in: 0..<bound, using: &random) }
        var cluster = Cluster()
        cluster.settings.sessionsMax = 4
        cluster.settings.forgetAfter = .seconds(40)
        cluster.startSequencer()
        var sleeping: [Int: SimulatedNode] = [:]
        var next = 1
        for _ in 0..<40 {
            let present = cluster.nodes.keys.sorted()
            let id = present.isEmpty ? 0 : present[below(present.count)]
            switch below(12) {
            case 0, 1:
                cluster.addNode(
                    next, named: ["alpha", "beta", nil][below(3)],
                    key: below(3) == 0 ? "job-\(next)" : nil, store: ["list", nil][below(2)])
                next += 1
            case 2 where id > 0: cluster.open("list/\(below(3))", on: id)
            case 3 where id > 0:
                // The node leaves properly. Its outcomes may be settled or not.
                cluster.input(.leave, to: id)
                cluster.run()
                cluster.removeNode(id)
            case 4 where id > 0:
                sleeping[id] = cluster.nodes[id]
                cluster.removeNode(id)
                cluster.pass(cluster.settings.silenceMax * 2)
            case 5:
                guard let (sleeper, node) = sleeping.min(by: { $0.key < $1.key }) else { continue }
                sleeping[sleeper] = nil
                cluster.nodes[sleeper] = node
                // The session may have been forgotten. Then the node's counters start again.
                cluster.reconnect(sleeper)
                cluster.pass(.seconds(3))
            case 6: cluster.restartSequencer()
            case 7: cluster.pass(.seconds(below(50)))
            default:
                guard id > 0, cluster.nodes[id]?.machine.isJoined == true else { continue }
                let texts = (0...below(4)).map { below(4) == 0 ? "nowhere:\($0)" : "\($0)" }
                cluster.submit(texts, to: "list/*", from: id, isAtomic: below(5) == 0)
                if below(3) > 0 { cluster.run() }
            }
            cluster.nodes = cluster.nodes.filter { $0.value.end == nil }
        }
        cluster.run()
        return cluster
    }

    @Test func `a checkpoint at any commit and the entries after it are the whole log`() throws {
        let seed = SplitMix64.seed()
        var random = SplitMix64(seed: seed)
        var seen: Set<LogEventKind> = []
        var rejoined = 0
        var keyed = 0
        for _ in 0..<12 {
            let cluster = history(&random)
            for entry in cluster.disk.bodies {
                for block in try Commit.decode(body: entry.body).blocks {
                    guard case .event(let event, _) = block else { continue }
                    seen.insert(event.kind)
                    if case .joined(_, _, let former, let isKeyed) = event {
                        if former != .none { rejoined += 1 }
                        if isKeyed { keyed += 1 }
                    }
                }
            }
            try cluster.disk.expectCheckpointsToFit()
        }
        // The histories must have covered everything.
        #expect(seen == [.claim, .joined, .left, .forgotten, .created], "seed \(seed)")
        #expect(rejoined > 0 && keyed > 0, "seed \(seed)")
    }

    @Test func `a sequencer that starts from a checkpoint decides like one that reads the log`()
        throws
    {
        let seed = SplitMix64.seed()
        var random = SplitMix64(seed: seed)
        for _ in 0..<12 {
            let disk = history(&random).disk
            let count = Int.random(in: 1...disk.bodies.count, using: &random)
            var fromLog = Cluster()
            fromLog.disk = disk
            fromLog.disk.checkpoints = []
            var fromCheckpoint = fromLog
            let logState = try disk.logState(commits: count)
            fromCheckpoint.disk.checkpoints = [(logState.last, logState.encoded()[...])]
            fromLog.claimAndRead()
            fromCheckpoint.claimAndRead()
            #expect(
                fromCheckpoint.notes
                    == [.recovered(from: logState.last, through: disk.last)], "seed \(seed)")
            #expect(fromLog.notes == [.recovered(from: .zero, through: disk.last)])
            let (left, right) = (fromLog.sequencer, fromCheckpoint.sequencer)
            #expect(left?.sessions == right?.sessions, "seed \(seed)")
            #expect(left?.directory == right?.directory, "seed \(seed)")
            #expect(left?.term == right?.term, "seed \(seed)")
            #expect(fromLog.disk.bodies.last?.body == fromCheckpoint.disk.bodies.last?.body)
        }
    }

    @Test func `partly settled outcomes stay in a checkpoint`() throws {
        var cluster = Cluster()
        cluster.startSequencer()
        cluster.addNode(1, key: "job", store: "list")
        cluster.dispatch(["1", "2", "3", "4"], to: "list/*", from: 1)
        var logState = try cluster.disk.logState(commits: cluster.disk.bodies.count)
        let incarnation = try #require(logState.sessions.incarnations.first)
        logState.sessions.change(incarnation) { $0.settle(through: 2) }
        #expect(logState.sessions[incarnation]?.ledger.settled == 2)
        #expect(logState.sessions[incarnation]?.ledger.recordCount == 1)
        #expect(try LogState(checkpoint: logState.encoded()[...]) == logState)
    }

    // MARK: Checkpoints that don't match

    private func twoTerms() -> Cluster {
        var cluster = Cluster()
        cluster.startSequencer()
        cluster.addNode(1, named: "alpha", store: "list")
        for text in ["1", "2", "3"] { cluster.dispatch([text], to: "list/*", from: 1) }
        cluster.restartSequencer()
        cluster.pass(.seconds(1))
        for text in ["4", "5"] { cluster.dispatch([text], to: "list/*", from: 1) }
        cluster.killSequencer()
        cluster.disk.checkpoints = []
        cluster.notes = []
        return cluster
    }

    /// Starts with these checkpoints. The state must be that of the whole log.
    private func start(
        _ cluster: Cluster, with checkpoints: [(SequenceNumber, LogState)]
    ) throws -> [SequencerNote] {
        var cluster = cluster
        cluster.nodes = [:]
        let whole = try cluster.disk.logState(commits: cluster.disk.bodies.count)
        cluster.disk.checkpoints = checkpoints.map { ($0, $1.encoded()[...]) }
        cluster.claimAndRead()
        #expect(cluster.ends == [])
        #expect(cluster.sequencer?.directory == whole.directory)
        let counters = cluster.sequencer?.sessions.all.map(\.ledger)
        #expect(counters == whole.sessions.all.map(\.ledger))
        #expect(cluster.sequencer?.term.last == whole.last.next)
        return cluster.notes
    }

    private func setAside(_ notes: [SequencerNote]) -> [SequenceNumber] {
        notes.compactMap { note in
            if case .checkpointSetAside(let sequence, _) = note { sequence } else { nil }
        }
    }

    @Test func `a checkpoint of another log is set aside`() throws {
        let cluster = twoTerms()
        var other = cluster
        other.disk.id = Identifier(high: 1, low: 1)
        let logState = try cluster.disk.logState(commits: 3)
        var bytes = logState.encoded()
        bytes[5] ^= 1
        let alien = try LogState(checkpoint: bytes[...])
        let notes = try start(cluster, with: [(logState.last, alien)])
        #expect(setAside(notes) == [logState.last])
        #expect(notes.last == .recovered(from: .zero, through: cluster.disk.last))
    }

    @Test func `a checkpoint beyond the log's end is set aside`() throws {
        var cluster = twoTerms()
        let logState = try cluster.disk.logState(commits: cluster.disk.bodies.count)
        cluster.disk.bodies.removeLast()
        // The log offers it anyway, at a number that is not the checkpoint's.
        let notes = try start(cluster, with: [(cluster.disk.last, logState)])
        #expect(setAside(notes) == [cluster.disk.last])
    }

    @Test func `a checkpoint of a tail that was lost is set aside, and an older one is used`()
        throws
    {
        let cluster = twoTerms()
        let older = try cluster.disk.logState(commits: 2)
        // In a lost history, the first term's last commit was made by another term.
        let count = try cluster.disk.bodies.filter {
            try Commit.decode(body: $0.body).epoch == Epoch(1)
        }
        .count
        var lost = try cluster.disk.logState(commits: count)
        lost.lastEpoch = Epoch(2)
        let notes = try start(cluster, with: [(older.last, older), (lost.last, lost)])
        #expect(setAside(notes) == [lost.last])
        #expect(notes.last == .recovered(from: older.last, through: cluster.disk.last))
    }

    @Test func `a checkpoint at the end of a log with another end is set aside`() throws {
        let cluster = twoTerms()
        var logState = try cluster.disk.logState(commits: cluster.disk.bodies.count)
        logState.lastEpoch = Epoch(3)
        #expect(setAside(try start(cluster, with: [(logState.last, logState)])) == [logState.last])
    }

    @Test func `a checkpoint within a commit is set aside`() throws {
        var cluster = twoTerms()
        cluster.startSequencer()
        cluster.reconnect(1)
        cluster.pass(.seconds(1))
        cluster.dispatch(["6", "7", "8"], to: "list/*", from: 1)
        cluster.killSequencer()
        cluster.notes = []
        var logState = try cluster.disk.logState(commits: cluster.disk.bodies.count - 1)
        logState.last = logState.last.next
        #expect(setAside(try start(cluster, with: [(logState.last, logState)])) == [logState.last])
    }

    @Test func `checkpoints that the log can't read are skipped`() throws {
        var cluster = twoTerms()
        let older = try cluster.disk.logState(commits: 2)
        let newer = try cluster.disk.logState(commits: 4)
        var recovery = LogRecovery(
            log: cluster.disk.id, through: cluster.disk.last, in: cluster.disk.lastEpoch,
            floor: SequenceNumber(1))
        #expect(recovery.demand == .checkpoint(through: cluster.disk.last))
        recovery.take(.damaged(newer.last, "its bytes are others"))
        #expect(recovery.demand == .checkpoint(through: SequenceNumber(newer.last.rawValue - 1)))
        recovery.take(.found(older.last, older.encoded()[...]))
        #expect(recovery.demand == .entries(from: older.last.next))
        cluster.disk.bodies.removeFirst(2)
        try recovery.take(cluster.disk.bodies.map(\.body))
        #expect(recovery.demand == .nothing)
        #expect(recovery.base == older.last)

        var blind = LogRecovery(
            log: cluster.disk.id, through: cluster.disk.last, in: nil, floor: SequenceNumber(1))
        blind.take(.unreadable("the table is gone"))
        #expect(blind.demand == .entries(from: SequenceNumber(1)))
    }

    @Test func `a log that ends before its end is damaged`() throws {
        let cluster = twoTerms()
        var recovery = LogRecovery(
            log: cluster.disk.id, through: cluster.disk.last, in: nil, floor: SequenceNumber(1))
        recovery.take(.none)
        try recovery.take(cluster.disk.bodies.dropLast().map(\.body))
        #expect(recovery.demand == .entries(from: cluster.disk.last))
        #expect(throws: RecoveryFailure.self) { try recovery.take([]) }
    }
}
