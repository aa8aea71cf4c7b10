import ConfluxLog
import ConfluxNode
import ConfluxZeroMQ
import FaultyDisk
import Foundation
import Synchronization
import Testing

@testable import ConfluxProtocol
@testable import ConfluxSequencer

/// When the log fails, the term ends, and the next one continues from the log (rule 3).
struct RenewalTests {
    /// Counts the failed terms.
    private final class Failures: Sendable {
        let count = Atomic<Int>(0)
    }

    /// A sequencer on a disk that fails on demand, its events, and a node with a store.
    private final class Setup {
        let disk: FaultyDisk
        let folder: URL
        let sequencer: Sequencer
        let events: AsyncStream<SequencerEvent>
        let failures = Failures()
        let node: Node
        let store: Store<TallyState>

        init(adjust: (inout SequencerConfiguration) -> Void = { _ in }) async throws {
            disk = try #require(FaultyDisk())
            folder = FileManager.default.temporaryDirectory
                .appendingPathComponent("conflux-\(Identifier.random())")
            var settings = SQLiteLogSettings()
            settings.writeAheadBytes = 1 << 20
            settings.vfs = disk.vfs
            var configuration = SequencerConfiguration(
                bind: "tcp://127.0.0.1:0", storage: .folder(folder.path, settings))
            configuration.renewalPauseMax = .milliseconds(200)
            // Checkpoints are made all the time, and fail.
            configuration.checkpointBytes = 2_048
            adjust(&configuration)
            let (events, continuation) = AsyncStream.makeStream(of: SequencerEvent.self)
            self.events = events
            let failures = failures
            sequencer = try Sequencer.start(configuration) { event in
                if case .termFailed = event { failures.count.add(1, ordering: .relaxed) }
                continuation.yield(event)
            }
            node = try await Node.connect(to: sequencer.address, scope: Scope())
            store = try await node.store(TallyState.self)
        }

        /// Waits until this many terms have failed. Events of earlier failures may still wait to be read, and
        /// do not count.
        func hasFailed(_ count: Int) async throws {
            while failures.count.load(ordering: .relaxed) < count {
                _ = try await first(of: events) {
                    if case .termFailed = $0 { true } else { false }
                }
            }
        }

        func setFault(_ fault: Fault, _ isOn: Bool) {
            switch fault {
            case .sync: disk.failsToSync.store(isOn, ordering: .relaxed)
            case .full: disk.isFull.store(isOn, ordering: .relaxed)
            }
        }

        func close() async throws {
            await node.close()
            await sequencer.stop()
            try FileManager.default.removeItem(at: folder)
        }
    }

    private func isFailure(_ event: SequencerEvent) -> Bool {
        if case .termFailed = event { true } else { false }
    }

    enum Fault: CaseIterable { case sync, full }

    @Test(arguments: Fault.allCases)
    func `a disk that fails and recovers loses nothing and gives no number twice`(
        _ fault: Fault
    ) async throws {
        let setup = try await Setup()
        let store = setup.store
        var receipts: [Receipt] = []
        for round in 1...3 {
            for _ in 1...20 {
                receipts.append(try await store.actions.dispatch(.add(1)).receipt())
            }
            let failures = setup.failures.count.load(ordering: .relaxed)
            setup.setFault(fault, true)
            let handles = (1...30).map { _ in store.actions.dispatch(.add(1)) }
            // The term ends, and so does at least one that tried to follow it.
            try await setup.hasFailed(failures + 2)
            #expect(store.computed.count == (round - 1) * 50 + 20)
            #expect(setup.sequencer.metrics().logFailures >= failures + 2)
            #expect(!setup.sequencer.metrics().readinessFaults.isEmpty)
            setup.setFault(fault, false)
            for handle in handles {
                receipts.append(try await withDeadline { try await handle.receipt() })
            }
            #expect(store.computed.count == round * 50)
        }
        #expect(setup.sequencer.metrics().isServing)
        let numbers = receipts.map(\.sequence)
        #expect(numbers == numbers.sorted() && Set(numbers).count == receipts.count)

        // The log has each action at the number of its receipt, and no other action.
        await setup.node.close()
        await setup.sequencer.stop()
        let log = try SQLiteLog(directory: setup.folder.path)
        var found: [SequenceNumber] = []
        var epoch = Epoch.none
        for logged in try log.read(from: SequenceNumber(1), limitBytes: .max) {
            // A failed append may be in the log all the same, with its own term's epoch.
            epoch = logged.epoch
            let commit = try Commit.decode(body: logged.bytes)
            var sequence = commit.first
            for block in commit.blocks {
                if case .batch(_, let batch) = block {
                    found += (0..<UInt64(batch.count)).map { sequence.advanced(by: $0) }
                }
                sequence = sequence.advanced(by: UInt64(block.count))
            }
        }
        log.close()
        #expect(epoch >= Epoch(4))
        #expect(found == numbers)
        try await setup.close()
    }

