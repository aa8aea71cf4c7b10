import Conflux
import ConfluxVocabulary

/// The description of what is asked of the past.
extension OpenAPI {
    static let without = parameter(
        "without", in: "query",
        "The number of an action for the store: the state as if it had never been ordered.",
        sequence)

    /// What is kept of stores that the gateway does not serve. Those that it serves have paths of their own.
    static var kept: JSONValue {
        let name: JSONValue = ["type": "string", "pattern": "^[a-z0-9._-]{1,64}$"]
        return operation(
            "kept", "What the log keeps of a store that the gateway does not serve.",
            "The newest snapshot, also if the gateway does not have the code of the state. Later entries are not applied.",
            parameters: [
                parameter("state", in: "path", "The state's name.", name, isRequired: true),
                parameter("instance", in: "path", "The store's name.", name, isRequired: true),
                parameter(
                    "at", in: "query",
                    "The number of an entry: the newest snapshot that is not behind it.", sequence),
                timeout,
            ],
            answer(
                "The state at 'sequence', and why there is no newer one.",
                object(
                    [
                        "at": sequence,
                        "kept": ["type": "string", "enum": ["creation", "snapshot"]],
                        "log": text, "reason": text, "schemaVersion": ["type": "integer"],
                        "sequence": sequence, "state": [:], "store": text,
                    ], optional: ["at"])))
    }

    static func difference(_ store: StoreName) -> JSONValue {
        operation(
            "difference \(store)", "The difference between two states of a store.",
            "Without 'from', what the entry 'to' has changed; or, with 'without', what that action changes at 'to'.",
            parameters: [
                parameter("from", in: "query", "The number of the former state.", sequence),
                parameter(
                    "to", in: "query", "The number of the later state.", sequence,
                    isRequired: true),
                without, timeout,
            ],
            answer(
                "A JSON Patch (RFC 6902) that makes the later state of the former.",
                object([
                    "changes": ["type": "array", "items": ["type": "object"]], "from": sequence,
                    "store": text, "to": sequence,
                ])))
    }

    static func entries(_ store: StoreName) -> JSONValue {
        operation(
            "entries \(store)", "Actions for a store that are in the log.",
            "In the order of the log, with what the store made of each. Without 'after' and 'before', the last ones; with both, the first ones between them.",
            parameters: [
                parameter("after", in: "query", "The first ones behind this number.", sequence),
                parameter("before", in: "query", "The last ones before this number.", sequence),
                parameter(
                    "limit", in: "query", "How many at most.",
                    [
                        "type": "integer", "minimum": 1,
                        "maximum": .integer(JSONInteger(GatewayBounds.pastEntriesMax)),
                        "default": .integer(JSONInteger(GatewayBounds.pastEntries)),
                    ]),
                timeout,
            ],
            answer(
                "The actions, the lowest number at which the state can be shown, and the log's last number.",
                object([
                    "entries": ["type": "array", "items": entry], "floor": sequence,
                    "newest": sequence, "store": text,
                ])))
    }

    private static let entry = object(
        [
            "action": ["description": "null if the gateway can't decode it."], "origin": text,
            "outcome": ["type": "string", "enum": ["applied", "refused"]], "principal": text,
            "reason": text, "sequence": sequence,
            "timestamp": ["type": "string", "format": "date-time"],
        ], optional: ["principal", "reason"])
}
