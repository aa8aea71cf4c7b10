import ConfluxHashing
import ConfluxVocabulary
import Testing

/// The expected digests were computed by Python's `hashlib.blake2b`.
struct DigestTests {
    @Test(arguments: [
        ("", "0e5751c026e543b2e8ab2eb06099daa1d1e5df47778f7787faab45cdf12fe3a8"),
        ("a", "8928aae63c84d87ea098564d1e03ad813f107add474e56aedd286349c0c03ea4"),
        ("abc", "bddd813c634239723171ef3fee98579b94964e3bb1cb3e427262c8c068d52319"),
        (
            "Nobody inspects the spammish repetition",
            "45dbf19fc9b5c686f03e29de96228a636e9799e86571f8f58da1bf0a3a539986"
        ),
    ])
    func `a digest is BLAKE2b with 32 bytes`(text: String, expected: String) {
        let digest = Digest(of: text.utf8)
        #expect(digest.description == expected)
        #expect(Digest(expected) == digest)
        #expect(digest.bytes.withUnsafeBytes { Digest($0) } == digest)
        #expect(Digest(of: AnySequence(text.utf8)) == digest)
    }

    @Test func `another key gives another digest`() {
        let key = Array("key".utf8)
        let digest = key.withUnsafeBytes { key in
            Array("abc".utf8).withUnsafeBytes { Digest(hashing: $0, key: key) }
        }
        #expect(
            "\(digest)" == "0330531d097355a3f72e80d55c1245ccf79f1704431c6e3887938320442c23c0")
    }

    @Test(arguments: [1, 3, 7, 127, 128, 129, 1_000, 4_096])
    func `bytes have the same digest however they are split`(size: Int) {
        let bytes = (0..<4_000).map { UInt8(truncatingIfNeeded: $0 &* 7) }
        var hasher = DigestHasher()
        var rest = bytes[...]
        while !rest.isEmpty {
            hasher.update(rest.prefix(size))
            rest = rest.dropFirst(size)
        }
        #expect(hasher.finish() == Digest(of: bytes))
        // It can be asked again, and go on.
        #expect(hasher.finish() == Digest(of: bytes))
        hasher.update([1])
        #expect(hasher.finish() == Digest(of: bytes + [1]))
        #expect(hasher.byteCount == 4_001)
    }

    @Test func `a copy of a hasher goes on by itself`() {
        var first = DigestHasher()
        first.update([1, 2])
        var second = first
        first.update([3])
        second.update([4])
        #expect(first.finish() == Digest(of: [1, 2, 3]))
        #expect(second.finish() == Digest(of: [1, 2, 4]))
    }

    @Test func `nothing has the digest of no bytes`() {
        var hasher = DigestHasher()
        #expect(hasher.finish() == Digest(of: []))
        hasher.update([])
        #expect(hasher.finish() == Digest(of: []))
    }

    @Test func `a number is hashed as its eight bytes`() {
        var hasher = DigestHasher()
        hasher.update(UInt64(0x0102_0304_0506_0708))
        #expect(hasher.finish() == Digest(of: [8, 7, 6, 5, 4, 3, 2, 1]))
    }

    @Test func `every bit changes the digest`() {
        let bytes = [UInt8](repeating: 7, count: 100)
        var digests: Set<Digest> = [Digest(of: bytes)]
        for index in bytes.indices {
            for bit in 0..<8 {
                var changed = bytes
                changed[index] ^= 1 << bit
                digests.insert(Digest(of: changed))
            }
        }
        #expect(digests.count == 801)
    }

    @Test(arguments: [
        "", "6", String(repeating: "0", count: 63), String(repeating: "0", count: 65),
        String(repeating: "g", count: 64), String(repeating: "é", count: 32),
    ])
    func `other texts are no digest`(text: String) {
        #expect(Digest(text) == nil)
    }

    /// Two states whose checksums were made equal, which takes a moment. A vote that binds no more than a checksum
    /// and a length would accept one for the other.
    @Test(arguments: [
        (
            #"{"alice":1000,"note":"paid by the month I_5(d-b1 of the company"}"#,
            #"{"alice":9991,"note":"paid by the month adacAaaa of the company"}"#
        ),
        (
            #"["alice has 1000 euros, which is paid byLvVnjnVZ at the end of May"]"#,
            #"["alice has 9888 euros, which is paid by00aa000a at the end of May"]"#
        ),
    ])
    func `states with the same checksum and length have different digests`(
        state: String, forged: String
    ) {
        #expect(Checksum.hash(state) == Checksum.hash(forged))
        #expect(state.utf8.count == forged.utf8.count)
        #expect(Digest(of: state.utf8) != Digest(of: forged.utf8))
    }
}
