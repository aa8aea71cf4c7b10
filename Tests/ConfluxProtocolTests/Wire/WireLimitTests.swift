import ConfluxVocabulary
import Testing

@testable import ConfluxProtocol

struct WireLimitTests {
    @Test func `limits that contradict each other are refused by name`() {
        let cases: [(String, () throws(WireLimitError) -> WireLimits)] = [
            ("frameBytesMax", { () throws(WireLimitError) in try WireLimits(frameBytesMax: 0) }),
            (
                "frameBytesMax",
                { () throws(WireLimitError) in try WireLimits(frameBytesMax: 65 << 20) }
            ),
            (
                "batchBytesMax",
                { () throws(WireLimitError) in try WireLimits(frameBytesMax: 4 << 20) }
            ),
            (
                "payloadBytesMax",
                { () throws(WireLimitError) in try WireLimits(batchBytesMax: 1 << 20) }
            ),
            (
                "rowsPerBatchMax",
                { () throws(WireLimitError) in try WireLimits(rowsPerBatchMax: 257) }
            ),
            (
                "entriesPerBatchMax",
                { () throws(WireLimitError) in try WireLimits(entriesPerBatchMax: 0) }
            ),
            (
                "blocksPerCommitMax",
                { () throws(WireLimitError) in try WireLimits(blocksPerCommitMax: -1) }
            ),
            (
                "elementsPerListMax",
                { () throws(WireLimitError) in try WireLimits(elementsPerListMax: 0) }
            ),
        ]
        for (field, make) in cases {
            let error = #expect(throws: WireLimitError.self) { try make() }
            #expect(error?.field == field)
            #expect(error?.message.contains(field) == true)
        }
        #expect(throws: Never.self) { try WireLimits() }
    }

    @Test func `a welcome's grants are used as far as possible`() throws {
        func granted(batch: UInt32, payload: UInt32) -> WireLimits {
            WireLimits.standard.granted(
                by: SessionLimits(
                    windowBytes: 1, batchBytesMax: batch, payloadBytesMax: payload,
                    beatInterval: .zero, silenceMax: .zero))
        }
        #expect(granted(batch: 1_000, payload: 500).batchBytesMax == 1_000)
        #expect(granted(batch: 1_000, payload: 500).payloadBytesMax == 500)
        #expect(granted(batch: 32 << 20, payload: 16 << 20).payloadBytesMax == 16 << 20)
        for limits in [granted(batch: 0, payload: 0), granted(batch: .max, payload: .max)] {
            // Both limits would also be valid as settings.
            let checked = try WireLimits(
                batchBytesMax: limits.batchBytesMax, payloadBytesMax: limits.payloadBytesMax)
            #expect(checked == limits)
        }
    }

