import ConfluxLog
import ConfluxNode
import ConfluxSequencer
import Foundation
import Testing

struct CheckpointTests {
    /// Runs a body with a folder that is removed afterwards.
    private func withFolder(_ body: (URL) async throws -> Void) async throws {
        let folder = FileManager.default.temporaryDirectory
            .appendingPathComponent("conflux-\(Identifier.random())")
        defer {
            do {
                try FileManager.default.removeItem(at: folder)
            } catch {
                Issue.record("\(folder.path) is left behind: \(error)")
            }
        }
        try await body(folder)
    }

    private func start(
        _ folder: URL, checkpointBytes: Int
    ) throws -> (Sequencer, AsyncStream<SequencerEvent>) {
        var settings = SQLiteLogSettings()
        settings.writeAheadBytes = 1 << 20
        var configuration = SequencerConfiguration(
            bind: "tcp://127.0.0.1:0", storage: .folder(folder.path, settings))
        configuration.checkpointBytes = checkpointBytes
        let (events, continuation) = AsyncStream.makeStream(of: SequencerEvent.self)
        let sequencer = try Sequencer.start(configuration) { continuation.yield($0) }
        return (sequencer, events)
    }

    @Test func `a sequencer makes checkpoints while it serves and starts from the newest`()
        async throws
    {
        try await withFolder { folder in
            let (sequencer, events) = try start(folder, checkpointBytes: 4_096)
            let node = try await Node.connect(to: sequencer.address, scope: Scope())
            let store = try await node.store(TallyState.self)
            for _ in 0..<200 { try await store.actions.dispatch(.add(1)).receipt() }
            let saved = try await first(of: events) {
                if case .checkpointSaved = $0 { true } else { false }
            }
            guard case .checkpointSaved(let number, let bytes) = saved else { return }
            #expect(number > .zero && bytes > 0)
            await node.close()
            await sequencer.stop()

            let (again, laterEvents) = try start(folder, checkpointBytes: 1 << 30)
            let recovered = try await first(of: laterEvents) {
                if case .note(.recovered) = $0 { true } else { false }
            }
            guard case .note(.recovered(let from, let last)) = recovered else { return }
            // It read only the entries after the checkpoint.
            #expect(from >= number && from <= last)
            let late = try await Node.connect(to: again.address, scope: Scope())
            let replica = try await late.store(TallyState.self)
            #expect(replica.computed.count == 200)
            try await replica.actions.dispatch(.add(1)).receipt()
            #expect(replica.computed.count == 201)
            await late.close()
            await again.stop()
        }
    }

    @Test func `a sequencer whose checkpoint is damaged says so and reads the log`() async throws {
        try await withFolder { folder in
            let (sequencer, events) = try start(folder, checkpointBytes: 1)
            let node = try await Node.connect(to: sequencer.address, scope: Scope())
            let store = try await node.store(TallyState.self)
            try await store.actions.dispatch(.add(5)).receipt()
            _ = try await first(of: events) {
                if case .checkpointSaved = $0 { true } else { false }
            }
            await node.close()
            await sequencer.stop()
            let log = try SQLiteLog(directory: folder.path)
            _ = try log.claim()
            // The log stores these bytes properly, but they are not a checkpoint.
            for piece in SavedCheckpoint(sequence: log.last, bytes: [1, 2, 3]).pieces() {
                try log.save(piece)
            }
            log.close()

            let (again, laterEvents) = try start(folder, checkpointBytes: 1 << 30)
            _ = try await first(of: laterEvents) {
                if case .note(.checkpointSetAside) = $0 { true } else { false }
            }
            let late = try await Node.connect(to: again.address, scope: Scope())
            let replica = try await late.store(TallyState.self)
            #expect(replica.computed.count == 5)
            await late.close()
            await again.stop()
        }
    }
}
