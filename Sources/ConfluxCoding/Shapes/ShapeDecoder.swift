import Foundation

/// Gives a type made-up values, and notes what the type asks for.
struct ShapeDecoder: Decoder, SingleValueDecodingContainer {
    enum Role {
        /// Collects only the names of the cases.
        case names(ShapeNames)
        /// Decodes the action with this name.
        case action(String, ShapeNotes)
        /// Decodes the fields of an action.
        case fields(ShapeNotes)
        /// Decodes a value at this depth in the action.
        case value(ShapeKind, depth: Int)
    }

    /// The deepest nesting of made-up values. It ends types that contain themselves.
    static let depthMax = 8

    let role: Role

    init(_ role: Role) { self.role = role }

    var codingPath: [any CodingKey] { [] }
    var userInfo: [CodingUserInfoKey: Any] { [:] }

    func container<Key: CodingKey>(keyedBy type: Key.Type) throws -> KeyedDecodingContainer<Key> {
        if case .value(let kind, _) = role { kind.note(.object) }
        return KeyedDecodingContainer(KeyedShapes<Key>(role: role))
    }

    func unkeyedContainer() throws -> any UnkeyedDecodingContainer {
        guard case .value(let kind, _) = role else { throw ShapeEnd.notUnderstood }
        kind.note(.list)
        // An empty list: no element can be decoded.
        return try EmptyList.container()
    }

    func singleValueContainer() throws -> any SingleValueDecodingContainer { self }

    private func note(_ kind: ActionCatalog.Kind) throws {
        guard case .value(let noted, _) = role else { throw ShapeEnd.notUnderstood }
        noted.note(kind)
    }

    private func number<Value: Numeric>(
        _ kind: ActionCatalog.Kind, _: Value.Type
    ) throws -> Value {
        try note(kind)
        return 0
    }

    func decodeNil() -> Bool {
        if case .value(let kind, _) = role { kind.note(.any) }
        return false
    }

    func decode(_ type: Bool.Type) throws -> Bool {
        try note(.boolean)
        return false
    }
    func decode(_ type: String.Type) throws -> String {
        try note(.string)
        return ""
    }
    func decode(_ type: Double.Type) throws -> Double { try number(.number, type) }
    func decode(_ type: Float.Type) throws -> Float { try number(.number, type) }
    func decode(_ type: Int.Type) throws -> Int { try number(.integer, type) }
    func decode(_ type: Int8.Type) throws -> Int8 { try number(.integer, type) }
    func decode(_ type: Int16.Type) throws -> Int16 { try number(.integer, type) }
    func decode(_ type: Int32.Type) throws -> Int32 { try number(.integer, type) }
    func decode(_ type: Int64.Type) throws -> Int64 { try number(.integer, type) }
    func decode(_ type: UInt.Type) throws -> UInt { try number(.integer, type) }
    func decode(_ type: UInt8.Type) throws -> UInt8 { try number(.integer, type) }
    func decode(_ type: UInt16.Type) throws -> UInt16 { try number(.integer, type) }
    func decode(_ type: UInt32.Type) throws -> UInt32 { try number(.integer, type) }
    func decode(_ type: UInt64.Type) throws -> UInt64 { try number(.integer, type) }

    func decode<T: Decodable>(_ type: T.Type) throws -> T {
        guard case .value(let kind, let depth) = role else { throw ShapeEnd.notUnderstood }
        return try Self.value(type, kind, depth: depth + 1)
    }

    /// Makes up a value.
    ///
    /// - Parameters:
    ///   - type: The value's type.
    ///   - kind: Notes the kind that the type asks for.
    ///   - depth: How many values contain this one.
    /// - Returns: The value.
    /// - Throws: The type's error.
    static func value<T: Decodable>(_ type: T.Type, _ kind: ShapeKind, depth: Int) throws -> T {
        guard depth <= depthMax else { throw ShapeEnd.notUnderstood }
        // The types that the tape decodes specially.
        let special: (ActionCatalog.Kind, Any?)? =
            if type == JSONValue.self {
                (.any, JSONValue.null)
            } else if type == Data.self {
                (.string, Data())
            } else if type == URL.self {
                (.string, URL(string: "x"))
            } else if type == Decimal.self {
                (.any, Decimal(0))
            } else if let type = type as? any ShapedValue.Type {
                (type.shape, type.madeUp)
            } else {
                nil
            }
        if let special {
            kind.note(special.0)
            guard let value = special.1 as? T else { throw ShapeEnd.notUnderstood }
            return value
        }
        do {
            return try T(from: ShapeDecoder(.value(kind, depth: depth)))
        } catch {
            // An enum with raw values does not accept made-up ones.
            guard let value = EnumCases.all(of: type)?.first else { throw error }
            return value
        }
    }
}

/// A type whose values are of a kind that its decoding does not show.
package protocol ShapedValue: Decodable {
    /// The kind.
    static var shape: ActionCatalog.Kind { get }
    /// Any value.
    static var madeUp: Self { get }
}

