import ConfluxNode
import ConfluxSequencer
import Synchronization
import Testing

/// The states that a store had, made anew from the log.
struct PastTests {
    private func failure(
        _ work: @Sendable () async throws -> Void
    ) async -> PastError? {
        await #expect(throws: PastError.self) { try await work() }
    }

    @Test func `the state at each number is what the store was there`() async throws {
        try await withWorld { world in
            let node = try await world.node()
            let journal = try await node.store(Journal.self)
            let other = try await node.store(TallyState.self)
            var known: [(SequenceNumber, Journal)] = []
            for round in 0..<6 {
                let receipt = try await journal.dispatch(.write("line \(round)")).receipt()
                known.append((receipt.sequence, journal.value))
                // Random numbers are those that the store drew.
                let rolled = try await journal.dispatch(.roll).receipt()
                known.append((rolled.sequence, journal.value))
                // Neither an entry of another store nor a refused one changes anything.
                let foreign = try await other.actions.dispatch(.add(1)).receipt()
                known.append((foreign.sequence, journal.value))
                let refused = await #expect(throws: DispatchError.self) {
                    try await journal.dispatch(.write("")).receipt()
                }
                known.append((try #require(refused?.receipt?.sequence), journal.value))
            }
            let present = journal.value
            let changes = Mutex(0)
            let observing = journal.observe { _ in changes.withLock { $0 += 1 } }
            for (number, value) in known {
                let past = try await journal.state(at: number)
                #expect(past.lines == value.lines && past.dice == value.dice, "at \(number)")
            }
            // The live store was not touched, and nobody was notified.
            #expect(journal.value.lines == present.lines && journal.value.dice == present.dice)
            try await node.barrier()
            #expect(changes.withLock { $0 } == 0)
            observing.dispose()
            await node.close()
        }
    }

    @Test func `without an action, later ones are checked anew`() async throws {
        try await withWorld { world in
            let node = try await world.node()
            let tally = try await node.store(TallyState.self)
            let first = try await tally.actions.dispatch(.add(1)).receipt().sequence
            try await tally.actions.dispatch(.countOn(upTo: 2)).receipt()
            let refused = await #expect(throws: DispatchError.self) {
                try await tally.actions.dispatch(.countOn(upTo: 2)).receipt()
            }
            let last = try #require(refused?.receipt?.sequence)
            #expect(try await tally.state(at: last).count == 2)
            // The action that was refused is applied without the first one.
            #expect(try await tally.state(at: last, without: first).count == 2)
            #expect(
                try await tally.state(
                    at: SequenceNumber(last.rawValue - 1), without: first
                ).count == 1)
            let changes = try await tally.changes(from: first, to: last)
            #expect(changes.map { "\($0)" } == ["~ /count: 1 → 2"])
            // An entry before the store's creation is not among those that make its state.
            let code = await failure { _ = try await tally.state(at: last, without: 1) }?.code
            #expect(code == .belowFloor)
            #expect(
                await failure { _ = try await tally.state(at: first, without: last) }?.code
                    == .notAnAction)
            await node.close()
        }
    }

    @Test func `a number that can't be shown is a typed error`() async throws {
        try await withWorld { world in
            let node = try await world.node()
            let tally = try await node.store(TallyState.self)
            let created = try await node.sequencerStatus().stores[0].life
            let last = try await tally.actions.dispatch(.add(1)).receipt().sequence
            #expect(try await tally.state(at: created).count == 0)
            let below = await failure {
                _ = try await tally.state(at: SequenceNumber(created.rawValue - 1))
            }
            #expect(below?.code == .belowFloor && below?.floor == created)
            #expect(below?.message.contains("from \(created) on") == true)
            #expect(
                await failure { _ = try await tally.state(at: last.advanced(by: 100)) }?.code
                    == .aboveNewest)
            let local = ModelStore(Journal())
            #expect(await failure { _ = try await local.state(at: 1) }?.code == .unknownStore)
            let task = Task { () async throws(PastError) in try await tally.state(at: last) }
            task.cancel()
            #expect(await failure { _ = try await task.value }?.code == .cancelled)
            #expect(
                await failure { _ = try await tally.state(at: last, within: .zero) }?.code
                    == .timedOut)
            let another = try await world.node()
            let same = try await another.store(TallyState.self)
            try await node.drop(tally)
            #expect(await failure { _ = try await same.state(at: last) }?.code == .unknownStore)
            await another.close()
            await node.close()
        }
    }

    @Test func `the past begins with the older of the two snapshots that the log keeps`()
        async throws
    {
        let (events, continuation) = AsyncStream.makeStream(of: SequencerEvent.self)
        var configuration = SequencerConfiguration(bind: "tcp://127.0.0.1:0", storage: .memory)
        configuration.retention.entriesMax = 200
        configuration.checkpointBytes = 2_048
        configuration.adjust = {
            $0.digestBytesMin = 512
            $0.digestRatioMin = 1
            $0.snapshotBytesMin = 512
            $0.floorReviewInterval = .milliseconds(10)
        }
        let sequencer = try Sequencer.start(configuration) { continuation.yield($0) }
        let node = try await Node.connect(to: sequencer.address, scope: Scope())
        let tally = try await node.store(TallyState.self)
        var counts: [SequenceNumber: Int] = [:]
        var snapshots: [SequenceNumber] = []
        let taken = Mutex<[SequenceNumber]>([])
        let watching = Task {
            for await event in events {
                if case .note(.snapshotTaken(let place, _)) = event {
                    taken.withLock { $0.append(place.sequence) }
                }
            }
        }
        // The log discards the store's creation, and several snapshots are taken.
        var floor = SequenceNumber(1)
        while floor < 20 || snapshots.count < 3 {
            for _ in 0..<20 {
                let receipt = try await tally.actions.dispatch(.add(1)).receipt()
                counts[receipt.sequence] = tally.computed.count
            }
            floor = try await node.sequencerStatus().floor
            snapshots = taken.withLock { $0 }
        }
        let below = await failure { _ = try await tally.state(at: 1) }
        let lowest = try #require(below?.floor)
        let status = try await node.sequencerStatus()
        #expect(below?.code == .belowFloor)
        #expect(lowest < status.stores[0].snapshot, "an older snapshot is used")
        #expect(taken.withLock { $0 }.contains(lowest))
        for (number, count) in counts where number > lowest && number <= status.last {
            #expect(try await tally.state(at: number).count == count, "at \(number)")
        }
        watching.cancel()
        await node.close()
        await sequencer.stop()
    }
}

