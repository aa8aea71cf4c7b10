import ConfluxVocabulary

/// A message in gRPC's framing: a byte that says whether it is compressed, its size in four bytes,
/// big-endian, and the message.
enum GRPCFrame {
    static let prefixBytes = 5

    static func encode(_ message: [UInt8]) -> [UInt8] {
        var frame: [UInt8] = [0]
        frame.reserveCapacity(prefixBytes + message.count)
        for shift in [24, 16, 8, 0] {
            frame.append(UInt8(truncatingIfNeeded: message.count >> shift))
        }
        frame += message
        return frame
    }

    /// The first message; nil if it is incomplete, or compressed, which was not requested.
    static func decode(_ bytes: [UInt8]) -> Bytes? {
        guard bytes.count >= prefixBytes, bytes[0] == 0 else { return nil }
        let size = bytes[1..<prefixBytes].reduce(0) { $0 << 8 | Int($1) }
        guard bytes.count >= prefixBytes + size else { return nil }
        return bytes[prefixBytes..<prefixBytes + size]
    }
}