extension JSONPointer: ShapedValue {
    package static var shape: ActionCatalog.Kind { .pointer }
    package static var madeUp: JSONPointer { .root }
}

/// Notes the keys that are asked for.
struct KeyedShapes<Key: CodingKey>: KeyedDecodingContainerProtocol {
    let role: ShapeDecoder.Role

    var codingPath: [any CodingKey] { [] }

    var allKeys: [Key] {
        switch role {
        case .names(let names):
            let keys = names.told?.compactMap(Key.init(stringValue:)) ?? EnumCases.all(of: Key.self)
            names.found = (keys ?? []).map(\.stringValue)
            return []
        case .action(let name, _): return Key(stringValue: name).map { [$0] } ?? []
        case .fields: return []
        case .value: return EnumCases.all(of: Key.self).map { Array($0.prefix(1)) } ?? []
        }
    }

    func contains(_ key: Key) -> Bool {
        switch role {
        case .names, .action: return false
        case .fields(let notes):
            notes.optional.insert(key.stringValue)
            return true
        case .value(_, let depth): return depth < ShapeDecoder.depthMax
        }
    }

    func decodeNil(forKey key: Key) throws -> Bool { false }

    private func value<T: Decodable>(_ type: T.Type, _ key: Key) throws -> T {
        switch role {
        case .names: throw ShapeEnd.named
        case .action: throw ShapeEnd.notUnderstood
        case .fields(let notes):
            let kind = ShapeKind()
            defer { notes.note(key.stringValue, kind.kind ?? .any) }
            return try ShapeDecoder.value(type, kind, depth: 1)
        case .value(_, let depth):
            return try ShapeDecoder.value(type, ShapeKind(), depth: depth + 1)
        }
    }

    func decode(_ type: Bool.Type, forKey key: Key) throws -> Bool { try value(type, key) }
    func decode(_ type: String.Type, forKey key: Key) throws -> String { try value(type, key) }
    func decode(_ type: Double.Type, forKey key: Key) throws -> Double { try value(type, key) }
    func decode(_ type: Float.Type, forKey key: Key) throws -> Float { try value(type, key) }
    func decode(_ type: Int.Type, forKey key: Key) throws -> Int { try value(type, key) }
    func decode(_ type: Int8.Type, forKey key: Key) throws -> Int8 { try value(type, key) }
    func decode(_ type: Int16.Type, forKey key: Key) throws -> Int16 { try value(type, key) }
    func decode(_ type: Int32.Type, forKey key: Key) throws -> Int32 { try value(type, key) }
    func decode(_ type: Int64.Type, forKey key: Key) throws -> Int64 { try value(type, key) }
    func decode(_ type: UInt.Type, forKey key: Key) throws -> UInt { try value(type, key) }
    func decode(_ type: UInt8.Type, forKey key: Key) throws -> UInt8 { try value(type, key) }
    func decode(_ type: UInt16.Type, forKey key: Key) throws -> UInt16 { try value(type, key) }
    func decode(_ type: UInt32.Type, forKey key: Key) throws -> UInt32 { try value(type, key) }
    func decode(_ type: UInt64.Type, forKey key: Key) throws -> UInt64 { try value(type, key) }
    func decode<T: Decodable>(_ type: T.Type, forKey key: Key) throws -> T { try value(type, key) }

    func nestedContainer<NestedKey: CodingKey>(
        keyedBy type: NestedKey.Type, forKey key: Key
    ) throws -> KeyedDecodingContainer<NestedKey> {
        switch role {
        case .names: throw ShapeEnd.named
        case .action(_, let notes):
            notes.isNested = true
            return KeyedDecodingContainer(KeyedShapes<NestedKey>(role: .fields(notes)))
        case .fields(let notes):
            notes.note(key.stringValue, .object)
            return try nested(depth: 1)
        case .value(_, let depth): return try nested(depth: depth + 1)
        }
    }

    private func nested<NestedKey: CodingKey>(
        depth: Int
    ) throws -> KeyedDecodingContainer<NestedKey> {
        guard depth <= ShapeDecoder.depthMax else { throw ShapeEnd.notUnderstood }
        return KeyedDecodingContainer(
            KeyedShapes<NestedKey>(role: .value(ShapeKind(), depth: depth)))
    }

    func nestedUnkeyedContainer(forKey key: Key) throws -> any UnkeyedDecodingContainer {
        if case .fields(let notes) = role { notes.note(key.stringValue, .list) }
        return try EmptyList.container()
    }

    func superDecoder() throws -> any Decoder { throw ShapeEnd.notUnderstood }
    func superDecoder(forKey key: Key) throws -> any Decoder { throw ShapeEnd.notUnderstood }
}

/// An empty list, in the form that the tape has.
enum EmptyList {
    static func container() throws -> any UnkeyedDecodingContainer {
        let tape = Tape()
        try JSONReader.read([0x5B, 0x5D], into: tape, sizeBytesMax: 2)
        return try TapeDecoder(tape: tape, node: 0, depth: 0).unkeyedContainer()
    }
}