/// Pasts in which the store had another schema version.
struct PastVersionTests {
    private struct First: Model {
        static let name = "aged"
        var left = 0
        enum Action: Codable, Sendable { case add(Int) }

        mutating func apply(_ action: Action, _ context: ActionContext) {
            if case .add(let amount) = action { left += amount }
        }
    }

    /// Counts twice as much.
    private struct Second: Model {
        static let name = "aged"
        static let schemaVersion = 2
        var left = 0
        enum Action: Codable, Sendable { case add(Int) }

        mutating func apply(_ action: Action, _ context: ActionContext) {
            if case .add(let amount) = action { left += 2 * amount }
        }
    }

    /// Knows the rules of both.
    private struct Both: Model {
        static let name = "aged"
        static let schemaVersion = 2
        static let oldestSchemaVersion = 1
        var left = 0
        enum Action: Codable, Sendable { case add(Int) }

        mutating func apply(_ action: Action, _ context: ActionContext) {
            if case .add(let amount) = action {
                left += context.schemaVersion == 1 ? amount : 2 * amount
            }
        }
    }

    @Test func `each entry is judged by the rules that held, or the version is an error`()
        async throws
    {
        try await withWorld { world in
            let former = try await world.node()
            var first: ModelStore<First>? = try await former.store(First.self)
            let old = try #require(try await first?.dispatch(.add(1)).receipt().sequence)
            first = nil
            await former.close()
            let (other, node) = (try await world.node(), try await world.node())
            let both = try await other.store(Both.self)
            // It can be opened once the version has risen.
            let store = try await node.store(Second.self)
            let new = try await store.dispatch(.add(1)).receipt().sequence
            #expect(try await store.state(at: new).left == 3)
            let error = await #expect(throws: PastError.self) { try await store.state(at: old) }
            #expect(error?.code == .unreadableVersion)
            #expect(try await both.state(at: old).left == 1)
            #expect(try await both.state(at: new).left == 3)
            // The rise is found on the way from the store's creation.
            #expect(try await both.state(at: new, without: old).left == 2)
            await other.close()
            await node.close()
        }
    }
}
