import ConfluxCoding
import ConfluxVocabulary

/// An action with fields of every kind.
private enum SampleAction: Codable, Sendable, Equatable, NamedActions {
    case clear
    case add(amount: Int, small: UInt8, price: Double)
    case rename(from: String, to: String?)
    case put(tags: [String], table: [String: [Int]], nested: Nested)

    static let actionNames = ["clear", "add", "rename", "put"]

    struct Nested: Codable, Sendable, Equatable {
        var isSet: Bool
        var next: [Nested]?
    }
}

extension FuzzTarget {
    private static let actions = ActionCoder<SampleAction>()
    private static let values = ActionCoder<JSONValue>()

    /// The codings of payloads and states, and the actions of a command line.
    static let codingTargets: [FuzzTarget] = [
        FuzzTarget(name: "json", lengthMax: 4_096) { bytes in
            if let value = read({ try JSONValue(json: bytes) }) { check(value) }
            if let action = read({ try actions.decode(bytes[...], as: .json) }) { check(action) }
        },
        FuzzTarget(name: "compact", lengthMax: 4_096) { bytes in
            if let value = read({ try values.decode(bytes[...], as: .compact) }) { check(value) }
            if let action = read({ try actions.decode(bytes[...], as: .compact) }) {
                check(action)
            }
        },
        FuzzTarget(name: "canonical", lengthMax: 4_096) { bytes in
            let decoder = CanonicalCoder()
            guard let action = read({ try decoder.decode(SampleAction.self, from: bytes) }) else {
                return
            }
            let canonical = certain { try CanonicalCoder().encode(action) }
            let again = certain { try decoder.decode(SampleAction.self, from: canonical) }
            require(again == action, "another: \(action)")
        },
        FuzzTarget(name: "action-text", lengthMax: 1_024) { bytes in
            let text = String(decoding: bytes, as: UTF8.self)
            _ = read { try JSONValue(json: ActionText.json(commandLine: text)) }
            if let action = read({ try actions.decode(commandLine: text) }) { check(action) }
        },
    ]

    /// Decodes bytes. The only allowed results are a value or a `CodingFailure`.
    private static func read<Value>(_ decode: () throws -> Value) -> Value? {
        do {
            return try decode()
        } catch let failure as CodingFailure {
            require(!failure.description.isEmpty, "a \(failure.code) without words")
            return nil
        } catch {
            fail("no CodingFailure: \(error)")
        }
    }

    /// Checks that a value has one canonical form, and can be decoded from it and from each coding.
    private static func check(_ value: JSONValue) {
        let canonical = certain { try value.canonicalBytes() }
        let again = certain { try JSONValue(json: canonical) }
        require(again == value, "another: \(value)")
        require(certain { try again.canonicalBytes() } == canonical, "another form: \(value)")
        let compact = certain { try values.encode(value, as: .compact) }
        require(
            certain { try values.decode(compact[...], as: .compact) } == value,
            "another: \(value)")
    }

    private static func check(_ action: SampleAction) {
        for coding in PayloadCoding.allCases {
            let bytes = certain { try actions.encode(action, as: coding) }
            require(
                certain { try actions.decode(bytes[...], as: coding) } == action,
                "another: \(action)")
        }
    }
}
