/// A point of wall-clock time: whole nanoseconds since 1970-01-01 00:00 UTC.
///
/// It is encoded as that number, in JSON `1700000000000000001`. This form is stable. Readers that take numbers for
/// floating-point ones, as JavaScript does, lose the last digits.
public struct Timestamp: RawRepresentable, Hashable, Comparable, Codable, Sendable,
    CustomStringConvertible
{
    /// Nanoseconds since 1970 UTC.
    public let rawValue: Int64

    /// Makes a timestamp from nanoseconds since 1970 UTC.
    public init(rawValue: Int64) {
        self.rawValue = rawValue
    }

    /// Makes a timestamp from nanoseconds since 1970 UTC.
    public init(_ nanoseconds: Int64) {
        self.rawValue = nanoseconds
    }

    /// Whether the left point is earlier.
    public static func < (left: Timestamp, right: Timestamp) -> Bool {
        left.rawValue < right.rawValue
    }

    /// Nanoseconds in decimal digits.
    public var description: String { String(rawValue) }
}

/// A reading of the clocks: an input of the pure layers, which have no clock of their own.
///
/// Only `monotonic` measures intervals. `wall` is the source of timestamps.
public struct Moment: Hashable, Sendable {
    /// Time since an arbitrary start; it never goes back.
    public let monotonic: Duration
    /// The wall clock; it may jump.
    public let wall: Timestamp

    /// Makes a moment from the readings of both clocks.
    public init(monotonic: Duration, wall: Timestamp) {
        self.monotonic = monotonic
        self.wall = wall
    }
}
