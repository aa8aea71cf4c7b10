import ConfluxVocabulary

/// Reads fields from a frame, in their order, and never past its end.
///
/// The ``Bytes`` that it hands out share the frame's storage.
struct FrameReader {
    /// *Use:* the bytes that are read. *Invariant:* `start <= position <= end`, all within `bytes`.
    private let bytes: Bytes
    private let start: Int
    private let end: Int
    private(set) var position: Int
    /// The limits on counts and lengths.
    let limits: WireLimits

    init(_ bytes: Bytes, limits: WireLimits) {
        self.bytes = bytes
        self.start = bytes.startIndex
        self.end = bytes.endIndex
        self.position = bytes.startIndex
        self.limits = limits
    }

    private init(_ bytes: Bytes, start: Int, limits: WireLimits) {
        self.bytes = bytes
        self.start = start
        self.end = bytes.endIndex
        self.position = bytes.startIndex
        self.limits = limits
    }

    /// Where the next field begins, counted from the first byte of what is decoded.
    var offset: Int { position - start }

    /// How many bytes are left.
    var remaining: Int { end - position }

    /// Reads a little-endian number of a fixed width.
    @inline(__always)
    mutating func fixed<Value: FixedWidthInteger>(
        _ type: Value.Type, _ expected: String
    ) throws(WireError) -> Value {
        let width = MemoryLayout<Value>.size
        guard remaining >= width else {
            throw .truncated(at: end - start, expected: expected)
        }
        let index = position - bytes.startIndex
        position += width
        return bytes.withUnsafeBytes { buffer in
            Value(littleEndian: buffer.loadUnaligned(fromByteOffset: index, as: type))
        }
    }

    /// Cuts out the next `count` bytes; they share the frame's storage.
    mutating func cut(_ count: Int, _ expected: String) throws(WireError) -> Bytes {
        guard count <= remaining else {
            throw .truncated(at: end - start, expected: expected)
        }
        let lower = position
        position += count
        return bytes[lower..<position]
    }

    /// Cuts out all that is left.
    mutating func cutRest() -> Bytes {
        let lower = position
        position = end
        return bytes[lower..<end]
    }

    /// A reader of the next `count` bytes. Its offsets count from the same byte as this reader's.
    mutating func nested(_ count: Int, _ expected: String) throws(WireError) -> FrameReader {
        FrameReader(try cut(count, expected), start: start, limits: limits)
    }

    /// Reads a count, and checks it before any memory is reserved for the elements.
    ///
    /// It refuses a count above `limit`. It also refuses a count that the remaining bytes can't
    /// hold, if each element takes at least `elementBytesMin`.
    mutating func count(
        limit: Int, elementBytesMin: Int = 1, _ expected: String
    ) throws(WireError) -> Int {
        let at = offset
        let count = Int(try fixed(UInt32.self, expected))
        guard count <= limit else {
            throw .limitExceeded(
                at: at, expected: expected, found: UInt64(count), limit: UInt64(limit))
        }
        guard count * elementBytesMin <= remaining else {
            throw .truncated(at: end - start, expected: expected)
        }
        return count
    }

    /// Reads a list of at most `limit` elements. Beforehand it reserves memory for as many as the remaining bytes
    /// could hold, if a value takes a quarter of its memory there.
    mutating func list<Value: WireField>(
        limit: Int, _ expected: String
    ) throws(WireError) -> [Value] {
        let count = try count(limit: limit, expected)
        var values: [Value] = []
        values.reserveCapacity(min(count, 4 * remaining / MemoryLayout<Value>.stride))
        for _ in 0..<count { values.append(try Value(reading: &self, expected)) }
        return values
    }

    /// Skips the extensions that fill the rest.
    ///
    /// - Throws: ``WireError/unsupportedExtension(tag:at:)`` if one of them must be understood:
    ///   this version knows no such extension.
    mutating func skipExtensions() throws(WireError) {
        while try nextExtension() != nil {}
    }

    /// Reads one of the extensions that fill the rest.
    ///
    /// - Parameter known: The tags of extensions that must be understood, and are here.
    /// - Returns: Its tag, and a reader of its body; nil at the end.
    /// - Throws: ``WireError/unsupportedExtension(tag:at:)`` if it must be understood, and is not.
    mutating func nextExtension(
        knowing known: UInt16...
    ) throws(WireError) -> (tag: UInt16, body: FrameReader)? {
        guard remaining > 0 else { return nil }
        let at = offset
        let tag = try fixed(UInt16.self, "an extension's tag")
        let length = Int(try fixed(UInt32.self, "an extension's length"))
        let body = try nested(length, "an extension")
        guard tag < Frame.criticalTagMin || known.contains(tag) else {
            throw .unsupportedExtension(tag: tag, at: at)
        }
        return (tag, body)
    }
}
