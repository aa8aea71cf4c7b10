import Foundation

/// Lets a type decode itself from one node of a tape.
struct TapeDecoder: Decoder, SingleValueDecodingContainer {
    let tape: Tape
    let node: UInt32
    /// How many values contain this one.
    let depth: UInt32

    var codingPath: [any CodingKey] { tape.path(to: node) }
    var userInfo: [CodingUserInfoKey: Any] { [:] }
    var content: Tape.Node { tape.nodes[Int(node)] }

    func container<Key: CodingKey>(
        keyedBy type: Key.Type
    ) throws -> KeyedDecodingContainer<Key> {
        guard tape.nodes[Int(node)].kind == .object else {
            throw mismatch([String: Any].self, "an object")
        }
        try checkDepth()
        tape.nodes[Int(node)].isOpened = true
        return KeyedDecodingContainer(KeyedTapeReader<Key>(tape: tape, node: node, depth: depth))
    }

    func unkeyedContainer() throws -> any UnkeyedDecodingContainer {
        guard tape.nodes[Int(node)].kind == .array else { throw mismatch([Any].self, "an array") }
        try checkDepth()
        return UnkeyedTapeReader(tape: tape, node: node, depth: depth)
    }

    func singleValueContainer() -> any SingleValueDecodingContainer { self }

    private func checkDepth() throws {
        guard depth <= CodingLimits.typedDepthMax else {
            throw CodingFailure.tooDeep(CodingLimits.typedDepthMax)
        }
    }

    func decodeNil() -> Bool { tape.nodes[Int(node)].kind == .null }

    func decode<T: TapeScalar>(_ type: T.Type) throws -> T { try T.decoded(by: self) }

    func decode<T: Decodable>(_ type: T.Type) throws -> T {
        if let special = try decodeSpecially(type) { return special }
        try checkDepth()
        return try T(from: self)
    }

    /// Decodes what ``TapeEncoder`` encodes specially.
    private func decodeSpecially<T: Decodable>(_ type: T.Type) throws -> T? {
        if type == JSONValue.self {
            return tape.jsonValue(at: node) as? T
        } else if type == Data.self {
            if tape.nodes[Int(node)].kind == .bytes { return Data(tape.content(of: node)) as? T }
            guard let value = Data(base64Encoded: try decode(String.self)) else {
                throw corrupted("expected bytes as base64")
            }
            return value as? T
        } else if type == URL.self {
            guard let value = URL(string: try decode(String.self)) else {
                throw corrupted("expected a URL")
            }
            return value as? T
        } else if type == Decimal.self {
            return try decimal() as? T
        }
        return nil
    }

    private func decimal() throws -> Decimal {
        let text =
            switch tape.nodes[Int(node)].kind {
            case .string: tape.string(of: node)
            case .natural, .negative, .double: tape.jsonValue(at: node).description
            default: throw mismatch(Decimal.self, "a decimal number as a string")
            }
        // `Decimal` would accept any text that begins with a number.
        guard (try? JSONValue(json: text)).map(\.isNumber) == true || text.isDecimal,
            let value = Decimal(string: text, locale: Locale(identifier: "en_US_POSIX"))
        else { throw corrupted("expected a decimal number") }
        return value
    }

    // MARK: Errors

    func mismatch(_ type: any Any.Type, _ expected: String) -> DecodingError {
        DecodingError.typeMismatch(
            type,
            .init(
                codingPath: codingPath,
                debugDescription: "expected \(expected), found \(tape.kindInWords(of: node))"))
    }

    func corrupted(_ message: String) -> DecodingError {
        DecodingError.dataCorrupted(.init(codingPath: codingPath, debugDescription: message))
    }
}

extension JSONValue {
    fileprivate var isNumber: Bool {
        switch self {
        case .integer, .number: true
        default: false
        }
    }
}

extension String {
    /// Whether this is an optional sign, digits, and optional digits after a point: a `Decimal` of up to 38
    /// digits.
    fileprivate var isDecimal: Bool {
        let digits = utf8.first == UInt8(ascii: "-") ? utf8.dropFirst() : self[...].utf8
        let parts = digits.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false)
        return (1...2).contains(parts.count)
            && parts.allSatisfy { part in
                !part.isEmpty
                    && part.allSatisfy { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }
            }
    }
}

extension Tape {
    func kindInWords(of index: UInt32) -> String {
        switch nodes[Int(index)].kind {
        case .unset, .null: "null"
        case .no, .yes: "a boolean"
        case .natural, .negative: "a whole number"
        case .double, .float: "a number"
        case .string: "a string"
        case .bytes: "bytes"
        case .array: "an array"
        case .object: "an object"
        }
    }
}

