/// An integer in JSON: from -2^63 to 2^64 - 1, which includes every `Int64` and `UInt64`.
///
/// Integers outside this range are refused when they are read, since rounding them would silently lose
/// digits.
public struct JSONInteger: Hashable, Comparable, Sendable, ExpressibleByIntegerLiteral,
    CustomStringConvertible
{
    /// The value's 64-bit two's complement.
    let bits: UInt64
    /// Whether the value is below 0.
    public let isNegative: Bool

    init(bits: UInt64, isNegative: Bool) {
        self.bits = bits
        self.isNegative = isNegative
    }

    /// Makes a number; nil if it is out of range.
    ///
    /// - Parameter value: The number.
    public init?(exactly value: some BinaryInteger) {
        if let natural = UInt64(exactly: value) {
            self.init(bits: natural, isNegative: false)
        } else if let negative = Int64(exactly: value) {
            self.init(bits: UInt64(bitPattern: negative), isNegative: true)
        } else {
            return nil
        }
    }

    /// Makes a number.
    ///
    /// - Parameter value: The number.
    public init(_ value: Int64) {
        self.init(bits: UInt64(bitPattern: value), isNegative: value < 0)
    }

    /// Makes a number.
    ///
    /// - Parameter value: The number.
    public init(_ value: Int) {
        self.init(Int64(value))
    }

    /// Makes a number.
    ///
    /// - Parameter value: The number.
    public init(_ value: UInt64) {
        self.init(bits: value, isNegative: false)
    }

    /// Makes a number from a literal.
    public init(integerLiteral value: Int64) {
        self.init(value)
    }

    private var wide: Int128 { isNegative ? Int128(Int64(bitPattern: bits)) : Int128(bits) }

    /// The value as another type.
    ///
    /// - Parameter type: The type.
    /// - Returns: The same number; nil if it doesn't fit the type.
    public func converted<Number: FixedWidthInteger>(to type: Number.Type) -> Number? {
        isNegative ? Number(exactly: Int64(bitPattern: bits)) : Number(exactly: bits)
    }

    /// The value as a floating-point number, rounded to the nearest one.
    public var rounded: Double { isNegative ? Double(Int64(bitPattern: bits)) : Double(bits) }

    /// The value as a floating-point number; nil if that would lose digits.
    public var exactDouble: Double? {
        isNegative ? Double(exactly: Int64(bitPattern: bits)) : Double(exactly: bits)
    }

    /// The sum.
    ///
    /// - Parameter other: The number to add.
    /// - Returns: The sum; nil if it is out of range.
    public func adding(_ other: JSONInteger) -> JSONInteger? {
        JSONInteger(exactly: wide + other.wide)
    }

    /// Whether the left number is smaller.
    public static func < (left: JSONInteger, right: JSONInteger) -> Bool { left.wide < right.wide }

    /// The number in decimal digits.
    public var description: String {
        isNegative ? String(Int64(bitPattern: bits)) : String(bits)
    }
}
