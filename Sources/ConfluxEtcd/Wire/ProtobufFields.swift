import ConfluxVocabulary

/// The fields of a Protocol Buffers message. Bytes share their storage with the message.
struct ProtobufFields {
    /// The bytes are not a valid message.
    struct Malformed: Error {}

    /// Each field is a number or bytes. Others, of wire types that no field uses, are left out.
    private var fields: [(id: UInt64, number: UInt64, bytes: Bytes?)] = []

    init(_ message: Bytes) throws(Malformed) {
        var rest = message
        while !rest.isEmpty {
            let tag = try Self.varint(&rest)
            switch tag & 7 {
            case 0: fields.append((tag >> 3, try Self.varint(&rest), nil))
            case 1: _ = try Self.take(8, &rest)
            case 2:
                let count = try Self.varint(&rest)
                fields.append((tag >> 3, 0, try Self.take(count, &rest)))
            case 5: _ = try Self.take(4, &rest)
            default: throw Malformed()
            }
        }
    }

    /// Whether there is a field.
    func has(_ id: UInt64) -> Bool { fields.contains { $0.id == id } }

    /// The last number of a field; 0 if there is none.
    func number(_ id: UInt64) -> UInt64 {
        fields.last { $0.id == id && $0.bytes == nil }?.number ?? 0
    }

    /// The bytes of all fields with a number.
    func all(_ id: UInt64) -> [Bytes] {
        fields.compactMap { $0.id == id ? $0.bytes : nil }
    }

    /// The last bytes of a field; none if there is no such field, which is an empty message.
    func bytes(_ id: UInt64) -> Bytes { all(id).last ?? [] }

    /// The last message of a field.
    func message(_ id: UInt64) throws(Malformed) -> ProtobufFields {
        try ProtobufFields(bytes(id))
    }

    private static func take(_ count: UInt64, _ rest: inout Bytes) throws(Malformed) -> Bytes {
        guard count <= UInt64(rest.count) else { throw Malformed() }
        defer { rest = rest.dropFirst(Int(count)) }
        return rest.prefix(Int(count))
    }

    private static func varint(_ rest: inout Bytes) throws(Malformed) -> UInt64 {
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
