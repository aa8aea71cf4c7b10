import ConfluxVocabulary
import Testing

@testable import ConfluxProtocol

struct WireExtensionTests {
    /// Two extensions that a reader may skip.
    private static let optional: [UInt8] =
        extended(2, [1, 2, 3]) + extended(0x7FFF, [])
    /// An extension that a reader must understand.
    private static let critical: [UInt8] = extended(0x8000, [9])

    private static func extended(_ tag: UInt16, _ bytes: [UInt8]) -> [UInt8] {
        [UInt8(tag & 0xFF), UInt8(tag >> 8), UInt8(bytes.count), 0, 0, 0] + bytes
    }

    @Test(arguments: GoldenSample.all)
    func `an extension after a message is skipped, or refused`(sample: GoldenSample) throws {
        let speaker = sample.message.speaker
        let skipped = sample.frame + Self.optional
        #expect(try AnyMessage.decode(skipped[...], from: speaker) == sample.message)
        let refused = skipped + Self.critical
        #expect(throws: WireError.unsupportedExtension(tag: 0x8000, at: skipped.count)) {
            try AnyMessage.decode(refused[...], from: speaker)
        }
    }

    @Test func `an extension in a batch is skipped, kept in the commit, or refused`() throws {
        let batch = GoldenSample.batch
        let skipped = try Batch.decode(adding(Self.optional, to: batch)[...])
        #expect(try skipped.validate() == [])
        #expect(Array(skipped.parsedEntries) == Array(batch.parsedEntries))

        var builder = CommitBuilder(
            log: .none, epoch: Epoch(1), predecessor: .none, first: SequenceNumber(1))
        builder.append(skipped, from: Incarnation(2))
        let commit = try Commit.decode(
            body: builder.finish(timestamp: Timestamp(0)).dropFirst(Frame.size))
        #expect(commit.blocks == [.batch(Incarnation(2), skipped)])

        let halves = skipped.splitting { offset, _ in offset != 1 }
        #expect(halves.map(\.count) == [1, 2])
        for half in halves { #expect(try Batch.decode(half.encoded) == half) }

        #expect(throws: WireError.self) {
            try Batch.decode(adding(Self.critical, to: batch)[...])
        }
    }

    @Test func `an event's extension is skipped or refused, and its block delimits it`() throws {
        for (extensions, isSkipped) in [(Self.optional, true), (Self.critical, false)] {
            let event: [UInt8] = [LogEventKind.left.rawValue, 5, 0, 0, 0, 0, 0, 0, 0] + extensions
            var body = [UInt8](commitOf(.left(Incarnation(5))))
            let blockOffset = CommitLayout.blocksOffset - Frame.size
            body.replaceSubrange(
                (blockOffset + 1)..., with: [UInt8(event.count), 0, 0, 0] + event)
            if isSkipped {
                #expect(
                    try Commit.decode(body: body[...]).blocks == [.event(.left(Incarnation(5)))])
            } else {
                #expect(throws: WireError.unsupportedExtension(tag: 0x8000, at: blockOffset + 14)) {
                    try Commit.decode(body: body[...])
                }
            }
        }
    }

    @Test func `unknown flags of the header are ignored`() throws {
        var frame = GoldenSample.all[0].frame
        frame[6] = 0xFF
        frame[7] = 0xFF
        #expect(try AnyMessage.decode(frame[...], from: .node) == GoldenSample.all[0].message)
    }

    @Test func `only the header and a bye can be read in another version`() throws {
        var frame = Frame.encode(
            .bye(Bye(code: .version, message: "speak 1")) as SequencerMessage, epoch: Epoch(9))
        frame[4] = 2
        frame += [0xFF, 0xFF, 0xFF]
        let header = try Frame.header(of: frame[...])
        #expect(header.version == 2)
        #expect(header.epoch == Epoch(9))
        #expect(header.kind == .farewell)
        #expect(throws: WireError.unsupportedVersion(2)) {
            try Frame.decodeSequencerMessage(frame[...])
        }
        #expect(try Frame.decodeBye(frame[...]) == Bye(code: .version, message: "speak 1"))
    }

    @Test func `a bye is read from its frame's header alone`() {
        let frame = Frame.encode(Beat(log: .none, last: .zero, floor: .zero), epoch: .none)
        #expect(throws: WireError.unsupportedKind(0x82, at: 5, expected: "bye")) {
            try Frame.decodeBye(frame[...])
        }
    }

    private func adding(_ extensions: [UInt8], to batch: Batch) -> [UInt8] {
        var bytes = [UInt8](batch.encoded)
        // The length of the extensions is the last field before the entries.
        let entriesOffset = batch.entries.startIndex - batch.encoded.startIndex
        bytes.insert(contentsOf: extensions, at: entriesOffset)
        bytes[entriesOffset - 4] = UInt8(extensions.count)
        return bytes
    }

    private func commitOf(_ event: LogEvent) -> Bytes {
        var builder = CommitBuilder(
            log: .none, epoch: Epoch(1), predecessor: .none, first: SequenceNumber(1))
        builder.append(event)
        return builder.finish(timestamp: Timestamp(0)).dropFirst(Frame.size)
    }
}
