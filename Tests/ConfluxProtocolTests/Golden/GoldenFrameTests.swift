import ConfluxVocabulary
import Foundation
import Testing

@testable import ConfluxProtocol

struct GoldenFrameTests {
    @Test func `the file of golden frames matches their encoding`() throws {
        let text = GoldenFile.text(of: GoldenSample.all)
        if environment("CONFLUX_WRITE_GOLDEN") != nil {
            try Data(text.utf8).write(to: GoldenFile.url)
        }
        let file = try String(contentsOf: GoldenFile.url, encoding: .utf8)
        #expect(
            file == text,
            "the encoding changed; if it may, run this test with CONFLUX_WRITE_GOLDEN=1")
    }

    @Test func `the frames of the file decode to their values`() throws {
        let entries = try GoldenFile.entries()
        #expect(entries.map(\.name) == GoldenSample.all.map(\.name))
        for (entry, sample) in zip(entries, GoldenSample.all) {
            let speaker = try #require(AnyMessage.Speaker(rawValue: entry.speaker))
            let frame = GoldenFile.bytes(entry.frame)
            let header = try Frame.header(of: frame)
            #expect(header.version == 1)
            #expect(header.speaker == Speaker(epoch: sample.epoch, session: sample.session))
            #expect(header.kind.map { "\($0)" } == entry.kind)
            let decoded = try AnyMessage.decode(frame, from: speaker)
            #expect(decoded == sample.message, "\(entry.name)")
        }
    }

    @Test func `every supported kind has a golden frame, and no other kind decodes`() throws {
        var spoken: [AnyMessage.Speaker: Set<UInt8>] = [:]
        for sample in GoldenSample.all {
            let number = try Frame.header(of: sample.frame[...]).kindNumber
            spoken[sample.message.speaker, default: []].insert(number)
        }
        let reserved: [MessageKind] = [
            .load, .digest, .snapshot, .lock, .skip, .activity, .snapshotServed,
            .snapshotRequest, .lockOutcome, .activityPublished,
        ]
        let all = spoken.values.reduce(into: Set(reserved.map(\.rawValue))) { $0.formUnion($1) }
        #expect(all == Set(MessageKind.allCases.map(\.rawValue)))
        for speaker in AnyMessage.Speaker.allCases {
            for number in UInt8.min...UInt8.max where spoken[speaker]?.contains(number) != true {
                var frame = GoldenSample.all[0].frame
                frame[5] = number
                let error = #expect(throws: WireError.self) {
                    try AnyMessage.decode(frame[...], from: speaker)
                }
                guard case .unsupportedKind(number, at: 5, expected: _) = error else {
                    Issue.record("kind \(number) from \(speaker): \(String(describing: error))")
                    continue
                }
            }
        }
    }

    @Test func `reserved events are unsupported`() throws {
        let spoken: [LogEventKind] = [
            .claim, .joined, .left, .forgotten, .created, .dropped, .upgraded, .frozen, .thawed,
            .digestPoint, .skipped, .visited, .handles, .forked,
        ]
        for kind in LogEventKind.allCases where !spoken.contains(kind) {
            var body = [UInt8](GoldenSample.commitFrame.dropFirst(Frame.size))
            let eventOffset = CommitLayout.blocksOffset - Frame.size + CommitLayout.blockPrefixBytes
            body[eventOffset] = kind.rawValue
            #expect(
                throws: WireError.unsupportedKind(
                    kind.rawValue, at: eventOffset, expected: "an event")
            ) { try Commit.decode(body: body[...]) }
        }
    }
}
