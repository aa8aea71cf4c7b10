import ConfluxVocabulary
import Testing

@testable import ConfluxProtocol

struct CommitTests {
    private func builder(limits: WireLimits = .standard) -> CommitBuilder {
        CommitBuilder(
            log: Identifier(high: 1, low: 2), epoch: Epoch(5), predecessor: Epoch(4),
            first: SequenceNumber(100), limits: limits)
    }

    @Test func `a commit is a frame whose body is logged and published again`() throws {
        var builder = builder()
        builder.append(GoldenSample.batch, from: Incarnation(7))
        builder.append(.left(Incarnation(3)))
        let bytes = builder.byteCount
        let frame = builder.finish(timestamp: Timestamp(42))
        #expect(frame.count == bytes)

        let body = try Frame.commitBody(of: frame)
        #expect(body == frame.dropFirst(Frame.size))
        let commit = try Commit.decode(body: body)
        #expect(commit.log == Identifier(high: 1, low: 2))
        #expect(commit.epoch == Epoch(5))
        #expect(commit.predecessor == Epoch(4))
        #expect(commit.first == SequenceNumber(100))
        #expect(commit.last == SequenceNumber(104))
        #expect(commit.timestamp == Timestamp(42))
        #expect(
            commit.blocks == [
                .batch(Incarnation(7), GoldenSample.batch), .event(.left(Incarnation(3))),
            ])

        let later = Frame.encode(commitBody: body, epoch: Epoch(6))[...]
        #expect(try Frame.header(of: later).epoch == Epoch(6))
        #expect(try Frame.decodeFeedMessage(later) == .commit(commit))
    }

    @Test
    func `a commit is cut into smaller ones with the same entries, and no transaction is cut`()
        throws
    {
        func batch(_ count: Int, from counter: UInt64, isAtomic: Bool = false) throws -> Batch {
            var builder = BatchBuilder()
            for index in 0..<count {
                builder.append(
                    target: BatchTarget(
                        target: try #require(Target("list/*")), schemaVersion: 1, coding: .json),
                    payload: Array("\"action \(index)\"".utf8))
            }
            return builder.finish(firstCounter: counter, settled: 0, isAtomic: isAtomic)
        }
        var builder = builder()
        builder.append(try batch(20, from: 1), from: Incarnation(7))
        builder.append(.left(Incarnation(3)))
        builder.append(try batch(20, from: 1, isAtomic: true), from: Incarnation(8))
        builder.append(try batch(1, from: 21), from: Incarnation(7))
        let commit = try Commit.decode(
            body: builder.finish(timestamp: Timestamp(42)).dropFirst(Frame.size))
        #expect(commit.slices(bytesMax: 1 << 20) == [commit])

        let slices = commit.slices(bytesMax: 64)
        #expect(slices.count > 4)
        var next = commit.first
        var payloads: [Bytes] = []
        for slice in slices {
            #expect(slice.first == next && slice.timestamp == commit.timestamp)
            #expect(slice.count == slice.blocks.reduce(0) { $0 + $1.count })
            next = slice.last.next
            for case .batch(_, let batch) in slice.blocks {
                #expect(!batch.isAtomic || batch.count == 20)
                payloads += batch.parsedEntries.map(\.payload)
            }
        }
        #expect(next == commit.last.next)
        let whole = commit.blocks.flatMap { block -> [Bytes] in
            guard case .batch(_, let batch) = block else { return [] }
            return batch.parsedEntries.map(\.payload)
        }
        #expect(payloads == whole)
        // Each entry keeps its counter.
        guard case .batch(_, let second)? = slices.dropFirst().first?.blocks.first else {
            Issue.record("the second slice has no batch")
            return
        }
        #expect(second.firstCounter == 1 + UInt64(slices[0].count))
    }

    @Test func `a commit follows the one before it`() throws {
        var builder = builder()
        builder.append(GoldenSample.batch, from: Incarnation(7))
        _ = builder.finish(timestamp: Timestamp(1))
        #expect(builder.isEmpty)
        #expect(builder.next == SequenceNumber(104))
        builder.append(.forgotten(Incarnation(7)))
        #expect(builder.next == SequenceNumber(105))
        let commit = try Commit.decode(
            body: builder.finish(timestamp: Timestamp(2)).dropFirst(Frame.size))
        #expect(commit.predecessor == Epoch(5))
        #expect(commit.first == SequenceNumber(104))
        #expect(commit.count == 1)
    }

    @Test func `a commit is full at each of its bounds`() throws {
        var blocks = builder(limits: try WireLimits(blocksPerCommitMax: 2))
        blocks.append(.left(Incarnation(1)))
        #expect(blocks.canAppend(GoldenSample.batch))
        blocks.append(GoldenSample.batch, from: Incarnation(1))
        #expect(!blocks.canAppend(GoldenSample.batch))
        #expect(!blocks.canAppend(.left(Incarnation(1))))

        let narrow = try WireLimits(
            frameBytesMax: 1_000, batchBytesMax: 600, payloadBytesMax: 100)
        var bytes = builder(limits: narrow)
        while bytes.canAppend(GoldenSample.batch) {
            bytes.append(GoldenSample.batch, from: Incarnation(1))
        }
        #expect(bytes.count > 0)
        #expect(bytes.byteCount <= 1_000)
        #expect(!bytes.canAppend(.left(Incarnation(1))) || bytes.byteCount + 133 <= 1_000)
        let frame = bytes.finish(timestamp: Timestamp(0))
        #expect(throws: Never.self) { try Frame.decodeFeedMessage(frame, limits: narrow) }
    }

    @Test func `the largest batch fits into an empty commit`() throws {
        let narrow = try WireLimits(frameBytesMax: 1_000, batchBytesMax: 907, payloadBytesMax: 700)
        var builder = BatchBuilder(limits: narrow)
        let target = BatchTarget(
            target: .state(Name("counter")!), schemaVersion: 1, coding: .compact)
        builder.append(target: target, payload: [UInt8](repeating: 1, count: 700))
        while builder.canAppend(target: target, payloadBytes: 0) {
            builder.append(target: target, payload: [])
        }
        let batch = builder.finish(firstCounter: 1, settled: 0)
        #expect(batch.encoded.count > 902)
        var commit = self.builder(limits: narrow)
        #expect(commit.canAppend(batch))
        commit.append(batch, from: Incarnation(1))
        #expect(commit.finish(timestamp: Timestamp(0)).count <= 1_000)
    }

    @Test func `counts that do not add up are an error`() throws {
        for change in [1, -1] {
            var body = [UInt8](GoldenSample.commitFrame.dropFirst(Frame.size))
            let offset = CommitLayout.countOffset - Frame.size
            body[offset] = UInt8(Int(body[offset]) + change)
            #expect(
                throws: WireError.malformed(
                    at: offset, expected: "the count of the 19 entries in the commit's blocks")
            ) { try Commit.decode(body: body[...]) }
        }
    }

    @Test func `the entries of a batch in a commit are validated`() throws {
        var builder = builder()
        builder.append(GoldenSample.batch, from: Incarnation(7))
        var body = [UInt8](builder.finish(timestamp: Timestamp(1)).dropFirst(Frame.size))
        let entries = body.count - GoldenSample.batch.entries.count
        body[entries] = 9
        #expect(
            throws: WireError.malformed(at: entries, expected: "entry 1 of the batch's 4")
        ) { try Commit.decode(body: body[...]) }
    }

    @Test func `a feed frame is not another message`() {
        #expect(throws: WireError.self) {
            try Frame.commitBody(of: GoldenSample.all[0].frame[...])
        }
    }
}
