/// The number of a term: one sequencer's time over the log. It rises with each claim, by a random
/// step, so that terms of two histories of a log have different numbers.
///
/// Epochs of different logs do not compare. `none` (0) stands before the first term. It is encoded as a
/// number, in JSON `7`. This form is stable.
public struct Epoch: RawRepresentable, Hashable, Comparable, Codable, Sendable,
    CustomStringConvertible
{
    /// The number itself.
    public let rawValue: UInt64

    /// Makes the epoch with this number; 0 is `none`.
    @inlinable
    public init(rawValue: UInt64) {
        self.rawValue = rawValue
    }

    /// Makes the epoch with this number; 0 is `none`.
    @inlinable
    public init(_ value: UInt64) {
        self.rawValue = value
    }

    /// Before the first term. A node also sends it before its first welcome.
    public static let none = Epoch(0)

    /// A later epoch.
    ///
    /// - Parameter step: How much higher, 1 or more.
    /// - Returns: The epoch.
    public func raised(by step: UInt64) -> Epoch { Epoch(rawValue + step) }

    /// Whether the left term is the earlier one.
    @inlinable
    public static func < (left: Epoch, right: Epoch) -> Bool { left.rawValue < right.rawValue }

    /// The number in decimal digits.
    public var description: String { String(rawValue) }
}
