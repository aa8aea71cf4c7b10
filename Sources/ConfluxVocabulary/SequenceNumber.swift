/// The place of an entry in the log: 1, 2, 3 … without gaps.
///
/// `zero` stands before the first entry: "nothing yet". It is encoded as a number, in JSON `42`. This form is
/// stable.
public struct SequenceNumber: RawRepresentable, Hashable, Comparable, Codable, Sendable,
    CustomStringConvertible, ExpressibleByIntegerLiteral
{
    /// The number itself.
    public let rawValue: UInt64

    /// Makes the sequence number with this value; 0 is `zero`.
    @inlinable
    public init(rawValue: UInt64) {
        self.rawValue = rawValue
    }

    /// Makes the sequence number with this value; 0 is `zero`.
    @inlinable
    public init(_ value: UInt64) {
        self.rawValue = value
    }

    /// Makes a sequence number of a literal: `store.state(at: 4711)`.
    @inlinable
    public init(integerLiteral value: UInt64) {
        self.rawValue = value
    }

    /// Before the first entry.
    public static let zero = SequenceNumber(0)

    /// The number after this one.
    @inlinable
    public var next: SequenceNumber { SequenceNumber(rawValue + 1) }

    /// The number `distance` places further on.
    @inlinable
    public func advanced(by distance: UInt64) -> SequenceNumber {
        SequenceNumber(rawValue + distance)
    }

    /// Whether the left number comes earlier in the log.
    @inlinable
    public static func < (left: SequenceNumber, right: SequenceNumber) -> Bool {
        left.rawValue < right.rawValue
    }

    /// The number in decimal digits.
    public var description: String { String(rawValue) }
}
