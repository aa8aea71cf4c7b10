import ConfluxVocabulary
import Testing

@testable import ConfluxProtocol

/// Processes that are run again with one key (rule 11).
struct KeyedScenarios {
    /// A worker with a list, and a first process with the key.
    private func withFirst() -> Cluster {
        var cluster = Cluster()
        cluster.startSequencer()
        cluster.addNode(9, named: "worker", store: "list")
        cluster.addNode(1, key: "k")
        return cluster
    }

    private func resumption(_ cluster: Cluster, _ id: Int) -> Resumption? {
        cluster.nodes[id]?.machine.resumption
    }

    private func isCommitted(_ cluster: Cluster, _ id: Int, _ counter: UInt64) -> Bool {
        if case .committed = cluster.nodes[id]?.outcomes[counter] { true } else { false }
    }

    private func texts(_ cluster: Cluster) -> [String] { cluster.nodes[9]?.texts(of: "list") ?? [] }

    @Test func `the next process goes on behind what was told`() {
        var cluster = withFirst()
        cluster.dispatch(["1", "2", "3"], to: "list", from: 1)
        cluster.input(.told(2), to: 1)
        cluster.input(.leave, to: 1)
        cluster.run()
        cluster.removeNode(1)
        cluster.addNode(2, key: "k")
        #expect(resumption(cluster, 2) == Resumption(settled: 2, lastCounter: 3))
        #expect(cluster.nodes[2]?.machine.nextCounter == 3)
        cluster.dispatch(["3"], to: "list", from: 2)
        cluster.dispatch(["4"], to: "list", from: 2)
        #expect(texts(cluster) == ["1", "2", "3", "4"])
        #expect(isCommitted(cluster, 2, 3) && isCommitted(cluster, 2, 4))
    }

    @Test func `what was told reaches the sequencer without a bye`() {
        var cluster = withFirst()
        cluster.dispatch(["1", "2", "3"], to: "list", from: 1)
        cluster.input(.told(3), to: 1)
        cluster.pass(cluster.settings.beatInterval * 2)
        cluster.removeNode(1)
        cluster.addNode(2, key: "k")
        cluster.pass(.seconds(2))
        #expect(resumption(cluster, 2) == Resumption(settled: 3, lastCounter: 3))
    }

    @Test func `a lost answer about a part of what the process before submitted comes again`() {
        var cluster = withFirst()
        let lines = (1...100).map { "\($0)" }
        cluster.dispatch(lines, to: "list", from: 1)
        cluster.removeNode(1)
        cluster.addNode(2, key: "k")
        cluster.pass(.seconds(2))
        #expect(resumption(cluster, 2) == Resumption(settled: 0, lastCounter: 100))
        cluster.submit(Array(lines.prefix(10)), to: "list", from: 2)
        while case .toSequencer = cluster.queue.first {
            cluster.deliver(cluster.queue.removeFirst())
        }
        // The connection breaks with the answer on it; there is nothing more to dispatch.
        cluster.reconnect(2)
        cluster.pass(.seconds(5))
        #expect(cluster.nodes[2]?.outcomes.count == 10)
        #expect(cluster.nodes[2]?.machine.isSettled == true)
        #expect(texts(cluster) == lines)
    }

    @Test func `another key has another session, and a process without one begins with 1`() {
        var cluster = withFirst()
        cluster.dispatch(["1"], to: "list", from: 1)
        cluster.addNode(2, key: "other")
        #expect(resumption(cluster, 2) == Resumption(settled: 0, lastCounter: 0))
        cluster.addNode(3)
        #expect(resumption(cluster, 3) == nil)
        #expect(cluster.nodes[3]?.machine.nextCounter == 1)
    }

