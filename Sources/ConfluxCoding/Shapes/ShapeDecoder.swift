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

    func decodeNil() -> Bool {
        if case .value(let kind, _) = role { kind.note(.any) }
        return false
    }

    func decode<T: TapeScalar>(_ type: T.Type) throws -> T {
        guard case .value(let kind, _) = role else { throw ShapeEnd.notUnderstood }
        kind.note(T.shape)
        return T.madeUp
    }

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
        if let type = type as? any ShapedValue.Type {
            kind.note(type.shape)
            guard let value = type.madeUp as? T else { throw ShapeEnd.notUnderstood }
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

extension JSONValue: ShapedValue {
    package static var shape: ActionCatalog.Kind { .any }
    package static var madeUp: JSONValue { .null }
}

extension Data: ShapedValue {
    package static var shape: ActionCatalog.Kind { .string }
    package static var madeUp: Data { Data() }
}

extension URL: ShapedValue {
    package static var shape: ActionCatalog.Kind { .string }
    package static var madeUp: URL { URL(fileURLWithPath: "/") }
}

extension Decimal: ShapedValue {
    package static var shape: ActionCatalog.Kind { .any }
    package static var madeUp: Decimal { 0 }
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

    func decode<T: Decodable>(_ type: T.Type, forKey key: Key) throws -> T {
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
        tape.reset()
        tape.set(0, .array)
        return try TapeDecoder(tape: tape, node: 0, depth: 0).unkeyedContainer()
    }
}
