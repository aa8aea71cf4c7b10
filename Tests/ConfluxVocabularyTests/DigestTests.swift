import ConfluxVocabulary
import Testing

/// The expected numbers are from XXH64's specification and its reference program.
struct DigestTests {
    @Test func `known texts have their known digests`() {
        #expect("\(Digest(of: "".utf8))" == "ef46db3751d8e999")
        #expect("\(Digest(of: "a".utf8))" == "d24ec4f1a98c6e5b")
        #expect("\(Digest(of: "abc".utf8))" == "44bc2cf5ad770999")
        #expect(
            "\(Digest(of: "The quick brown fox jumps over the lazy dog".utf8))"
                == "0b242d361fda71bc")
    }

    @Test(arguments: [1, 3, 7, 31, 32, 33, 64, 100])
    func `bytes have the same digest however they are split`(size: Int) {
        let bytes = (0..<1_000).map { UInt8(truncatingIfNeeded: $0 * 7) }
        var hasher = DigestHasher()
        var rest = bytes[...]
        while !rest.isEmpty {
            hasher.update(rest.prefix(size))
            rest = rest.dropFirst(size)
        }
        #expect(hasher.finish() == Digest(of: bytes))
        #expect(hasher.byteCount == 1_000)
    }

    @Test func `a number is hashed as its eight bytes`() {
        var hasher = DigestHasher()
        hasher.update(UInt64(0x0102_0304_0506_0708))
        #expect(hasher.finish() == Digest(of: [8, 7, 6, 5, 4, 3, 2, 1] as [UInt8]))
    }
}
