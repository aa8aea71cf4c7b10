/// The 64-bit hash by which a program recognises its own bytes again: XXH64, which many tools compute.
///
/// It detects accidents, such as a flipped bit. It withstands nobody who looks for collisions: two texts with the
/// same checksum are found in a moment. So it is only for bytes that this program wrote and reads back. What binds
/// the content of others has a ``Digest``.
package enum Checksum {
    /// Computes the checksum of bytes; takes time linear in their count.
    package static func hash(_ bytes: UnsafeRawBufferPointer, seed: UInt64 = 0) -> UInt64 {
        var lanes = ChecksumLanes(seed: seed)
        let whole = bytes.count / ChecksumLanes.stripeBytes * ChecksumLanes.stripeBytes
        lanes.take(UnsafeRawBufferPointer(rebasing: bytes[..<whole]))
        return lanes.finish(
            UnsafeRawBufferPointer(rebasing: bytes[whole...]), byteCount: UInt64(bytes.count))
    }

    /// Computes the checksum of bytes, with the seed 0.
    package static func hash(_ bytes: Bytes) -> UInt64 { bytes.withUnsafeBytes { hash($0) } }

    /// Computes the checksum of a text's UTF-8 bytes, with the seed 0.
    package static func hash(_ text: String) -> UInt64 {
        var text = text
        return text.withUTF8 { hash(UnsafeRawBufferPointer($0)) }
    }

    /// A checksum as 16 lower-case hexadecimal digits.
    package static func text(_ checksum: UInt64) -> String {
        let digits = String(checksum, radix: 16)
        return String(repeating: "0", count: 16 - digits.count) + digits
    }
}

/// Computes a ``Checksum`` of bytes that arrive piece by piece. The result does not depend on where the pieces are
/// cut.
package struct ChecksumHasher: Sendable {
    private var lanes: ChecksumLanes
    /// What is left of the last piece. *Invariant*: shorter than a stripe.
    private var rest: [UInt8] = []
    private var byteCount: UInt64 = 0

    /// Makes a hasher that has taken no bytes.
    package init(seed: UInt64 = 0) {
        lanes = ChecksumLanes(seed: seed)
    }

    /// Takes the next bytes; takes time linear in their count.
    package mutating func update(_ bytes: UnsafeRawBufferPointer) {
        byteCount += UInt64(bytes.count)
        var bytes = bytes[...]
        if !rest.isEmpty {
            let missing = bytes.prefix(ChecksumLanes.stripeBytes - rest.count)
            rest.append(contentsOf: missing)
            bytes = bytes.dropFirst(missing.count)
            guard rest.count == ChecksumLanes.stripeBytes else { return }
            rest.withUnsafeBytes { lanes.take($0) }
            rest.removeAll(keepingCapacity: true)
        }
        let whole = bytes.count / ChecksumLanes.stripeBytes * ChecksumLanes.stripeBytes
        lanes.take(UnsafeRawBufferPointer(rebasing: bytes.prefix(whole)))
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

    /// The checksum of all bytes that were taken.
    package func finish() -> UInt64 {
        rest.withUnsafeBytes { lanes.finish($0, byteCount: byteCount) }
    }
}

/// The state of XXH64, as its specification states it: four lanes, each of which takes eight bytes of every stripe.
private struct ChecksumLanes: Sendable {
    static let stripeBytes = 32
    private static let prime1: UInt64 = 0x9E37_79B1_85EB_CA87
    private static let prime2: UInt64 = 0xC2B2_AE3D_27D4_EB4F
    private static let prime3: UInt64 = 0x1656_67B1_9E37_79F9
    private static let prime4: UInt64 = 0x85EB_CA77_C2B2_AE63
    private static let prime5: UInt64 = 0x27D4_EB2F_1656_67C5

    private let seed: UInt64
    private var lanes: (UInt64, UInt64, UInt64, UInt64)

    init(seed: UInt64) {
        self.seed = seed
        lanes = (
            seed &+ Self.prime1 &+ Self.prime2, seed &+ Self.prime2, seed, seed &- Self.prime1
        )
    }

    /// Takes whole stripes.
    mutating func take(_ raw: UnsafeRawBufferPointer) {
        func word(_ offset: Int) -> UInt64 {
            UInt64(littleEndian: raw.loadUnaligned(fromByteOffset: offset, as: UInt64.self))
        }
        var (a, b, c, d) = lanes
        var position = 0
        while position < raw.count {
            a = Self.round(a, word(position))
            b = Self.round(b, word(position + 8))
            c = Self.round(c, word(position + 16))
            d = Self.round(d, word(position + 24))
            position += Self.stripeBytes
        }
        lanes = (a, b, c, d)
    }

    /// Takes what is left, and ends.
    ///
    /// - Parameters:
    ///   - rest: The bytes after the last whole stripe.
    ///   - byteCount: How many bytes there are in all.
    /// - Returns: The hash.
    func finish(_ rest: UnsafeRawBufferPointer, byteCount: UInt64) -> UInt64 {
        var hash: UInt64
        if byteCount >= UInt64(Self.stripeBytes) {
            let (a, b, c, d) = lanes
            hash =
                Self.rotate(a, 1) &+ Self.rotate(b, 7) &+ Self.rotate(c, 12) &+ Self.rotate(d, 18)
            hash = Self.merge(hash, a)
            hash = Self.merge(hash, b)
            hash = Self.merge(hash, c)
            hash = Self.merge(hash, d)
        } else {
            hash = seed &+ Self.prime5
        }
        hash &+= byteCount
        var position = 0
        while position + 8 <= rest.count {
            let word = UInt64(
                littleEndian: rest.loadUnaligned(fromByteOffset: position, as: UInt64.self))
            hash = Self.rotate(hash ^ Self.round(0, word), 27) &* Self.prime1 &+ Self.prime4
            position += 8
        }
        if position + 4 <= rest.count {
            let half = UInt32(
                littleEndian: rest.loadUnaligned(fromByteOffset: position, as: UInt32.self))
            hash =
                Self.rotate(hash ^ (UInt64(half) &* Self.prime1), 23) &* Self.prime2 &+ Self.prime3
            position += 4
        }
        while position < rest.count {
            hash = Self.rotate(hash ^ (UInt64(rest[position]) &* Self.prime5), 11) &* Self.prime1
            position += 1
        }
        hash = (hash ^ (hash >> 33)) &* Self.prime2
        hash = (hash ^ (hash >> 29)) &* Self.prime3
        return hash ^ (hash >> 32)
    }

    private static func merge(_ hash: UInt64, _ lane: UInt64) -> UInt64 {
        (hash ^ round(0, lane)) &* prime1 &+ prime4
    }

    private static func rotate(_ value: UInt64, _ count: UInt64) -> UInt64 {
        (value &<< count) | (value &>> (64 &- count))
    }

    private static func round(_ lane: UInt64, _ word: UInt64) -> UInt64 {
        rotate(lane &+ word &* prime2, 31) &* prime1
    }
}
