import Testing

@testable import ConfluxLog

@Suite struct ChecksumTests {
    private func hash(_ text: String, seed: UInt64 = 0) -> UInt64 {
        Array(text.utf8).withUnsafeBytes { Checksum.hash($0, seed: seed) }
    }

    @Test func `known texts have the published hashes`() {
        #expect(hash("") == 0xEF46_DB37_51D8_E999)
        #expect(hash("a") == 0xD24E_C4F1_A98C_6E5B)
        #expect(hash("abc") == 0x44BC_2CF5_AD77_0999)
        #expect(hash("Nobody inspects the spammish repetition") == 0xFBCE_A83C_8A37_8BF1)
    }

    @Test func `every number and every byte counts`() {
        let bytes = [UInt8](repeating: 7, count: 77)
        func sum(_ first: UInt64, _ last: UInt64, _ epoch: UInt64, _ bytes: [UInt8]) -> UInt64 {
            bytes.withUnsafeBytes {
                Checksum.of(first: first, last: last, epoch: epoch, bytes: $0)
            }
        }
        var sums: Set<UInt64> = [
            sum(1, 2, 3, bytes), sum(2, 2, 3, bytes), sum(1, 3, 3, bytes), sum(1, 2, 4, bytes),
            sum(1, 2, 3, []), sum(1, 2, 3, bytes + [0]),
        ]
        for index in bytes.indices {
            for bit in 0..<8 {
                var changed = bytes
                changed[index] ^= 1 << bit
                sums.insert(sum(1, 2, 3, changed))
            }
        }
        #expect(sums.count == 6 + 77 * 8)
    }
}
