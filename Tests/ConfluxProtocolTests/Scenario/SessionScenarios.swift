import ConfluxVocabulary
import Testing

@testable import ConfluxProtocol

/// Sessions, presence, names and restarts.
struct SessionScenarios {
    @Test func `a term begins with its claim, a session with its joined entry`() throws {
        var cluster = Cluster()
        cluster.startSequencer()
        cluster.addNode(1, named: "alpha")
        let commits = try cluster.disk.bodies.map { try Commit.decode(body: $0.body) }
        #expect(
            commits.first?.blocks.first
                == .event(
                    .claim(epoch: Epoch(1), nonce: Identifier(high: 99, low: 1 << 32))))
        guard
            case .event(.joined(_, let name, _, false), _) = commits.dropFirst().first?.blocks.first
        else {
            Issue.record("the second entry is not joined: \(commits)")
            return
        }
        #expect(name?.text == "alpha")
        #expect(cluster.nodes[1]?.machine.incarnation == Incarnation(2))
    }

    @Test func `the welcome follows the commit of the joined entry`() {
        var cluster = Cluster()
        cluster.startSequencer()
        cluster.isDiskSlow = true
        cluster.addNode(1)
        cluster.pass(.milliseconds(600))
        #expect(cluster.nodes[1]?.machine.isJoined == false)
        cluster.finishAppends()
        #expect(cluster.nodes[1]?.machine.isJoined == true)
        // One session began, however many hellos were sent meanwhile.
        #expect(cluster.disk.last == SequenceNumber(2))
    }

    @Test func `a process that goes before its welcome leaves no session`() {
        var cluster = Cluster()
        cluster.startSequencer()
        cluster.isDiskSlow = true
        cluster.addNode(1)
        cluster.removeNode(1)
        cluster.finishAppends()
        cluster.run()
        cluster.finishAppends()
        // Its `joined` entry was on its way; the `forgotten` entry follows.
        #expect(cluster.disk.last == SequenceNumber(3))
        #expect(cluster.sequencer?.sessions.count == 0)
    }

    @Test func `sessions with a key are forgotten last`() {
        var cluster = Cluster()
        cluster.settings.sessionsMax = 2
        cluster.startSequencer()
        cluster.addNode(1, key: "import")
        cluster.input(.leave, to: 1)
        cluster.run()
        cluster.removeNode(1)
        cluster.addNode(2, named: "beta")
        cluster.removeNode(2)
        cluster.pass(cluster.settings.silenceMax * 2)
        cluster.addNode(3)
        cluster.run()
        #expect(cluster.nodes[3]?.machine.isJoined == true)
        #expect(cluster.sequencer?.sessions.all.contains(where: \.isKeyed) == true)
    }

    @Test func `a submit without a hello makes no session`() throws {
        var cluster = Cluster.twoNodes()
        var builder = BatchBuilder()
        builder.append(
            target: BatchTarget(
                target: try #require(Target("list/*")), schemaVersion: 1, coding: .json),
            payload: [0x78])
        let batch = builder.finish(firstCounter: 1, settled: 0)
        let last = cluster.disk.last
        cluster.published.removeAll()
        cluster.handle(
            .received(
                .submit(batch), by: cluster.speaker(ConnectionID(rawValue: 999), epoch: Epoch(1)),
                from: ConnectionID(rawValue: 999)))
        cluster.run()
        #expect(cluster.disk.last == last)
        guard case .send(.bye(let bye), ConnectionID(rawValue: 999)) = cluster.published.first
        else {
            Issue.record("no bye: \(cluster.published)")
            return
        }
        #expect(bye.code == .rejoin)
    }

    @Test
    func `after a broken connection actions without an outcome are resubmitted, and applied once`()
    {
        var cluster = Cluster.twoNodes()
        cluster.dispatch(["a"], to: "list/*", from: 1)
        // The batch arrives. Its receipt is lost with the connection, and so is its commit.
        cluster.isDiskSlow = true
        cluster.dispatch(["b"], to: "list/*", from: 1)
        cluster.nodes[1]?.feedDrops = 1
        cluster.isDiskSlow = false
        for append in cluster.waitingAppends { cluster.queue.append(.logged(append)) }
        cluster.waitingAppends.removeAll()
        cluster.deliver(cluster.queue.removeFirst())
        cluster.reconnect(1)
        cluster.pass(.milliseconds(200))
        #expect(cluster.nodes[1]?.texts(of: "list") == ["a", "b"])
        #expect(cluster.nodes[2]?.texts(of: "list") == ["a", "b"])
        #expect(cluster.nodes[1]?.outcomes.count == 2)
    }

    @Test func `a restarted sequencer continues the sessions of its log`() {
        var cluster = Cluster.twoNodes()
        cluster.dispatch(["a"], to: "list/*", from: 1)
        cluster.submit(["in flight"], to: "list/*", from: 1)
        cluster.restartSequencer()
        cluster.pass(.milliseconds(300))
        #expect(cluster.disk.epoch == Epoch(2))
        #expect(cluster.nodes[1]?.texts(of: "list") == ["a", "in flight"])
        #expect(cluster.nodes[2]?.texts(of: "list") == ["a", "in flight"])
        #expect(cluster.nodes[1]?.outcomes.count == 2)
        cluster.dispatch(["b"], to: "list/*", from: 2)
        #expect(cluster.nodes[1]?.texts(of: "list") == ["a", "in flight", "b"])
    }

    @Test func `an action committed just before a crash is not applied again after it`() {
        var cluster = Cluster.twoNodes()
        cluster.isDiskSlow = true
        cluster.dispatch(["once"], to: "list/*", from: 1)
        // The action reaches the disk, and the sequencer dies before it reports it.
        for append in cluster.waitingAppends {
            cluster.disk.append(append)
        }
        cluster.isDiskSlow = false
        cluster.restartSequencer()
        cluster.pass(.milliseconds(300))
        #expect(cluster.nodes[1]?.texts(of: "list") == ["once"])
        #expect(cluster.nodes[2]?.texts(of: "list") == ["once"])
        guard case .committed(_, _, let epoch, _) = cluster.nodes[1]?.outcomes[1] else {
            Issue.record("no receipt: \(cluster.nodes[1]?.outcomes ?? [:])")
            return
        }
        #expect(epoch == Epoch(1))
    }

    @Test func `counters rejected before a restart do not stop the later ones`() {
        var cluster = Cluster.twoNodes()
        cluster.dispatch(["1"], to: "list/*", from: 1)
        cluster.dispatch(["2"], to: "nowhere/*", from: 1)
        cluster.restartSequencer()
        cluster.dispatch(["3"], to: "list/*", from: 1)
        cluster.pass(.milliseconds(300))
        #expect(cluster.nodes[2]?.texts(of: "list") == ["1", "3"])
        #expect(cluster.nodes[1]?.outcomes.count == 3)
    }

    @Test func `another log leads to unknown outcomes and new stores`() throws {
        var cluster = Cluster.twoNodes()
        cluster.dispatch(["old"], to: "list/*", from: 1)
        let mark = try #require(cluster.nodes[1]?.machine.live)
        cluster.submit(["in flight"], to: "list/*", from: 1)
        cluster.killSequencer()
        cluster.disk = Cluster.Disk(id: Identifier(high: 7, low: 2))
        cluster.restartSequencer()
        cluster.pass(.milliseconds(300))
        let node = try #require(cluster.nodes[1])
        #expect(node.events.contains(.historyLost(from: SequenceNumber(1), through: mark)))
        #expect(node.events.contains(.sessionForgotten))
        #expect(node.texts(of: "list") == [])
        cluster.dispatch(["new"], to: "list/*", from: 2)
        #expect(cluster.nodes[1]?.texts(of: "list") == ["new"])
        #expect(cluster.nodes[2]?.texts(of: "list") == ["new"])
    }

    @Test func `nodes notice that a log lost its tail`() throws {
        var cluster = Cluster.twoNodes()
        cluster.dispatch(["kept"], to: "list/*", from: 1)
        let kept = cluster.disk.last
        cluster.dispatch(["lost"], to: "list/*", from: 1)
        let lost = cluster.disk.last
        cluster.killSequencer()
        cluster.disk.bodies.removeLast()
        cluster.restartSequencer()
        cluster.pass(.milliseconds(300))
        let node = try #require(cluster.nodes[2])
        #expect(node.events.contains(.historyLost(from: kept.next, through: lost)))
        #expect(node.texts(of: "list") == ["kept"])
        #expect(cluster.nodes[1]?.texts(of: "list") == ["kept"])
    }

    @Test func `a live node keeps its name`() {
        var cluster = Cluster.twoNodes()
        cluster.addNode(3, named: "alpha")
        cluster.pass(.milliseconds(100))
        guard case .refused(.nameTaken, _) = cluster.nodes[3]?.end else {
            Issue.record("not refused: \(String(describing: cluster.nodes[3]?.end))")
            return
        }
        cluster.dispatch(["x"], to: "list/*", from: 1)
        #expect(cluster.nodes[1]?.texts(of: "list") == ["x"])
    }

    @Test func `the name of an unresponsive node is free after a second`() {
        var cluster = Cluster.twoNodes()
        cluster.removeNode(1)
        cluster.addNode(3, named: "alpha")
        #expect(cluster.nodes[3]?.machine.isJoined == false)
        cluster.pass(.seconds(1))
        #expect(cluster.nodes[3]?.machine.isJoined == true)
        #expect(cluster.notes.contains { if case .left = $0 { true } else { false } })
    }

    @Test func `a newcomer that dies while its name's holder is asked blocks nobody`() {
        var cluster = Cluster.twoNodes()
        cluster.removeNode(1)
        cluster.addNode(3, named: "alpha")
        cluster.pass(.milliseconds(500))
        cluster.removeNode(3)
        cluster.addNode(4, named: "alpha")
        #expect(cluster.nodes[4]?.end == nil)
        cluster.pass(.milliseconds(600))
        #expect(cluster.nodes[4]?.machine.isJoined == true)
    }

    @Test func `one of two newcomers gets a dead node's name`() {
        var cluster = Cluster.twoNodes()
        cluster.removeNode(1)
        cluster.addNode(3, named: "alpha")
        cluster.addNode(4, named: "alpha")
        cluster.pass(.seconds(6))
        let isIn = [3, 4].map { cluster.nodes[$0]?.machine.isJoined == true }
        #expect(isIn[0] != isIn[1])
        let ends = [3, 4].compactMap { cluster.nodes[$0]?.end }
        guard case .refused(.nameTaken, _)? = ends.first, ends.count == 1 else {
            Issue.record("not refused: \(ends)")
            return
        }
    }

    @Test func `a newcomer that dies before it is in the log blocks nobody`() {
        var cluster = Cluster.twoNodes()
        cluster.isDiskSlow = true
        cluster.addNode(3, named: "gamma")
        cluster.addNode(4, named: "gamma")
        cluster.removeNode(3)
        cluster.finishAppends()
        #expect(cluster.nodes[4]?.end == nil)
        cluster.pass(.seconds(3))
        #expect(cluster.nodes[4]?.machine.isJoined == true)
    }

    @Test func `a name that its holder releases while being asked is free at once`() {
        var cluster = Cluster.twoNodes()
        let holder = cluster.nodes[1]
        // The holder does not get the question, and leaves properly.
        cluster.nodes[1] = nil
        cluster.addNode(3, named: "alpha")
        cluster.removeNode(3)
        cluster.nodes[1] = holder
        cluster.input(.leave, to: 1)
        cluster.run()
        cluster.addNode(4, named: "alpha")
        #expect(cluster.nodes[4]?.machine.isJoined == true)
        #expect(cluster.sequencer?.inquiries.isEmpty == true)
        cluster.pass(.seconds(3))
        #expect(cluster.nodes[4]?.machine.isJoined == true)
    }

    /// Says hello again in the session of a node that has ended, with another name.
    private func sayHello(
        of node: SimulatedNode, as name: String?, in cluster: inout Cluster,
        from connection: UInt64 = 500
    ) {
        let session = SessionToken(log: cluster.disk.id, incarnation: node.machine.incarnation)
        let hello = Hello(
            request: 100, nonce: node.machine.nonce, name: name.flatMap { Name($0) }, role: .member,
            session: session)
        cluster.handle(
            .received(
                .hello(hello), by: cluster.speaker(ConnectionID(rawValue: connection)),
                from: ConnectionID(rawValue: connection)))
        cluster.run()
    }

    private func liveNames(_ cluster: Cluster) -> [String?] {
        cluster.sequencer?.sessions.all.filter { $0.presence == .live }
            .sorted { $0.incarnation < $1.incarnation }.map { $0.name?.text } ?? []
    }

    @Test func `a session keeps its name, whatever a later hello says`() throws {
        var cluster = Cluster.twoNodes()
        let alpha = try #require(cluster.nodes[1])
        cluster.removeNode(1)
        sayHello(of: alpha, as: "gamma", in: &cluster)
        #expect(liveNames(cluster) == ["alpha", "beta"])
        cluster.addNode(3, named: "gamma")
        #expect(cluster.nodes[3]?.machine.isJoined == true)
    }

    @Test(arguments: ["gamma", nil])
    func `a session that returns as another one does not share its former name`(
        _ other: String?
    ) throws {
        var cluster = Cluster.twoNodes()
        let alpha = try #require(cluster.nodes[1])
        cluster.removeNode(1)
        cluster.pass(cluster.settings.silenceMax * 2)
        cluster.addNode(3, named: "alpha")
        #expect(liveNames(cluster) == ["beta", "alpha"])
        sayHello(of: alpha, as: other, in: &cluster)
        cluster.pass(.milliseconds(300))
        #expect(liveNames(cluster) == ["beta", "alpha"])
        #expect(
            cluster.published.contains { effect in
                guard case .send(.bye(let bye), ConnectionID(rawValue: 500)) = effect else {
                    return false
                }
                return bye.code == .nameTaken
            })
    }

    @Test func `the log and the sequencer agree on a name that changed during its joining`() throws
    {
        var cluster = Cluster.twoNodes()
        cluster.isDiskSlow = true
        for name in ["gamma", "beta"] {
            let hello = Hello(
                request: 100, nonce: Identifier(high: 1, low: 1), name: Name(name), role: .member)
            cluster.handle(
                .received(
                    .hello(hello), by: cluster.speaker(ConnectionID(rawValue: 500)),
                    from: ConnectionID(rawValue: 500)))
            cluster.run()
        }
        cluster.finishAppends()
        #expect(liveNames(cluster) == ["alpha", "beta", "gamma"])
        let commit = try Commit.decode(body: try #require(cluster.disk.bodies.last).body)
        guard case .event(.joined(_, let logged, _, false), _)? = commit.blocks.last else {
            Issue.record("no joined entry: \(commit.blocks)")
            return
        }
        #expect(logged?.text == "gamma")
    }

    @Test func `a silent node counts as left, and is present again when it speaks`() throws {
        var cluster = Cluster.twoNodes()
        let silent = try #require(cluster.nodes[2])
        cluster.removeNode(2)
        cluster.pass(.seconds(14))
        #expect(cluster.notes.contains(.left(silent.machine.incarnation, name: Name("beta"))))
        cluster.dispatch(["meanwhile"], to: "list/*", from: 1)
        cluster.nodes[2] = silent
        cluster.reconnect(2)
        cluster.pass(.milliseconds(300))
        #expect(cluster.nodes[2]?.machine.incarnation == silent.machine.incarnation)
        #expect(cluster.nodes[2]?.texts(of: "list") == ["meanwhile"])
    }

    @Test func `a node that leaves with everything settled is forgotten`() throws {
        var cluster = Cluster.twoNodes()
        cluster.dispatch(["x"], to: "list/*", from: 2)
        let incarnation = try #require(cluster.nodes[2]?.machine.incarnation)
        cluster.input(.leave, to: 2)
        cluster.run()
        let last = try Commit.decode(body: try #require(cluster.disk.bodies.last).body)
        #expect(last.blocks == [.event(.forgotten(incarnation))])
        #expect(cluster.nodes[2]?.end == .left)
    }

    @Test func `an observer makes no entries, and reads the log`() throws {
        var cluster = Cluster.twoNodes()
        cluster.dispatch(["x", "y"], to: "list/*", from: 1)
        let last = cluster.disk.last
        cluster.addNode(3, role: .observer)
        cluster.input(.follow(from: SequenceNumber(1)), to: 3)
        cluster.pass(.milliseconds(200))
        #expect(cluster.disk.last == last)
        #expect(cluster.nodes[3]?.machine.live == last)
    }

    @Test func `a sequencer that learns of a newer term asks its log`() {
        var cluster = Cluster.twoNodes()
        cluster.handle(
            .received(
                .progress(Progress(applied: .zero, settled: 0)),
                by: cluster.speaker(ConnectionID(rawValue: 1), epoch: Epoch(9)),
                from: ConnectionID(rawValue: 1)))
        #expect(cluster.notes.contains(.challenged(by: Epoch(9))))
        cluster.handle(.logFailed(.superseded))
        #expect(cluster.ends == [.superseded])
    }

    @Test func `a stopped sequencer commits what it admitted and says bye`() {
        var cluster = Cluster.twoNodes()
        cluster.isDiskSlow = true
        cluster.dispatch(["last words"], to: "list/*", from: 1)
        cluster.handle(.stop)
        #expect(cluster.ends.isEmpty)
        cluster.finishAppends()
        #expect(cluster.ends == [.stopped])
        #expect(cluster.nodes[2]?.texts(of: "list") == ["last words"])
        #expect(cluster.nodes[1]?.events.last == .disconnected)
    }

    @Test func `a stopping sequencer says bye in the order of connections`() {
        var cluster = Cluster()
        cluster.startSequencer()
        for id in 1...12 { cluster.addNode(id) }
        cluster.published.removeAll()
        cluster.handle(.stop)
        let order = cluster.published.compactMap { effect -> UInt64? in
            if case .send(.bye, let connection) = effect { connection.rawValue } else { nil }
        }
        #expect(order == Array(1...12))
    }

    @Test func `a node that has applied nothing follows another log from that log's end`() {
        var cluster = Cluster()
        cluster.startSequencer()
        for id in 1...9 { cluster.addNode(id) }
        cluster.bridge("bus", on: 1)
        #expect(cluster.nodes[1]?.machine.live == SequenceNumber(10))
        #expect(cluster.nodes[1]?.bridgedTexts.isEmpty == true)
        cluster.killSequencer()
        for id in 2...9 { cluster.removeNode(id) }
        cluster.disk = Cluster.Disk(id: Identifier(high: 7, low: 2))
        cluster.restartSequencer()
        cluster.pass(.milliseconds(300))
        for text in ["a", "b", "c"] { cluster.dispatch([text], to: "bus/*", from: 1) }
        #expect(cluster.nodes[1]?.bridgedTexts.map { $0.last } == ["a", "b", "c"])
    }

    @Test func `a session of another log is forgotten, though its number and nonce are known`()
        throws
    {
        var cluster = Cluster.twoNodes()
        let node = try #require(cluster.nodes[1])
        let hello = Hello(
            request: 100, nonce: node.machine.nonce, name: nil, role: .member,
            session: SessionToken(
                log: Identifier(high: 1, low: 1), incarnation: node.machine.incarnation))
        cluster.published.removeAll()
        cluster.handle(
            .received(
                .hello(hello), by: cluster.speaker(ConnectionID(rawValue: 77), epoch: Epoch.none),
                from: ConnectionID(rawValue: 77)))
        guard case .send(.bye(let bye), _) = cluster.published.first else {
            Issue.record("no bye: \(cluster.published)")
            return
        }
        #expect(bye.code == .forgotten)
    }

    @Test func `an observer may start in the middle of a commit`() {
        var cluster = Cluster.twoNodes()
        cluster.dispatch(["a", "b", "c", "d"], to: "list/*", from: 1)
        let last = cluster.disk.last
        cluster.addNode(3, role: .observer)
        cluster.input(.follow(from: last), to: 3)
        cluster.pass(.milliseconds(200))
        #expect(cluster.nodes[3]?.machine.live == last)
        cluster.dispatch(["e"], to: "list/*", from: 1)
        #expect(cluster.nodes[3]?.machine.live == last.next)
    }

    @Test func `a sequencer that restarts before anybody notices is reported`() {
        var cluster = Cluster.twoNodes()
        cluster.restartSequencer()
        cluster.pass(.milliseconds(200))
        #expect(cluster.nodes[1]?.events.suffix(2) == [.disconnected, .reconnected(Epoch(2))])
    }
}
