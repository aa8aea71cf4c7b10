import ConfluxVocabulary
import Testing

@testable import ConfluxProtocol

/// Nodes that dispatch without joining (rule 42).
@Suite struct VisitScenarios {
    /// A cluster with a sequencer, node 1, which hosts `list`, and visitor 2, which was welcomed.
    private func visited(
        _ adjust: (inout SequencerSettings) -> Void = { _ in }
    ) -> Cluster {
        var cluster = Cluster()
        adjust(&cluster.settings)
        cluster.startSequencer()
        cluster.addNode(1, named: "alpha", store: "list")
        cluster.addNode(2, role: .visitor)
        return cluster
    }

    private func commits(_ cluster: Cluster) throws -> [Commit] {
        try cluster.disk.bodies.map { try Commit.decode(body: $0.body) }
    }

    private func texts(_ cluster: Cluster) -> [String]? { cluster.nodes[1]?.texts(of: "list") }

    private func isCommitted(_ fate: ActionOutcome.Fate?) -> Bool {
        if case .committed = fate { true } else { false }
    }

    private func code(_ fate: ActionOutcome.Fate?) -> RejectionCode? {
        if case .rejected(let code, _) = fate { code } else { nil }
    }

    @Test func `a visit is one commit of two entries`() throws {
        var cluster = visited()
        let before = cluster.disk.bodies.count
        let last = cluster.disk.last
        cluster.dispatch(["a"], to: "list/*", from: 2)
        #expect(isCommitted(cluster.nodes[2]?.outcomes[1]))
        #expect(texts(cluster) == ["a"])
        let added = try commits(cluster).dropFirst(before)
        try #require(added.count == 1)
        let commit = try #require(added.first)
        #expect(commit.count == 2)
        guard case .event(.visited, _) = commit.blocks.first,
            case .batch(let incarnation, let batch)? = commit.blocks.last
        else {
            Issue.record("\(commit.blocks)")
            return
        }
        #expect(incarnation.rawValue == last.next.rawValue)
        #expect(batch.firstCounter == 1)
    }

    @Test func `a visitor that dispatches nothing makes no entry`() {
        var cluster = visited()
        let last = cluster.disk.last
        cluster.pass(cluster.settings.silenceMax * 2)
        cluster.input(.leave, to: 2)
        cluster.run()
        #expect(cluster.disk.last == last)
    }

    @Test(arguments: [true, false])
    func `nothing is logged when a visitor leaves, falls silent or disconnects`(isSaid: Bool) {
        var cluster = visited { $0.forgetAfter = .seconds(15) }
        cluster.dispatch(["a"], to: "list/*", from: 2)
        let last = cluster.disk.last
        if isSaid { cluster.input(.leave, to: 2) }
        cluster.run()
        cluster.removeNode(2)
        cluster.pass(.seconds(60))
        #expect(cluster.disk.last == last)
        #expect(cluster.sequencer?.sessions.visitCount == 1)
    }

    @Test func `a visitor's lost receipt is sent again`() {
        var cluster = visited()
        let last = cluster.disk.last
        cluster.nextLoss = { if case .receipts = $0 { true } else { false } }
        cluster.dispatch(["once"], to: "list/*", from: 2)
        #expect(cluster.nodes[2]?.outcomes.isEmpty == true)
        cluster.pass(.seconds(3))
        #expect(isCommitted(cluster.nodes[2]?.outcomes[1]))
        #expect(texts(cluster) == ["once"])
        #expect(cluster.disk.last == last.advanced(by: 2))
    }

    @Test func `a visit whose connection broke before it arrived is sent again`() {
        var cluster = visited()
        cluster.submit(["once"], to: "list/*", from: 2)
        cluster.reconnect(2)
        cluster.pass(.milliseconds(100))
        #expect(isCommitted(cluster.nodes[2]?.outcomes[1]))
        #expect(texts(cluster) == ["once"])
    }

