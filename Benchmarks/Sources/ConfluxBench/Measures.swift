import Foundation

/// Nanoseconds of the monotonic clock, which all processes of a machine share.
func monotonicNanoseconds() -> UInt64 {
    var time = timespec()
    clock_gettime(CLOCK_MONOTONIC, &time)
    return UInt64(time.tv_sec) * 1_000_000_000 + UInt64(time.tv_nsec)
}

/// Nanoseconds of processor time that all threads of this process have used.
func usedProcessorNanoseconds() -> UInt64 {
    var time = timespec()
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time)
    return UInt64(time.tv_sec) * 1_000_000_000 + UInt64(time.tv_nsec)
}

/// The median of several rounds, and their range.
struct Spread: Codable, Sendable {
    let median: Double
    let min: Double
    let max: Double

    /// - Parameter values: One value for each round; at least one.
    init(_ values: [Double]) {
        let sorted = values.sorted()
        let middle = sorted.count / 2
        median =
            sorted.count % 2 == 1 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2
        min = sorted[0]
        max = sorted[sorted.count - 1]
    }
}

/// The value below which this share of the sorted values lies.
func percentile(_ share: Double, of sorted: [UInt64]) -> Double {
    Double(sorted[Swift.min(sorted.count - 1, Int(Double(sorted.count) * share))])
}

/// The median, in milliseconds.
func medianMilliseconds(_ nanoseconds: [UInt64]) -> Double {
    percentile(0.5, of: nanoseconds.sorted()) / 1e6
}

/// The bytes of memory that this process uses now, and the most that it has used; zeros if the system does not
/// report it.
func usedMemory() -> (now: UInt64, most: UInt64) {
    func bytes(_ key: String, in text: String) -> UInt64 {
        let line = text.split(separator: "\n").first { $0.hasPrefix(key) }
        let kilobytes = line?.split(whereSeparator: { !$0.isNumber }).first.flatMap { UInt64($0) }
        return (kilobytes ?? 0) << 10
    }
    let data = FileManager.default.contents(atPath: "/proc/self/status")
    let text = String(decoding: data ?? Data(), as: UTF8.self)
    return (bytes("VmRSS:", in: text), bytes("VmHWM:", in: text))
}
