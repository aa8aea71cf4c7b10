import ConfluxVocabulary
import Testing

@testable import ConfluxProtocol

struct VoidBatchTests {
    private static let void = Batch.void(firstCounter: 5, count: 3, settled: 4)

    @Test func `a void batch has only counters`() throws {
        #expect(try Batch.decode(Self.void.encoded) == Self.void)
        #expect(Self.void.lastCounter == 7)
        #expect(Self.void.encoded.count == BatchLayout.fixedBytes)
        #expect(try Self.void.validate() == [])
        #expect(Self.void.parsedEntries.map(\.target) == [])
    }

    @Test func `a void batch with a target or an entry is malformed, and so is any other without`()
        throws
    {
        let kindOffset = 16
        var withRow = [UInt8](GoldenSample.batch.encoded)
        withRow[kindOffset] = Batch.Kind.void.rawValue
        #expect(
            throws: WireError.malformed(
                at: 21, expected: "how many targets a batch has, none, for it is void")
        ) { try Batch.decode(withRow[...]) }
        let withEntry = Self.void.encoded + [0, 0]
        #expect(
            throws: WireError.malformed(
                at: BatchLayout.fixedBytes, expected: "the end of a void batch")
        ) { try Batch.decode(withEntry[...]) }
        var withoutRow = [UInt8](Self.void.encoded)
        withoutRow[kindOffset] = Batch.Kind.separate.rawValue
        #expect(
            throws: WireError.malformed(
                at: 21, expected: "how many targets a batch has, at least 1")
        ) { try Batch.decode(withoutRow[...]) }
        withoutRow[kindOffset] = 3
        #expect(
            throws: WireError.malformed(at: kindOffset, expected: "a batch's kind")
        ) { try Batch.decode(withoutRow[...]) }
    }

    @Test func `a void batch has at most as many counters as other batches may have entries`()
        throws
    {
        let most = WireLimits.standard.entriesPerBatchMax
        let full = Batch.void(firstCounter: 1, count: UInt32(most), settled: 0)
        #expect(try Batch.decode(full.encoded) == full)
        let over = Batch.void(firstCounter: 1, count: UInt32(most) + 1, settled: 0)
        #expect(throws: WireError.self) { try Batch.decode(over.encoded) }
    }

    @Test func `no log holds a void batch`() throws {
        var builder = CommitBuilder(
            log: Identifier(high: 1, low: 2), epoch: Epoch(5), predecessor: Epoch(4),
            first: SequenceNumber(100))
        builder.append(Self.void, from: Incarnation(7))
        let body = builder.finish(timestamp: Timestamp(1)).dropFirst(Frame.size)
        let error = #expect(throws: WireError.self) { try Commit.decode(body: body) }
        guard case .malformed(_, "a batch with entries: no log has a void one") = error else {
            Issue.record("\(String(describing: error))")
            return
        }
    }

    @Test func `parts have the counters and entries of the whole, except withdrawn ones`()
        throws
    {
        let seed = SplitMix64.seed()
        var draw = RandomMessages(seed: seed)
        for _ in 0..<500 {
            let batch = draw.batch()
            let payloads = batch.parsedEntries.map { (batch.targets[$0.target], $0.payload) }
            var withdrawn = RangeSet<UInt64>()
            for offset in 0..<UInt64(batch.count) where draw.below(3) == 0 {
                withdrawn.insert(
                    contentsOf: batch.firstCounter + offset..<batch.firstCounter + offset + 1)
            }
            let parts = batch.parts(withdrawing: withdrawn, settled: batch.firstCounter - 1)
            var next = batch.firstCounter
            for part in parts {
                #expect(part.firstCounter == next, "seed \(seed)")
                next = part.lastCounter + 1
                #expect(try Batch.decode(part.encoded) == part, "seed \(seed)")
                #expect(try part.validate() == [], "seed \(seed)")
                #expect(part.isVoid || part.kind == batch.kind, "seed \(seed)")
                #expect(part.targets.count <= Int(part.count), "seed \(seed)")
                for (offset, entry) in part.parsedEntries.enumerated() {
                    let counter = part.firstCounter + UInt64(offset)
                    let (target, payload) = payloads[Int(counter - batch.firstCounter)]
                    #expect(part.targets[entry.target] == target, "seed \(seed)")
                    #expect(entry.payload == payload, "seed \(seed)")
                }
                for counter in part.firstCounter...part.lastCounter {
                    let isVoid = withdrawn.contains(counter) || batch.isAtomic && !withdrawn.isEmpty
                    #expect(part.isVoid == isVoid, "seed \(seed)")
                }
            }
            #expect(next == batch.lastCounter + 1, "seed \(seed)")
        }
    }
}
