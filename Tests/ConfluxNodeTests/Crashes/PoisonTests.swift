import ConfluxSequencer
import Testing

@testable import Conflux
@testable import ConfluxNode
@testable import ConfluxProtocol

/// A store that stops at an entry.
struct PoisonTests {
    private let journal: JournalSetup

    init() throws {
        journal = try JournalSetup()
    }

    private var name: StoreName { journal.store }

    /// An applier whose store is poisoned at the fourth entry.
    private func poisoned() throws -> ApplierSetup {
        try journal.die(at: 4)
        try journal.die(at: 4)
        return try ApplierSetup(journal: journal.open())
    }

    /// Another node's actions for the store or its state, starting at the third entry.
    private func commit(
        _ payloads: [String], target: String = "tally/shared", version: UInt32 = 1
    ) throws -> Commit {
        var builder = BatchBuilder()
        for payload in payloads {
            builder.append(
                target: BatchTarget(
                    target: try #require(Target(target)), schemaVersion: version, coding: .json),
                payload: Array(payload.utf8))
        }
        let batch = builder.finish(firstCounter: 1, settled: 0)
        return Commit(
            log: journal.log, epoch: Epoch(1), predecessor: Epoch(1), first: SequenceNumber(3),
            count: UInt32(payloads.count), timestamp: Timestamp(0),
            blocks: [.batch(Incarnation(1), batch)])
    }

    private func add(_ amount: Int) -> String { "{\"add\":{\"_0\":\(amount)}}" }

    private func stops(of setup: ApplierSetup) -> [UInt64?] {
        setup.told.events.withLock { events in
            events.compactMap { event in
                guard case .storeStopped(name, let sequence, _) = event else { return nil }
                return sequence?.rawValue
            }
        }
    }

    @Test func `a poisoned store has all before the entry, and nothing from it on`() throws {
        let setup = try poisoned()
        setup.deliver(.commit(try commit([add(1), add(2), add(4)]), byteCount: 100))
        #expect(setup.store.computed.count == 1)
        let place = setup.applier.place(of: name)
        #expect(place?.position == SequenceNumber(3))
        #expect(place?.stopped?.contains("tally/shared stopped before entry 4") == true)
        #expect(stops(of: setup) == [4])
        // Later entries have no effect, either, and the stop is reported once.
        setup.deliver(
            .catchUp(
                try commit([add(1), add(2), add(4)]), byteCount: 100, to: [.store(name)]))
        #expect(setup.store.computed.count == 1)
        #expect(stops(of: setup) == [4])
    }

    @Test func `an entry at which a store stopped is reported as such, whatever it contains`()
        throws
    {
        let setup = try poisoned()
        setup.deliver(.commit(try commit(["{}", "{}", "{}"]), byteCount: 100))
        let progress = try setup.progress(of: name)
        let stops = (3...5 as ClosedRange<UInt64>).map { number -> SequenceNumber? in
            guard case .stopped(let at, let message) = progress.effect(of: SequenceNumber(number)),
                message.contains("stopped before entry 4")
            else { return nil }
            return at
        }
        #expect(stops == [nil, SequenceNumber(4), SequenceNumber(4)])
    }

    @Test func `a store that is not poisoned applies an entry for both`() throws {
        let setup = try poisoned()
        let other = try #require(StoreName("tally/other"))
        let store = setup.register(other)
        setup.restore(other, life: SequenceNumber(2), ApplierSetup.state(0))
        setup.deliver(.attach(.store(other)))
        setup.deliver(
            .commit(try commit([add(1), add(2), add(4)], target: "tally/*"), byteCount: 100))
        #expect(setup.store.computed.count == 1)
        #expect(store.computed.count == 7)
    }

    @Test func `a journal's note is removed when the commit is applied`() throws {
        let setup = try ApplierSetup(journal: journal.open())
        setup.deliver(.commit(try commit([add(1), add(2), "{\"fail\":{}}"]), byteCount: 100))
        let bytes = try journal.bytes
        // The first slot has the store, and no work.
        #expect(!bytes[64..<72].allSatisfy { $0 == 0 })
        #expect(bytes[72..<112].allSatisfy { $0 == 0 })
    }

    @Test func `a damaged journal is reported with the first store`() throws {
        try journal.write(Array("CFXCRASH".utf8.reversed()) + [9])
        let setup = try ApplierSetup(journal: journal.open())
        let events = setup.told.events.withLock { $0 }
        guard case .crashJournal(let message)? = events.first else {
            Issue.record("\(events)")
            return
        }
        #expect(message.contains("begins anew"))
    }

    @Test func `a store that is older than an entry stops, and says so once`() throws {
        let setup = try ApplierSetup()
        setup.deliver(.commit(try commit([add(1), add(2)], version: 2), byteCount: 100))
        #expect(setup.store.computed.count == 0)
        #expect(stops(of: setup) == [3])
    }

    // MARK: A node

    @Test func `a poisoned store can't be opened, the others can, and this is reported`()
        async throws
    {
        try await withWorld { world in
            let path = journal.path
            let first = try await world.node { $0.crashJournal = path }
            let store = try await first.store(TallyState.self)
            let poison = try await store.actions.dispatch(.add(1)).receipt()
            let life = try #require(try await first.sequencerStatus().stores.first?.life)
            // It dies, and leaves no snapshot.
            first.core.leave(timeout: .zero)
            await first.close()
            try die(at: poison, life)

            let second = try await world.node { $0.crashJournal = path }
            let events = second.events
            let failure = await #expect(throws: NodeError.self) {
                _ = try await second.store(TallyState.self)
            }
            #expect(failure?.code == .storeStopped)
            #expect(failure?.message.contains("log skip \(poison.sequence)") == true)
            let event = try await ConfluxNodeTests.first(of: events) { event in
                if case .storeStopped = event { true } else { false }
            }
            #expect(
                event
                    == .storeStopped(
                        name, at: poison.sequence, message: try #require(failure?.message)))
            let journal = try await second.store(Journal.self)
            try await journal.dispatch(.write("on")).receipt()
            #expect(journal.lines == ["on"])

            // The status says so, although the node does not host the store.
            let replica = StoppedReplica(
                node: await second.status.incarnation, sequence: poison.sequence)
            try await wait(second, in: world) { status, _, _ in
                status.stopped == [replica] && status.hosts == 0
            }
            try await wait(second, in: world) { $1.stopped == 1 && $2.stoppedReplicas == 1 }
            #expect(second.metrics().readinessFaults == ["stopped stores: 1"])

            // Once the entry is skipped, it can be opened.
            try await second.skip(poison.sequence, for: .store(name))
            let again = try await second.store(TallyState.self)
            try await wait(second, in: world) { status, node, sequencer in
                status.stopped.isEmpty && status.hosts == 1 && node.stopped == 0
                    && sequencer.stoppedReplicas == 0
            }
            #expect(again.computed.count == 0)
            await second.close()
        }
    }

    /// It can't read the state of a tally.
    private struct OtherTally: Model, Equatable {
        static let name = "tally"
        var text = ""
        enum Action: Codable, Sendable { case none }

        mutating func apply(_ action: Action, _ context: ActionContext) {}
    }

    @Test func `a store whose state can't be read is reported without an entry`() async throws {
        try await withWorld { world in
            let first = try await world.node()
            let store = try await first.store(TallyState.self)
            try await store.actions.dispatch(.add(1)).receipt()
            let second = try await world.node()
            let failure = await #expect(throws: NodeError.self) {
                _ = try await second.store(OtherTally.self)
            }
            #expect(failure?.code == .openFailed)
            let incarnation = await second.status.incarnation
            try await wait(second, in: world) { status, node, _ in
                let replica = StoppedReplica(node: incarnation, sequence: status.life)
                return status.stopped == [replica] && status.hosts == 1 && node.stopped == 1
            }
            await second.close()
            try await wait(first, in: world) { $0.stopped.isEmpty && $2.stoppedReplicas == 0 }
            #expect(store.computed.count == 1)
            await first.close()
        }
    }

    /// Waits until the status of the store, and the metrics of a node and of the sequencer, are as expected.
    private func wait(
        _ node: Node, in world: World,
        until isWanted: @escaping @Sendable (StoreStatus, NodeMetrics, SequencerMetrics) -> Bool
    ) async throws {
        let name = name
        try await withDeadline {
            while true {
                let stores = try await node.sequencerStatus().stores
                let status = try #require(stores.first { $0.store == name })
                if isWanted(status, node.metrics(), world.sequencer.metrics()) { return }
            }
        }
    }

    /// Imitates two processes that die at the entry.
    private func die(at receipt: Receipt, _ life: SequenceNumber) throws {
        for _ in 1...2 {
            let journal = try CrashJournal(at: journal.path)
            let record = journal.record(
                of: name, life: life, log: try #require(receipt.log), at: life)
            try #require(record).commitMark().begin(receipt.sequence)
        }
    }

    @Test func `a node does not connect while its journal is in use`() async throws {
        try await withWorld { world in
            let path = journal.path
            let first = try await world.node { $0.crashJournal = path }
            let failure = await #expect(throws: NodeError.self) {
                _ = try await world.node { $0.crashJournal = path }
            }
            #expect(failure?.code == .journalInUse)
            await first.close()
        }
    }
}