    @Test(arguments: [true, false])
    func `a visit continues in the next tenure, whether or not the log has it`(isLogged: Bool) {
        var cluster = visited()
        cluster.isDiskSlow = true
        cluster.dispatch(["once"], to: "list/*", from: 2)
        if isLogged { for append in cluster.waitingAppends { cluster.disk.append(append) } }
        cluster.isDiskSlow = false
        cluster.restartSequencer()
        cluster.pass(.milliseconds(300))
        #expect(texts(cluster) == ["once"])
        guard case .committed(_, _, let epoch, _) = cluster.nodes[2]?.outcomes[1] else {
            Issue.record("\(cluster.nodes[2]?.outcomes as Any)")
            return
        }
        #expect(epoch == Epoch(isLogged ? 1 : 2))
    }

    @Test func `rejected actions are reported, and the allowed ones beside them are in the log`()
        throws
    {
        var cluster = visited()
        cluster.dispatch(["a"], to: "nowhere/*", from: 2)
        #expect(code(cluster.nodes[2]?.outcomes[1]) == .unknownTarget)
        cluster.dispatch(["b"], to: "list/*", from: 2)
        #expect(isCommitted(cluster.nodes[2]?.outcomes[2]))
        #expect(texts(cluster) == ["b"])
    }

    @Test func `an action that was reported as rejected is not judged again by the next tenure`() {
        var cluster = visited()
        cluster.dispatch(["a"], to: "later/*", from: 2)
        #expect(code(cluster.nodes[2]?.outcomes[1]) == .unknownTarget)
        // The answered message is repeated to a tenure whose log says nothing about it.
        let stale = cluster.nodes[2]?.sent.last { if case .visit = $0 { true } else { false } }
        cluster.restartSequencer()
        cluster.addNode(3, named: "beta", store: "later")
        let last = cluster.disk.last
        guard let stale, let connection = cluster.connection(of: 2) else {
            Issue.record("no visit was sent")
            return
        }
        cluster.handle(
            .received(
                stale, by: Speaker(epoch: Epoch(1), session: .none), from: connection))
        cluster.run()
        #expect(cluster.disk.last == last)
        #expect(cluster.nodes[3]?.texts(of: "later") == [])
    }

