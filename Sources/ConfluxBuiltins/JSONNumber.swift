import Conflux

/// A JSON number: a whole number, or any other.
public enum JSONNumber: Hashable, Sendable, Codable, ExpressibleByIntegerLiteral,
    ExpressibleByFloatLiteral, CustomStringConvertible
{
    /// Written without fraction and exponent.
    case integer(JSONInteger)
    /// Written with a fraction or an exponent.
    case fraction(Double)

    /// A whole number.
    public init(integerLiteral value: Int64) { self = .integer(JSONInteger(value)) }

    /// A number with a fraction.
    public init(floatLiteral value: Double) { self = .fraction(value) }

    /// The number in a JSON value; nil if the value is not a number.
    ///
    /// - Parameter value: The JSON value.
    public init?(_ value: JSONValue) {
        switch value {
        case .integer(let value): self = .integer(value)
        case .number(let value): self = .fraction(value)
        default: return nil
        }
    }

    /// Decodes a number.
    ///
    /// - Parameter decoder: The decoder to read from.
    /// - Throws: `DecodingError` if there is no number.
    public init(from decoder: any Decoder) throws {
        let container = try decoder.singleValueContainer()
        let value = try container.decode(JSONValue.self)
        guard let number = JSONNumber(value) else {
            throw DecodingError.typeMismatch(
                JSONNumber.self,
                .init(
                    codingPath: decoder.codingPath,
                    debugDescription: "expected a number, found \(value.kindInWords)"))
        }
        self = number
    }

    /// Encodes the number as itself.
    ///
    /// - Parameter encoder: The encoder to write to.
    /// - Throws: The encoder's error.
    public func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        try container.encode(value)
    }

    /// The number as a JSON value.
    public var value: JSONValue {
        switch self {
        case .integer(let value): .integer(value)
        case .fraction(let value): .number(value)
        }
    }

    /// The sum: whole if both numbers are, otherwise a fraction.
    ///
    /// - Parameter other: The number to add.
    /// - Returns: nil if a whole sum does not fit 64 bits, if a sum is not finite, or if a whole
    ///   number would lose digits by becoming a fraction.
    public func adding(_ other: JSONNumber) -> JSONNumber? {
        switch (self, other) {
        case (.integer(let left), .integer(let right)):
            return left.adding(right).map { .integer($0) }
        case (.fraction(let left), .fraction(let right)):
            return Self.finite(left + right)
        case (.integer(let whole), .fraction(let fraction)),
            (.fraction(let fraction), .integer(let whole)):
            return whole.exactDouble.flatMap { Self.finite($0 + fraction) }
        }
    }

    private static func finite(_ value: Double) -> JSONNumber? {
        value.isFinite ? .fraction(value) : nil
    }

    /// The number as JSON.
    public var description: String { value.description }
}

extension JSONNumber: ShapedValue {
    package static var shape: ActionCatalog.Kind { .number }
    package static var madeUp: JSONNumber { 0 }
}
