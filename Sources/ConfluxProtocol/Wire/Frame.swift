import ConfluxVocabulary

/// One message as it is sent: a header of 24 bytes, the message's fields, extensions.
///
/// ```
///  0        4       5     6       8               16              24
///  | "CFLX" | version | kind | flags | epoch (u64) | session (u64) | fields … | extensions …
/// ```
///
/// All numbers are little-endian. The header, and the fields of `bye`, are the same in every
/// version of the protocol. `docs/protocol.md` has the whole grammar.
///
/// Encoding never fails. Whoever makes a message keeps to ``WireLimits``: a peer refuses anything
/// above. Decoding shares storage with the frame for whatever may be large (payloads, batches,
/// commits, states), so a decoded message keeps its frame in memory. Bytes of any content end in a
/// value or in a ``WireError``, never in a trap. All functions are pure, and any thread may call
/// them.
public enum Frame {
    /// The size of the header, in bytes.
    public static let size = 24
    /// The version of the protocol that is spoken here.
    public static let version: UInt8 = 1
    /// The first bytes of every frame.
    public static let magic: [UInt8] = [0x43, 0x46, 0x4C, 0x58]
    /// The same as a little-endian number.
    static let magicNumber = magic.reversed().reduce(0 as UInt32) { $0 << 8 | UInt32($1) }
    /// A receiver must understand extensions with this tag or a higher one.
    public static let criticalTagMin: UInt16 = 0x8000

    /// Reads the header of a frame of any version and kind.
    ///
    /// - Parameter frame: The whole frame, or at least its first 24 bytes.
    /// - Returns: The header.
    /// - Throws: ``WireError/notAFrame``, ``WireError/truncated(at:expected:)``, or
    ///   ``WireError/malformed(at:expected:)`` for an epoch or a session above 2⁶³ − 1.
    public static func header(of frame: Bytes) throws(WireError) -> FrameHeader {
        var reader = FrameReader(frame, limits: .standard)
        return try FrameHeader(reading: &reader)
    }

    /// Reads a `bye`, from either side and of any version.
    ///
    /// - Throws: ``WireError``; ``WireError/unsupportedKind(_:at:expected:)`` for another message.
    ///   A peer treats a `bye` whose fields can't be read as one without a reason.
    public static func decodeBye(_ frame: Bytes) throws(WireError) -> Bye {
        var reader = FrameReader(frame, limits: .standard)
        let header = try FrameHeader(reading: &reader)
        guard header.kind == .bye || header.kind == .farewell else {
            throw header.unsupported("bye")
        }
        return try Bye(reading: &reader)
    }

    /// The body of a commit's frame: what the log stores. It shares the frame's storage.
    ///
    /// - Throws: ``WireError`` if the frame is not a commit of this version.
    public static func commitBody(of frame: Bytes) throws(WireError) -> Bytes {
        var (reader, header) = try opened(frame, limits: .standard)
        guard header.kind == .commit else { throw header.unsupported("a commit") }
        return reader.cutRest()
    }

    /// Makes the feed's frame from a commit's body, as the log has it.
    ///
    /// - Parameters:
    ///   - commitBody: The body; it is not parsed.
    ///   - epoch: The sender's term, which may be later than the commit's.
    /// - Returns: The frame.
    public static func encode(commitBody: Bytes, epoch: Epoch) -> [UInt8] {
        var writer = FrameWriter(
            kind: .commit, speaker: Speaker(epoch: epoch), bodyBytes: commitBody.count)
        writer.raw(commitBody)
        return writer.take()
    }

    /// Encodes the feed's heartbeat.
    public static func encode(_ beat: Beat, epoch: Epoch) -> [UInt8] {
        var writer = FrameWriter(kind: .beat, speaker: Speaker(epoch: epoch))
        beat.write(to: &writer)
        return writer.take()
    }

