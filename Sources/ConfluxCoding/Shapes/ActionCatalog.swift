import ConfluxVocabulary

/// The shapes of a type's actions: the names of the cases, and the fields of each.
///
/// A program that has the type derives the catalog. A program that only has JSON checks an action against the
/// catalog before sending it. The check only refuses what the type's own decoding certainly refuses: a name
/// that no case has, a field that no case reads, a missing field, or a value of the wrong kind.
package struct ActionCatalog: Hashable, Sendable {
    /// The kind of value that a field takes.
    package enum Kind: String, Hashable, Sendable {
        case any, boolean, integer, number, string, list, object
        /// A string that is a JSON pointer.
        case pointer

        /// A value of this kind.
        var example: JSONValue {
            switch self {
            case .any, .string: "text"
            case .boolean: true
            case .integer, .number: .integer(JSONInteger(1))
            case .list: []
            case .object: [:]
            case .pointer: "/a"
            }
        }
    }

    /// A field of an action.
    package struct Field: Hashable, Sendable {
        /// The kind of value that it takes.
        package var kind: Kind
        /// Whether it may be missing or null.
        package var isOptional: Bool
    }

    /// What is known of an action's fields.
    package enum Fields: Hashable, Sendable {
        case known([String: Field])
        /// The type's decoding does not reveal them.
        case unknown
    }

    /// The fields of each action, by its name.
    package private(set) var actions: [String: Fields]

    init(actions: [String: Fields]) {
        self.actions = actions
    }

    // MARK: As JSON

    /// Reads the JSON of a catalog, as ``json`` writes it.
    ///
    /// - Parameter json: The JSON from another program.
    /// - Throws: ``CodingFailure`` if it is not a catalog: then it can't be used for checks.
    package init(json: Bytes) throws(CodingFailure) {
        guard let cases = try JSONValue(json: json).object, !cases.isEmpty else {
            throw CodingFailure(.wrongType, "expected the shapes of actions")
        }
        actions = [:]
        for action in cases {
            guard let members = action.value.object else {
                actions[action.key] = .unknown
                continue
            }
            var fields: [String: Field] = [:]
            for member in members {
                let text = member.value.string ?? ""
                let isOptional = text.hasSuffix("?")
                // A kind that only newer programs know is not checked.
                let kind = Kind(rawValue: String(text.dropLast(isOptional ? 1 : 0))) ?? .any
                fields[member.key] = Field(kind: kind, isOptional: isOptional)
            }
            actions[action.key] = .known(fields)
        }
    }

    /// The catalog as JSON: `{"add":{"amount":"integer","note":"string?"},"reset":{}}`. A null stands for
    /// unknown fields.
    package var json: [UInt8] {
        var object = JSONObject()
        for (name, fields) in actions {
            guard case .known(let fields) = fields else {
                object[name] = .null
                continue
            }
            var members = JSONObject()
            for (key, field) in fields {
                members[key] = .string(field.kind.rawValue + (field.isOptional ? "?" : ""))
            }
            object[name] = .object(members)
        }
        return Array(JSONValue.object(object).description.utf8)
    }

    /// The shapes as people write actions: `{"add":{"amount":integer}}`, `reset`.
    package var lines: [String] {
        actions.sorted { $0.key < $1.key }.map { name, fields in
            guard case .known(let fields) = fields else { return "{\"\(name)\":{…}}" }
            guard !fields.isEmpty else { return name }
            let members = fields.sorted { $0.key < $1.key }.map { key, field in
                "\"\(key)\":\(field.kind.rawValue)\(field.isOptional ? "?" : "")"
            }
            return "{\"\(name)\":{\(members.joined(separator: ","))}}"
        }
    }

    /// An action of each name with made-up values, in the order of ``lines``: JSON, or the bare name of an action
    /// without fields. It has no optional fields.
    package var examples: [String] {
        actions.sorted { $0.key < $1.key }.map { name, fields in
            guard case .known(let fields) = fields else { return "{\"\(name)\":{}}" }
            guard !fields.isEmpty else { return name }
            var members = JSONObject()
            for (key, field) in fields where !field.isOptional { members[key] = field.kind.example }
            return JSONValue.object([name: .object(members)]).description
        }
    }

    /// The JSON Schema of the actions: what it accepts may still be refused by the type's own decoding, if that
    /// demands more than kinds of values.
    package var schema: JSONValue {
        let actions = actions.sorted { $0.key < $1.key }.map { name, fields -> JSONValue in
            [
                "type": "object", "required": [.string(name)], "additionalProperties": false,
                "properties": .object([name: Self.schema(of: fields)]),
            ]
        }
        return ["oneOf": .array(actions)]
    }

    private static func schema(of fields: Fields) -> JSONValue {
        guard case .known(let fields) = fields else { return ["type": "object"] }
        var properties = JSONObject()
        for (key, field) in fields { properties[key] = field.schema }
        let required = fields.filter { !$0.value.isOptional }.keys.sorted()
        return [
            "type": "object", "required": .array(required.map { .string($0) }),
            "additionalProperties": false, "properties": .object(properties),
        ]
    }

    // MARK: Checking

    /// Checks an action.
    ///
    /// - Parameters:
    ///   - action: The action.
    ///   - nearest: Finds the word that was probably meant.
    /// - Throws: ``CodingFailure``, with what was expected and what was probably meant.
    package func check(
        _ action: JSONValue, nearest: (_ word: String, _ candidates: [String]) -> String?
    ) throws(CodingFailure) {
        func hint(_ word: String, _ candidates: some Collection<String>) -> String {
            nearest(word, candidates.sorted()).map { ". Did you mean \"\($0)\"?" } ?? ""
        }
        let names = actions.keys.sorted()
        let expected = "expected one of: \(names.joined(separator: ", "))"
        guard let object = action.object else {
            throw CodingFailure(.unknownAction, "\(expected); found \(action.kindInWords)")
        }
        let members = Array(object)
        guard members.count == 1, let fields = actions[members[0].key] else {
            let found = members.prefix(5).map { "\"\($0.key.prefix(40))\"" }
            let text = found.isEmpty ? "none" : found.joined(separator: ", ")
            throw CodingFailure(
                .unknownAction,
                "\(expected); found \(text)"
                    + (members.count == 1 ? hint(members[0].key, names) : ""))
        }
        let name = members[0].key
        guard let content = members[0].value.object else {
            throw CodingFailure(
                .wrongType,
                "at /\(name): expected an object, found \(members[0].value.kindInWords)")
        }
        guard case .known(let fields) = fields else { return }
        for member in content {
            guard let field = fields[member.key] else {
                throw CodingFailure(
                    .unknownField,
                    "at /\(name): there is no field \"\(member.key.prefix(40))\""
                        + hint(member.key, fields.keys))
            }
            guard field.takes(member.value) else {
                throw CodingFailure(
                    .wrongType,
                    "at /\(name)/\(member.key): expected \(field.kind.rawValue), found "
                        + member.value.kindInWords)
            }
        }
        for (key, field) in fields.sorted(by: { $0.key < $1.key })
        where !field.isOptional && content[key] == nil {
            throw CodingFailure(.missingField, "at /\(name): the field \"\(key)\" is missing")
        }
    }
}

