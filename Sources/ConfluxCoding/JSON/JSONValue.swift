import ConfluxVocabulary

/// A JSON value (RFC 8259) that keeps integers exact, and distinguishes keys by their bytes.
///
/// Two values are equal if their canonical bytes are: `1` and `1.0` differ, and so do texts that are equal
/// only after Unicode normalisation. Changing a value in place copies nothing that is not shared.
public enum JSONValue: Sendable {
    /// `null`.
    case null
    /// `true` or `false`.
    case bool(Bool)
    /// A number written without a fraction or an exponent.
    case integer(JSONInteger)
    /// Any other number. A parsed number is always finite; other numbers can't be encoded.
    case number(Double)
    /// A string.
    case string(String)
    /// An array.
    case array([JSONValue])
    /// An object.
    case object(JSONObject)
}

extension JSONValue {
    /// Parses JSON, strictly: UTF-8 without a byte order mark, one value, no duplicate keys, no lone
    /// surrogates, no integers beyond 64 bits.
    ///
    /// - Parameters:
    ///   - bytes: The text in UTF-8.
    ///   - sizeBytesMax: The most bytes to accept; 1 GiB by default, and never more.
    /// - Throws: What was expected, and at which byte.
    public init(
        json bytes: some Sequence<UInt8>, sizeBytesMax: Int = 1 << 30
    ) throws(CodingFailure) {
        self = try Self.pool.withTape { (tape) throws(CodingFailure) in
            try JSONReader.read(bytes, into: tape, sizeBytesMax: sizeBytesMax)
            return tape.jsonValue(at: 0)
        }
    }

    /// Parses an object, one member of which is wanted as it is written.
    ///
    /// - Parameters:
    ///   - bytes: The text in UTF-8.
    ///   - key: The key of that member.
    /// - Returns: The other members, and that member in canonical bytes, if there is one; nil if it is no object.
    /// - Throws: What was expected, and at which byte.
    package static func members(
        of bytes: [UInt8], besides key: String
    ) throws(CodingFailure) -> (others: JSONObject, member: [UInt8]?)? {
        try pool.withTape { (tape) throws(CodingFailure) in
            try JSONReader.read(bytes, into: tape)
            guard tape.nodes[0].kind == .object else { return nil }
            let member = tape.member(of: 0, key: key)
            var others = JSONObject()
            for child in tape.children(of: 0) where child != member {
                others[tape.key(of: child)] = tape.jsonValue(at: child)
            }
            guard let member else { return (others, nil) }
            return (others, try tape.canonicalBytes(of: member))
        }
    }

    private static let pool = TapePool()

    /// Parses JSON, equally strictly.
    ///
    /// - Parameter text: The JSON.
    /// - Throws: What was expected, and at which byte.
    public init(json text: String) throws(CodingFailure) {
        try self.init(json: Array(text.utf8))
    }

    /// The canonical bytes: no white space, keys sorted by their UTF-8 bytes, numbers in their shortest form,
    /// and in strings only the escapes that are required.
    ///
    /// - Returns: The JSON text in UTF-8.
    /// - Throws: ``CodingFailure/Code-swift.enum/numberOutOfRange`` for a number that isn't finite,
    ///   ``CodingFailure/Code-swift.enum/tooDeep`` above 512 levels.
    public func canonicalBytes() throws(CodingFailure) -> [UInt8] {
        var writer = JSONWriter()
        try writer.write(self, depth: 0)
        return writer.bytes
    }

    /// How deeply arrays and objects are nested: 0 for a scalar.
    public var depth: Int {
        switch self {
        case .array(let elements):
            elements.reduce(into: 1) { $0 = max($0, $1.depth + 1) }
        case .object(let members):
            members.reduce(into: 1) { $0 = max($0, $1.value.depth + 1) }
        default: 0
        }
    }

    /// The kind of value, in words for a message: `a string`, `an array` …
    package var kindInWords: String {
        switch self {
        case .null: "null"
        case .bool: "a boolean"
        case .integer: "a whole number"
        case .number: "a number"
        case .string: "a string"
        case .array: "an array"
        case .object: "an object"
        }
    }

    /// The integer; nil for any other value.
    public var integer: JSONInteger? {
        if case .integer(let value) = self { value } else { nil }
    }

    /// The string; nil for any other value.
    public var string: String? { if case .string(let value) = self { value } else { nil } }

    /// The array; nil for any other value.
    public var array: [JSONValue]? { if case .array(let value) = self { value } else { nil } }

    /// The object; nil for any other value.
    public var object: JSONObject? { if case .object(let value) = self { value } else { nil } }
}

extension JSONValue: CustomStringConvertible {
    /// The canonical JSON text; a sentence if the value has none.
    public var description: String {
        do {
            return String(checkedUTF8: try canonicalBytes())
        } catch {
            return "(not encodable: \(error.message))"
        }
    }
}

extension JSONValue: Hashable {
    /// Whether the values have the same canonical bytes.
    public static func == (left: JSONValue, right: JSONValue) -> Bool {
        switch (left, right) {
        case (.null, .null): true
        case (.bool(let left), .bool(let right)): left == right
        case (.integer(let left), .integer(let right)): left == right
        case (.number(let left), .number(let right)): left.bitPattern == right.bitPattern
        case (.string(let left), .string(let right)): UTF8Order.compare(left, right) == 0
        case (.array(let left), .array(let right)): left == right
        case (.object(let left), .object(let right)): left == right
        default: false
        }
    }

    /// Hashes the values that determine the canonical bytes.
    public func hash(into hasher: inout Hasher) {
        switch self {
        case .null: hasher.combine(0)
        case .bool(let value): hasher.combine(value)
        case .integer(let value): hasher.combine(value)
        case .number(let value): hasher.combine(value.bitPattern)
        case .string(let value): UTF8Order.hash(value, into: &hasher)
        case .array(let value): hasher.combine(value)
        case .object(let value): hasher.combine(value)
        }
    }
}

extension JSONValue: ExpressibleByNilLiteral, ExpressibleByBooleanLiteral,
    ExpressibleByIntegerLiteral, ExpressibleByFloatLiteral, ExpressibleByStringLiteral,
    ExpressibleByArrayLiteral, ExpressibleByDictionaryLiteral
{
    /// `null`.
    public init(nilLiteral: ()) { self = .null }
    /// A boolean.
    public init(booleanLiteral value: Bool) { self = .bool(value) }
    /// An integer.
    public init(integerLiteral value: Int64) { self = .integer(JSONInteger(value)) }
    /// A number.
    public init(floatLiteral value: Double) { self = .number(value) }
    /// A string.
    public init(stringLiteral value: String) { self = .string(value) }
    /// An array.
    public init(arrayLiteral elements: JSONValue...) { self = .array(elements) }
    /// An object; of equal keys the last one counts.
    public init(dictionaryLiteral elements: (String, JSONValue)...) {
        var object = JSONObject()
        for (key, value) in elements { object[key] = value }
        self = .object(object)
    }
}
