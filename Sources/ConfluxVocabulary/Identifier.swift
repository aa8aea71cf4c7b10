/// A random number of 128 bits, written as 32 lower-case hexadecimal digits.
///
/// The pure layers never draw one: their callers pass it in. It is encoded as that text. This form is stable.
public struct Identifier: Hashable, Codable, Sendable, CustomStringConvertible {
    /// The upper 64 bits.
    public let high: UInt64
    /// The lower 64 bits.
    public let low: UInt64

    /// Makes an identifier from its two halves.
    public init(high: UInt64, low: UInt64) {
        self.high = high
        self.low = low
    }

    /// Draws an identifier.
    ///
    /// - Parameter generator: The source of the 128 bits.
    /// - Returns: The identifier.
    public static func random(using generator: inout some RandomNumberGenerator) -> Identifier {
        Identifier(high: generator.next(), low: generator.next())
    }

    /// Draws an identifier from the system's generator.
    public static func random() -> Identifier {
        var generator = SystemRandomNumberGenerator()
        return random(using: &generator)
    }

    /// Parses 32 hexadecimal digits; nil for anything else.
    public init?(_ text: String) {
        let digits = text.utf8
        guard digits.count == 32, digits.allSatisfy({ $0 != UInt8(ascii: "+") }),
            let high = UInt64(text.prefix(16), radix: 16),
            let low = UInt64(text.suffix(16), radix: 16)
        else { return nil }
        self.init(high: high, low: low)
    }

    /// Reads what ``encode(to:)`` writes.
    public init(from decoder: any Decoder) throws {
        self = try decoder.text("32 hexadecimal digits", Self.init)
    }

    /// Writes 32 lower-case hexadecimal digits.
    public func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        try container.encode(description)
    }

    /// All bits zero: no identifier.
    public static let none = Identifier(high: 0, low: 0)

    /// 32 lower-case hexadecimal digits.
    public var description: String {
        func digits(_ half: UInt64) -> String {
            let text = String(half, radix: 16)
            return String(repeating: "0", count: 16 - text.count) + text
        }
        return digits(high) + digits(low)
    }
}

/// The random identity of a log. A new log has a new id. A backup and a restored log keep it.
public typealias LogID = Identifier

/// A random number that distinguishes two claims, or two processes.
public typealias Nonce = Identifier

extension Decoder {
    /// Decodes a value that is encoded as a text.
    ///
    /// - Parameters:
    ///   - expectation: What is expected, for the error message.
    ///   - parse: Makes the value; nil for a text that is none.
    /// - Returns: The value.
    /// - Throws: `DecodingError` if there is no such text.
    func text<Value>(_ expectation: String, _ parse: (String) -> Value?) throws -> Value {
        let container = try singleValueContainer()
        let text = try container.decode(String.self)
        if let value = parse(text) { return value }
        throw DecodingError.dataCorruptedError(
            in: container, debugDescription: "expected \(expectation); found \"\(text)\"")
    }
}
