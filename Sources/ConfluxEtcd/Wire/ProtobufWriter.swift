import ConfluxVocabulary

/// Writes messages of Protocol Buffers: the few forms that etcd's interface has.
struct ProtobufWriter {
    private(set) var bytes: [UInt8]

    init(reservingBytes count: Int = 256) {
        bytes = []
        bytes.reserveCapacity(count)
    }

    /// A number; nothing for 0, which is what a field has that is not there.
    mutating func put(_ number: UInt64, as field: Int) {
        guard number != 0 else { return }
        varint(UInt64(field) << 3)
        varint(number)
    }

    mutating func put(_ flag: Bool, as field: Int) { put(flag ? 1 : 0, as: field) }

    /// Bytes, also if there are none: a member of a choice is there then.
    mutating func put(_ value: some Collection<UInt8>, as field: Int) {
        varint(UInt64(field) << 3 | 2)
        varint(UInt64(value.count))
        bytes.append(contentsOf: value)
    }

    mutating func put(_ text: String, as field: Int) { put(Array(text.utf8), as: field) }

    /// A message within this one.
    mutating func put(_ field: Int, _ body: (inout ProtobufWriter) -> Void) {
        var inner = ProtobufWriter()
        body(&inner)
        put(inner.bytes, as: field)
    }

    /// Two members of a message that is within one, which is within this one: bytes, in one copy.
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

    /// How many bytes so many bytes take as a field.
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