    @Test func `a visitor's key without the right to dispatch is told so`() {
        var peers = RawPeers()
        let rights = Rights(patterns: [.dispatch: [.all], .observe: [.all]])
        let denied = Rights(patterns: [.dispatch: StorePattern("other").map { [$0] } ?? []])
        peers.cluster.addNode(1, named: "alpha", store: "list")
        for (connection, rights) in [(1 as UInt64, rights), (2, denied), (3, .none)] {
            peers.principals[connection] = Principal(
                name: Name("key-\(connection)"), rights: rights)
            peers.join(connection, role: .visitor)
            peers.say(visit(as: connection, in: peers), on: connection)
        }
        #expect(
            peers.heard(on: 1).contains { if case .receipts = $0 { true } else { false } })
        #expect(
            peers.heard(on: 2).contains {
                if case .rejection(let told) = $0 { told.code == .notAllowed } else { false }
            })
        // A client that may not dispatch anything is not welcomed.
        #expect(
            peers.heard(on: 3).contains {
                if case .bye(let bye) = $0 { bye.code == .notAllowed } else { false }
            })
    }

    private func visit(
        as nonce: UInt64, in peers: RawPeers, since: SequenceNumber? = nil,
        target: String = "list/*"
    ) -> NodeMessage {
        guard case .submit(let batch)? = peers.batch(1, to: target) else {
            preconditionFailure("\(target) is no target")
        }
        let session = Visit.Session(
            nonce: Identifier(high: 77, low: nonce), since: since ?? peers.cluster.disk.last,
            settled: 0)
        return .visit(Visit(session: session, batch: batch))
    }

    @Test func `actions after a forgotten visit are not admitted again`() {
        var peers = RawPeers { $0.visitsMax = 2 }
        peers.cluster.addNode(1, named: "alpha", store: "list")
        let since = peers.cluster.disk.last
        for connection in 1...4 as ClosedRange<UInt64> {
            peers.join(connection, role: .visitor)
        }
        for connection in 1...3 as ClosedRange<UInt64> {
            peers.say(visit(as: connection, in: peers, since: since), on: connection)
        }
        _ = (1...4).map { peers.heard(on: $0) }
        let last = peers.cluster.disk.last
        #expect(last == since.advanced(by: 6))
        // The first visit is forgotten. The others are remembered.
        for connection in 1...3 as ClosedRange<UInt64> {
            peers.say(visit(as: connection, in: peers, since: since), on: connection)
            let isForgotten = peers.heard(on: connection).contains {
                if case .bye(let bye) = $0 { bye.code == .forgotten } else { false }
            }
            #expect(isForgotten == (connection == 1))
        }
        #expect(peers.cluster.disk.last == last)
        // A visit that never arrived may have been forgotten, too, if the visitor was welcomed before.
        peers.say(visit(as: 4, in: peers, since: since), on: 4)
        #expect(peers.cluster.disk.last == last)
        peers.say(visit(as: 5, in: peers), on: 4)
        #expect(peers.cluster.disk.last == last.advanced(by: 2))
        // The next tenure knows this from the log, or from a checkpoint.
        peers.cluster.restartSequencer()
        peers.join(1, role: .visitor, request: 2)
        peers.say(visit(as: 1, in: peers, since: since), on: 1)
        #expect(texts(peers.cluster)?.count == 4)
    }

    @Test func `an outcome that is no longer known ends the visitor`() {
        var cluster = visited { $0.visitsMax = 1 }
        cluster.nextLoss = { if case .receipts = $0 { true } else { false } }
        cluster.dispatch(["mine"], to: "list/*", from: 2)
        cluster.addNode(3, role: .visitor)
        cluster.dispatch(["theirs"], to: "list/*", from: 3)
        cluster.pass(.seconds(3))
        #expect(texts(cluster) == ["mine", "theirs"])
        guard case .unknown? = cluster.nodes[2]?.outcomes[1] else {
            Issue.record("\(cluster.nodes[2]?.outcomes as Any)")
            return
        }
        #expect(cluster.nodes[2]?.events.contains(.sessionForgotten) == true)
        guard case .refused(.forgotten, _)? = cluster.nodes[2]?.end else {
            Issue.record("\(cluster.nodes[2]?.end as Any)")
            return
        }
    }

    @Test func `a visit that the log has lost is made again`() throws {
        var cluster = visited()
        let kept = cluster.disk.bodies.count
        cluster.nextLoss = { if case .receipts = $0 { true } else { false } }
        cluster.dispatch(["once"], to: "list/*", from: 2)
        cluster.killSequencer()
        cluster.disk.bodies.removeLast(cluster.disk.bodies.count - kept)
        cluster.restartSequencer()
        cluster.pass(.seconds(3))
        #expect(isCommitted(cluster.nodes[2]?.outcomes[1]))
        #expect(texts(cluster) == ["once"])
    }

    @Test func `another log ends a visitor, and gets none of its actions`() {
        var cluster = visited()
        cluster.submit(["in flight"], to: "list/*", from: 2)
        cluster.killSequencer()
        cluster.disk = Cluster.Disk(id: Identifier(high: 7, low: 2))
        cluster.restartSequencer()
        cluster.pass(.milliseconds(300))
        guard case .unknown? = cluster.nodes[2]?.outcomes[1] else {
            Issue.record("\(cluster.nodes[2]?.outcomes as Any)")
            return
        }
        #expect(texts(cluster) == [])
    }

    @Test(arguments: [true, false])
    func `a withdrawn action of a visitor is in the log, or never will be`(isLogged: Bool) {
        var cluster = visited()
        if isLogged {
            cluster.isDiskSlow = true
            cluster.dispatch(["a"], to: "list/*", from: 2)
            cluster.withdraw(1...1, from: 2)
            cluster.run()
            cluster.finishAppends()
            #expect(isCommitted(cluster.nodes[2]?.outcomes[1]))
        } else {
            cluster.submit(["a"], to: "list/*", from: 2)
            cluster.loseQueue()
            cluster.withdraw(1...1, from: 2)
            cluster.run()
            #expect(code(cluster.nodes[2]?.outcomes[1]) == .withdrawn)
        }
        #expect(texts(cluster) == (isLogged ? ["a"] : []))
    }

    @Test func `visits use up no session`() {
        var cluster = visited { $0.sessionsMax = 2 }
        cluster.addNode(3, named: "beta", store: "list")
        for visitor in 4...8 {
            cluster.addNode(visitor, role: .visitor)
            cluster.dispatch(["\(visitor)"], to: "list/*", from: visitor)
            #expect(isCommitted(cluster.nodes[visitor]?.outcomes[1]))
        }
        #expect(cluster.nodes[1]?.end == nil)
        #expect(cluster.nodes[3]?.end == nil)
        #expect(cluster.sequencer?.sessions.lastingCount == 2)
    }

    @Test func `a visit without room is sent again`() {
        var cluster = visited {
            $0.payloadBytesMax = 1_000
            $0.batchBytesMax = 5_100
            $0.windowBytes = 5_100
            $0.commitBytesMax = 9_200
        }
        cluster.isDiskSlow = true
        // One append is in progress, and the next one gathers.
        cluster.dispatch(["first"], to: "list/*", from: 1)
        for visitor in 3...20 {
            cluster.addNode(visitor, role: .visitor)
            cluster.dispatch([String(repeating: "x", count: 900)], to: "list/*", from: visitor)
        }
        #expect(
            cluster.published.contains {
                if case .send(.expected(let told), _) = $0 { told.reason == .full } else { false }
            })
        cluster.finishAppends()
        cluster.pass(.seconds(3))
        #expect(texts(cluster)?.count == 19)
        #expect((3...20).allSatisfy { isCommitted(cluster.nodes[$0]?.outcomes[1]) })
    }

    @Test func `a visit that can't be read is rejected`() throws {
        var peers = RawPeers()
        peers.cluster.addNode(1, named: "alpha", store: "list")
        peers.join(1, role: .visitor)
        var frame = Frame.encode(
            visit(as: 1, in: peers), by: Speaker(epoch: Epoch(1), session: .none))
        frame.removeLast()
        let input = SequencerInput.frame(
            frame[...], limits: .standard, from: ConnectionID(rawValue: 1_001))
        peers.cluster.handle(input)
        peers.cluster.run()
        #expect(
            peers.heard(on: 1).contains {
                if case .rejection(let told) = $0 { told.code == .malformed } else { false }
            })
        #expect(texts(peers.cluster) == [])
    }

    @Test func `a visit can't join, and a member can't visit`() {
        var peers = RawPeers()
        peers.cluster.addNode(1, named: "alpha", store: "list")
        peers.join(1, role: .visitor)
        peers.say(visit(as: 1, in: peers), on: 1)
        let sessions = peers.cluster.sequencer?.sessions
        let incarnation = sessions?.incarnation(of: Identifier(high: 77, low: 1)) ?? .none
        peers.join(2, as: 1)
        #expect(
            peers.heard(on: 2).contains {
                if case .bye(let bye) = $0 { bye.code == .forgotten } else { false }
            })
        peers.say(
            .hello(
                Hello(
                    request: 9, nonce: Identifier(high: 77, low: 1), name: nil, role: .member,
                    session: SessionToken(log: peers.cluster.disk.id, incarnation: incarnation))),
            on: 3)
        #expect(
            peers.heard(on: 3).contains {
                if case .bye(let bye) = $0 { bye.code == .forgotten } else { false }
            })
        peers.join(4)
        peers.join(5, role: .visitor)
        let last = peers.cluster.disk.last
        peers.say(visit(as: 4, in: peers), on: 5)
        #expect(
            peers.heard(on: 5).contains {
                if case .bye(let bye) = $0 { bye.code == .forgotten } else { false }
            })
        #expect(peers.cluster.disk.last == last)
    }

    @Test func `a checkpoint records visits, and which ones were forgotten`() throws {
        var fold = LogFold(log: Identifier(high: 7, low: 1))
        var builder = CommitBuilder(
            log: fold.log, epoch: Epoch(1), predecessor: .none, first: SequenceNumber(1))
        for number in 1...UInt64(VisitQueue.most + 3) {
            builder.append(.visited(nonce: Identifier(high: 5, low: number)))
        }
        let body = builder.finish(timestamp: Timestamp(1)).dropFirst(Frame.size)
        try fold.apply(try Commit.decode(body: body), byteCount: body.count)
        #expect(fold.sessions.visitCount == VisitQueue.most)
        #expect(fold.sessions.forgottenVisit == Incarnation(3))
        let read = try LogFold(checkpoint: fold.encoded()[...])
        #expect(read == fold)
        #expect(read.sessions.forgottenVisit == Incarnation(3))
    }
}
