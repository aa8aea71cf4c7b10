/// A hash of canonical bytes, by which replicas compare their states: XXH64 with seed 0.
///
/// The same on every machine and in every process. It finds accidents; it isn't made to withstand
/// those who look for collisions.
public struct Digest: RawRepresentable, Hashable, Sendable, CustomStringConvertible {
    /// The hash.
    public let rawValue: UInt64

    /// Makes a digest from its number.
    public init(rawValue: UInt64) {
        self.rawValue = rawValue
    }

    /// Hashes bytes; takes time linear in their count.
    public init(of bytes: some Sequence<UInt8>) {
        let hash = bytes.withContiguousStorageIfAvailable { XXH64.hash($0) }
        rawValue = hash ?? ContiguousArray(bytes).withUnsafeBufferPointer { XXH64.hash($0) }
    }

    /// 16 lower-case hexadecimal digits.
    public var description: String {
        let digits = String(rawValue, radix: 16)
        return String(repeating: "0", count: 16 - digits.count) + digits
    }
}

/// XXH64, as its specification states it.
private enum XXH64 {
    private static let prime1: UInt64 = 0x9E37_79B1_85EB_CA87
    private static let prime2: UInt64 = 0xC2B2_AE3D_27D4_EB4F
    private static let prime3: UInt64 = 0x1656_67B1_9E37_79F9
    private static let prime4: UInt64 = 0x85EB_CA77_C2B2_AE63
    private static let prime5: UInt64 = 0x27D4_EB2F_1656_67C5

    static func hash(_ input: UnsafeBufferPointer<UInt8>) -> UInt64 {
        let raw = UnsafeRawBufferPointer(input)
        var position = 0
        func lane(_ offset: Int) -> UInt64 {
            UInt64(littleEndian: raw.loadUnaligned(fromByteOffset: offset, as: UInt64.self))
        }
        var hash: UInt64
        if input.count >= 32 {
            var a = prime1 &+ prime2
            var b = prime2
            var c: UInt64 = 0
            var d = 0 &- prime1
            while position + 32 <= input.count {
                a = round(a, lane(position))
                b = round(b, lane(position + 8))
                c = round(c, lane(position + 16))
                d = round(d, lane(position + 24))
                position += 32
            }
            hash = rotate(a, 1) &+ rotate(b, 7) &+ rotate(c, 12) &+ rotate(d, 18)
            for accumulator in [a, b, c, d] {
                hash = (hash ^ round(0, accumulator)) &* prime1 &+ prime4
            }
        } else {
            hash = prime5
        }
        hash &+= UInt64(input.count)
        while position + 8 <= input.count {
            hash = rotate(hash ^ round(0, lane(position)), 27) &* prime1 &+ prime4
            position += 8
        }
        if position + 4 <= input.count {
            let half = raw.loadUnaligned(fromByteOffset: position, as: UInt32.self)
            hash =
                rotate(hash ^ (UInt64(UInt32(littleEndian: half)) &* prime1), 23) &* prime2
                &+ prime3
            position += 4
        }
        while position < input.count {
            hash = rotate(hash ^ (UInt64(input[position]) &* prime5), 11) &* prime1
            position += 1
        }
        hash = (hash ^ (hash >> 33)) &* prime2
        hash = (hash ^ (hash >> 29)) &* prime3
        return hash ^ (hash >> 32)
    }

    private static func rotate(_ value: UInt64, _ count: UInt64) -> UInt64 {
        value << count | value >> (64 - count)
    }

    private static func round(_ accumulator: UInt64, _ lane: UInt64) -> UInt64 {
        rotate(accumulator &+ lane &* prime2, 31) &* prime1
    }
}
