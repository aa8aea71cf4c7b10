import ConfluxNode
import ConfluxProtocol
import Testing

@testable import ConfluxCLI

@Suite(.timeLimit(.minutes(5))) struct `Lines on their way` {
    @Test func `a bounded number of lines is in flight, and reading resumes when some are done`()
        async throws
    {
        // Nothing is sent for empty lines, so no sequencer is needed.
        let core = try NodeCore(
            address: "tcp://127.0.0.1:9", settings: NodeSettings(), role: .member, scope: Scope())
        let total = DispatchFeed.itemsMax * 3 / 2
        let file = try TemporaryFile(String(repeating: "\n", count: total))
        let reader = try LineReader(path: file.path, lineBytesMax: 100)
        let encoder = ActionEncoder(try #require(Target("counter/*")), payloadBytesMax: 100)
        let feed = DispatchFeed(.lines(reader), encoder, core)
        feed.start()
        var portions = feed.portions.makeAsyncIterator()
        var last = 0
        var open = 0
        while last < DispatchFeed.itemsMax, let portion = await portions.next() {
            last = portion.lastLine
            open += 1
        }
        #expect(last == DispatchFeed.itemsMax)
        #expect(!feed.isComplete)
        // There is no room for more lines until now.
        for _ in 0..<open { feed.finished() }
        while let portion = await portions.next() {
            last = portion.lastLine
            feed.finished()
        }
        #expect(last == total)
        #expect(feed.isComplete)
        core.leave(timeout: .zero)
        await core.ended()
    }
}
