import ConfluxVocabulary

/// The entries of a batch that is being built, with room for the batch's head before them. So the batch is made
/// without copying its entries.
///
/// The array is longer than its used part. So an entry is written with one check of the array's
/// uniqueness and one copy, not with an append for each of its fields.
struct EntryBuffer: Sendable {
    /// *Use:* room for the head, the entries, then unused room. *Invariant:* `end <= storage.count`.
    private var storage: [UInt8] = []
    private var end = Self.headRoom

    /// How many bytes the entries have.
    var byteCount: Int { end - Self.headRoom }

    /// The room before the entries. It is enough for the usual head of few rows; a longer one moves the entries.
    private static let headRoom = 128

    /// The most bytes of an entry besides its payload.
    static let headBytesMax = 2 * 5

    /// Writes an entry.
    @inline(__always)
    mutating func append(row: Int, payload: UnsafeRawBufferPointer) {
        let needed = end + Self.headBytesMax + payload.count
        if needed > storage.count { grow(to: needed) }
        let start = end
        end = storage.withUnsafeMutableBytes { buffer in
            var position = start
            Self.writeVarint(row, to: buffer, at: &position)
            Self.writeVarint(payload.count, to: buffer, at: &position)
            if let source = payload.baseAddress, let target = buffer.baseAddress {
                (target + position).copyMemory(from: source, byteCount: payload.count)
            }
            return position + payload.count
        }
    }

    /// Writes a batch's head before the entries, and leaves nothing here.
    ///
    /// - Parameter head: The head.
    /// - Returns: The head and the entries, in the memory in which the entries were gathered.
    mutating func take(behind head: Bytes) -> Bytes {
        var start = Self.headRoom - head.count
        if start >= 0 {
            storage.withUnsafeMutableBytes { $0[start...].copyBytes(from: head) }
        } else {
            storage.replaceSubrange(..<Self.headRoom, with: head)
            end -= start
            start = 0
        }
        defer { self = EntryBuffer() }
        return storage[start..<end]
    }

    private mutating func grow(to needed: Int) {
        let size = max(needed, 2 * storage.count, 2 * Self.headRoom)
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
