/// A histogram of durations with fixed buckets. It is a plain value: the thread that measures owns it.
public struct LatencyHistogram: Sendable, Hashable {
    /// The inclusive upper bounds of the buckets, ascending. One more bucket counts longer durations.
    public static let bounds: [Duration] = [
        .microseconds(100), .microseconds(250), .microseconds(500),
        .milliseconds(1), .microseconds(2_500), .milliseconds(5),
        .milliseconds(10), .milliseconds(25), .milliseconds(50),
        .milliseconds(100), .milliseconds(250), .milliseconds(500),
        .seconds(1), .milliseconds(2_500), .seconds(5), .seconds(10), .seconds(30), .seconds(60),
    ]

    /// The number of observations in each bucket, not cumulative. The last bucket has no bound.
    public private(set) var counts = [UInt64](repeating: 0, count: bounds.count + 1)
    /// The sum of all observations.
    public private(set) var sum = Duration.zero

    /// Makes an empty histogram.
    public init() {}

    /// How many observations there are.
    public var count: UInt64 { counts.reduce(0, +) }

    /// Adds observations.
    ///
    /// - Parameters:
    ///   - duration: The duration. A negative one counts as zero.
    ///   - count: How many observations have this duration.
    public mutating func record(_ duration: Duration, count: UInt64 = 1) {
        let duration = max(.zero, duration)
        let bucket = Self.bounds.firstIndex { duration <= $0 } ?? Self.bounds.count
        counts[bucket] += count
        // A multiplication takes longer than all the rest.
        sum += count == 1 ? duration : duration * Int(clamping: count)
    }
}