    /// Encodes a message of the feed.
    ///
    /// `CommitBuilder` has encoded a sequencer's commits already; this function encodes a commit
    /// anew.
    public static func encode(_ message: FeedMessage, epoch: Epoch) -> [UInt8] {
        switch message {
        case .beat(let beat): encode(beat, epoch: epoch)
        case .commit(let commit): encode(commitBody: commit.encodedBody(), epoch: epoch)
        }
    }

    /// Decodes a message of the feed. A commit is checked completely, as
    /// ``Commit/decode(body:limits:)`` does.
    ///
    /// - Throws: ``WireError``.
    public static func decodeFeedMessage(
        _ frame: Bytes, limits: WireLimits = .standard
    ) throws(WireError) -> FeedMessage {
        try readFeedMessage(frame, limits: limits).message
    }

    /// The same, with the sender's epoch.
    package static func readFeedMessage(
        _ frame: Bytes, limits: WireLimits = .standard
    ) throws(WireError) -> (message: FeedMessage, epoch: Epoch) {
        var (reader, header) = try opened(frame, limits: limits)
        switch header.kind {
        case .commit:
            return (.commit(try Commit(reading: &reader)), header.epoch)
        case .beat:
            let beat = try Beat(reading: &reader)
            try reader.skipExtensions()
            return (.beat(beat), header.epoch)
        default:
            throw header.unsupported("a message of the feed")
        }
    }

    /// Reads the header of a frame of this version. The reader that it returns is at the fields.
    static func opened(
        _ frame: Bytes, limits: WireLimits
    ) throws(WireError) -> (FrameReader, FrameHeader) {
        var reader = FrameReader(frame, limits: limits)
        let header = try FrameHeader(reading: &reader)
        guard header.version == version else { throw .unsupportedVersion(header.version) }
        guard frame.count <= limits.frameBytesMax else {
            throw .limitExceeded(
                at: 0, expected: "a frame's bytes", found: UInt64(frame.count),
                limit: UInt64(limits.frameBytesMax))
        }
        return (reader, header)
    }
}

/// The sender of a frame, by its term and its session. Only these fence (rules 1 and 8).
public struct Speaker: Sendable, Hashable {
    /// The sender's term. A node names the term of its welcome; none before the first.
    public var epoch: Epoch
    /// A node's session, as its welcome named it; none before the first welcome, for an observer, and
    /// for the sequencer.
    public var session: Incarnation

    /// Makes a speaker.
    public init(epoch: Epoch, session: Incarnation = .none) {
        self.epoch = epoch
        self.session = session
    }

    /// A node before its first welcome.
    public static let unwelcomed = Speaker(epoch: .none)
}

/// The header of a frame.
public struct FrameHeader: Sendable, Hashable {
    /// The version of the protocol in which the rest is written.
    public let version: UInt8
    /// The number of the message's kind. This version may not know it.
    public let kindNumber: UInt8
    /// The sender.
    public let speaker: Speaker
    /// The sender's term.
    public var epoch: Epoch { speaker.epoch }

    /// The kind; nil if its number is not one of this version.
    public var kind: MessageKind? { MessageKind(rawValue: kindNumber) }

    init(reading reader: inout FrameReader) throws(WireError) {
        // Foreign bytes are told apart from a cut frame, however short they are.
        for byte in Frame.magic {
            guard try reader.fixed(UInt8.self, "the header") == byte else { throw .notAFrame }
        }
        version = try reader.fixed(UInt8.self, "the header")
        kindNumber = try reader.fixed(UInt8.self, "the header")
        // Flags: none is defined. A receiver ignores flags that it does not know.
        _ = try reader.fixed(UInt16.self, "the header")
        speaker = Speaker(
            epoch: try reader.read("the header's epoch"),
            session: try reader.read("the header's session"))
    }

    func unsupported(_ expected: String) -> WireError {
        .unsupportedKind(kindNumber, at: 5, expected: expected)
    }
}
