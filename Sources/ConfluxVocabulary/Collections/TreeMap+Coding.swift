/// Encoded like a dictionary with the same elements. It becomes an object if the keys are texts,
/// integers, or of a type that can be a coding key; otherwise a list of alternating keys and
/// values.
extension TreeMap: Encodable where Key: Encodable, Value: Encodable {
    /// Encodes the elements in the order of their keys.
    public func encode(to encoder: any Encoder) throws {
        guard Key.self is any CodingKeyRepresentable.Type else {
            var list = encoder.unkeyedContainer()
            for (key, value) in self {
                try list.encode(key)
                try list.encode(value)
            }
            return
        }
        var object = encoder.container(keyedBy: TreeMapKey.self)
        for (key, value) in self {
            guard let key = (key as? any CodingKeyRepresentable)?.codingKey else { continue }
            try object.encode(value, forKey: TreeMapKey(key))
        }
    }
}

extension TreeMap: Decodable where Key: Decodable, Value: Decodable {
    /// Decodes what a map or a dictionary was encoded to.
    public init(from decoder: any Decoder) throws {
        let elements =
            if let type = Key.self as? any CodingKeyRepresentable.Type {
                try Self.members(of: decoder, keysOf: type)
            } else {
                try Self.pairs(of: decoder)
            }
        self.init(elements) { _, last in last }
    }

    private static func members(
        of decoder: any Decoder, keysOf type: any CodingKeyRepresentable.Type
    ) throws -> [(Key, Value)] {
        let object = try decoder.container(keyedBy: TreeMapKey.self)
        return try object.allKeys.map { codingKey in
            guard let key = type.init(codingKey: codingKey) as? Key else {
                throw DecodingError.dataCorruptedError(
                    forKey: codingKey, in: object,
                    debugDescription: "\"\(codingKey.stringValue)\" is no key of type \(Key.self)")
            }
            return (key, try object.decode(Value.self, forKey: codingKey))
        }
    }

    private static func pairs(of decoder: any Decoder) throws -> [(Key, Value)] {
        var list = try decoder.unkeyedContainer()
        var pairs: [(Key, Value)] = []
        while !list.isAtEnd {
            let key = try list.decode(Key.self)
            guard !list.isAtEnd else {
                throw DecodingError.dataCorruptedError(
                    in: list, debugDescription: "The last key has no value.")
            }
            pairs.append((key, try list.decode(Value.self)))
        }
        return pairs
    }
}

/// The key of an element, in the form that a coder needs.
private struct TreeMapKey: CodingKey {
    let stringValue: String
    let intValue: Int?

    init(_ key: any CodingKey) {
        stringValue = key.stringValue
        intValue = key.intValue
    }

    init?(stringValue: String) {
        self.stringValue = stringValue
        intValue = Int(stringValue)
    }

    init?(intValue: Int) {
        stringValue = "\(intValue)"
        self.intValue = intValue
    }
}
