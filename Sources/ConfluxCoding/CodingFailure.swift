/// Why bytes are not the value that was expected, or a value can't become bytes.
///
/// The message addresses the author of the bytes, at a command line too: it says what was
/// expected, and where.
public struct CodingFailure: Error, Hashable, Sendable, CustomStringConvertible {
    /// What kind of failure it is: stable, and fit for a program to decide by.
    public enum Code: String, Hashable, Sendable {
        /// The bytes break the grammar of their coding.
        case syntax
        /// A text is not UTF-8, or half of a surrogate pair.
        case invalidText
        /// One object has the same key twice.
        case duplicateKey
        /// A number can't be represented: a whole one beyond 64 bits, or one that isn't finite.
        case numberOutOfRange
        /// Values are nested more deeply than is allowed.
        case tooDeep
        /// More bytes than is allowed.
        case tooLarge
        /// No action has that name, or there is not exactly one.
        case unknownAction
        /// A field that nobody reads.
        case unknownField
        /// A field that is needed is not there.
        case missingField
        /// A value of another type was expected.
        case wrongType
        /// A value of the right type that its type does not accept.
        case invalidValue
        /// The value can't be encoded.
        case notEncodable
    }

    /// What kind of failure it is.
    public let code: Code
    /// What was expected, where, and what was there instead.
    public let message: String
    /// The byte, counted from 0, at which the bytes stopped making sense; nil when they made sense
    /// as such but not as the value that was expected.
    public let offset: Int?

    /// Makes a failure.
    ///
    /// - Parameters:
    ///   - code: What kind of failure it is.
    ///   - message: What was expected, and what was there instead.
    ///   - offset: The byte at which it was found, counted from 0.
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

/// The bounds of what is decoded and encoded.
///
/// What keeps to them fits a thread's stack: 128 KiB with optimisation, 2 MiB without.
package enum CodingLimits {
    /// The deepest nesting of arrays and objects.
    package static let depthMax = 512
    /// The deepest nesting of values that a type's own `init(from:)` and `encode(to:)` follow: they
    /// need more stack a level than we do.
    package static let typedDepthMax = 128
    /// The most bytes of one encoded value, unless fewer are asked for: 1 GiB.
    package static let sizeBytesMax = 1 << 30
}
