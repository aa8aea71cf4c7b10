import Conflux

/// A JSON number: a whole one, or any other.
public enum JSONNumber: Hashable, Sendable, Codable, ExpressibleByIntegerLiteral,
    ExpressibleByFloatLiteral, CustomStringConvertible
{
    /// Written without fraction and exponent.
    case integer(JSONInteger)
    /// Written with one of them.
    case fraction(Double)

    /// A whole number.
    public init(integerLiteral value: Int64) { self = .integer(JSONInteger(value)) }

    /// A number with a fraction.
    public init(floatLiteral value: Double) { self = .fraction(value) }

    /// The number in a JSON value; nil when it is none.
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
    /// - Parameter decoder: Where it stands.
    /// - Throws: `DecodingError` when there is none.
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
    /// - Parameter encoder: Where to.
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

    /// The sum: whole when both are, else a fraction.
    ///
    /// - Parameter other: What is added.
    /// - Returns: nil when a whole sum lies beyond 64 bits, when a sum isn't finite, or when a whole
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