/// Reads the members of one object.
struct KeyedTapeReader<Key: CodingKey>: KeyedDecodingContainerProtocol {
    let tape: Tape
    let node: UInt32
    let depth: UInt32

    var codingPath: [any CodingKey] { tape.path(to: node) }

    var allKeys: [Key] {
        var keys: [Key] = []
        keys.reserveCapacity(Int(tape.nodes[Int(node)].count))
        for child in tape.children(of: node) {
            if let key = Key(stringValue: tape.key(of: child)) { keys.append(key) }
        }
        return keys
    }

    func contains(_ key: Key) -> Bool { tape.member(of: node, key: key.stringValue) != nil }

    @inline(__always)
    private func slot(_ key: some CodingKey) throws -> TapeDecoder {
        let found = tape.member(of: node, key: key.stringValue)
        guard let member = try found ?? tape.addDefault(key.stringValue, to: node) else {
            throw DecodingError.keyNotFound(
                key,
                .init(codingPath: codingPath, debugDescription: "expected \"\(key.stringValue)\""))
        }
        tape.nodes[Int(member)].isUsed = true
        return TapeDecoder(tape: tape, node: member, depth: depth + 1)
    }

    func decodeNil(forKey key: Key) throws -> Bool { try slot(key).decodeNil() }
    func decode<T: TapeScalar>(_ type: T.Type, forKey key: Key) throws -> T {
        try slot(key).decode(type)
    }
    func decode<T: Decodable>(_ type: T.Type, forKey key: Key) throws -> T {
        try slot(key).decode(type)
    }

    func nestedContainer<NestedKey: CodingKey>(
        keyedBy type: NestedKey.Type, forKey key: Key
    ) throws -> KeyedDecodingContainer<NestedKey> {
        try slot(key).container(keyedBy: type)
    }

    func nestedUnkeyedContainer(forKey key: Key) throws -> any UnkeyedDecodingContainer {
        try slot(key).unkeyedContainer()
    }

    func superDecoder() throws -> any Decoder { try slot(TapeKey(stringValue: "super")) }
    func superDecoder(forKey key: Key) throws -> any Decoder { try slot(key) }
}

/// Reads the elements of one array, in order.
struct UnkeyedTapeReader: UnkeyedDecodingContainer {
    let tape: Tape
    let node: UInt32
    let depth: UInt32
    private var next: UInt32
    private(set) var currentIndex = 0

    init(tape: Tape, node: UInt32, depth: UInt32) {
        self.tape = tape
        self.node = node
        self.depth = depth
        next = tape.nodes[Int(node)].count == 0 ? 0 : tape.nodes[Int(node)].first
    }

    var codingPath: [any CodingKey] { tape.path(to: node) }
    var count: Int? { Int(tape.nodes[Int(node)].count) }
    var isAtEnd: Bool { next == 0 }

    /// Reads the current element, and moves to the next one if that succeeded.
    @inline(__always)
    private mutating func take<Value>(
        _ read: (TapeDecoder) throws -> Value
    ) throws -> Value {
        guard next != 0 else {
            throw DecodingError.valueNotFound(
                Value.self,
                .init(
                    codingPath: codingPath,
                    debugDescription: "expected more than \(currentIndex) elements"))
        }
        let value = try read(TapeDecoder(tape: tape, node: next, depth: depth + 1))
        next = tape.nodes[Int(next)].next
        currentIndex += 1
        return value
    }

    mutating func decodeNil() throws -> Bool {
        guard next != 0, tape.nodes[Int(next)].kind == .null else { return false }
        return try take { $0.decodeNil() }
    }

    mutating func decode<T: TapeScalar>(_ type: T.Type) throws -> T {
        try take { try $0.decode(type) }
    }
    mutating func decode<T: Decodable>(_ type: T.Type) throws -> T {
        try take { try $0.decode(type) }
    }

    mutating func nestedContainer<NestedKey: CodingKey>(
        keyedBy type: NestedKey.Type
    ) throws -> KeyedDecodingContainer<NestedKey> {
        try take { try $0.container(keyedBy: type) }
    }

    mutating func nestedUnkeyedContainer() throws -> any UnkeyedDecodingContainer {
        try take { try $0.unkeyedContainer() }
    }

    mutating func superDecoder() throws -> any Decoder { try take { $0 } }
}
