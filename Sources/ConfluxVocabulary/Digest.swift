/// A hash of canonical bytes, by which replicas compare their states: XXH64 with seed 0.
///
/// It is the same on every machine and in every process. It detects accidents; it does not
/// withstand attackers who look for collisions.
public struct Digest: RawRepresentable, Hashable, Sendable, CustomStringConvertible {
    /// The hash.
    public let rawValue: UInt64

    /// Makes a digest from its number.
    public init(rawValue: UInt64) {
        self.rawValue = rawValue
    }

    /// Hashes bytes; takes time linear in their count.
    public init(of bytes: some Sequence<UInt8>) {
        var hasher = DigestHasher()
        let isTaken: Void? = bytes.withContiguousStorageIfAvailable {
            hasher.update(UnsafeRawBufferPointer($0))
        }
        if isTaken == nil {
            ContiguousArray(bytes).withUnsafeBytes { hasher.update($0) }
        }
        self = hasher.finish()
    }

    /// 16 lower-case hexadecimal digits.
    public var description: String {
        let digits = String(rawValue, radix: 16)
        return String(repeating: "0", count: 16 - digits.count) + digits
    }
}

/// Makes a ``Digest`` of bytes that arrive piece by piece. The result does not depend on where the
/// pieces are cut.
///
/// XXH64, as its specification states it.
package struct DigestHasher: Sendable {
    private static let prime1: UInt64 = 0x9E37_79B1_85EB_CA87
    private static let prime2: UInt64 = 0xC2B2_AE3D_27D4_EB4F
    private static let prime3: UInt64 = 0x1656_67B1_9E37_79F9
    private static let prime4: UInt64 = 0x85EB_CA77_C2B2_AE63
    private static let prime5: UInt64 = 0x27D4_EB2F_1656_67C5
    private static let stripeBytes = 32

    private var lanes: (UInt64, UInt64, UInt64, UInt64) = (
        prime1 &+ prime2, prime2, 0, 0 &- prime1
    )
    /// What is left of the last piece. *Invariant*: shorter than a stripe.
    private var rest: [UInt8] = []
    /// How many bytes were taken.
    package private(set) var byteCount: UInt64 = 0

    /// Makes a hasher that has taken no bytes.
    package init() {}

    /// Takes the next bytes; takes time linear in their count.
    package mutating func update(_ bytes: UnsafeRawBufferPointer) {
        byteCount += UInt64(bytes.count)
        var bytes = bytes[...]
        if !rest.isEmpty {
            let missing = bytes.prefix(Self.stripeBytes - rest.count)
            rest.append(contentsOf: missing)
            bytes = bytes.dropFirst(missing.count)
            guard rest.count == Self.stripeBytes else { return }
            rest.withUnsafeBytes { take($0) }
            rest.removeAll(keepingCapacity: true)
        }
        let whole = bytes.count / Self.stripeBytes * Self.stripeBytes
        take(UnsafeRawBufferPointer(rebasing: bytes.prefix(whole)))
        rest.append(contentsOf: bytes.dropFirst(whole))
    }

    /// Takes the next bytes.
    package mutating func update(_ bytes: Bytes) {
        bytes.withUnsafeBytes { update($0) }
    }

    /// Takes a number as eight bytes, the lowest byte first.
    package mutating func update(_ number: UInt64) {
        withUnsafeBytes(of: number.littleEndian) { update($0) }
    }

    /// The digest of all bytes that were taken.
    package func finish() -> Digest {
        var hash: UInt64
        if byteCount >= UInt64(Self.stripeBytes) {
            let (a, b, c, d) = lanes
            hash =
                Self.rotate(a, 1) &+ Self.rotate(b, 7) &+ Self.rotate(c, 12) &+ Self.rotate(d, 18)
            for lane in [a, b, c, d] {
                hash = (hash ^ Self.round(0, lane)) &* Self.prime1 &+ Self.prime4
            }
        } else {
            hash = Self.prime5
        }
        hash &+= byteCount
        rest.withUnsafeBytes { raw in
            var position = 0
            while position + 8 <= raw.count {
                let word = UInt64(
                    littleEndian: raw.loadUnaligned(fromByteOffset: position, as: UInt64.self))
                hash =
                    Self.rotate(hash ^ Self.round(0, word), 27) &* Self.prime1 &+ Self.prime4
                position += 8
            }
            if position + 4 <= raw.count {
                let half = UInt32(
                    littleEndian: raw.loadUnaligned(fromByteOffset: position, as: UInt32.self))
                hash =
                    Self.rotate(hash ^ (UInt64(half) &* Self.prime1), 23) &* Self.prime2
                    &+ Self.prime3
                position += 4
            }
            while position < raw.count {
                hash =
                    Self.rotate(hash ^ (UInt64(raw[position]) &* Self.prime5), 11) &* Self.prime1
                position += 1
            }
        }
        hash = (hash ^ (hash >> 33)) &* Self.prime2
        hash = (hash ^ (hash >> 29)) &* Self.prime3
        return Digest(rawValue: hash ^ (hash >> 32))
    }

    /// Takes whole stripes.
    private mutating func take(_ raw: UnsafeRawBufferPointer) {
        func lane(_ offset: Int) -> UInt64 {
            UInt64(littleEndian: raw.loadUnaligned(fromByteOffset: offset, as: UInt64.self))
        }
        var (a, b, c, d) = lanes
        var position = 0
        while position < raw.count {
            a = Self.round(a, lane(position))
            b = Self.round(b, lane(position + 8))
            c = Self.round(c, lane(position + 16))
            d = Self.round(d, lane(position + 24))
            position += Self.stripeBytes
        }
        lanes = (a, b, c, d)
    }

    private static func rotate(_ value: UInt64, _ count: UInt64) -> UInt64 {
        value << count | value >> (64 - count)
    }

    private static func round(_ accumulator: UInt64, _ lane: UInt64) -> UInt64 {
        rotate(accumulator &+ lane &* prime2, 31) &* prime1
    }
}
