import ConfluxVocabulary
import Testing

@testable import ConfluxProtocol

/// Any bytes lead to a value or to a typed error. The tests also show that no decoder traps, since
/// they would not end otherwise.
struct HostileFrameTests {
    @Test(arguments: GoldenSample.all)
    func `a frame that is cut anywhere except before an extension is an error`(
        sample: GoldenSample
    ) throws {
        let frame = sample.frame
        var wholeCount = 0
        for length in 0..<frame.count {
            guard
                let less = try? AnyMessage.decode(
                    frame[..<length], from: sample.message.speaker)
            else { continue }
            // It is a complete message with less content.
            #expect(less != sample.message)
            var rest = FrameReader(frame[length...], limits: .standard)
            try rest.skipExtensions()
            wholeCount += 1
        }
        let isExtended = [
            "with an earlier snapshot", "with shapes", "with a reason", "with older versions",
            "rejection, of a condition",
        ].contains {
            sample.name.hasSuffix($0)
        }
        #expect((wholeCount > 0) == isExtended)
    }

    @Test(arguments: GoldenSample.all)
    func `a frame with any byte changed is an error, or a message`(sample: GoldenSample) throws {
        for offset in sample.frame.indices {
            // A change after the header doesn't turn it into another speaker's message.
            let speakers =
                offset < Frame.size ? AnyMessage.Speaker.allCases : [sample.message.speaker]
            for change in [1, 0x02, 0x10, 0x40, 0x7F, 0x80, 0xFF] as [UInt8] {
                var frame = sample.frame
                frame[offset] ^= change
                for speaker in speakers {
                    try expectErrorOrMessage(frame[...], from: speaker)
                }
            }
        }
    }

    @Test func `random bytes are an error, or a message`() throws {
        let seed = SplitMix64.seed()
        var messages = RandomMessages(seed: seed)
        for _ in 0..<5_000 {
            var frame = [UInt8](messages.bytes(200))
            // Half of them get a valid header, so that every decoder is reached.
            let header = messages.message().encoded(epoch: Epoch(1)).prefix(Frame.size)
            frame = messages.flag() ? Array(header) + frame : frame
            for speaker in AnyMessage.Speaker.allCases {
                try expectErrorOrMessage(frame[...], from: speaker, "seed \(seed)")
            }
        }
    }

    @Test func `random runs overwritten, cut and joined are an error, or a message`() throws {
        let seed = SplitMix64.seed()
        var messages = RandomMessages(seed: seed)
        for _ in 0..<5_000 {
            let message = messages.message()
            var frame = message.encoded(epoch: Epoch(1))
            for _ in 0...messages.below(3) {
                let lower = messages.below(frame.count)
                let upper = min(frame.count, lower + messages.below(8))
                frame.replaceSubrange(lower..<upper, with: messages.bytes(8))
                if frame.isEmpty { frame = [0] }
            }
            try expectErrorOrMessage(frame[...], from: message.speaker, "seed \(seed)")
        }
    }

