/// Encodes any value as canonical JSON, and decodes it. Equal values have equal bytes, in every process.
///
/// Keys are sorted by their UTF-8 bytes. Unordered collections are sorted, wherever they are nested: sets by
/// their elements' canonical bytes, and dictionaries whose keys are not texts by their keys' canonical bytes.
/// A number has the shortest form that reads back as the same number; a `Double` always has a fraction or an
/// exponent. A number that isn't finite is an error. A date is the number of seconds since the start of 2001
/// UTC, bytes (`Data`) are base64, and a URL or a `Decimal` is a string.
///
/// If a type passes its encoder to a collection (`set.encode(to: encoder)`), that collection is not sorted.
/// Encode the collection in a container instead.
///
/// The coder decodes any JSON, not only the canonical form. It ignores fields that a type doesn't read, so a
/// newer version of a type may drop fields.
///
/// You can use one coder on any thread.
public struct CanonicalCoder: Sendable {
    private let pool = TapePool()

    /// Makes a coder.
    public init() {}

    /// Encodes a value.
    ///
    /// - Returns: JSON in UTF-8, which ``decode(_:from:)`` and any JSON parser can read.
    /// - Throws: Why the value can't be encoded.
    public func encode(_ value: some Encodable) throws(CodingFailure) -> [UInt8] {
        try pool.withTape { (tape) throws(CodingFailure) in
            tape.sortsUnordered = true
            try tape.encode(value)
            return try tape.canonicalBytes(of: 0)
        }
    }

    /// Encodes a value, once for both of its forms.
    ///
    /// - Returns: Its canonical bytes, and the same as a JSON value.
    /// - Throws: Why the value can't be encoded.
    package func forms(
        of value: some Encodable
    ) throws(CodingFailure) -> (bytes: [UInt8], json: JSONValue) {
        try pool.withTape { (tape) throws(CodingFailure) in
            tape.sortsUnordered = true
            try tape.encode(value)
            return (try tape.canonicalBytes(of: 0), tape.jsonValue(at: 0))
        }
    }

    /// Decodes a value.
    ///
    /// - Parameters:
    ///   - type: The type of the value.
    ///   - bytes: JSON in UTF-8.
    /// - Returns: The value.
    /// - Throws: What was expected, and where.
    public func decode<Value: Decodable>(
        _ type: Value.Type, from bytes: some Sequence<UInt8>
    ) throws(CodingFailure) -> Value {
        try pool.withTape { (tape) throws(CodingFailure) in
            try JSONReader.read(bytes, into: tape)
            return try tape.decode(type)
        }
    }

    /// Decodes a value that ``encode(_:)`` has encoded, and loses nothing of it.
    ///
    /// - Parameters:
    ///   - type: The type of the value.
    ///   - bytes: The value's canonical bytes.
    /// - Returns: The value.
    /// - Throws: What was expected, and where. A field that the type does not read is an error, unless the type writes it
    ///   all the same.
    package func decode<Value: Codable>(
        whole type: Value.Type, from bytes: some Sequence<UInt8>
    ) throws(CodingFailure) -> Value {
        try pool.withTape { (tape) throws(CodingFailure) in
            try JSONReader.read(bytes, into: tape)
            let value = try tape.decode(type)
            do throws(CodingFailure) {
                try tape.checkAllUsed()
            } catch {
                guard try encode(value).elementsEqual(bytes) else { throw error }
            }
            return value
        }
    }
}