    @Test func `a keyed session outlives its bye and the sequencer`() throws {
        var cluster = withFirst()
        cluster.dispatch(["1"], to: "list", from: 1)
        let incarnation = try #require(cluster.nodes[1]?.machine.incarnation)
        cluster.input(.told(1), to: 1)
        cluster.input(.leave, to: 1)
        cluster.run()
        cluster.removeNode(1)
        let last = try Commit.decode(body: try #require(cluster.disk.bodies.last).body)
        #expect(last.blocks == [.event(.left(incarnation))])

        cluster.restartSequencer()
        cluster.addNode(2, key: "k")
        #expect(cluster.nodes[2]?.machine.incarnation == incarnation)
        // The log has no word of what was told, so it is told again.
        #expect(resumption(cluster, 2) == Resumption(settled: 0, lastCounter: 1))
        cluster.input(.leave, to: 2)
        cluster.run()
        let bye = try Commit.decode(body: try #require(cluster.disk.bodies.last).body)
        #expect(bye.blocks == [.event(.left(incarnation))])
    }

    @Test func `a keyed session is forgotten after its own time`() {
        var cluster = Cluster()
        cluster.settings.forgetAfter = .seconds(20)
        cluster.settings.keyedSessionsKeptFor = .seconds(60)
        cluster.startSequencer()
        cluster.addNode(1, key: "k")
        cluster.pass(.seconds(30))
        cluster.input(.leave, to: 1)
        cluster.run()
        cluster.removeNode(1)
        cluster.pass(.seconds(50))
        #expect(cluster.sequencer?.sessions.count == 1)
        cluster.pass(.seconds(20))
        #expect(cluster.sequencer?.sessions.count == 0)
    }

    @Test func `when the table is full the keyed session that left first is forgotten`() {
        var cluster = Cluster()
        cluster.settings.sessionsMax = 2
        cluster.startSequencer()
        for (id, key) in [(1, "a"), (2, "b")] {
            cluster.addNode(id, key: key)
            cluster.dispatch(["x"], to: "nowhere", from: id)
            cluster.input(.leave, to: id)
            cluster.run()
            cluster.removeNode(id)
            cluster.pass(.seconds(1))
        }
        cluster.addNode(3)
        #expect(cluster.nodes[3]?.machine.isJoined == true)
        #expect(cluster.sequencer?.sessions.incarnation(of: SessionKey("a")!.nonce) == nil)
        #expect(cluster.sequencer?.sessions.incarnation(of: SessionKey("b")!.nonce) != nil)
    }

    @Test func `while a process has the key another is refused`() {
        var cluster = withFirst()
        cluster.addNode(2, key: "k")
        cluster.pass(.milliseconds(100))
        guard case .refused(.keyTaken, let message) = cluster.nodes[2]?.end else {
            Issue.record("not refused: \(String(describing: cluster.nodes[2]?.end))")
            return
        }
        #expect(message.contains("key"))
        cluster.dispatch(["1"], to: "list", from: 1)
        #expect(texts(cluster) == ["1"])
    }

    @Test func `two processes that begin at once: one has the key`() {
        var cluster = Cluster()
        cluster.startSequencer()
        cluster.isDiskSlow = true
        cluster.addNode(1, key: "k")
        cluster.addNode(2, key: "k")
        cluster.pass(.milliseconds(700))
        cluster.finishAppends()
        cluster.pass(.seconds(3))
        let joined = [1, 2].filter {
            cluster.nodes[$0]?.machine.isJoined == true && cluster.nodes[$0]?.end == nil
        }
        let refused = [1, 2].filter {
            if case .refused(.keyTaken, _) = cluster.nodes[$0]?.end { true } else { false }
        }
        #expect(joined.count == 1 && refused.count == 1)
    }

    @Test func `the key of a process that does not answer is another's after a second`() {
        var cluster = withFirst()
        let sleeper = cluster.nodes[1]
        cluster.removeNode(1)
        cluster.addNode(2, key: "k")
        cluster.pass(.milliseconds(900))
        #expect(cluster.nodes[2]?.machine.isJoined == false)
        cluster.pass(.milliseconds(200))
        #expect(cluster.nodes[2]?.machine.isJoined == true)
        cluster.dispatch(["1"], to: "list", from: 2)

        // The first one was only stopped: what it says now counts no more.
        cluster.nodes[1] = sleeper
        cluster.reconnect(1)
        cluster.pass(.seconds(2))
        guard case .refused(.keyTaken, _) = cluster.nodes[1]?.end else {
            Issue.record("not refused: \(String(describing: cluster.nodes[1]?.end))")
            return
        }
        cluster.dispatch(["2"], to: "list", from: 2)
        #expect(texts(cluster) == ["1", "2"])
    }

    @Test func `who waits for a key has it when its holder leaves meanwhile`() {
        var cluster = withFirst()
        // The bye of the holder and the question whether it is there meet on their way.
        cluster.input(.leave, to: 1)
        let parting = cluster.queue
        cluster.queue.removeAll()
        cluster.addNode(2, key: "k")
        #expect(cluster.nodes[2]?.machine.isJoined == false)
        cluster.queue = parting
        cluster.pass(.seconds(2))
        #expect(cluster.nodes[2]?.end == nil)
        #expect(cluster.nodes[2]?.machine.isJoined == true)
    }

    @Test func `who waits for a key has it when its holder has been silent for too long`() throws {
        var cluster = withFirst()
        cluster.removeNode(1)
        cluster.pass(cluster.settings.silenceMax)
        let sweepAt = try #require(cluster.sequencer?.sweepAt)
        cluster.pass(sweepAt - cluster.now - .milliseconds(300))
        cluster.addNode(2, key: "k")
        cluster.pass(.seconds(2))
        #expect(cluster.nodes[2]?.end == nil)
        #expect(cluster.nodes[2]?.machine.isJoined == true)
    }

    @Test func `after a restart who had the key keeps it, though another comes first`() {
        var cluster = withFirst()
        cluster.restartSequencer()
        // The holder's hello is lost; a newcomer's arrives.
        cluster.killSequencer()
        cluster.startSequencer()
        cluster.addNode(2, key: "k")
        #expect(cluster.nodes[2]?.machine.isJoined == false)
        cluster.reconnect(1)
        cluster.pass(.milliseconds(500))
        #expect(cluster.nodes[1]?.machine.isJoined == true)
        guard case .refused(.keyTaken, _) = cluster.nodes[2]?.end else {
            Issue.record("not refused: \(String(describing: cluster.nodes[2]?.end))")
            return
        }
    }

    @Test func `a process whose welcome was lost waits for nobody`() {
        var cluster = Cluster()
        cluster.startSequencer()
        cluster.isDiskSlow = true
        cluster.addNode(1, key: "k")
        cluster.isDiskSlow = false
        let append = cluster.waitingAppends.removeFirst()
        cluster.deliver(.logged(append))
        cluster.queue.removeAll()
        cluster.reconnect(1)
        #expect(cluster.nodes[1]?.machine.isJoined == true)
    }

    @Test func `a takeover waits until what its predecessor submitted is in the log`() {
        var cluster = withFirst()
        cluster.isDiskSlow = true
        cluster.dispatch(["1"], to: "list", from: 1)
        cluster.dispatch(["2"], to: "list", from: 1)
        cluster.removeNode(1)
        cluster.addNode(2, key: "k")
        cluster.pass(.seconds(2))
        #expect(cluster.nodes[2]?.machine.isJoined == false)
        cluster.finishAppends()
        cluster.pass(.seconds(3))
        #expect(resumption(cluster, 2) == Resumption(settled: 0, lastCounter: 2))
        // Cut otherwise than they were.
        cluster.dispatch(["1", "2"], to: "list", from: 2)
        cluster.dispatch(["3"], to: "list", from: 2)
        #expect(texts(cluster) == ["1", "2", "3"])
        #expect((1...3).allSatisfy { isCommitted(cluster, 2, $0) })
    }

    @Test func `a sequencer that restarts while its log has less than was judged loses no line`() {
        var cluster = withFirst()
        cluster.isDiskSlow = true
        cluster.dispatch(["1"], to: "list", from: 1)
        cluster.dispatch(["2"], to: "list", from: 1)
        // The second was admitted, and dies with the sequencer; so does the process.
        let append = cluster.waitingAppends.removeFirst()
        cluster.disk.bodies.append((append.first, append.last, append.frame.dropFirst(Frame.size)))
        cluster.removeNode(1)
        cluster.isDiskSlow = false
        cluster.restartSequencer()
        cluster.addNode(2, key: "k")
        cluster.pass(.seconds(2))
        #expect(resumption(cluster, 2) == Resumption(settled: 0, lastCounter: 1))
        cluster.submit(["1"], to: "list", from: 2)
        cluster.submit(["2", "3"], to: "list", from: 2)
        // And once more, in the middle of the resumed run.
        cluster.restartSequencer()
        cluster.pass(.seconds(1))
        #expect(texts(cluster) == ["1", "2", "3"])
        #expect((1...3).allSatisfy { isCommitted(cluster, 2, $0) })
    }

    @Test func `lines that were void at the end are void again after a restart`() {
        var cluster = withFirst()
        cluster.dispatch(["1"], to: "list", from: 1)
        cluster.input(.skipped(2), to: 1)
        cluster.run()
        #expect(cluster.nodes[1]?.outcomes.count == 3)
        cluster.removeNode(1)
        cluster.restartSequencer()
        cluster.addNode(2, key: "k")
        cluster.pass(.seconds(2))
        #expect(resumption(cluster, 2) == Resumption(settled: 0, lastCounter: 1))
        cluster.submit(["1"], to: "list", from: 2)
        cluster.input(.skipped(2), to: 2)
        cluster.submit(["4"], to: "list", from: 2)
        cluster.run()
        #expect(texts(cluster) == ["1", "4"])
        #expect(cluster.nodes[2]?.outcomes.count == 4)
    }

    @Test func `lines that were void are not asked about, and what follows them is dispatched`() {
        var cluster = withFirst()
        cluster.dispatch(["1"], to: "list", from: 1)
        cluster.input(.skipped(2), to: 1)
        cluster.run()
        cluster.removeNode(1)
        cluster.addNode(2, key: "k")
        cluster.pass(.seconds(2))
        #expect(resumption(cluster, 2) == Resumption(settled: 0, lastCounter: 3))
        cluster.submit(["1"], to: "list", from: 2)
        cluster.input(.skipped(2), to: 2)
        // In the middle of it the sequencer restarts, and remembers of the void lines nothing.
        cluster.restartSequencer()
        cluster.pass(.seconds(1))
        cluster.dispatch(["4"], to: "list", from: 2)
        cluster.pass(.seconds(1))
        #expect(texts(cluster) == ["1", "4"])
        #expect(cluster.nodes[2]?.outcomes.count == 4)
    }

    @Test func `a rejection that is known and not told yet is not judged again after a restart`() {
        var cluster = withFirst()
        cluster.dispatch(["1"], to: "list", from: 1)
        cluster.submit(["nowhere:2", "elsewhere:3"], to: "list", from: 1)
        cluster.deliver(cluster.queue.removeFirst())
        // The first rejection arrives, the second is lost with the connection.
        let first = cluster.queue.removeFirst()
        cluster.queue.removeAll()
        cluster.deliver(first)
        #expect(cluster.nodes[1]?.outcomes.count == 2)
        // By now somebody hosts what nobody hosted, so that both would be admitted.
        cluster.open("nowhere", on: 9)
        cluster.open("elsewhere", on: 9)
        cluster.restartSequencer()
        cluster.pass(.seconds(1))
        #expect(cluster.nodes[1]?.outcomes.count == 3)
        #expect(cluster.nodes[9]?.texts(of: "nowhere") == [])
        cluster.dispatch(["4"], to: "list", from: 1)
        #expect(texts(cluster) == ["1", "4"])
        // A process after this one is told of it as of any line.
        cluster.removeNode(1)
        cluster.addNode(2, key: "k")
        cluster.pass(.seconds(2))
        #expect(resumption(cluster, 2) == Resumption(settled: 0, lastCounter: 4))
    }

    @Test func `a session that is forgotten under way ends the process, and says what is unknown`()
        throws
    {
        var cluster = withFirst()
        cluster.dispatch(["1"], to: "list", from: 1)
        cluster.submit(["2", "3"], to: "list", from: 1)
        cluster.killSequencer()
        cluster.disk = Cluster.Disk(id: Identifier(high: 7, low: 2))
        cluster.removeNode(9)
        cluster.restartSequencer()
        cluster.pass(.seconds(1))
        let node = try #require(cluster.nodes[1])
        guard case .refused(.forgotten, let message) = node.end else {
            Issue.record("it goes on: \(String(describing: node.end))")
            return
        }
        #expect(message.contains("key"))
        #expect(node.outcomes[2] == .unknown && node.outcomes[3] == .unknown)
        #expect(node.events.contains(.sessionForgotten))
        // Nothing was dispatched anew.
        #expect(cluster.disk.last == SequenceNumber(1))
    }

    @Test func `whatever is killed, each line is in the log once, and told by some process`() {
        let seed = SplitMix64.seed()
        for round in 0..<60 {
            var run = KeyedRun(seed: seed &+ UInt64(round))
            run.finish()
            #expect(run.texts == run.expected, "seed \(seed) round \(round)")
            #expect(run.told == run.lineCount, "seed \(seed) round \(round)")
        }
    }
}

/// Processes with one key that dispatch the lines of a file, and are killed, as the sequencer is.
private struct KeyedRun {
    let lineCount: UInt64 = 40
    private let badLines: Set<UInt64>
    private var random: SplitMix64
    private var cluster = Cluster()
    private var process = 0
    /// The line that the process reads next; nil before its welcome.
    private var next: UInt64?
    /// The line up to which some process told how it ended.
    private(set) var told: UInt64 = 0
    private var kills = 25

    init(seed: UInt64) {
        var random = SplitMix64(state: seed)
        badLines = Set((1...lineCount).filter { _ in Int.random(in: 0..<5, using: &random) == 0 })
        self.random = random
        cluster.startSequencer()
        cluster.addNode(1_000, named: "worker", store: "list")
    }

    var expected: [String] {
        (1...lineCount).filter { !badLines.contains($0) }.map { "\($0)" }
    }
    var texts: [String] { cluster.nodes[1_000]?.texts(of: "list") ?? [] }

    private mutating func below(_ bound: Int) -> Int { Int.random(in: 0..<bound, using: &random) }

    mutating func finish() {
        var steps = 0
        while told < lineCount, steps < 5_000 {
            steps += 1
            // One that was refused is run again, as a script would.
            if process == 0 || cluster.nodes[process]?.end != nil { cluster.removeNode(process) }
            if cluster.nodes[process] == nil { begin() }
            let isDangerous = kills > 0
            switch below(isDangerous ? 14 : 9) {
            case 0...3: read()
            case 4: tell()
            case 5: cluster.pass(.milliseconds(Int64(1 + below(300))))
            case 6: cluster.finishAppends()
            case 7 where isDangerous: cluster.isDiskSlow = true
            case 9:
                kills -= 1
                cluster.removeNode(process)
            case 10:
                kills -= 1
                if below(2) == 0 { landSome() }
                cluster.isDiskSlow = false
                cluster.restartSequencer()
            case 11: cluster.reconnect(process)
            default:
                for _ in 0..<below(6) where !cluster.queue.isEmpty {
                    cluster.deliver(cluster.queue.removeFirst())
                }
                cluster.handle(.drained)
            }
        }
        cluster.finishAppends()
        cluster.pass(.seconds(3))
    }

    private mutating func begin() {
        process += 1
        next = nil
        cluster.addNode(process, key: "k")
    }

    /// The disk has some of what waits, and the sequencer dies before it says so.
    private mutating func landSome() {
        for append in cluster.waitingAppends.prefix(below(2)) {
            cluster.disk.bodies.append(
                (append.first, append.last, append.frame.dropFirst(Frame.size)))
        }
    }

    private mutating func read() {
        guard let machine = cluster.nodes[process]?.machine, machine.isJoined,
            let resumption = machine.resumption
        else { return }
        let first = next ?? resumption.settled + 1
        guard first <= lineCount else { return }
        let bound = first <= resumption.lastCounter ? resumption.lastCounter : lineCount
        var last = min(bound, first + UInt64(below(6)))
        if badLines.contains(first) {
            while last > first, !(first...last).allSatisfy(badLines.contains) { last -= 1 }
            cluster.input(.skipped(UInt32(last - first + 1)), to: process)
        } else {
            while last > first, !(first...last).allSatisfy({ !badLines.contains($0) }) { last -= 1 }
            cluster.submit((first...last).map { "\($0)" }, to: "list", from: process)
        }
        next = last + 1
    }

    private mutating func tell() {
        guard let node = cluster.nodes[process], let resumption = node.machine.resumption else {
            return
        }
        // What is settled was told by a process before; never by nobody.
        if resumption.settled > told {
            Issue.record("line \(resumption.settled) is settled, and told is only \(told)")
        }
        var line = resumption.settled
        while let fate = node.outcomes[line + 1] {
            line += 1
            let isBad = badLines.contains(line)
            switch fate {
            case .committed where !isBad: break
            case .rejected where isBad: break
            default: Issue.record("line \(line) ended as \(fate)")
            }
        }
        told = max(told, line)
        cluster.input(.told(line), to: process)
    }
}
