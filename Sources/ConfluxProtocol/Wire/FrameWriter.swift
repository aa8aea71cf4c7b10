import ConfluxVocabulary

/// Writes fields of a fixed width.
protocol FixedFieldWriter {
    /// Writes a little-endian number.
    mutating func fixed<Value: FixedWidthInteger>(_ value: Value)
}

/// Appends fields to a frame, in their order.
struct FrameWriter: FixedFieldWriter {
    /// What was written so far.
    private(set) var bytes: [UInt8] = []

    init() {}

    /// Makes a writer that uses the memory of an array. That array is empty afterwards.
    init(memory: inout [UInt8]) {
        swap(&bytes, &memory)
        clear()
    }

    /// Begins a frame with its header.
    init(kind: MessageKind, speaker: Speaker, bodyBytes: Int = 112) {
        begin(kind, speaker, bodyBytes: bodyBytes)
    }

    /// Writes a whole frame: the header and a message's fields.
    mutating func frame(
        _ fields: some WireField, _ kind: MessageKind, _ speaker: Speaker, bodyBytes: Int = 112
    ) {
        begin(kind, speaker, bodyBytes: bodyBytes)
        fields.write(to: &self)
    }

    private mutating func begin(_ kind: MessageKind, _ speaker: Speaker, bodyBytes: Int) {
        bytes.reserveCapacity(Frame.size + bodyBytes)
        assert(
            max(speaker.epoch.rawValue, speaker.session.rawValue) <= UInt64(Int64.max),
            "\(speaker) is above what a peer accepts")
        together { fields in
            fields.fixed(Frame.magicNumber)
            fields.fixed(Frame.version)
            fields.fixed(kind.rawValue)
            fields.fixed(UInt16(0))  // no flags
            fields.fixed(speaker.epoch.rawValue)
            fields.fixed(speaker.session.rawValue)
        }
    }

    /// Writes several fields in one append. *Use*: an append takes much longer than putting them together.
    ///
    /// - Parameter body: Writes the fields, at most ``FixedFields/bytesMax`` bytes.
    @inline(__always)
    mutating func together(_ body: (inout FixedFields) -> Void) {
        var fields = FixedFields()
        body(&fields)
        fields.withBytes { bytes.append(contentsOf: $0) }
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

/// Fields of a fixed width that are put together before they are appended.
struct FixedFields: FixedFieldWriter {
    private var storage: (UInt64, UInt64, UInt64, UInt64, UInt64, UInt64, UInt64) = (
        0, 0, 0, 0, 0, 0, 0
    )
    private var count = 0

    static let bytesMax = 56

    @inline(__always)
    mutating func fixed<Value: FixedWidthInteger>(_ value: Value) {
        assert(count + MemoryLayout<Value>.size <= Self.bytesMax, "too many fields at a time")
        withUnsafeMutableBytes(of: &storage) {
            $0.storeBytes(of: value.littleEndian, toByteOffset: count, as: Value.self)
        }
        count += MemoryLayout<Value>.size
    }

    @inline(__always)
    func withBytes(_ body: (UnsafeRawBufferPointer) -> Void) {
        withUnsafeBytes(of: storage) { body(UnsafeRawBufferPointer(rebasing: $0[..<count])) }
    }
}
