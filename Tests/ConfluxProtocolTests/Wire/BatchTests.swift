import ConfluxVocabulary
import Testing

@testable import ConfluxProtocol

struct BatchTests {
    private static let target = BatchTarget(
        target: .state(Name("counter")!), schemaVersion: 1, coding: .json)

    @Test func `an action of 64 bytes costs two bytes more`() {
        var builder = BatchBuilder()
        builder.append(target: Self.target, payload: [UInt8](repeating: 1, count: 64))
        let before = builder.byteCount
        builder.append(target: Self.target, payload: [UInt8](repeating: 2, count: 64))
        #expect(builder.byteCount - before == 66)
        #expect(builder.finish(firstCounter: 1, settled: 0).encoded.count == before + 66)
    }

    @Test func `a builder returns the appended entries, and starts again`() throws {
        let seed = SplitMix64.seed()
        var draw = RandomMessages(seed: seed)
        var builder = BatchBuilder()
        for _ in 0..<100 {
            let targets = (0..<1 + draw.below(200)).map { _ in draw.batchTarget() }
            var expected: [(BatchTarget, Bytes)] = []
            for _ in 0...draw.below(300) {
                expected.append((targets[draw.below(targets.count)], draw.bytes(200)))
            }
            for (target, payload) in expected { builder.append(target: target, payload: payload) }
            let byteCount = builder.byteCount
            let batch = builder.finish(firstCounter: 5, settled: 3, isAtomic: true)
            #expect(builder.isEmpty)
            #expect(batch.encoded.count == byteCount)
            #expect(try Batch.decode(batch.encoded) == batch)
            #expect(try batch.validate() == [])
            #expect(batch.targets.count == Set(batch.targets).count, "seed \(seed)")
            var found: [(BatchTarget, Bytes)] = []
            batch.forEachEntry { target, payload in
                found.append((batch.targets[target], payload))
            }
            #expect(found.elementsEqual(expected, by: ==), "seed \(seed)")
        }
    }

    @Test func `a builder is full at each of its bounds, and reports it before`() throws {
        let limits = try WireLimits(
            batchBytesMax: 2_000, payloadBytesMax: 1_000, rowsPerBatchMax: 2, entriesPerBatchMax: 3)
        var other = Self.target
        other.life = SequenceNumber(1)
        var third = Self.target
        third.life = SequenceNumber(2)

        var rows = BatchBuilder(limits: limits)
        rows.append(target: Self.target, payload: [])
        rows.append(target: other, payload: [])
        #expect(!rows.canAppend(target: third, payloadBytes: 0))
        #expect(rows.canAppend(target: Self.target, payloadBytes: 0))
        rows.append(target: Self.target, payload: [])
        #expect(!rows.canAppend(target: Self.target, payloadBytes: 0))
        #expect(rows.count == 3)

        var bytes = BatchBuilder(limits: limits)
        #expect(!bytes.canAppend(target: Self.target, payloadBytes: 2_000))
        #expect(bytes.canAppend(target: Self.target, payloadBytes: 1_000))
        bytes.append(target: Self.target, payload: [UInt8](repeating: 0, count: 1_000))
        let before = bytes
        let payload = [UInt8](repeating: 0, count: 1_000)
        let fits = payload.withUnsafeBytes { bytes.appendIfFits(target: other, payload: $0) }
        #expect(!fits)
        #expect(bytes.byteCount == before.byteCount)
        let batch = bytes.finish(firstCounter: 1, settled: 0)
        #expect(try Batch.decode(batch.encoded, limits: limits) == batch)
    }

    @Test func `entries can be appended to a known row until its batch is finished`() throws {
        let limits = try WireLimits(rowsPerBatchMax: 2, entriesPerBatchMax: 2)
        var other = Self.target
        other.life = SequenceNumber(9)
        var third = Self.target
        third.life = SequenceNumber(10)
        var builder = BatchBuilder(limits: limits)
        let rows = [Self.target, other, Self.target, third].map { builder.row(for: $0) }
        let first = try #require(rows[0])
        let second = try #require(rows[1])
        #expect(rows == [first, second, first, nil])
        let payload: [UInt8] = [1, 2, 3]
        let appended = payload.withUnsafeBytes { bytes in
            [second, first, first].map { builder.appendIfFits(row: $0, payload: bytes) }
        }
        #expect(appended == [true, true, false])
        #expect(builder.isCurrent(first))
        let batch = builder.finish(firstCounter: 1, settled: 0)
        #expect(!builder.isCurrent(first))
        #expect(batch.targets == [Self.target, other])
        #expect(batch.parsedEntries.map(\.target) == [1, 0])
        #expect(try Batch.decode(batch.encoded, limits: limits) == batch)
    }

    @Test func `payloads above the limit are found by their offsets`() throws {
        let limits = try WireLimits(payloadBytesMax: 10)
        var builder = BatchBuilder()
        for size in [10, 11, 0, 200, 10] {
            builder.append(target: Self.target, payload: [UInt8](repeating: 0, count: size))
        }
        let batch = builder.finish(firstCounter: 1, settled: 0)
        #expect(try batch.validate(payloadBytesMax: limits.payloadBytesMax) == [1, 3])
        #expect(try batch.validate() == [])
    }

