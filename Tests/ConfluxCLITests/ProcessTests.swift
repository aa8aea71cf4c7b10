import ConfluxWorker
import Foundation
import Synchronization
import Testing

@Suite struct `A process and its surroundings` {
    @Test func `output gathers until it is flushed`() throws {
        let file = try TemporaryFile()
        let output = StandardOutput(descriptor: file.descriptor)
        output.add("a")
        #expect(file.lines == [])
        output.print("b")
        #expect(file.lines == ["a", "b"])
    }

    @Test func `large output is written without being flushed`() throws {
        let file = try TemporaryFile()
        let output = StandardOutput(descriptor: file.descriptor)
        output.add(String(repeating: "x", count: 70_000))
        #expect(file.lines.first?.count == 70_000)
    }

    @Test func `a closed output is reported once, and ends nothing`() throws {
        signal(SIGPIPE, SIG_IGN)
        var ends: [Int32] = [-1, -1]
        try #require(pipe(&ends) == 0)
        close(ends[0])
        defer { close(ends[1]) }
        let told = Atomic(0)
        let output = StandardOutput(descriptor: ends[1]) {
            told.add(1, ordering: .relaxed)
        }
        for _ in 0..<3 { output.print("x") }
        #expect(told.load(ordering: .relaxed) == 1)
    }

    @Test func `the first request to end counts, and everybody learns of it`() {
        let interruption = Interruption()
        let heard = Atomic(0)
        interruption.whenFired { heard.add(1, ordering: .relaxed) }
        #expect(interruption.reason == nil)
        #expect(interruption.fire(.terminated))
        #expect(!interruption.fire(.interrupted))
        interruption.whenFired { heard.add(1, ordering: .relaxed) }
        #expect(heard.load(ordering: .relaxed) == 2)
        #expect(interruption.reason == .terminated)
    }

    @Test(.timeLimit(.minutes(5))) func `a request to end cancels the running work`() async throws {
        let interruption = Interruption()
        let running = Task {
            try await interruption.cancelling { () async throws(CommandFailure) in
                // Waits forever unless it is cancelled.
                for await _ in AsyncStream<Int>(unfolding: { Task.isCancelled ? nil : 1 }) {
                    await Task.yield()
                }
                return Task.isCancelled
            }
        }
        interruption.fire(.interrupted)
        #expect(try await running.value)
    }

    @Test(.timeLimit(.minutes(5))) func `a pause ends when its task is cancelled`() async {
        let pausing = Task { await Pause.wait(for: .seconds(86_400)) }
        pausing.cancel()
        await pausing.value
        await Pause.wait(for: .milliseconds(1))
    }
}
