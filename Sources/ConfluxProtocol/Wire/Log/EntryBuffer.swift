import ConfluxVocabulary

/// The entries of a batch that is being built.
///
/// The array is longer than its used part. So an entry is written with one check of the array's
/// uniqueness and one copy, not with an append for each of its fields.
struct EntryBuffer: Sendable {
    /// *Use:* the entries, then unused room. *Invariant:* `used <= storage.count`.
    private var storage: [UInt8] = []
    private(set) var used = 0

    /// The entries.
    var bytes: Bytes { storage[..<used] }

    /// The most bytes of an entry besides its payload.
    static let headBytesMax = 2 * 5

    /// Writes an entry.
    @inline(__always)
    mutating func append(row: Int, payload: UnsafeRawBufferPointer) {
        let needed = used + Self.headBytesMax + payload.count
        if needed > storage.count { grow(to: needed) }
        let start = used
        used = storage.withUnsafeMutableBytes { buffer in
            var position = start
            Self.writeVarint(row, to: buffer, at: &position)
            Self.writeVarint(payload.count, to: buffer, at: &position)
            if let source = payload.baseAddress, let target = buffer.baseAddress {
                (target + position).copyMemory(from: source, byteCount: payload.count)
            }
            return position + payload.count
        }
    }

    /// Forgets the entries, and keeps the room for them.
    mutating func clear() {
        used = 0
    }

    private mutating func grow(to needed: Int) {
        let size = max(needed, 2 * storage.count, 1_024)
        storage.append(contentsOf: repeatElement(0, count: size - storage.count))
    }

    /// Writes a number of at most 32 bits in groups of 7, the lowest first.
    @inline(__always)
    private static func writeVarint(
        _ value: Int, to buffer: UnsafeMutableRawBufferPointer, at position: inout Int
    ) {
        var rest = value
        while rest >= 0x80 {
            buffer[position] = UInt8(truncatingIfNeeded: rest) | 0x80
            position += 1
            rest >>= 7
        }
        buffer[position] = UInt8(truncatingIfNeeded: rest)
        position += 1
    }

    /// How many bytes a number takes in groups of 7.
    @inline(__always)
    static func varintBytes(_ value: Int) -> Int {
        var bytes = 1
        var rest = value >> 7
        while rest > 0 {
            bytes += 1
            rest >>= 7
        }
        return bytes
    }
}