extension ActionCatalog.Field {
    fileprivate var schema: JSONValue {
        var schema: JSONObject =
            switch kind {
            case .any: [:]
            case .boolean: ["type": "boolean"]
            case .integer:
                [
                    "type": "integer", "minimum": .integer(JSONInteger(Int64.min)),
                    "maximum": .integer(JSONInteger(Int64.max)),
                ]
            case .number: ["type": "number"]
            case .string: ["type": "string"]
            case .list: ["type": "array"]
            case .object: ["type": "object"]
            // RFC 6901
            case .pointer: ["type": "string", "pattern": "^(/([^/~]|~[01])*)*$"]
            }
        if isOptional, let type = schema["type"] { schema["type"] = [type, "null"] }
        return .object(schema)
    }

    /// Whether the value is of this kind.
    fileprivate func takes(_ value: JSONValue) -> Bool {
        switch (kind, value) {
        case (.any, _), (.boolean, .bool), (.string, .string), (.list, .array), (.object, .object):
            true
        // Languages with only one kind of number write 5.0 for 5.
        case (.integer, .integer), (.integer, .number), (.number, .integer), (.number, .number):
            true
        case (.pointer, .string(let text)): (try? JSONPointer(text)) != nil
        default: isOptional && value == .null
        }
    }
}
