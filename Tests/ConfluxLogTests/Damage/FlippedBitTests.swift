import ConfluxLog
import ConfluxVocabulary
import Foundation
import Testing

/// A file that was damaged: one of its bits is flipped, or its end is missing.
@Suite struct FlippedBitTests {
    private let sample: DamageSample

    init() throws {
        sample = try DamageSample()
    }

    /// The bits to flip: the same number on each page, at random places among the bytes that are used, and
    /// each bit of the rows about the log and its snapshots.
    private func places(seed: UInt64) throws -> [Int] {
        var random = Generator(state: seed)
        let bytes = sample.bytes
        var places: [Int] = []
        for page in 0..<bytes.count / DamageSample.pageBytes {
            let start = page * DamageSample.pageBytes
            let used = (start..<start + DamageSample.pageBytes).filter { bytes[$0] != 0 }
            // The page's header, and the list of its rows' places.
            let header = Array((page == 0 ? 100 : start)..<start + 120)
            for index in 0..<(used.isEmpty ? 0 : 10) {
                let pool = index % 3 == 0 ? header : used
                let byte = pool[Int.random(in: 0..<pool.count, using: &random)]
                places.append(byte * 8 + Int.random(in: 0..<8, using: &random))
            }
        }
        for row in try sample.rows() {
            places += (row.lowerBound * 8..<row.upperBound * 8).shuffled(using: &random).prefix(8)
        }
        return places
    }

    @Test func `a flipped bit is reported with its place, and no wrong value is read`() throws {
        let seed = UInt64.random(in: 0...UInt64(UInt32.max))
        var codes: [String: Int] = [:]
        var failures: [String] = []
        let places = try places(seed: seed)
        for place in places {
            var bytes = sample.bytes
            bytes[place / 8] ^= 1 << UInt8(place % 8)
            try sample.write(bytes)
            let found = sample.read()
            for problem in found.problems {
                failures.append("bit \(place % 8) of byte \(place / 8): \(problem)")
            }
            codes[found.errors.isEmpty ? "none" : "told", default: 0] += 1
        }
        #expect(
            failures.isEmpty,
            "seed \(seed), \(codes), \(failures.count):\n\(failures.prefix(40).joined(separator: "\n"))"
        )
        // Otherwise the test would have examined nothing.
        #expect(codes["told", default: 0] > places.count / 3, "seed \(seed), \(codes)")
    }

    @Test func `a page whose rows are out of order is reported, and no entry is skipped`() throws {
        var told = 0
        for start in stride(from: 0, to: sample.bytes.count, by: DamageSample.pageBytes) {
            // A leaf page of a table has the number of its rows, and the place of each row.
            let rows = Int(sample.bytes[start + 4])
            guard sample.bytes[start] == 0x0D, rows > 0 else { continue }
            let pointer = start + 6 + 2 * rows
            var key = start + Int(sample.bytes[pointer]) << 8 + Int(sample.bytes[pointer + 1])
            // The row's number comes after its size.
            while sample.bytes[key] > 0x7F { key += 1 }
            for bit in 0..<7 {
                var bytes = sample.bytes
                bytes[key + 1] ^= 1 << UInt8(bit)
                try sample.write(bytes)
                let found = sample.readEach()
                #expect(found.problems.isEmpty, "bit \(bit) of byte \(key + 1)")
                told += found.errors.isEmpty ? 0 : 1
            }
        }
        #expect(told > 10)
    }

    @Test func `a truncated file is reported, wherever it was cut`() throws {
        let page = DamageSample.pageBytes
        let pages = sample.bytes.count / page
        let odd = [1, 15, 16, 99, 100, 511, 512, 1_000, page - 1, page + 1, pages * page - 1]
        for length in odd + (1..<pages).map({ $0 * page }) {
            try sample.write(sample.bytes.prefix(length))
            let found = sample.read()
            #expect(found.problems.isEmpty, "cut to \(length)")
            #expect(!found.errors.isEmpty, "cut to \(length)")
        }
    }

    @Test func `no new log replaces a file that was emptied or removed`() throws {
        for isThere in [true, false] {
            try sample.write([])
            if !isThere { try FileManager.default.removeItem(atPath: sample.folder.database) }
            try Data([1]).write(to: URL(fileURLWithPath: sample.folder.database + "-wal"))
            let error = #expect(throws: LogError.self) {
                try SQLiteLog(directory: sample.folder.path, settings: .small())
            }
            #expect(error?.code == .damaged)
            #expect(error?.message.contains(sample.folder.database) == true)
        }
    }
}

/// SplitMix64: the same seed gives the same numbers.
private struct Generator: RandomNumberGenerator {
    var state: UInt64

    mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var word = state
        word = (word ^ (word >> 30)) &* 0xBF58_476D_1CE4_E5B9
        word = (word ^ (word >> 27)) &* 0x94D0_49BB_1331_11EB
        return word ^ (word >> 31)
    }
}
