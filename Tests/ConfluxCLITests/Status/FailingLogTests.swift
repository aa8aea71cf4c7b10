import ConfluxBuiltins
import ConfluxLog
import ConfluxNode
import ConfluxSequencer
import ConfluxVocabulary
import ConfluxWorker
import FaultyDisk
import Foundation
import Testing

@testable import ConfluxCLI

/// What commands report about a sequencer whose log fails.
@Suite(.timeLimit(.minutes(5))) struct FailingLogTests {
    @Test
    func
        `a command waits for a log that fails until its timeout, then ends with 74 and the reason`()
        async throws
    {
        let disk = try #require(FaultyDisk())
        let folder = NSTemporaryDirectory() + "conflux-failing-\(Identifier.random())"
        var settings = SQLiteLogSettings()
        settings.vfs = disk.vfs
        let (failures, failed) = AsyncStream.makeStream(of: Void.self)
        var configuration = SequencerConfiguration(
            bind: "tcp://127.0.0.1:0", storage: .folder(folder, settings))
        configuration.renewalPauseMax = .milliseconds(200)
        let sequencer = try Sequencer.start(configuration) { event in
            if case .termFailed = event { failed.yield() }
        }
        let node = try await Node.connect(to: sequencer.address, scope: Scope())
        let counter = try await node.store(CounterState.self)
        disk.isFull.store(true, ordering: .relaxed)
        let handle = counter.actions.dispatch(.increment)
        for await _ in failures { break }

        let words = ["status", "--connect", sequencer.address, "--timeout", "3s"]
        let begun = ContinuousClock.now
        let failure = try await Run.failure(of: words, StatusCommand.run)
        #expect(ContinuousClock.now - begun >= .seconds(3))
        #expect(failure?.exitCode == .logFailed)
        #expect(failure?.code == "notServing")
        #expect(failure?.message.contains("its log fails: the disk is full") == true)

        disk.isFull.store(false, ordering: .relaxed)
        _ = try await handle.receipt()
        let again = ["status", "--connect", sequencer.address, "--timeout", "60s"]
        #expect(try await Run.tool(again).exitCode == .success)
        await node.close()
        await sequencer.stop()
        try FileManager.default.removeItem(atPath: folder)
    }
}
