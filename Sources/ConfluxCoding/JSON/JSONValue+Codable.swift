extension JSONValue: Codable {
    /// Decodes any value. Conflux's own coders lose nothing; others may round numbers.
    ///
    /// - Parameter decoder: The decoder.
    /// - Throws: The decoder's error if the value has no type that JSON has.
    public init(from decoder: any Decoder) throws {
        if let own = decoder as? TapeDecoder {
            self = own.tape.jsonValue(at: own.node)
            return
        }
        if let object = try? decoder.container(keyedBy: TapeKey.self) {
            var members = JSONObject()
            for key in object.allKeys {
                members[key.stringValue] = try object.decode(JSONValue.self, forKey: key)
            }
            self = .object(members)
        } else if var array = try? decoder.unkeyedContainer() {
            var elements: [JSONValue] = []
            while !array.isAtEnd { elements.append(try array.decode(JSONValue.self)) }
            self = .array(elements)
        } else {
            self = try JSONValue(scalar: decoder.singleValueContainer())
        }
    }

    private init(scalar container: any SingleValueDecodingContainer) throws {
        if container.decodeNil() {
            self = .null
        } else if let value = try? container.decode(Bool.self) {
            self = .bool(value)
        } else if let value = try? container.decode(Int64.self) {
            self = .integer(JSONInteger(value))
        } else if let value = try? container.decode(UInt64.self) {
            self = .integer(JSONInteger(value))
        } else if let value = try? container.decode(Double.self) {
            self = .number(value)
        } else {
            self = .string(try container.decode(String.self))
        }
    }

    /// Encodes the value as itself.
    ///
    /// - Parameter encoder: The encoder.
    /// - Throws: The encoder's error.
    public func encode(to encoder: any Encoder) throws {
        if let own = encoder as? TapeEncoder {
            try own.tape.fill(own.node, with: self, depth: Int(own.depth))
            return
        }
        switch self {
        case .object(let members):
            var container = encoder.container(keyedBy: TapeKey.self)
            for member in members {
                try container.encode(member.value, forKey: TapeKey(stringValue: member.key))
            }
        case .array(let elements):
            var container = encoder.unkeyedContainer()
            for element in elements { try container.encode(element) }
        default:
            var container = encoder.singleValueContainer()
            switch self {
            case .bool(let value): try container.encode(value)
            case .integer(let value):
                if let small = value.converted(to: Int64.self) {
                    try container.encode(small)
                } else {
                    try container.encode(value.bits)
                }
            case .number(let value): try container.encode(value)
            case .string(let value): try container.encode(value)
            case .null, .array, .object: try container.encodeNil()
            }
        }
    }
}

extension Tape {
    /// The value of a node. The reader that filled the tape has bounded the depth.
    func jsonValue(at index: UInt32) -> JSONValue {
        let node = nodes[Int(index)]
        switch node.kind {
        case .unset, .null: return .null
        case .no: return .bool(false)
        case .yes: return .bool(true)
        case .natural, .negative:
            return .integer(JSONInteger(bits: node.payload, isNegative: node.kind == .negative))
        case .double: return .number(Double(bitPattern: node.payload))
        case .float: return .number(JSONWriter.double(of: node.floatValue))
        case .string: return .string(string(of: index))
        case .bytes: return .string(base64(of: index))
        case .array:
            var elements: [JSONValue] = []
            elements.reserveCapacity(Int(node.count))
            for child in children(of: index) { elements.append(jsonValue(at: child)) }
            return .array(elements)
        case .object:
            var members: [JSONObject.Member] = []
            members.reserveCapacity(Int(node.count))
            sortMembers(of: index)
            for child in children(of: index) {
                members.append(.init(key: key(of: child), value: jsonValue(at: child)))
            }
            return .object(JSONObject(sorted: members))
        }
    }

    /// Fills a node with a value.
    func fill(_ index: UInt32, with value: JSONValue, depth: Int) throws(CodingFailure) {
        switch value {
        case .null: set(index, .null)
        case .bool(let value): set(index, value ? .yes : .no)
        case .integer(let value): set(index, integer: value)
        case .number(let value): set(index, .double, payload: value.bitPattern)
        case .string(let value): set(index, string: value)
        case .array(let elements):
            try CodingLimits.checkNesting(at: depth)
            set(index, .array)
            for element in elements {
                try fill(appendElement(to: index), with: element, depth: depth + 1)
            }
        case .object(let members):
            try CodingLimits.checkNesting(at: depth)
            set(index, .object)
            for member in members {
                let child = appendMember(to: index, key: member.key)
                try fill(child, with: member.value, depth: depth + 1)
            }
        }
    }
}

extension Tape.Node {
    var floatValue: Float { Float(bitPattern: UInt32(truncatingIfNeeded: payload)) }
}

extension CodingLimits {
    /// Checks that an array or object may be nested in so many others.
    static func checkNesting(at depth: Int, offset: Int? = nil) throws(CodingFailure) {
        guard depth < depthMax else { throw .tooDeep(depthMax, offset: offset) }
    }
}

extension CodingFailure {
    static func tooDeep(_ bound: Int, offset: Int? = nil) -> CodingFailure {
        CodingFailure(
            .tooDeep, "expected at most \(bound) levels of arrays and objects", offset: offset)
    }
}
