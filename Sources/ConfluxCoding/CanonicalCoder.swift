/// Encodes any value as canonical JSON, and decodes it. Equal values have equal bytes, in every process.
///
/// Keys are sorted by their UTF-8 bytes. What has no order of its own gets one: sets, and
/// dictionaries whose keys are no texts, are sorted by their elements' (keys') canonical bytes,
/// wherever they are nested. Numbers have their shortest form that reads back as the same number; a
/// `Double` always has a fraction or an exponent. A number that isn't finite is an error. A date is
/// its seconds since the start of 2001 UTC, bytes (`Data`) are base64, a URL and a `Decimal` are
/// strings.
///
/// Not sorted is what a type encodes by handing the encoder to a collection itself
/// (`set.encode(to: encoder)`): hand the collection to a container instead.
///
/// It decodes all of JSON, not only the canonical form. Fields that a type doesn't ask for are ignored,
/// so that a newer version of a type may drop some.
///
/// Use one coder from any thread.
public struct CanonicalCoder: Sendable {
    private let pool = TapePool()

    /// Makes a coder.
    public init() {}

    /// Encodes a value.
    ///
    /// - Returns: JSON in UTF-8, which ``decode(_:from:)`` and any JSON parser read.
    /// - Throws: Why the value has no encoding.
    public func encode(_ value: some Encodable) throws(CodingFailure) -> [UInt8] {
        try pool.withTape { (tape) throws(CodingFailure) in
            tape.sortsUnordered = true
            defer { tape.sortsUnordered = false }
            try tape.encode(value)
            return try tape.canonicalBytes(of: 0)
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
            let slice = bytes as? ArraySlice<UInt8> ?? ArraySlice(bytes)
            try JSONReader.read(slice, into: tape, sizeBytesMax: CodingLimits.sizeBytesMax)
            return try tape.decode(type)
        }
    }

    /// Decodes a value of a type that has properties more than the bytes have: they have their values
    /// in `defaults`.
    ///
    /// Only what the type can't do without is filled in, and no elements of lists and dictionaries.
    ///
    /// - Parameters:
    ///   - bytes: JSON in UTF-8.
    ///   - defaults: A value whose parts stand for what is missing.
    /// - Returns: The value.
    /// - Throws: What was expected, and where.
    /// - Complexity: Reads the bytes once more for each property that is filled in.
    package func decode<Value: Codable>(
        from bytes: [UInt8], filling defaults: Value
    ) throws(CodingFailure) -> Value {
        var missing: JSONPointer?
        if let value = try decode(Value.self, noting: &missing, in: bytes) { return value }
        var present = try JSONValue(json: bytes)
        let source = try JSONValue(json: encode(defaults))
        // Ends: each round puts in one more of the members that the defaults have.
        while let place = missing, let filling = source[place] {
            present.update(at: place.tokens[...]) { value, _ in value = filling }
            let bytes = try present.canonicalBytes()
            missing = nil
            if let value = try decode(Value.self, noting: &missing, in: bytes) { return value }
        }
        return try decode(Value.self, from: present.canonicalBytes())
    }

    /// Decodes, and says where a member is missing, if that is all that is wrong.
    private func decode<Value: Decodable>(
        _ type: Value.Type, noting missing: inout JSONPointer?, in bytes: [UInt8]
    ) throws(CodingFailure) -> Value? {
        let tape = Tape()
        try JSONReader.read(bytes[...], into: tape, sizeBytesMax: CodingLimits.sizeBytesMax)
        do {
            return try TapeDecoder(tape: tape, node: 0, depth: 0).decode(type)
        } catch let DecodingError.keyNotFound(key, context) {
            missing = JSONPointer(tokens: (context.codingPath + [key]).map(\.stringValue))
            return nil
        } catch {
            // Said in the decoder's own words.
            return try decode(type, from: bytes)
        }
    }
}