    @Test func `bytes after a message that are not an extension are an error`() throws {
        for sample in GoldenSample.all {
            for garbage in 1...5 {
                let frame = sample.frame + [UInt8](repeating: 0, count: garbage)
                #expect(throws: WireError.self, "\(sample.name)") {
                    try AnyMessage.decode(frame[...], from: sample.message.speaker)
                }
            }
        }
    }

    @Test func `foreign bytes are not a frame, and a truncated magic is a truncated frame`() {
        #expect(throws: WireError.notAFrame) {
            try Frame.header(of: Array("GET / HTTP/1.1".utf8)[...])
        }
        #expect(throws: WireError.notAFrame) { try Frame.header(of: [0x43, 0x46, 0]) }
        #expect(throws: WireError.truncated(at: 2, expected: "the header")) {
            try Frame.header(of: [0x43, 0x46])
        }
        #expect(throws: WireError.truncated(at: 0, expected: "the header")) {
            try Frame.header(of: [])
        }
    }

    @Test func `a number above 2⁶³ − 1 is an error, so that adding to it can't overflow`() throws {
        var frame = Frame.encode(
            .progress(Progress(applied: SequenceNumber(1), settled: 1)) as NodeMessage,
            by: .unwelcomed
        )
        frame[Frame.size + 7] = 0x80
        #expect(
            throws: WireError.malformed(
                at: Frame.size, expected: "the applied number, at most 2^63 − 1")
        ) { try Frame.decodeNodeMessage(frame[...]) }
        for last in [15, 23] {
            frame[last] = 0x80
            #expect(throws: WireError.self) { try Frame.header(of: frame[...]) }
            frame[last] = 0
        }
    }

    @Test func `a run of numbers that ends above 2⁶³ − 1 is an error`() throws {
        let last = UInt64(Int64.max)
        let run = Receipts.Run(
            firstCounter: last, count: 2, firstSequence: SequenceNumber(1), epoch: Epoch(1),
            timestamp: Timestamp(0))
        var other = run
        other.firstCounter = 1
        other.firstSequence = SequenceNumber(last)
        for run in [run, other] {
            let frame = Frame.encode(
                .receipts(Receipts(runs: [run])) as SequencerMessage, epoch: .none)
            #expect(throws: WireError.self) { try Frame.decodeSequencerMessage(frame[...]) }
        }
        let rejection = Rejection(firstCounter: last, count: 2, code: .malformed, message: "")
        let frame = Frame.encode(.rejection(rejection) as SequencerMessage, epoch: .none)
        #expect(throws: WireError.self) { try Frame.decodeSequencerMessage(frame[...]) }

        var batch = [UInt8](GoldenSample.batch.encoded)
        batch.replaceSubrange(0..<8, with: [0xFC, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0x7F])
        #expect(try Batch.decode(batch[...]).lastCounter == last)
        batch[0] = 0xFD
        #expect(throws: WireError.self) { try Batch.decode(batch[...]) }
        var body = [UInt8](GoldenSample.commitFrame.dropFirst(Frame.size))
        body.replaceSubrange(32..<40, with: [0xED, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0x7F])
        #expect(try Commit.decode(body: body[...]).last == SequenceNumber(last))
        body[32] = 0xEE
        #expect(throws: WireError.self) { try Commit.decode(body: body[...]) }
    }

    @Test func `a flag is 0 or 1, and nothing else`() {
        let answer = Answer(number: 1, isLast: true, node: nil, body: .alive)
        var frame = Frame.encode(.answer(answer) as NodeMessage, by: .unwelcomed)
        for value in 2...UInt8.max {
            frame[Frame.size + 8] = value
            #expect(
                throws: WireError.malformed(
                    at: Frame.size + 8, expected: "whether it is the last answer, 0 or 1")
            ) { try Frame.decodeNodeMessage(frame[...]) }
        }
    }

    @Test func `text that is not UTF-8 and names outside the alphabet are errors`() throws {
        var bye = Frame.encode(
            .bye(Bye(code: .leaving, message: "ab")) as NodeMessage, by: .unwelcomed)
        bye[bye.count - 1] = 0xC3
        #expect(throws: WireError.self) { try Frame.decodeNodeMessage(bye[...]) }
        for bad in [0x41, 0x2F, 0x00, 0xC3, 0xFF] as [UInt8] {
            var close = Frame.encode(
                .close(Close(subject: .state(Name("a")!))) as NodeMessage, by: .unwelcomed)
            close[close.count - 1] = bad
            #expect(
                throws: WireError.malformed(
                    at: Frame.size + 1, expected: "a name: 1 to 64 of a-z 0-9 . _ -")
            ) { try Frame.decodeNodeMessage(close[...]) }
        }
    }

    @Test func `an alternative outside the grammar is malformed, and a new code is unknown`() {
        let ask = Frame.encode(
            .close(Close(subject: .state(Name("a")!))) as NodeMessage, by: .unwelcomed)
        let hello = Frame.encode(
            .hello(Hello(request: 1, nonce: .none, name: nil, role: .member)) as NodeMessage,
            by: .unwelcomed)
        for (frame, place, code) in [
            (ask, 0, ByeCode.malformed), (hello, 8 + 16 + 1, .malformed),
            (
                Frame.encode(.bye(Bye(code: .leaving, message: "")), by: .unwelcomed), 8,
                .unsupported
            ),
        ] {
            var frame = frame
            frame[Frame.size + place] = 0xF0
            let error = #expect(throws: WireError.self) { try Frame.decodeNodeMessage(frame[...]) }
            #expect(error?.byeCode == code, "\(String(describing: error))")
        }
    }

    @Test func `a node's bye counts in every version, even if it can't be read`() {
        let connection = ConnectionID(rawValue: 1)
        let speaker = Speaker(epoch: Epoch(3), session: Incarnation(4))
        let bye = Frame.encode(.bye(Bye(code: .leaving, message: "ab")), by: speaker)
        var other = bye
        other[4] = 9
        var unknown = bye
        unknown[Frame.size + 8] = 0xF0
        for frame in [bye, other, unknown, Array(bye.prefix(Frame.size)), bye + [1]] {
            let input = SequencerInput.frame(frame[...], limits: .standard, from: connection)
            guard case .received(.bye, let said, connection, _) = input else {
                Issue.record("no bye: \(input)")
                continue
            }
            #expect(said == speaker)
        }
        var hello = Frame.encode(
            .hello(Hello(request: 1, nonce: .none, name: nil, role: .member)), by: .unwelcomed)
        hello[4] = 9
        let input = SequencerInput.frame(hello[...], limits: .standard, from: connection)
        guard case .unreadable(.version, _, connection) = input else {
            Issue.record("\(input)")
            return
        }
    }

    private func expectErrorOrMessage(
        _ frame: Bytes, from speaker: AnyMessage.Speaker, _ comment: Comment? = nil
    ) throws {
        let decoded: AnyMessage
        do {
            decoded = try AnyMessage.decode(frame, from: speaker)
        } catch {
            #expect(!error.message.isEmpty)
            return
        }
        // A decoded message can be encoded again, and decodes to the same value.
        let again = decoded.encoded(epoch: Epoch(1))
        #expect(try AnyMessage.decode(again[...], from: speaker) == decoded, comment)
    }
}
