import ConfluxVocabulary
import Testing

@testable import ConfluxLog

@Suite struct ChecksumTests {
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
