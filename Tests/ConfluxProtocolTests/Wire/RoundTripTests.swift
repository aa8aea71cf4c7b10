import ConfluxVocabulary
import Testing

@testable import ConfluxProtocol

struct RoundTripTests {
    @Test func `encoded values decode to the same values, wherever their bytes are`() throws {
        let seed = SplitMix64.seed()
        var messages = RandomMessages(seed: seed)
        for round in 0..<2_000 {
            let message = messages.message()
            let epoch = messages.epoch()
            let frame = message.encoded(epoch: epoch)
            // The frame is a slice of a larger buffer: no decoder may assume that its first index is 0.
            let shifted = ([0, 0, 0] + frame + [0])[3..<3 + frame.count]
            #expect(try Frame.header(of: shifted).epoch == epoch, "seed \(seed), round \(round)")
            let decoded = try AnyMessage.decode(shifted, from: message.speaker)
            #expect(decoded == message, "seed \(seed), round \(round)")
        }
    }

    @Test(arguments: [1, 2, 3, 4])
    func `a text above the bound is cut after a whole character`(bytesOfOne: Int) throws {
        let character = ["a", "ä", "店", "🦀"][bytesOfOne - 1]
        let long = "x" + String(repeating: character, count: 5_000)
        let frame = Frame.encode(
            .bye(Bye(code: .leaving, message: long)) as NodeMessage, by: .unwelcomed)
        let bye = try Frame.decodeBye(frame[...])
        #expect(long.hasPrefix(bye.message))
        #expect(bye.message.utf8.count <= WireLimits.textBytesMax)
        #expect(bye.message.utf8.count > WireLimits.textBytesMax - bytesOfOne)
    }

    @Test func `a duration that can't be encoded becomes the nearest one that can`() throws {
        for (duration, expected) in [
            (Duration.seconds(-1), Duration.zero),
            (.seconds(Int64.max), .nanoseconds(Int64.max)),
            (.nanoseconds(Int64.max) + .nanoseconds(1), .nanoseconds(Int64.max)),
        ] {
            let question = Question(number: 1, patience: duration, body: .alive)
            let frame = Frame.encode(.question(question) as NodeMessage, by: .unwelcomed)
            guard case .question(let decoded) = try Frame.decodeNodeMessage(frame[...]) else {
                Issue.record("not a question")
                continue
            }
            #expect(decoded.patience == expected)
        }
    }

    @Test func `large parts share the frame's storage`() throws {
        let state = [UInt8](repeating: 7, count: 1_000)
        let opened = Opened(
            request: 1,
            outcome: .opened(
                life: SequenceNumber(1), schemaVersion: 1, last: SequenceNumber(1),
                snapshot: .whole(
                    Snapshot(
                        sequence: SequenceNumber(1), schemaVersion: 1,
                        state: EncodedState(coding: .json, bytes: state[...])))))
        let frame = Frame.encode(.opened(opened) as SequencerMessage, epoch: .none)[...]
        guard case .opened(let decoded) = try Frame.decodeSequencerMessage(frame),
            case .opened(_, _, _, _, .whole(let snapshot)?, _, _, _) = decoded.outcome
        else {
            Issue.record("not a snapshot")
            return
        }
        #expect(isWithin(snapshot.state.bytes, frame))

        let submit = Frame.encode(.submit(GoldenSample.batch) as NodeMessage, by: .unwelcomed)[...]
        guard case .submit(let batch) = try Frame.decodeNodeMessage(submit) else {
            Issue.record("not a submit")
            return
        }
        #expect(isWithin(batch.encoded, submit))
        for entry in batch.parsedEntries where !entry.payload.isEmpty {
            #expect(isWithin(entry.payload, submit))
        }

        guard case .commit(let commit) = try Frame.decodeFeedMessage(GoldenSample.commitFrame),
            case .batch(_, let logged) = commit.blocks[2]
        else {
            Issue.record("not a batch")
            return
        }
        #expect(isWithin(logged.encoded, GoldenSample.commitFrame))
        #expect(
            try isWithin(Frame.commitBody(of: GoldenSample.commitFrame), GoldenSample.commitFrame))
    }

    private func isWithin(_ piece: Bytes, _ whole: Bytes) -> Bool {
        piece.withUnsafeBytes { piece in
            whole.withUnsafeBytes { whole in
                guard let pieceStart = piece.baseAddress, let wholeStart = whole.baseAddress else {
                    return false
                }
                return pieceStart >= wholeStart
                    && pieceStart + piece.count <= wholeStart + whole.count
            }
        }
    }
}