    @Test func `while the log fails newcomers learn it, and are served when it works again`()
        async throws
    {
        let setup = try await Setup()
        let told = setup.node.events
        let reports: @Sendable (NodeEvent) -> Bool = { event in
            guard case .sequencerNotServing(let message) = event else { return false }
            return message.contains("disk is full")
        }
        setup.setFault(.full, true)
        let handle = setup.store.actions.dispatch(.add(1))
        try await setup.hasFailed(1)

        let command = try NodeCore(
            address: setup.sequencer.address, settings: NodeSettings(), role: .observer,
            scope: Scope())
        let error = await #expect(throws: NodeError.self) {
            try await command.connected(within: .seconds(30), isPatient: false)
        }
        #expect(error?.code == .notServing)
        #expect(error?.message.contains("disk is full") == true)
        await command.ended()
        _ = try await first(of: told, where: reports)

        let worker = try NodeCore(
            address: setup.sequencer.address, settings: NodeSettings(), role: .member,
            scope: Scope())
        let heard = worker.eventStream
        async let joined: Void = worker.connected(within: .seconds(30))
        _ = try await first(of: heard, where: reports)
        setup.setFault(.full, false)
        try await joined
        _ = try await withDeadline { try await handle.receipt() }
        // If the log fails again, it is reported again. A node that follows the feed learns that the term ended.
        worker.follow(from: SequenceNumber(1))
        let heardAgain = worker.eventStream
        let failures = setup.failures.count.load(ordering: .relaxed)
        setup.setFault(.full, true)
        let later = setup.store.actions.dispatch(.add(1))
        try await setup.hasFailed(failures + 1)
        _ = try await first(of: heardAgain, where: reports)
        setup.setFault(.full, false)
        _ = try await withDeadline { try await later.receipt() }
        worker.leave(timeout: .zero)
        await worker.ended()
        try await setup.close()
    }

    @Test func `a node that connects while the log fails learns the reason, and no path`()
        async throws
    {
        let setup = try await Setup()
        setup.setFault(.full, true)
        let handle = setup.store.actions.dispatch(.add(1))
        try await setup.hasFailed(1)
        // A file replaces the folder. The message of this failure has the path; that of a full disk may have it, too.
        let aside = setup.folder.appendingPathExtension("aside")
        try FileManager.default.moveItem(at: setup.folder, to: aside)
        try Data().write(to: setup.folder)
        let path = setup.folder.path
        _ = try await first(of: setup.events) { event in
            guard case .termFailed(let message, _) = event else { return false }
            return message.contains("\(path) cannot be used for a log")
        }
        let command = try NodeCore(
            address: setup.sequencer.address, settings: NodeSettings(), role: .observer,
            scope: Scope())
        let error = await #expect(throws: NodeError.self) {
            try await command.connected(within: .seconds(30), isPatient: false)
        }
        let message = try #require(error?.message)
        #expect(message.contains("its folder can't be used"))
        #expect(!message.contains(setup.folder.lastPathComponent), "\(message)")
        await command.ended()
        try FileManager.default.removeItem(at: setup.folder)
        try FileManager.default.moveItem(at: aside, to: setup.folder)
        setup.setFault(.full, false)
        _ = try await withDeadline { try await handle.receipt() }
        try await setup.close()
    }

    @Test func `a sequencer configured to end with its log's failure ends`() async throws {
        let setup = try await Setup { $0.renewalPauseMax = nil }
        setup.disk.failsToSync.store(true, ordering: .relaxed)
        _ = setup.store.actions.dispatch(.add(1))
        let sequencer = setup.sequencer
        let end = try await withDeadline { await sequencer.ended() }
        guard case .logFailed = end else {
            Issue.record("it ended: \(end)")
            return
        }
        setup.disk.failsToSync.store(false, ordering: .relaxed)
        try await setup.close()
    }

    @Test func `a sequencer that waits for its disk stops when asked to`() async throws {
        let setup = try await Setup { $0.renewalPauseMax = .seconds(80) }
        setup.disk.isFull.store(true, ordering: .relaxed)
        _ = setup.store.actions.dispatch(.add(1))
        _ = try await first(of: setup.events, where: isFailure)
        let sequencer = setup.sequencer
        let end = try await withDeadline { await sequencer.stop() }
        #expect(end == .stopped)
        setup.disk.isFull.store(false, ordering: .relaxed)
        try await setup.close()
    }

    @Test func `dispatching does not continue with another log, or one that lost entries`() throws {
        func ends(_ reopen: (MemoryLog) -> MemoryLog) throws -> [SequencerInput] {
            let log = MemoryLog()
            let next = reopen(log)
            var answers: [SequencerInput] = []
            let worker = LogWorker(
                log: log, reopen: { _ in next },
                answer: { answer in
                    if case .logSpace = answer { return }
                    answers.append(answer)
                })
            worker.work(.claim(.random()))
            let append = Append(
                commits: [
                    Append.Commit(
                        frame: Array(repeating: 7, count: 40)[...], first: SequenceNumber(1),
                        last: SequenceNumber(3))
                ], isForced: false)
            worker.work(.append(append))
            worker.work(.renew(.random()))
            return answers
        }
        for reopen in [{ _ in MemoryLog() }, { MemoryLog(id: $0.id) }] as [(MemoryLog) -> MemoryLog]
        {
            guard case .logFailed(.logDamaged)? = try ends(reopen).last else {
                Issue.record("it went on: \(try ends(reopen))")
                continue
            }
        }
        guard case .claimed(let claim, _)? = try ends({ MemoryLog(sharing: $0) }).last else {
            Issue.record("it did not go on")
            return
        }
        #expect(claim.last == SequenceNumber(3) && claim.epoch > Epoch(1))
    }

    @Test func `answers of an ended term are distinguished from those of the next`() throws {
        let jobs = Mailbox<LogJob>(capacity: 10, waker: try Waker())
        let confirm = LogJob.confirm
        for job in [.claim(.random()), confirm, .renew(.random()), confirm, .close] as [LogJob] {
            jobs.post(job)
        }
        let answers = Mutex<[UInt64]>([])
        LogThread(
            jobs: jobs, meter: SequencerMeter(),
            answer: { answer in answers.withLock { $0.append(answer.term) } }
        ) {
            LogWorker(log: MemoryLog(), answer: $0)
        }.run()
        #expect(answers.withLock { $0 } == [1, 1, 1, 2, 2, 2])
    }

    @Test func `pauses double up to the longest, and are reset after a steady term`() {
        func moment(_ seconds: Int) -> Moment {
            Moment(monotonic: .seconds(seconds), wall: Timestamp(0))
        }
        var renewal = TermRenewal(pauseMax: .milliseconds(350))
        #expect(renewal.pause(after: moment(0)) == nil, "nobody was served yet")
        renewal.begun(at: moment(1))
        let pauses = (2...5).map { renewal.pause(after: moment($0)) }
        #expect(pauses == [100, 200, 350, 350].map { .milliseconds($0) })
        renewal.begun(at: moment(6))
        #expect(renewal.pause(after: moment(7)) == .milliseconds(350))
        renewal.begun(at: moment(8))
        #expect(renewal.pause(after: moment(38)) == .milliseconds(100))
        var never = TermRenewal(pauseMax: nil)
        never.begun(at: moment(1))
        #expect(never.pause(after: moment(100)) == nil)
    }

    @Test func `while a disk hangs no probe passes, and nothing else stops`() async throws {
        let setup = try await Setup()
        let (passes, passed) = AsyncStream.makeStream(of: Void.self)
        setup.sequencer.probe { passed.yield() }
        _ = try await first(of: passes) { _ in true }

        let (hangs, hung) = AsyncStream.makeStream(of: Void.self)
        setup.disk.hang { hung.yield() }
        let handle = setup.store.actions.dispatch(.add(1))
        _ = try await first(of: hangs) { _ in true }
        let count = Atomic(0)
        setup.sequencer.probe {
            count.add(1, ordering: .relaxed)
            passed.yield()
        }
        // The thread that owns the sockets reaches the probe before it answers.
        _ = try await setup.node.sequencerStatus()
        #expect(count.load(ordering: .relaxed) == 0)

        setup.disk.recover()
        _ = try await first(of: passes) { _ in true }
        #expect(count.load(ordering: .relaxed) == 1)
        _ = try await withDeadline { try await handle.receipt() }
        try await setup.close()
    }
}
