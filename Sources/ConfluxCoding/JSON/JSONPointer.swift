import ConfluxVocabulary

/// A place in a JSON value (RFC 6901): `""` is the whole value, and `/a/0` is the first element of the member
/// `a`.
///
/// Two pointers are equal if their bytes are.
public struct JSONPointer: Sendable {
    /// Keys and positions from the outermost to the innermost, unescaped.
    public let tokens: [String]

    /// Makes a pointer from its tokens.
    ///
    /// - Parameter tokens: Keys and positions from the outermost to the innermost, unescaped.
    public init(tokens: [String]) {
        self.tokens = tokens
    }

    /// The whole value.
    public static let root = JSONPointer(tokens: [])

    /// Parses a pointer.
    ///
    /// - Parameter text: The pointer, escaped.
    /// - Throws: ``CodingFailure/Code-swift.enum/syntax`` unless the text is empty or begins with
    ///   `/`, and every `~` in it is a `~0` (for `~`) or `~1` (for `/`).
    public init(_ text: String) throws(CodingFailure) {
        let bytes = Array(text.utf8)
        guard let first = bytes.first else {
            tokens = []
            return
        }
        guard first == UInt8(ascii: "/") else {
            throw CodingFailure(
                .syntax, "expected a JSON pointer, empty or beginning with '/'", offset: 0)
        }
        var tokens: [String] = []
        var token: [UInt8] = []
        var position = 1
        while position < bytes.count {
            switch bytes[position] {
            case UInt8(ascii: "/"):
                tokens.append(String(checkedUTF8: token))
                token.removeAll(keepingCapacity: true)
            case UInt8(ascii: "~"):
                let escaped = position + 1 < bytes.count ? bytes[position + 1] : 0
                guard escaped == UInt8(ascii: "0") || escaped == UInt8(ascii: "1") else {
                    throw CodingFailure(
                        .syntax, "expected ~0 (for '~') or ~1 (for '/') in a JSON pointer",
                        offset: position)
                }
                token.append(UInt8(ascii: escaped == UInt8(ascii: "0") ? "~" : "/"))
                position += 1
            default: token.append(bytes[position])
            }
            position += 1
        }
        tokens.append(String(checkedUTF8: token))
        self.tokens = tokens
    }

    /// The array position that a token means: digits without leading zeros; nil for any other token.
    static func position(_ token: String) -> Int? {
        let digits = token.utf8
        guard let first = digits.first, digits.count <= 18,
            digits.allSatisfy({ (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }),
            first != UInt8(ascii: "0") || digits.count == 1
        else { return nil }
        return Int(token)
    }
}

extension JSONPointer: CustomStringConvertible, ExpressibleByStringLiteral {
    /// The text, escaped.
    public var description: String {
        var bytes: [UInt8] = []
        for token in tokens {
            bytes.append(UInt8(ascii: "/"))
            for byte in token.utf8 {
                switch byte {
                case UInt8(ascii: "~"): bytes.append(contentsOf: "~0".utf8)
                case UInt8(ascii: "/"): bytes.append(contentsOf: "~1".utf8)
                default: bytes.append(byte)
                }
            }
        }
        return String(checkedUTF8: bytes)
    }

    /// Makes a pointer from a literal. An invalid literal traps.
    ///
    /// - Parameter text: The pointer, escaped.
    public init(stringLiteral text: String) {
        do {
            try self.init(text)
        } catch {
            preconditionFailure("\"\(text)\": \(error)")
        }
    }
}

extension JSONPointer: Hashable {
    /// Whether the tokens are the same, byte for byte.
    public static func == (left: JSONPointer, right: JSONPointer) -> Bool {
        left.tokens.count == right.tokens.count
            && zip(left.tokens, right.tokens).allSatisfy { UTF8Order.compare($0, $1) == 0 }
    }

    /// Hashes the tokens' bytes.
    public func hash(into hasher: inout Hasher) {
        for token in tokens { UTF8Order.hash(token, into: &hasher) }
    }
}

extension JSONPointer: Codable {
    /// Decodes the text of a pointer.
    ///
    /// - Parameter decoder: The decoder.
    /// - Throws: `DecodingError` if there is no string, or it is not a pointer.
    public init(from decoder: any Decoder) throws {
        let container = try decoder.singleValueContainer()
        do {
            try self.init(container.decode(String.self))
        } catch let failure as CodingFailure {
            throw DecodingError.dataCorruptedError(
                in: container, debugDescription: failure.message)
        }
    }

    /// Encodes the text of the pointer.
    ///
    /// - Parameter encoder: The encoder.
    /// - Throws: The encoder's error.
    public func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        try container.encode(description)
    }
}
