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
    package func decode<Value: Codable>(
        from bytes: [UInt8], filling defaults: Value
    ) throws(CodingFailure) -> Value {
        let tape = Tape()
        try JSONReader.read(bytes, into: tape)
        tape.defaults = Defaults(defaults)
        return try tape.decode(Value.self)
    }
}

/// The parts of a value that stand for what a snapshot lacks.
final class Defaults {
    private let whole: any Encodable
    /// The encoded value, once something is missing.
    private var encoded: Tape?

    init(_ whole: some Encodable) { self.whole = whole }

    private func tape() throws(CodingFailure) -> Tape {
        if let encoded { return encoded }
        let tape = Tape()
        tape.reset()
        tape.sortsUnordered = true
        tape.marksVarying = true
        try tape.encode(whole)
        encoded = tape
        return tape
    }

    /// The default for a missing member.
    ///
    /// - Throws: That there is none.
    func value(at place: [String]) throws(CodingFailure) -> JSONValue {
        let tape = try tape()
        var node: UInt32 = 0
        for token in place {
            guard tape.nodes[Int(node)].kind == .object, !tape.nodes[Int(node)].isVarying,
                let member = tape.member(of: node, key: token)
            else { throw Self.none(at: place) }
            node = member
        }
        return tape.jsonValue(at: node)
    }

    private static func none(at place: [String]) -> CodingFailure {
        let parent = JSONPointer(tokens: place.dropLast())
        return CodingFailure(
            .missingField,
            """
            \(place.count > 1 ? "at \(parent): " : "")expected a field \
            "\(place.last ?? "")", and there is no default for it: the default value has nothing there, \
            or it is inside an element of a collection, the values of a case, or an optional that is nil. Decode \
            this part as the type that it was, and make the new one of it
            """)
    }
}

extension Tape {
    /// Adds a member that an object lacks, while a type reads it.
    ///
    /// - Returns: The member; nil if there are no defaults.
    func addDefault(_ key: String, to object: UInt32) throws(CodingFailure) -> UInt32? {
        guard let defaults else { return nil }
        let place = path(to: object).map(\.stringValue) + [key]
        let value = try defaults.value(at: place)
        // So far, `last` is the child that was found last.
        for child in children(of: object) { nodes[Int(object)].last = child }
        let member = appendMember(to: object, key: key)
        try fill(member, with: value, depth: place.count)
        return member
    }
}
