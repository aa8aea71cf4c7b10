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
        var tags: [UInt64] = []
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
                case .send(.entries(let entries), _): tags.append(entries.deliveryTag)
                default: break
                }
            }
        }

        mutating func fetch(_ request: UInt64, on connection: UInt64, acknowledging tag: UInt64 = 0)
        {
            let fetch = Fetch(
                request: request, from: SequenceNumber(1), limitBytes: .max, acknowledged: tag)
            handle(
                .received(
                    .fetch(fetch), by: speakers[connection] ?? Speaker(epoch: .none),
                    from: ConnectionID(rawValue: 1_000 + connection)))
        }

        /// Sends fetches, and does the reads that are due.
        ///
        /// - Returns: How many fetches were answered.
        mutating func answers(
            _ count: Int, _ bytes: Int, on connection: UInt64, acknowledging tag: UInt64 = 0
        ) -> Int {
            let before = tags.count
            for request in 0..<count {
                fetch(UInt64(request), on: connection, acknowledging: tag)
                while let job = jobs.popLast() {
                    handle(.read(job, .commits([[UInt8](repeating: 0, count: bytes)[...]])))
                }
            }
            return tags.count - before
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

    @Test func `a node that never acknowledges answers gets none above a limit`() throws {
        var reading = try Reading(started())
        #expect(reading.answers(100, 4 << 20, on: 1) == 8)
        // Another node is answered. So is this one, once it has acknowledged.
        #expect(reading.answers(1, 4 << 20, on: 2) == 1)
        let other = try #require(reading.tags.last)
        let own = reading.tags[3]
        // A node can't acknowledge an answer that it has not received.
        for tag in [other, own &+ 1, 1, 9] {
            #expect(reading.answers(1, 4 << 20, on: 1, acknowledging: tag) == 0)
        }
        // An acknowledged answer acknowledges all answers before it.
        #expect(reading.answers(100, 4 << 20, on: 1, acknowledging: own) == 4)
        // While the connection exists, the passing of time acknowledges nothing.
        let later = reading.now.monotonic + reading.machine.settings.silenceMax / 2
        reading.now = Moment(monotonic: later, wall: reading.now.wall)
        reading.handle(.tick)
        #expect(reading.answers(1, 0, on: 1, acknowledging: own) == 0)
    }

    @Test func `short answers count too`() {
        var credit = AnswerCredit(secret: .random())
        let connection = ConnectionID(rawValue: 1)
        var count = 0
        while credit.hasRoom(for: connection), count < 100_000 {
            _ = credit.send(0, to: connection)
            count += 1
        }
        #expect(count == AnswerCredit.bytesMax / AnswerCredit.byteCountMin)
    }

    @Test func `an answer that had no room in the queue need not be acknowledged`() throws {
        var reading = try Reading(started())
        #expect(reading.answers(100, 4 << 20, on: 1) == 8)
        let lost = try #require(reading.tags.last)
        reading.handle(.answerLost(lost, to: ConnectionID(rawValue: 1_001)))
        #expect(reading.answers(100, 4 << 20, on: 1) == 1)
    }

    @Test func `a closed connection is forgotten, together with its unread answers`() throws {
        var reading = try Reading(started())
        #expect(reading.answers(100, 4 << 20, on: 1) == 8)
        reading.fetch(1, on: 2)
        let job = try #require(reading.jobs.last)
        for connection in 1...2 as ClosedRange<UInt64> {
            reading.handle(.disconnected(ConnectionID(rawValue: 1_000 + connection)))
        }
        // The result of its read is late, and can't be sent.
        reading.handle(.read(job, .commits([[1]])))
        let late = try #require(reading.tags.last)
        reading.handle(.answerLost(late, to: ConnectionID(rawValue: 1_002)))
        #expect(reading.machine.credit.count == 0)
    }

    @Test func `a bounded number of damaged places is remembered`() throws {
        var reading = try Reading(started())
        for number in 1...200 as ClosedRange<UInt64> {
            reading.fetch(number, on: 1, acknowledging: reading.tags.last ?? 0)
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