    @Test func `entries that break the grammar are reported with their offsets`() throws {
        // Each case: the bytes that replace the only entry (row 0, length 2, two bytes), and the
        // offset of the fault within them.
        let faults: [([UInt8], Int, String)] = [
            ([1, 2, 7, 7], 0, "a row that is none"),
            ([0, 3, 7, 7], 0, "a payload longer than the batch"),
            ([0, 1, 7, 7], 3, "an entry too many"),
            ([0x80, 0, 2, 7, 7], 0, "a row's number in more bytes than it needs"),
            ([0, 0x82, 0x00, 7, 7], 0, "a length in more bytes than it needs"),
            ([0, 0xFF, 0xFF, 0xFF, 0xFF, 0x1F], 0, "a length above 32 bits"),
            ([0, 0xFF, 0xFF, 0xFF, 0xFF, 0x0F], 0, "the largest length"),
            ([0, 0x80, 0x80, 0x80, 0x80, 0x80, 0x01], 0, "a number without end"),
            ([0, 0x80], 0, "a cut number"),
        ]
        var builder = BatchBuilder()
        builder.append(target: Self.target, payload: [7, 7])
        let good = builder.finish(firstCounter: 1, settled: 0)
        let head = good.encoded.prefix(good.encoded.count - 4)
        for (entry, offset, name) in faults {
            let batch = try Batch.decode((head + entry)[...])
            let error = #expect(throws: WireError.self, "\(name)") { try batch.validate() }
            guard case .malformed(let at, _) = error else {
                Issue.record("\(name): \(String(describing: error))")
                continue
            }
            #expect(at == head.count + offset, "\(name)")
            #expect(batch.parsedEntries.reduce(0) { count, _ in count + 1 } <= 2, "\(name)")
        }
    }

    @Test func `a walk and a split agree with a naive model`() throws {
        let seed = SplitMix64.seed()
        var draw = RandomMessages(seed: seed)
        for _ in 0..<500 {
            let batch = draw.batch()
            let model = NaiveEntry.parse(batch)
            #expect(
                batch.parsedEntries.map { NaiveEntry(target: $0.target, payload: $0.payload) }
                    == model)
            let admitted = model.map { _ in draw.below(4) > 0 }
            var asked: [Int] = []
            let runs = batch.splitting { offset, target in
                asked.append(offset)
                #expect(model[offset].target == target)
                return admitted[offset]
            }
            #expect(asked == Array(model.indices), "seed \(seed)")
            expect(runs, of: batch, model, admitted, "seed \(seed)")
            for run in runs {
                #expect(try Batch.decode(run.encoded) == run, "seed \(seed)")
                #expect(try run.validate() == [], "seed \(seed)")
            }
        }
    }

    @Test func `a batch that is admitted whole is not copied`() {
        let runs = GoldenSample.batch.splitting { _, _ in true }
        #expect(runs == [GoldenSample.batch])
        #expect(runs[0].encoded.startIndex == GoldenSample.batch.encoded.startIndex)
    }

    private func expect(
        _ runs: [Batch], of batch: Batch, _ model: [NaiveEntry], _ admitted: [Bool],
        _ comment: Comment
    ) {
        if batch.isAtomic, admitted.contains(false) {
            #expect(runs.isEmpty, comment)
            return
        }
        var byCounter: [UInt64: NaiveEntry] = [:]
        for run in runs {
            #expect(run.targets == batch.targets, comment)
            #expect(run.settled == batch.settled, comment)
            #expect(run.isAtomic == batch.isAtomic, comment)
            for (offset, entry) in NaiveEntry.parse(run).enumerated() {
                byCounter[run.firstCounter + UInt64(offset)] = entry
            }
        }
        for (offset, entry) in model.enumerated() {
            let found = byCounter.removeValue(forKey: batch.firstCounter + UInt64(offset))
            #expect(found == (admitted[offset] ? entry : nil), comment)
        }
        #expect(byCounter.isEmpty, comment)
        // Between neighbouring runs, at least one entry is left out.
        for (left, right) in zip(runs, runs.dropFirst()) {
            #expect(left.lastCounter + 1 < right.firstCounter, comment)
        }
    }
}

/// An entry, parsed by the most straightforward reading of the grammar.
private struct NaiveEntry: Equatable {
    let target: Int
    let payload: Bytes

    static func parse(_ batch: Batch) -> [NaiveEntry] {
        var rest = [UInt8](batch.entries)
        func varint() -> Int {
            var value = 0
            var shift = 0
            while true {
                let byte = Int(rest.removeFirst())
                value += (byte % 128) << shift
                shift += 7
                if byte < 128 { return value }
            }
        }
        var entries: [NaiveEntry] = []
        while !rest.isEmpty {
            let target = varint()
            let length = varint()
            entries.append(NaiveEntry(target: target, payload: rest[..<length]))
            rest.removeFirst(length)
        }
        return entries
    }
}
