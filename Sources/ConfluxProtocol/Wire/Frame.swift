import ConfluxVocabulary

/// One message as it travels: a header of 24 bytes, the message's fields, extensions.
///
/// ```
///  0        4       5     6       8               16              24
///  | "CFLX" | version | kind | flags | epoch (u64) | session (u64) | fields … | extensions …
/// ```
///
/// All numbers are little-endian. The header, and the fields of `bye`, are the same in every
/// version of the protocol. `docs/protocol.md` has the whole grammar.
///
/// Encoding never fails. Who makes a message keeps to ``WireLimits``: a peer refuses what is
/// above. Decoding shares storage with the frame for whatever may be large (payloads, batches,
/// commits, states), so a decoded message keeps its frame in memory. Bytes of any content end in a
/// value or in a ``WireError``, never in a trap. All functions are pure and may be called from any
/// thread.
public enum Frame {
    /// The size of the header, in bytes.
    public static let size = 24
    /// The version of the protocol that is spoken here.
    public static let version: UInt8 = 1
    /// The first bytes of every frame.
    public static let magic: [UInt8] = [0x43, 0x46, 0x4C, 0x58]
    /// From this tag on an extension must be understood by who receives it.
    public static let criticalTagMin: UInt16 = 0x8000

    /// Reads the header of a frame of any version and kind.
    ///
    /// - Parameter frame: The whole frame, or at least its first 24 bytes.
    /// - Returns: The header.
    /// - Throws: ``WireError/notAFrame``, ``WireError/truncated(at:expected:)``, or
    ///   ``WireError/malformed(at:expected:)`` for an epoch or a
    ///   session above 2⁶³ − 1.
    public static func header(of frame: Bytes) throws(WireError) -> FrameHeader {
        var reader = FrameReader(frame, limits: .standard)
        return try FrameHeader(reading: &reader)
    }

    /// Reads a `bye`, from either side and of any version.
    ///
    /// - Throws: ``WireError``; ``WireError/unsupportedKind(_:at:expected:)`` for another message.
    ///   A peer takes a `bye` whose fields can't be read for one without a reason.
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
    /// - Throws: ``WireError`` where the frame is no commit of this version.
    public static func commitBody(of frame: Bytes) throws(WireError) -> Bytes {
        var (reader, header) = try opened(frame, limits: .standard)
        guard header.kind == .commit else { throw header.unsupported("a commit") }
        return reader.cutRest()
    }

    /// Makes the feed's frame from a commit's body, as the log has it.
    ///
    /// - Parameters:
    ///   - commitBody: The body; it is not looked into.
    ///   - epoch: The speaker's tenure, which may be later than the commit's.
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

    /// Encodes what the feed carries.
    ///
    /// A sequencer has its commits encoded by `CommitBuilder` already; this encodes one anew.
    public static func encode(_ message: FeedMessage, epoch: Epoch) -> [UInt8] {
        switch message {
        case .beat(let beat): encode(beat, epoch: epoch)
        case .commit(let commit): encode(commitBody: commit.encodedBody(), epoch: epoch)
        }
    }

    /// Decodes what the feed carries. A commit is checked whole, as ``Commit/decode(body:limits:)``
    /// does.
    ///
    /// - Throws: ``WireError``.
    public static func decodeFeedMessage(
        _ frame: Bytes, limits: WireLimits = .standard
    ) throws(WireError) -> FeedMessage {
        var (reader, header) = try opened(frame, limits: limits)
        switch header.kind {
        case .commit:
            return .commit(try Commit(reading: &reader))
        case .beat:
            let beat = try Beat(reading: &reader)
            try reader.skipExtensions()
            return .beat(beat)
        default:
            throw header.unsupported("a message of the feed")
        }
    }

    /// Reads the header of a frame of this version, and leaves the reader at its fields.
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

/// For whom a frame speaks: what fences (rules 1 and 8).
public struct Speaker: Sendable, Hashable {
    /// The speaker's tenure. A node says the one of its welcome; none before the first.
    public var epoch: Epoch
    /// A node's session, as its welcome named it; none before the first, for an observer, and for the
    /// sequencer.
    public var session: Incarnation

    /// Makes a speaker.
    public init(epoch: Epoch, session: Incarnation = .none) {
        self.epoch = epoch
        self.session = session
    }

    /// A node before its first welcome.
    public static let unwelcomed = Speaker(epoch: .none)
}

/// What stands at the head of every frame.
public struct FrameHeader: Sendable, Hashable {
    /// The version of the protocol that the rest is written in.
    public let version: UInt8
    /// The number of the message's kind, which may be one that is not known here.
    public let kindNumber: UInt8
    /// For whom it speaks.
    public let speaker: Speaker
    /// The speaker's tenure.
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
        // Flags: none is defined, and who does not know one ignores it.
        _ = try reader.fixed(UInt16.self, "the header")
        let epoch = try reader.epoch("the header's epoch")
        speaker = Speaker(
            epoch: epoch, session: try reader.incarnation("the header's session"))
    }

    func unsupported(_ expected: String) -> WireError {
        .unsupportedKind(kindNumber, at: 5, expected: expected)
    }
}

extension Beat: WireField {
    static let bytesMin = 16 + 8 + 8

    init(reading reader: inout FrameReader) throws(WireError) {
        let log = try reader.identifier("a log's id")
        let last = try reader.sequence("the last number")
        self.init(log: log, last: last, floor: try reader.sequence("the floor"))
    }

    func write(to writer: inout FrameWriter) {
        writer.identifier(log)
        writer.number(last)
        writer.number(floor)
    }
}