    @Test func `a batch that was admitted under a higher limit can be read in its commit`() throws {
        let narrow = try WireLimits(batchBytesMax: 250, payloadBytesMax: 40)
        #expect(throws: WireError.self) {
            try Batch.decode(GoldenSample.batch.encoded, limits: narrow)
        }
        #expect(throws: Never.self) {
            try Frame.decodeFeedMessage(GoldenSample.commitFrame, limits: narrow)
        }
    }

    @Test func `a batch with more targets or entries than the limit is refused`() throws {
        let encoded = GoldenSample.batch.encoded
        #expect(
            throws: WireError.limitExceeded(
                at: 21, expected: "how many targets a batch has", found: 3, limit: 2)
        ) { try Batch.decode(encoded, limits: WireLimits(rowsPerBatchMax: 2)) }
        #expect(
            throws: WireError.limitExceeded(
                at: 17, expected: "how many entries a batch has", found: 4, limit: 3)
        ) { try Batch.decode(encoded, limits: WireLimits(entriesPerBatchMax: 3)) }
    }

    @Test func `a text or a name above its limit is refused, even if complete`() throws {
        let text = [UInt8](repeating: 0x61, count: WireLimits.textBytesMax + 1)
        var bye = Frame.encode(
            .bye(Bye(code: .leaving, message: "")) as NodeMessage, by: .unwelcomed)
        bye.replaceSubrange((Frame.size + 10)..., with: [0x01, 0x10] + text)
        #expect(
            throws: WireError.limitExceeded(
                at: Frame.size + 10, expected: "a bye's message", found: 4_097, limit: 4_096)
        ) { try Frame.decodeNodeMessage(bye[...]) }

        var close = Frame.encode(
            .close(Close(subject: .state(Name("a")!))) as NodeMessage, by: .unwelcomed)
        close.replaceSubrange((Frame.size + 1)..., with: [65] + text.prefix(65))
        #expect(
            throws: WireError.limitExceeded(
                at: Frame.size + 1, expected: "a name", found: 65, limit: 64)
        ) { try Frame.decodeNodeMessage(close[...]) }
    }

    @Test
    func `a list with more elements than the remaining bytes can hold is refused at its count`()
        throws
    {
        // The count is the last field: no bytes follow it, and no element is read.
        let hello = Frame.encode(
            .hello(Hello(request: 100, nonce: .none, name: nil, role: .member)) as NodeMessage,
            by: .unwelcomed)
        for (claim, isAboveLimit) in [
            (UInt32.max, true), (65_537, true), (65_536, false), (5, false),
        ] {
            for (offsetFromEnd, field) in [(4, "the bridged states"), (8, "the hosted stores")] {
                var frame = hello
                let offset = frame.count - offsetFromEnd
                overwrite(&frame, UInt32(claim), at: offset)
                let expected: WireError =
                    isAboveLimit
                    ? .limitExceeded(
                        at: offset, expected: field, found: UInt64(claim), limit: 65_536)
                    : .truncated(at: frame.count, expected: field)
                #expect(throws: expected) { try Frame.decodeNodeMessage(frame[...]) }
            }
        }
    }

    @Test func `every other count is checked against the remaining bytes too`() throws {
        let receipts = Frame.encode(.receipts(Receipts(runs: [])) as SequencerMessage, epoch: .none)
        expect(receipts, 60_000 as UInt32, at: Frame.size, "the runs", .sequencer)

        let entries = Frame.encode(
            .entries(Entries(request: 1, last: .zero, floor: .zero, commits: []))
                as SequencerMessage, epoch: .none)
        expect(entries, 60_000 as UInt32, at: Frame.size + 32, "the commits", .sequencer)

        let commit = [UInt8](GoldenSample.commitFrame)
        expect(
            commit, 60_000 as UInt32, at: CommitLayout.blockCountOffset,
            "how many blocks a commit has", .feed)

        let submit = Frame.encode(.submit(GoldenSample.batch) as NodeMessage, by: .unwelcomed)
        let batchOffset = Frame.size + 4
        expect(submit, 200 as UInt16, at: batchOffset + 21, "a batch's targets", .node)
        expect(submit, 60_000 as UInt32, at: batchOffset + 17, "a batch's entries", .node)
    }

    @Test func `a frame or a batch above the limit is refused before it is read`() throws {
        let narrow = try WireLimits(frameBytesMax: 400, batchBytesMax: 250, payloadBytesMax: 40)
        var frame = GoldenSample.all[0].frame
        frame += [UInt8](repeating: 0, count: 400)
        #expect(
            throws: WireError.limitExceeded(
                at: 0, expected: "a frame's bytes", found: UInt64(frame.count), limit: 400)
        ) { try Frame.decodeNodeMessage(frame[...], limits: narrow) }
        let bytes = UInt64(GoldenSample.batch.encoded.count)
        #expect(
            throws: WireError.limitExceeded(
                at: 0, expected: "a batch's bytes", found: bytes, limit: 250)
        ) { try Batch.decode(GoldenSample.batch.encoded, limits: narrow) }
    }

    @Test func `the outline of a submit is read even if the rest can't be`() throws {
        var frame = Frame.encode(.submit(GoldenSample.batch) as NodeMessage, by: .unwelcomed)
        frame.removeSubrange((Frame.size + 4 + 21)...)
        #expect(throws: WireError.self) { try Frame.decodeNodeMessage(frame[...]) }
        let outline = try Frame.outline(ofSubmit: frame[...])
        #expect(outline.firstCounter == 8)
        #expect(outline.settled == 7)
        #expect(outline.count == 4)
        #expect(outline.kind == .separate)
    }

    private func expect<Value: FixedWidthInteger>(
        _ frame: [UInt8], _ claim: Value, at offset: Int, _ field: String,
        _ speaker: AnyMessage.Speaker
    ) {
        var frame = frame
        overwrite(&frame, claim, at: offset)
        let error = #expect(throws: WireError.self) {
            try AnyMessage.decode(frame[...], from: speaker)
        }
        guard case .truncated(_, field) = error else {
            Issue.record("\(field): \(String(describing: error))")
            return
        }
    }

    private func overwrite<Value: FixedWidthInteger>(
        _ frame: inout [UInt8], _ value: Value, at offset: Int
    ) {
        withUnsafeBytes(of: value.littleEndian) { bytes in
            frame.replaceSubrange(offset..<offset + bytes.count, with: bytes)
        }
    }
}
