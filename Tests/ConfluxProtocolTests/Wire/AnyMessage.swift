import ConfluxVocabulary

@testable import ConfluxProtocol

/// Any message of a frame, from any speaker.
enum AnyMessage: Equatable, Sendable {
    case node(NodeMessage)
    case sequencer(SequencerMessage)
    case feed(FeedMessage)

    enum Speaker: String, CaseIterable {
        case node, sequencer, feed
    }

    var speaker: Speaker {
        switch self {
        case .node: .node
        case .sequencer: .sequencer
        case .feed: .feed
        }
    }

    /// Encodes its frame. `session` is the session of a node. The other speakers have none.
    func encoded(epoch: Epoch, session: Incarnation = .none) -> [UInt8] {
        switch self {
        case .node(let message):
            Frame.encode(
                message, by: ConfluxProtocol.Speaker(epoch: epoch, session: session))
        case .sequencer(let message): Frame.encode(message, epoch: epoch)
        case .feed(let message): Frame.encode(message, epoch: epoch)
        }
    }

    /// Decodes a whole frame, including the parts that the decoder itself leaves undecoded.
    static func decode(
        _ frame: Bytes, from speaker: Speaker, limits: WireLimits = .standard
    ) throws(WireError) -> AnyMessage {
        switch speaker {
        case .node:
            let message = try Frame.decodeNodeMessage(frame, limits: limits)
            if case .submit(let batch) = message {
                _ = try batch.validate(payloadBytesMax: limits.payloadBytesMax)
            }
            return .node(message)
        case .sequencer:
            let message = try Frame.decodeSequencerMessage(frame, limits: limits)
            if case .entries(let entries) = message {
                for commit in entries.commits { _ = try Commit.decode(body: commit) }
            }
            return .sequencer(message)
        case .feed:
            return .feed(try Frame.decodeFeedMessage(frame, limits: limits))
        }
    }
}

extension SplitMix64 {
    /// The number in `CONFLUX_SEED`, or a random one. The number reproduces a failure.
    static func seed() -> UInt64 {
        environment("CONFLUX_SEED").flatMap { UInt64($0) } ?? UInt64.random(in: .min ... .max)
    }
}
