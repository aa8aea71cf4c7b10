import ConfluxVocabulary

/// Writes Protocol Buffers messages, in the few wire types that etcd's interface needs.
struct ProtobufWriter {
    private(set) var bytes: [UInt8]

    init(reservingBytes count: Int = 256) {
        bytes = []
        bytes.reserveCapacity(count)
    }

    /// Writes a number. A 0 is omitted, since it is the default value.
    mutating func put(_ number: UInt64, as field: Int) {
        guard number != 0 else { return }
        varint(UInt64(field) << 3)
        varint(number)
    }

    mutating func put(_ flag: Bool, as field: Int) { put(flag ? 1 : 0, as: field) }

    /// Writes bytes, even if they are empty, so that a member of a oneof is present.
    mutating func put(_ value: some Collection<UInt8>, as field: Int) {
        varint(UInt64(field) << 3 | 2)
        varint(UInt64(value.count))
        bytes.append(contentsOf: value)
    }

    mutating func put(_ text: String, as field: Int) { put(Array(text.utf8), as: field) }

    /// Writes a nested message.
    mutating func put(_ field: Int, _ body: (inout ProtobufWriter) -> Void) {
        var inner = ProtobufWriter()
        body(&inner)
        put(inner.bytes, as: field)
    }

    /// Writes two byte fields of a message that is nested two levels deep, with a single copy.
    mutating func put(
        _ field: Int, _ inner: Int, _ first: [UInt8], as one: Int, _ second: Bytes, as two: Int
    ) {
        let size =
            Self.size(first.count, as: one) + Self.size(second.count, as: two)
        varint(UInt64(field) << 3 | 2)
        varint(UInt64(Self.size(size, as: inner)))
        varint(UInt64(inner) << 3 | 2)
        varint(UInt64(size))
        put(first, as: one)
        put(second, as: two)
    }

    /// The encoded size of a field with this many bytes.
    private static func size(_ count: Int, as field: Int) -> Int {
        width(UInt64(field) << 3 | 2) + width(UInt64(count)) + count
    }

    private static func width(_ number: UInt64) -> Int {
        max(1, (64 - number.leadingZeroBitCount + 6) / 7)
    }

    private mutating func varint(_ number: UInt64) {
        var rest = number
        while rest >= 0x80 {
            bytes.append(UInt8(truncatingIfNeeded: rest) | 0x80)
            rest >>= 7
        }
        bytes.append(UInt8(rest))
    }
}
