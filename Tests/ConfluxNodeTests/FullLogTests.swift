import ConfluxNode
import ConfluxVocabulary
import ConfluxZeroMQ
import Foundation
import Testing

@testable import ConfluxLog
@testable import ConfluxProtocol
@testable import ConfluxSequencer

/// A log at its limit makes room by itself, if the retention permits it.
struct FullLogTests {
    /// A model whose actions are large, but whose state is small.
    private struct Vessel: Model {
        static let name = "vessel"
        var drops = 0
        enum Action: Codable, Sendable { case pour(String) }

        mutating func apply(_ action: Action, _ context: ActionContext) { drops += 1 }
    }

    private static let drop = Vessel.Action.pour(String(repeating: ".", count: 1_000))

    private final class Setup {
        let folder: URL
        let sequencer: Sequencer
        let events: AsyncStream<SequencerEvent>
        let node: Node
        let store: ModelStore<Vessel>

        /// A log of 2 MiB, with no checkpoints unless the log needs room.
        init(retainedBytes: UInt64) async throws {
            folder = FileManager.default.temporaryDirectory
                .appendingPathComponent("conflux-\(Identifier.random())")
            var settings = SQLiteLogSettings(durability: .os)
            settings.writeAheadBytes = 1 << 20
            settings.limitBytes = 2 << 20
            var configuration = SequencerConfiguration(
                bind: "tcp://127.0.0.1:0", storage: .folder(folder.path, settings))
            configuration.checkpointBytes = 1 << 30
            configuration.retention.bytesMax = retainedBytes
            configuration.adjust = { $0.floorReviewInterval = .milliseconds(50) }
            let (events, continuation) = AsyncStream.makeStream(of: SequencerEvent.self)
            self.events = events
            sequencer = try Sequencer.start(configuration) { continuation.yield($0) }
            node = try await Node.connect(to: sequencer.address, scope: Scope())
            store = try await node.store(Vessel.self)
        }

        func close() async throws {
            await node.close()
            await sequencer.stop()
            try FileManager.default.removeItem(at: folder)
        }
    }

    private static func discards(_ event: SequencerEvent) -> Bool {
        if case .note(.truncated) = event { true } else { false }
    }

    @Test func `a log at its bound drops unneeded entries, and every action has its receipt`()
        async throws
    {
        let setup = try await Setup(retainedBytes: 64 << 10)
        let store = setup.store
        // About twice as much as fits into the log.
        for _ in 1...40 {
            try await withDeadline {
                var last: DispatchHandle?
                for _ in 1...100 { last = store.dispatch(Self.drop) }
                try await last?.receipt()
            }
        }
        #expect(store.value.drops == 4_000)
        // Older entries are discarded before the log is full.
        _ = try await first(of: setup.events, where: Self.discards)
        try await setup.close()
    }

    @Test func `whoever asks again learns how the log has grown, and what is free on its disk`()
        async throws
    {
        let setup = try await Setup(retainedBytes: 64 << 10)
        let first = try #require(try await setup.node.sequencerStatus().health)
        var last: DispatchHandle?
        for _ in 1...60 { last = setup.store.dispatch(Self.drop) }
        try await last?.receipt()
        let health = try await withDeadline { [node = setup.node] in
            while true {
                let health = try #require(try await node.sequencerStatus().health)
                if health.usedBytes >= first.usedBytes + 60_000 { return health }
            }
        }
        #expect(health.limitBytes == 2 << 20 && health.usedBytes < health.limitBytes)
        #expect(try #require(health.freeBytes) > 0)
        #expect(health.held == nil && health.bounds.contains { $0.level > 0 })
        try await setup.close()
    }

    @Test func `a full log gets room even if all of it follows the newest checkpoint`() throws {
        let folder = FileManager.default.temporaryDirectory
            .appendingPathComponent("conflux-\(Identifier.random())")
        defer { try? FileManager.default.removeItem(at: folder) }
        var settings = SQLiteLogSettings(durability: .os)
        settings.limitBytes = 2 << 20
        let log = try SQLiteLog(directory: folder.path, settings: settings)
        var wishes: [SequenceNumber] = []
        var saved: [SequenceNumber] = []
        let schedule = CheckpointSchedule(intervalBytes: 1 << 30) { due in
            if case .success(let job) = due { wishes.append(job.last) }
        }
        let worker = LogWorker(log: log, checkpoints: schedule, answer: { _ in })
        func append(_ byteCount: Int = 10_000) {
            let frame = Array(repeating: UInt8(7), count: byteCount)[...]
            let commit = Append.Commit(frame: frame, first: log.last.next, last: log.last.next)
            worker.work(.append(Append(commits: [commit], isForced: false)))
        }
        func save(_ number: SequenceNumber) {
            let piece = CheckpointPiece(sequence: number, index: 0, count: 1, bytes: [1, 2, 3])
            worker.work(.save(piece) { error in #expect(error == nil) })
            saved.append(number)
        }
        func discard() {
            while case .rest? = worker.work(.truncate(below: saved[saved.count - 2].next)) {}
        }
        worker.work(.claim(.random()))
        for _ in 1...2 {
            append()
            save(log.last)
        }
        discard()
        // The checkpoints are at the beginning, and nobody makes another one until the log is full.
        for _ in 1...30 { append() }
        #expect(log.space.room == .ample && wishes.isEmpty)
        append(900_000)
        #expect(log.isNearlyFull)
        // The sequencer asks for checkpoints until there are two at the end.
        for _ in 1...2 {
            worker.work(.makeRoom)
            let wish = wishes.popLast()
            save(try #require(wish))
        }
        worker.work(.makeRoom)
        #expect(wishes.isEmpty)
        discard()
        #expect(!log.isNearlyFull, "checkpoints at \(saved), and the log ends at \(log.last)")
    }

    @Test
    func `a log whose retention exceeds its bound keeps less, and every action has its receipt`()
        async throws
    {
        let setup = try await Setup(retainedBytes: 1 << 30)
        let store = setup.store
        for _ in 1...40 {
            try await withDeadline {
                var last: DispatchHandle?
                for _ in 1...100 { last = store.dispatch(Self.drop) }
                try await last?.receipt()
            }
        }
        #expect(store.value.drops == 4_000)
        try await setup.close()
    }
}
