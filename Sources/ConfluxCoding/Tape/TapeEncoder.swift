import Foundation

/// Lets a value encode itself onto a tape, below one node.
struct TapeEncoder: Encoder, SingleValueEncodingContainer {
    let tape: Tape
    let node: UInt32
    /// How many values contain this one.
    let depth: UInt32

    var codingPath: [any CodingKey] { tape.path(to: node) }
    var userInfo: [CodingUserInfoKey: Any] { [:] }

    func container<Key: CodingKey>(keyedBy type: Key.Type) -> KeyedEncodingContainer<Key> {
        tape.begin(node, .object)
        return KeyedEncodingContainer(KeyedTapeWriter<Key>(tape: tape, node: node, depth: depth))
    }

    func unkeyedContainer() -> any UnkeyedEncodingContainer {
        tape.begin(node, .array)
        return UnkeyedTapeWriter(tape: tape, node: node, depth: depth)
    }

    func singleValueContainer() -> any SingleValueEncodingContainer { self }

    func encodeNil() { tape.set(node, .null) }
    func encode<T: TapeScalar>(_ value: T) { value.encode(by: self) }

    func encode<T: Encodable>(_ value: T) throws {
        guard depth <= CodingLimits.typedDepthMax else {
            throw CodingFailure.tooDeep(CodingLimits.typedDepthMax)
        }
        if tape.marksVarying { markVarying(value) }
        if try encodeSpecially(value) { return }
        try value.encode(to: self)
    }

    private func markVarying(_ value: some Encodable) {
        switch Mirror(reflecting: value).displayStyle {
        case .collection, .set, .dictionary, .enum: tape.nodes[Int(node)].isVarying = true
        default: break
        }
    }

    /// Encodes the types whose own encoding loses information, or leaves something unsorted.
    private func encodeSpecially<T: Encodable>(_ value: T) throws -> Bool {
        if T.self == JSONValue.self, let value = value as? JSONValue {
            try tape.fill(node, with: value, depth: Int(depth))
        } else if T.self == Data.self, let value = value as? Data {
            encodeBytes(value)
        } else if T.self == URL.self, let value = value as? URL {
            encode(value.absoluteString)
        } else if T.self == Decimal.self, var value = value as? Decimal {
            guard value.isFinite else { throw CodingFailure.notFinite("\(value)") }
            NSDecimalCompact(&value)
            encode(value.description)
        } else if tape.sortsUnordered, tape.isUnordered(T.self),
            let collection = value as? any UnorderedElements
        {
            tape.begin(node, .array)
            try collection.encodeElements(into: self)
        } else {
            return false
        }
        return true
    }

    private func encodeBytes(_ value: Data) {
        let start = tape.text.count
        value.withUnsafeBytes { tape.text.append(contentsOf: $0) }
        tape.set(node, .bytes)
        tape.setText(node, .bytes, from: start)
    }

    /// An encoder for one more element of this node, which is an array.
    func element() -> TapeEncoder {
        TapeEncoder(tape: tape, node: tape.appendElement(to: node), depth: depth + 1)
    }
}

extension Tape {
    /// Makes a node an array or an object, unless it is one already.
    func begin(_ index: UInt32, _ kind: Kind) {
        switch nodes[Int(index)].kind {
        case .unset: set(index, kind)
        case kind: break
        default:
            misuse =
                misuse ?? "a value encoded itself in two ways: as \(nodes[Int(index)].kind)"
                + " and as \(kind)"
            set(index, kind)
        }
    }

    /// Whether a type is a collection whose own encoding has no fixed order.
    func isUnordered(_ type: any Any.Type) -> Bool {
        let key = ObjectIdentifier(type)
        if let known = unorderedTypes[key] { return known }
        let isUnordered = (type as? any UnorderedElements.Type)?.isUnordered ?? false
        unorderedTypes[key] = isUnordered
        return isUnordered
    }

    /// The canonical bytes of one node.
    func canonicalBytes(of index: UInt32) throws(CodingFailure) -> [UInt8] {
        var writer = JSONWriter()
        try writer.write(self, index)
        return writer.bytes
    }
}

