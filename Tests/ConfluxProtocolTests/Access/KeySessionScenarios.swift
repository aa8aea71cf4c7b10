import ConfluxVocabulary
import Testing

@testable import ConfluxProtocol

/// The limit of sessions that the processes of one key may have.
struct KeySessionScenarios {
    private func principal(_ name: String, sessionsMax: UInt32? = nil) -> Principal {
        Principal(
            name: Name(name),
            rights: Rights(patterns: Rights.all.patterns, sessionsMax: sessionsMax))
    }

    private func leave(_ connection: UInt64, _ peers: inout RawPeers) {
        peers.say(.bye(Bye(code: .leaving, message: "")), on: connection)
        _ = peers.heard(on: connection)
    }

    private func hello(_ number: UInt64) -> Hello {
        // A member with a session key: its session outlives its bye.
        Hello(
            request: 1, nonce: Identifier(high: 77, low: number), name: nil, role: .member,
            process: Identifier(high: 78, low: number))
    }

    /// Whether a process of the key is admitted.
    private func join(
        _ connection: UInt64, as number: UInt64? = nil, _ peers: inout RawPeers
    ) -> Bool {
        peers.say(.hello(hello(number ?? connection)), on: connection)
        return peers.heard(on: connection).welcomes == 1
    }

    @Test func `above a key's limit of sessions only that key is denied, with the reason`() {
        var peers = RawPeers { $0.sessionsPerKeyMax = 2 }
        for connection in 1...3 as ClosedRange<UInt64> {
            peers.principals[connection] = principal("worker")
        }
        peers.principals[4] = principal("other")
        #expect(join(1, &peers) && join(2, &peers))
        peers.say(.hello(hello(3)), on: 3)
        let heard = peers.heard(on: 3)
        guard case .bye(let bye)? = heard.first, heard.count == 1 else {
            Issue.record("\(heard)")
            return
        }
        #expect(bye.code == .tableFull)
        for word in ["the key worker", "2 sessions", "sessions-max", "file of authorised keys"] {
            #expect(bye.message.contains(word), "\(bye.message)")
        }
        #expect(join(4, &peers))
        // A process that has a session keeps it, on another connection, too.
        #expect(join(1, &peers))
        peers.principals[5] = principal("worker")
        #expect(join(5, as: 2, &peers))
        // A key's line may give its own limit. Without a key, nobody has such a limit.
        peers.principals[3] = principal("worker", sessionsMax: 3)
        #expect(join(3, &peers))
        for connection in 10...20 as ClosedRange<UInt64> { #expect(join(connection, &peers)) }
    }

    @Test func `sessions that are not in the log yet count`() {
        var peers = RawPeers { $0.sessionsPerKeyMax = 2 }
        for connection in 1...3 as ClosedRange<UInt64> {
            peers.principals[connection] = principal("worker")
            peers.tell(.hello(hello(connection)), on: connection)
        }
        peers.cluster.run()
        #expect((1...3).map { peers.heard(on: $0).welcomes } == [1, 1, 0])
    }

    @Test func `an ended session blocks nobody, and is forgotten before others of its key`() {
        var peers = RawPeers { $0.sessionsPerKeyMax = 3 }
        for connection in 1...6 as ClosedRange<UInt64> {
            peers.principals[connection] = principal("worker")
        }
        #expect(join(10, &peers))
        leave(10, &peers)
        for connection in 1...3 as ClosedRange<UInt64> { #expect(join(connection, &peers)) }
        leave(2, &peers)
        leave(1, &peers)
        #expect(join(4, &peers))
        func isRemembered(_ number: UInt64, _ owner: String?) -> Bool {
            var hello = hello(number)
            if let owner { hello = hello.owned(by: principal(owner)) }
            return peers.cluster.sequencer?.sessions.incarnation(of: hello.nonce) != nil
        }
        #expect(!isRemembered(2, "worker") && isRemembered(1, "worker"))
        // No session of another key is forgotten, although those ended earlier.
        #expect(isRemembered(10, nil))
        // A process that returns takes no second place, and its session is not forgotten meanwhile.
        peers.tell(.hello(hello(1)), on: 1)
        peers.tell(.hello(hello(5)), on: 5)
        peers.cluster.run()
        #expect(peers.heard(on: 1).welcomes == 1)
        #expect(peers.heard(on: 5).byes == [.tableFull])
        #expect(peers.cluster.sequencer?.sessions.count(of: Name("worker")!) == 3)
    }

    @Test func `a new term counts and forgets the sessions in the log, in the log's order`() {
        var peers = RawPeers { $0.sessionsPerKeyMax = 3 }
        for connection in 1...9 as ClosedRange<UInt64> {
            peers.principals[connection] = principal("worker")
        }
        for connection in 1...3 as ClosedRange<UInt64> { #expect(join(connection, &peers)) }
        leave(3, &peers)
        leave(1, &peers)
        peers.cluster.killSequencer()
        peers.cluster.startSequencer()
        let name = Name("worker")!
        #expect(peers.cluster.sequencer?.sessions.count(of: name) == 3)
        #expect(join(4, &peers))
        let first = peers.cluster.sequencer?.sessions.incarnations.count
        #expect(first == 3)
        // All sessions that ended in the former term count as ended when this one began.
        #expect(join(1, &peers), "who comes back while it was forgotten begins anew")
        #expect(peers.cluster.sequencer?.sessions.count(of: name) == 3)
    }

    @Test func `a key below its limit of sessions again may begin another one`() {
        var peers = RawPeers()
        for connection in 1...6 as ClosedRange<UInt64> {
            peers.principals[connection] = principal("worker")
            #expect(join(connection, &peers))
        }
        for connection in 1...5 as ClosedRange<UInt64> { leave(connection, &peers) }
        peers.principals[7] = principal("worker", sessionsMax: 2)
        #expect(join(7, &peers))
        #expect(peers.cluster.sequencer?.sessions.count(of: Name("worker")!) == 2)
    }
}
