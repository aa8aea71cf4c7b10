import ConfluxVocabulary

/// Appends fields to a frame, in their order.
struct FrameWriter {
    /// What was written so far.
    private(set) var bytes: [UInt8] = []

    init() {}

    /// Begins a frame with its header.
    init(kind: MessageKind, speaker: Speaker, bodyBytes: Int = 112) {
        bytes.reserveCapacity(Frame.size + bodyBytes)
        assert(
            max(speaker.epoch.rawValue, speaker.session.rawValue) <= UInt64(Int64.max),
            "\(speaker) is above what a peer accepts")
        // In one append, since each takes longer than putting the fields together: the magic bytes, the version, the
        // kind, two bytes for flags, the epoch and the session.
        let start =
            UInt64(Frame.magicNumber) | UInt64(Frame.version) << 32 | UInt64(kind.rawValue) << 40
        let header = (
            start.littleEndian, speaker.epoch.rawValue.littleEndian,
            speaker.session.rawValue.littleEndian
        )
        withUnsafeBytes(of: header) { bytes.append(contentsOf: $0) }
    }

    /// Makes room for this many bytes in all.
    mutating func reserve(_ capacity: Int) {
        bytes.reserveCapacity(capacity)
    }

    /// Writes a little-endian number of a fixed width.
    mutating func fixed<Value: FixedWidthInteger>(_ value: Value) {
        // Much faster than an append of several.
        if let byte = value as? UInt8 { return bytes.append(byte) }
        withUnsafeBytes(of: value.littleEndian) { bytes.append(contentsOf: $0) }
    }

    /// Writes bytes without their length.
    mutating func raw(_ run: Bytes) {
        bytes.append(contentsOf: run)
    }

    /// Writes a text's UTF-8 without its length.
    mutating func characters(of text: some StringProtocol) {
        bytes.append(contentsOf: text.utf8)
    }

    /// Overwrites a number that was written before the value was known.
    mutating func patch<Value: FixedWidthInteger>(_ value: Value, at offset: Int) {
        bytes.withUnsafeMutableBytes { buffer in
            buffer.storeBytes(of: value.littleEndian, toByteOffset: offset, as: Value.self)
        }
    }

    /// Forgets what was written, and keeps the room for it.
    mutating func clear() {
        bytes.removeAll(keepingCapacity: true)
    }

    /// Takes what was written and leaves the writer empty.
    mutating func take() -> [UInt8] {
        var taken: [UInt8] = []
        swap(&taken, &bytes)
        return taken
    }
}
