/// Why bytes don't encode the expected value, or a value can't be encoded.
///
/// The message addresses the author of the bytes, who may be at a command line: it says what was expected,
/// and where.
public struct CodingFailure: Error, Hashable, Sendable, CustomStringConvertible {
    /// The kind of failure. The codes are stable, so a program can depend on them.
    public enum Code: String, Hashable, Sendable {
        /// The bytes break the grammar of their coding.
        case syntax
        /// A text is not UTF-8, or has half of a surrogate pair.
        case invalidText
        /// One object has the same key twice.
        case duplicateKey
        /// A number can't be represented: an integer beyond 64 bits, or a number that isn't finite.
        case numberOutOfRange
        /// Values are nested too deeply.
        case tooDeep
        /// There are too many bytes.
        case tooLarge
        /// No action has that name, or the value does not have exactly one name.
        case unknownAction
        /// A field that the type doesn't read.
        case unknownField
        /// A required field is missing.
        case missingField
        /// The value has the wrong type.
        case wrongType
        /// The value has the right JSON type, but its own type does not accept it.
        case invalidValue
        /// The value can't be encoded.
        case notEncodable
    }

    /// The kind of failure.
    public let code: Code
    /// What was expected, where, and what was found.
    public let message: String
    /// The offset of the byte, from 0, at which the syntax broke; nil if the syntax is valid but the value is
    /// not the expected one.
    public let offset: Int?

    /// Makes a failure.
    ///
    /// - Parameters:
    ///   - code: The kind of failure.
    ///   - message: What was expected, and what was found.
    ///   - offset: The offset of the byte at which it was found, from 0.
    public init(_ code: Code, _ message: String, offset: Int? = nil) {
        self.code = code
        self.message = message
        self.offset = offset
    }

    /// The message, with the offset if there is one.
    public var description: String {
        offset.map { "\(message) (at byte \($0))" } ?? message
    }
}

/// The bounds for decoding and encoding.
///
/// Values within them fit a thread's stack: 128 KiB with optimisation, 2 MiB without.
package enum CodingLimits {
    /// The deepest nesting of arrays and objects.
    package static let depthMax = 512
    /// The deepest nesting of values that a type's own `init(from:)` and `encode(to:)` follow. They need more
    /// stack for each level than this module.
    package static let typedDepthMax = 128
    /// The most bytes of one encoded value, unless a lower bound is given: 1 GiB.
    package static let sizeBytesMax = 1 << 30
}
