import Foundation

/// The compact coding of a value that is only bytes, without a tape: one copy for each direction.
///
/// *Invariant*: it writes what ``CompactWriter`` writes, and reads nothing that ``CompactReader`` refuses. If
/// it reads nothing, the reader reports why.
enum CompactBytes {
    private static let head = CompactFormat.Kind.bytes.rawValue << 4
    /// From this count on, the rest of the count follows the head.
    private static let longCount = 15
    /// The most bytes before the value's own: format, head, count.
    private static let prefixBytesMax = 2 + 10

    static func write(_ data: Data) -> [UInt8] {
        [UInt8](unsafeUninitializedCapacity: prefixBytesMax + data.count) { buffer, position in
            position = write(data, to: UnsafeMutableRawBufferPointer(buffer)) ?? 0
        }
    }

    /// - Returns: How many bytes were written; nil if the buffer may be too small.
    static func write(_ data: Data, to buffer: UnsafeMutableRawBufferPointer) -> Int? {
        guard prefixBytesMax + data.count <= buffer.count else { return nil }
        buffer[0] = CompactFormat.format
        buffer[1] = head | UInt8(min(data.count, longCount))
        var position = 2
        if data.count >= longCount {
            var rest = data.count - longCount
            while rest >= 0x80 {
                buffer[position] = UInt8(truncatingIfNeeded: rest) | 0x80
                position += 1
                rest >>= 7
            }
            buffer[position] = UInt8(rest)
            position += 1
        }
        data.withUnsafeBytes { bytes in
            UnsafeMutableRawBufferPointer(rebasing: buffer[position...]).copyMemory(from: bytes)
        }
        return position + data.count
    }

    /// - Returns: The bytes; nil if the payload is something else, or broken.
    static func read(_ bytes: UnsafeRawBufferPointer) -> Data? {
        guard bytes.count >= 2, bytes[0] == CompactFormat.format, bytes[1] & 0xF0 == head else {
            return nil
        }
        var count = Int(bytes[1] & 0xF)
        var position = 2
        if count == longCount {
            var shift = 0
            while true {
                // Longer counts are rare, or not in their shortest form.
                guard position < bytes.count, shift <= 28 else { return nil }
                let next = bytes[position]
                position += 1
                count += Int(next & 0x7F) << shift
                shift += 7
                if next < 0x80 {
                    if next == 0, shift > 7 { return nil }
                    break
                }
            }
        }
        guard bytes.count - position == count else { return nil }
        return Data(UnsafeRawBufferPointer(rebasing: bytes[position...]))
    }
}
