import ConfluxVocabulary

/// Reads Protocol Buffers messages field by field. Bytes share their storage with the message.
struct ProtobufReader {
    /// The bytes are not a valid message.
    struct Malformed: Error {}

    enum Value {
        case number(UInt64)
        case bytes(Bytes)
        /// A wire type that none of the fields uses.
        case other
    }

    private var rest: Bytes

    init(_ message: Bytes) {
        rest = message
    }

    /// The next field; nil at the end.
    mutating func next() throws(Malformed) -> (field: Int, value: Value)? {
        guard !rest.isEmpty else { return nil }
        let tag = try varint()
        let field = Int(truncatingIfNeeded: tag >> 3)
        switch tag & 7 {
        case 0: return (field, .number(try varint()))
        case 1:
            _ = try take(8)
            return (field, .other)
        case 2:
            let count = try varint()
            guard count <= UInt64(rest.count) else { throw Malformed() }
            return (field, .bytes(try take(Int(count))))
        case 5:
            _ = try take(4)
            return (field, .other)
        default: throw Malformed()
        }
    }

    private mutating func take(_ count: Int) throws(Malformed) -> Bytes {
        guard rest.count >= count else { throw Malformed() }
        defer { rest = rest.dropFirst(count) }
        return rest.prefix(count)
    }

    private mutating func varint() throws(Malformed) -> UInt64 {
        var number: UInt64 = 0
        var shift: UInt64 = 0
        while let byte = rest.popFirst() {
            guard shift < 64 else { throw Malformed() }
            number |= UInt64(byte & 0x7F) << shift
            if byte < 0x80 { return number }
            shift += 7
        }
        throw Malformed()
    }
}
