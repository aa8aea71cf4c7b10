import ConfluxVocabulary
import Testing

@testable import ConfluxProtocol

/// Reads of the log for nodes, and their limits.
struct ReadingBoundTests {
    /// A sequencer with a log of some entries, on which connections 1 to 4 observe.
    private func started(_ adjust: (inout SequencerSettings) -> Void = { _ in }) -> RawPeers {
        var peers = RawPeers(adjust)
        peers.cluster.addNode(1, named: "alpha", store: "list")
        for text in ["a", "b", "c"] { peers.cluster.dispatch([text], to: "list/*", from: 1) }
        for connection in 1...4 as ClosedRange<UInt64> { peers.join(connection, role: .observer) }
        return peers
    }

    /// The machine of a cluster, and the reads that it wants.
    private struct Reading {
        var machine: SequencerMachine
        let speakers: [UInt64: Speaker]
        var jobs: [ReadJob] = []
        var answerCount = 0
        var failures: [Answer.Body] = []
        var now: Moment

        init(_ peers: RawPeers) throws {
            machine = try #require(peers.cluster.sequencer)
            speakers = Dictionary(
                uniqueKeysWithValues: (1...4).map { connection in
                    (connection, peers.cluster.speaker(ConnectionID(rawValue: 1_000 + connection)))
                })
            now = peers.cluster.moment
        }

        mutating func handle(_ input: SequencerInput) {
            var effects: [SequencerEffect] = []
            machine.handle(input, at: now, into: &effects)
            for effect in effects {
                switch effect {
                case .read(let job): jobs.append(job)
                case .send(.entries, _): answerCount += 1
                case .send(.answer(let answer), _): failures.append(answer.body)
                default: break
                }
            }
        }

        mutating func fetch(_ request: UInt64, on connection: UInt64) {
            let fetch = Fetch(request: request, from: SequenceNumber(1), limitBytes: .max)
            handle(
                .received(
                    .fetch(fetch), by: speakers[connection] ?? Speaker(epoch: .none),
                    from: ConnectionID(rawValue: 1_000 + connection)))
        }
    }

    @Test
    func `a heavy reader waits for light ones, and simultaneous reads are bounded`() throws {
        var reading = try Reading(
            started {
                $0.readsMax = 2
                $0.fetchBytesMax = 500
            })
        for request in 1...20 as ClosedRange<UInt64> { reading.fetch(request, on: 1) }
        for connection in 2...4 as ClosedRange<UInt64> { reading.fetch(1, on: connection) }
        // The same fetch again, before its turn: it is answered once.
        reading.fetch(1, on: 4)
        var order: [UInt64] = []
        while !reading.jobs.isEmpty {
            #expect(reading.jobs.count <= 2)
            #expect(reading.jobs.allSatisfy { $0.limitBytes == 500 })
            let job = reading.jobs.removeFirst()
            order.append(job.connection.rawValue - 1_000)
            reading.handle(.read(job, .commits([])))
        }
        #expect(order.prefix(6) == [1, 1, 1, 2, 3, 4])
        #expect(order.count == 2 + ReadQueue.perConnectionMax + 3)
    }

    @Test func `a node that has too much to read gets no long answer, and others are answered`()
        throws
    {
        var reading = try Reading(started { $0.readsMax = 2 })
        let place = SnapshotPlace(
            store: try #require(StoreName("list")), life: SequenceNumber(1),
            sequence: SequenceNumber(1))
        let requests: [NodeMessage] = [
            .fetch(Fetch(request: 1, from: SequenceNumber(1), limitBytes: 1)),
            // It would be answered at once.
            .fetch(Fetch(request: 2, from: SequenceNumber(1_000), limitBytes: 1)),
            .load(Load(request: 3, place: place, offset: 0, limitBytes: 1)),
            .question(Question(number: 4, patience: .seconds(1), body: .status)),
        ]
        for isBehind in [true, false] {
            for request in requests {
                let frame = Frame.encode(request, by: try #require(reading.speakers[1]))
                reading.handle(
                    .frame(
                        frame[...], limits: reading.machine.limits,
                        from: ConnectionID(rawValue: 1_001), isBehind: isBehind))
            }
            guard isBehind else { break }
            #expect(reading.jobs.isEmpty && reading.answerCount == 0)
            guard case .failed(.tableFull, _)? = reading.failures.first else {
                Issue.record("\(reading.failures)")
                return
            }
            reading.fetch(1, on: 2)
            #expect(reading.jobs.map(\.connection.rawValue) == [1_002])
            reading.handle(.read(reading.jobs.removeFirst(), .failed))
        }
        #expect(reading.jobs.count == 2 && reading.answerCount == 1)
        #expect(reading.failures.count == 2)
    }

    @Test func `a bounded number of damaged places is remembered`() throws {
        var reading = try Reading(started())
        for number in 1...200 as ClosedRange<UInt64> {
            reading.fetch(number, on: 1)
            let job = try #require(reading.jobs.first)
            reading.jobs.removeAll()
            let sequence = SequenceNumber(number)
            let damage = Damage(first: sequence, last: sequence, message: "damaged")
            reading.handle(.read(job, .commits([], damage: damage)))
        }
        #expect(reading.machine.damages.count == SequencerMachine.damagesMax)
        #expect(reading.machine.damages.last?.damage.first == SequenceNumber(200))
    }
}