/// A collection that encodes its elements in an order that differs from process to process.
private protocol UnorderedElements {
    static var isUnordered: Bool { get }
    /// Encodes the elements in the order of their canonical bytes.
    func encodeElements(into encoder: TapeEncoder) throws
}

extension Set: UnorderedElements where Element: Encodable {
    static var isUnordered: Bool { true }

    func encodeElements(into encoder: TapeEncoder) throws {
        for element in self { try encoder.element().encode(element) }
        let tape = encoder.tape
        let sorted = try tape.children(of: encoder.node)
            .map { (node: $0, bytes: try tape.canonicalBytes(of: $0)) }
            .sorted { $0.bytes.lexicographicallyPrecedes($1.bytes) }
        tape.relink(encoder.node, sorted.map(\.node))
    }
}

extension Dictionary: UnorderedElements where Key: Encodable, Value: Encodable {
    /// Dictionaries whose keys can be texts are objects, whose members are sorted anyway.
    static var isUnordered: Bool {
        !(Key.self == String.self || Key.self == Int.self
            || Key.self is any CodingKeyRepresentable.Type)
    }

    func encodeElements(into encoder: TapeEncoder) throws {
        let tape = encoder.tape
        var pairs: [(key: UInt32, value: UInt32, bytes: [UInt8])] = []
        for (key, value) in self {
            let (keySlot, valueSlot) = (encoder.element(), encoder.element())
            try keySlot.encode(key)
            try valueSlot.encode(value)
            pairs.append((keySlot.node, valueSlot.node, try tape.canonicalBytes(of: keySlot.node)))
        }
        pairs.sort { $0.bytes.lexicographicallyPrecedes($1.bytes) }
        tape.relink(encoder.node, pairs.flatMap { [$0.key, $0.value] })
    }
}

/// Writes the members of one object.
struct KeyedTapeWriter<Key: CodingKey>: KeyedEncodingContainerProtocol {
    let tape: Tape
    let node: UInt32
    let depth: UInt32

    var codingPath: [any CodingKey] { tape.path(to: node) }

    private func slot(_ key: some CodingKey) -> TapeEncoder {
        let member = tape.appendMember(to: node, key: key.stringValue)
        return TapeEncoder(tape: tape, node: member, depth: depth + 1)
    }

    func encodeNil(forKey key: Key) { slot(key).encodeNil() }
    func encode<T: TapeScalar>(_ value: T, forKey key: Key) { slot(key).encode(value) }
    func encode<T: Encodable>(_ value: T, forKey key: Key) throws { try slot(key).encode(value) }

    func nestedContainer<NestedKey: CodingKey>(
        keyedBy type: NestedKey.Type, forKey key: Key
    ) -> KeyedEncodingContainer<NestedKey> {
        slot(key).container(keyedBy: type)
    }

    func nestedUnkeyedContainer(forKey key: Key) -> any UnkeyedEncodingContainer {
        slot(key).unkeyedContainer()
    }

    func superEncoder() -> any Encoder { slot(TapeKey(stringValue: "super")) }
    func superEncoder(forKey key: Key) -> any Encoder { slot(key) }
}

/// Writes the elements of one array.
struct UnkeyedTapeWriter: UnkeyedEncodingContainer {
    let tape: Tape
    let node: UInt32
    let depth: UInt32

    var codingPath: [any CodingKey] { tape.path(to: node) }
    var count: Int { Int(tape.nodes[Int(node)].count) }

    private func slot() -> TapeEncoder {
        TapeEncoder(tape: tape, node: tape.appendElement(to: node), depth: depth + 1)
    }

    func encodeNil() { slot().encodeNil() }
    func encode<T: TapeScalar>(_ value: T) { slot().encode(value) }
    func encode<T: Encodable>(_ value: T) throws { try slot().encode(value) }

    func nestedContainer<NestedKey: CodingKey>(
        keyedBy type: NestedKey.Type
    ) -> KeyedEncodingContainer<NestedKey> {
        slot().container(keyedBy: type)
    }

    func nestedUnkeyedContainer() -> any UnkeyedEncodingContainer { slot().unkeyedContainer() }
    func superEncoder() -> any Encoder { slot() }
}
