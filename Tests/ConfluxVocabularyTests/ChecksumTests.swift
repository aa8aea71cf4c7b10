import ConfluxVocabulary
import Testing

/// The expected numbers are from XXH64's specification and its reference program.
struct ChecksumTests {
    @Test func `known texts have their known checksums`() {
        #expect(Checksum.text(Checksum.hash("")) == "ef46db3751d8e999")
        #expect(Checksum.text(Checksum.hash("a")) == "d24ec4f1a98c6e5b")
        #expect(Checksum.text(Checksum.hash("abc")) == "44bc2cf5ad770999")
        #expect(
            Checksum.text(Checksum.hash("The quick brown fox jumps over the lazy dog"))
                == "0b242d361fda71bc")
        #expect(Checksum.text(7) == "0000000000000007")
    }

    @Test(arguments: [1, 3, 7, 31, 32, 33, 64, 100])
    func `bytes have the same checksum however they are split`(size: Int) {
        let bytes = (0..<1_000).map { UInt8(truncatingIfNeeded: $0 * 7) }
        for seed in [0, 1, UInt64.max] {
            var hasher = ChecksumHasher(seed: seed)
            var rest = bytes[...]
            while !rest.isEmpty {
                hasher.update(rest.prefix(size))
                rest = rest.dropFirst(size)
            }
            #expect(hasher.finish() == bytes.withUnsafeBytes { Checksum.hash($0, seed: seed) })
        }
    }

    @Test func `a number is taken as its eight bytes`() {
        var hasher = ChecksumHasher()
        hasher.update(UInt64(0x0102_0304_0506_0708))
        #expect(hasher.finish() == Checksum.hash([8, 7, 6, 5, 4, 3, 2, 1]))
    }

    @Test func `every length and every seed count`() {
        var sums: Set<UInt64> = []
        for count in 0..<100 {
            let bytes = [UInt8](repeating: 0, count: count)
            for seed in 0..<4 as Range<UInt64> {
                sums.insert(bytes.withUnsafeBytes { Checksum.hash($0, seed: seed) })
            }
        }
        #expect(sums.count == 400)
    }
}
