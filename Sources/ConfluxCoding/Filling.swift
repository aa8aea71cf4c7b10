extension CanonicalCoder {
    /// Decodes a value of a type that may have more properties than the bytes: the missing ones get their
    /// values from `defaults`, at every depth.
    ///
    /// It only fills in properties that the type requires. There is no default inside an element of a collection, inside
    /// the values of an enumeration's case, and inside an optional that is nil in `defaults`.
    ///
    /// - Parameters:
    ///   - bytes: JSON in UTF-8.
    ///   - defaults: A value whose properties replace missing ones.
    /// - Returns: The value.
    /// - Throws: What was expected, and where. If there is no default for it, the message says so.
    /// - Complexity: Reads the bytes once more for each property that is filled in.
    package func decode<Value: Codable>(
        from bytes: [UInt8], filling defaults: Value
    ) throws(CodingFailure) -> Value {
        var missing: JSONPointer?
        if let value = try decode(Value.self, noting: &missing, in: bytes) { return value }
        var present = try JSONValue(json: bytes)
        let source = try Defaults(defaults)
        // Terminates: each round adds one more of the defaults' members.
        while let place = missing, present[place] == nil {
            guard let filling = source[place] else { throw Self.noDefault(at: place) }
            present.update(at: place.tokens[...]) { value, _ in value = filling }
            let bytes = try present.canonicalBytes()
            missing = nil
            if let value = try decode(Value.self, noting: &missing, in: bytes) { return value }
        }
        return try decode(Value.self, from: present.canonicalBytes())
    }

    private static func noDefault(at place: JSONPointer) -> CodingFailure {
        let parent = JSONPointer(tokens: place.tokens.dropLast())
        return CodingFailure(
            .missingField,
            """
            \(place.tokens.count > 1 ? "at \(parent): " : "")expected a field \
            "\(place.tokens.last ?? "")", and there is no default for it: the default value has nothing there, \
            or it is inside an element of a collection, the values of a case, or an optional that is nil. Decode \
            this part as the type that it was, and make the new one of it
            """)
    }

    /// Decodes. If the only fault is a missing member, it returns nil and the member's place.
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
            // Decode again to get the usual message.
            return try decode(type, from: bytes)
        }
    }
}

/// The parts of a value that stand for what a snapshot lacks.
private struct Defaults {
    private let tape = Tape()

    init(_ value: some Encodable) throws(CodingFailure) {
        tape.reset()
        tape.sortsUnordered = true
        tape.marksVarying = true
        try tape.encode(value)
    }

    /// The default for a missing member; nil if there is none.
    subscript(place: JSONPointer) -> JSONValue? {
        var node: UInt32 = 0
        for token in place.tokens {
            guard tape.nodes[Int(node)].kind == .object, !tape.nodes[Int(node)].isVarying,
                let member = tape.member(of: node, key: token)
            else { return nil }
            node = member
        }
        return tape.jsonValue(at: node)
    }
}
