import ConfluxVocabulary
import Testing

@testable import ConfluxProtocol

/// Logs of former programs, which began the session of a single dispatch with a `visited` entry.
struct FormerSessionTests {
    private let log = LogID(high: 1, low: 2)
    private let list = Name("list")!

    private func commit(_ first: UInt64, _ build: (inout CommitBuilder) -> Void) throws -> Commit {
        var builder = CommitBuilder(
            log: log, epoch: Epoch(1), predecessor: first == 1 ? .none : Epoch(1),
            first: SequenceNumber(first))
        build(&builder)
        let body = builder.finish(timestamp: Timestamp(Int64(first))).dropFirst(Frame.size)
        return try Commit.decode(body: body)
    }

    private func batch(_ text: String) -> Batch {
        var builder = BatchBuilder()
        builder.append(
            target: BatchTarget(target: .state(list), schemaVersion: 1, coding: .json),
            payload: Array(text.utf8))
        return builder.finish(firstCounter: 1, settled: 0)
    }

    @Test func `the action counts for the key that dispatched it, and leaves no session`() throws {
        let key = try #require(Name("ops"))
        var logState = LogState(log: log)
        try logState.apply(
            commit(1) { $0.append(.claim(epoch: Epoch(1), nonce: Nonce(high: 3, low: 4))) },
            byteCount: 10)
        try logState.apply(
            commit(2) {
                $0.append(.visited(nonce: Nonce(high: 5, low: 6)), by: key)
                $0.append(batch("1"), from: Incarnation(2))
            }, byteCount: 10)
        #expect(logState.last == SequenceNumber(3))
        #expect(logState.sessions.count == 0)
        #expect(logState.directory.states[list]?.owner == key)
        #expect(try LogState(checkpoint: logState.encoded()[...]) == logState)
    }

    @Test func `a checkpoint's sessions of that kind are left out`() throws {
        var logState = LogState(log: log)
        try logState.apply(
            commit(1) { $0.append(.claim(epoch: Epoch(1), nonce: Nonce(high: 3, low: 4))) },
            byteCount: 10)
        let nonce = Nonce(high: 0x5555_5555_5555_5555, low: 0x6666_6666_6666_6666)
        try logState.apply(
            commit(2) {
                $0.append(.joined(nonce: nonce, name: nil, rejoining: .none, isKeyed: false))
            }, byteCount: 10)
        var bytes = logState.encoded()
        // The presence follows the nonce and the name, of which there is none.
        let end = try #require(bytes.firstRange(of: [UInt8](repeating: 0x66, count: 8))).upperBound
        #expect(bytes[end + 1] == Session.Presence.live.rawValue)
        bytes[end + 1] = 2
        let former = try LogState(checkpoint: bytes[...])
        #expect(former.sessions.count == 0 && former.last == logState.last)
        #expect(former.directory == logState.directory)
    }
}
