import ConfluxVocabulary
import Testing

@testable import ConfluxProtocol

/// What a node does at the limits of its buffers.
struct ReplicaBoundTests {
    @Test func `a store catches up even if almost nothing is buffered for it`() throws {
        var cluster = Cluster()
        cluster.startSequencer()
        cluster.addNode(1, store: "list")
        cluster.addNode(2, store: "other") { $0.recentBytesMax = 1 }
        for round in 0..<20 { cluster.dispatch(["l\(round)"], to: "list/*", from: 1) }
        cluster.entriesDelay = .milliseconds(50)
        cluster.open("list", on: 2)
        // The commits that arrive while the store catches up exceed the limit at once.
        for round in 20..<40 {
            cluster.dispatch(["l\(round)"], to: "list/*", from: 1)
            let recent = cluster.nodes[2]?.machine.catchUps.recent.byteCount
            #expect((recent ?? 0) <= 1)
            cluster.pass(.milliseconds(10))
        }
        cluster.pass(.seconds(1))
        #expect(cluster.nodes[2]?.texts(of: "list") == (0..<40).map { "l\($0)" })
    }

    @Test func `pauses between hellos double up to the longest`() {
        var machine = ReplicaMachine(
            settings: ReplicaSettings(name: nil, role: .member),
            nonce: Identifier(high: 1, low: 5))
        var now = Duration.zero
        var said: [Duration] = []
        func tell(_ input: ReplicaInput) {
            var effects: [ReplicaEffect] = []
            machine.handle(
                input, at: Moment(monotonic: now, wall: Timestamp(0)), into: &effects)
            for case .send(.hello) in effects { said.append(now) }
        }
        tell(.start)
        while said.count < 12, let due = machine.nextDeadline {
            now = due
            tell(.tick)
        }
        let pauses = zip(said.dropFirst(), said).map { $0.0 - $0.1 }
        let settings = machine.settings
        #expect(pauses.first == settings.helloInterval)
        #expect(zip(pauses, pauses.dropFirst(1)).prefix(3).allSatisfy { $0.1 > $0.0 })
        #expect(pauses.allSatisfy { $0 <= settings.helloIntervalMax * 3 / 2 })
        #expect(pauses.suffix(4).allSatisfy { $0 >= settings.helloIntervalMax })
    }

    @Test func `a feed that is silent too long means that the sequencer is gone`() {
        var cluster = Cluster()
        cluster.startSequencer()
        cluster.addNode(1, store: "list")
        let patience = ReplicaSettings(name: nil, role: .member).feedSilenceMax
        cluster.pass(patience * 2)
        #expect(cluster.nodes[1]?.events.contains(.disconnected) == false)
        cluster.killSequencer()
        cluster.pass(patience - cluster.settings.beatInterval * 2)
        #expect(cluster.nodes[1]?.events.contains(.disconnected) == false)
        cluster.pass(cluster.settings.beatInterval * 3)
        #expect(cluster.nodes[1]?.events.contains(.disconnected) == true)
    }

    @Test func `the oldest commits are dropped first when a buffer shrinks`() {
        var buffer = CommitBuffer()
        func commit(_ number: UInt64) -> Commit {
            var builder = CommitBuilder(
                log: Identifier(high: 1, low: 1), epoch: Epoch(1), predecessor: Epoch(1),
                first: SequenceNumber(number))
            builder.append(.left(Incarnation(1)))
            let frame = builder.finish(timestamp: Timestamp(0))
            do {
                return try Commit.decode(body: frame.dropFirst(Frame.size))
            } catch {
                preconditionFailure("\(error)")
            }
        }
        for number in 1...3 as ClosedRange<UInt64> { buffer.insert(commit(number), byteCount: 100) }
        buffer.shrink(to: 250)
        #expect(buffer.byteCount == 200)
        #expect(buffer.take(after: SequenceNumber(1))?.commit.first == SequenceNumber(2))
        buffer.shrink(to: 99)
        #expect(buffer.isEmpty && buffer.byteCount == 0)
    }
}
