import ConfluxLog
import ConfluxVocabulary
import Forging
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

    @Test func `a truncated file is reported, wherever it was cut`() throws {
        let page = DamageSample.pageBytes
        let pages = sample.bytes.count / page
        let odd = [1, 15, 16, 99, 100, 511, 512, 1_000, page - 1, page + 1, (pages - 1) * page - 1]
        for length in odd + (1..<pages).map({ $0 * page }) {
            try sample.write(sample.bytes.prefix(length))
            let found = sample.read()
            #expect(found.problems.isEmpty, "cut to \(length)")
            #expect(!found.errors.isEmpty, "cut to \(length)")
        }
    }

    @Test func `a flipped bit in the entries is reported with its place`() throws {
        let seed = UInt64.random(in: 0...UInt64(UInt32.max))
        var random = Generator(state: seed)
        let entries = sample.entries
        // Each bit of the header of a commit in the middle, and of the last one; and some of all.
        try sample.write(sample.bytes)
        let commits = try sample.folder.forger.places
        var places = (0..<200).map { _ in Int.random(in: 0..<entries.count * 8, using: &random) }
        for commit in [commits[commits.count / 2], commits[commits.count - 1]] {
            places += (commit * 8..<(commit + 88) * 8).shuffled(using: &random).prefix(100)
        }
        for place in places {
            var bytes = entries
            bytes[place / 8] ^= 1 << UInt8(place % 8)
            try sample.write(sample.bytes, entries: bytes)
            for found in [sample.readEach(), sample.read()] {
                #expect(found.problems.isEmpty, "seed \(seed), bit \(place)")
                // Commits below the floor are not read.
                let isRead = place / 8 >= commits[2]
                #expect(!found.errors.isEmpty || !isRead, "seed \(seed), bit \(place)")
            }
        }
    }

    @Test func `a truncated file of entries is reported, wherever it was cut`() throws {
        let count = sample.entries.count
        for length in [0, 1, 87, 88, 89, 3_000] + stride(from: 4_096, to: count - 8, by: 4_096) {
            let entries = Array(sample.entries.prefix(length))
            try sample.write(sample.bytes, entries: entries, isCut: true)
            let found = sample.read()
            #expect(found.problems.isEmpty, "cut to \(length)")
            #expect(!found.errors.isEmpty, "cut to \(length)")
        }
    }

    @Test func `no new log replaces entries whose database was removed`() throws {
        try sample.write(sample.bytes)
        try FileManager.default.removeItem(atPath: sample.folder.database)
        #expect(
            code { _ = try SQLiteLog(directory: sample.folder.path, settings: .small()) }
                == .damaged)
        let copied = TemporaryFolder(isQuick: true)
        let log = try SQLiteLog(directory: copied.path, settings: .small())
        log.close()
        let file = try SQLiteLogFile(directory: copied.path)
        #expect(code { try file.copy(to: sample.folder.path) } == .inUse)
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
