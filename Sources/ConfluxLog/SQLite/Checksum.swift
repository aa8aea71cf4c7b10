import ConfluxVocabulary

/// The 64-bit checksum that tells an intact logged commit from a damaged one.
///
/// It is XXH64, a public hash function that many tools compute. The input is the commit's bytes. The seed is
/// the XXH64 (seed 0) of first number, last number and epoch, 8 bytes each, little-endian. It detects
/// accidents, not forgeries.
enum Checksum {
    static func of(
        first: UInt64, last: UInt64, epoch: UInt64, bytes: UnsafeRawBufferPointer
    ) -> UInt64 {
        let place = withUnsafeBytes(
            of: (first.littleEndian, last.littleEndian, epoch.littleEndian)
        ) { hash($0, seed: 0) }
        return hash(bytes, seed: place)
    }

    static func of(_ commit: LoggedCommit) -> UInt64 {
        commit.bytes.withUnsafeBytes { bytes in
            of(
                first: commit.first.rawValue, last: commit.last.rawValue,
                epoch: commit.epoch.rawValue, bytes: bytes)
        }
    }

    private static let prime1: UInt64 = 0x9E37_79B1_85EB_CA87
    private static let prime2: UInt64 = 0xC2B2_AE3D_27D4_EB4F
    private static let prime3: UInt64 = 0x1656_67B1_9E37_79F9
    private static let prime4: UInt64 = 0x85EB_CA77_C2B2_AE63
    private static let prime5: UInt64 = 0x27D4_EB2F_1656_67C5

    /// Computes XXH64.
    static func hash(_ bytes: UnsafeRawBufferPointer, seed: UInt64) -> UInt64 {
        var offset = 0
        var result: UInt64
        if bytes.count >= 32 {
            var lane1 = seed &+ prime1 &+ prime2
            var lane2 = seed &+ prime2
            var lane3 = seed
            var lane4 = seed &- prime1
            while bytes.count - offset >= 32 {
                lane1 = round(lane1, word(bytes, offset))
                lane2 = round(lane2, word(bytes, offset + 8))
                lane3 = round(lane3, word(bytes, offset + 16))
                lane4 = round(lane4, word(bytes, offset + 24))
                offset += 32
            }
            result =
                rotated(lane1, 1) &+ rotated(lane2, 7) &+ rotated(lane3, 12) &+ rotated(lane4, 18)
            for lane in [lane1, lane2, lane3, lane4] {
                result = (result ^ round(0, lane)) &* prime1 &+ prime4
            }
        } else {
            result = seed &+ prime5
        }
        result &+= UInt64(bytes.count)
        while bytes.count - offset >= 8 {
            result = rotated(result ^ round(0, word(bytes, offset)), 27) &* prime1 &+ prime4
            offset += 8
        }
        if bytes.count - offset >= 4 {
            let half = UInt64(
                UInt32(littleEndian: bytes.loadUnaligned(fromByteOffset: offset, as: UInt32.self)))
            result = rotated(result ^ (half &* prime1), 23) &* prime2 &+ prime3
            offset += 4
        }
        while offset < bytes.count {
            result = rotated(result ^ (UInt64(bytes[offset]) &* prime5), 11) &* prime1
            offset += 1
        }
        result = (result ^ (result >> 33)) &* prime2
        result = (result ^ (result >> 29)) &* prime3
        return result ^ (result >> 32)
    }

    private static func word(_ bytes: UnsafeRawBufferPointer, _ offset: Int) -> UInt64 {
        UInt64(littleEndian: bytes.loadUnaligned(fromByteOffset: offset, as: UInt64.self))
    }

    private static func rotated(_ value: UInt64, _ count: UInt64) -> UInt64 {
        (value &<< count) | (value &>> (64 &- count))
    }

    private static func round(_ lane: UInt64, _ input: UInt64) -> UInt64 {
        rotated(lane &+ input &* prime2, 31) &* prime1
    }
}
